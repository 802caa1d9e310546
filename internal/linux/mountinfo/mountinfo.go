// Package mountinfo reads which mounts a process sees.
package mountinfo

import (
	"os"
	"slices"
	"strings"
)

// Mount is a mount: what lies at Root in the file system of a device is seen at Point.
type Mount struct {
	Device, Root, Point, Type string
	ID                        string
	ReadOnly                  bool
}

// IsKernels reports whether the files of a mount are the kernel's answers, and nobody keeps anything there.
func (m Mount) IsKernels() bool {
	kinds := strings.Fields(`binfmt_misc bpf cgroup cgroup2 configfs debugfs devpts efivarfs fusectl hugetlbfs mqueue nsfs
		proc pstore securityfs sysfs tracefs`)
	return slices.Contains(kinds, m.Type)
}

// IsFar reports whether a program or another machine answers what is asked of a mount, and may not.
func (m Mount) IsFar() bool {
	kind, _, _ := strings.Cut(m.Type, ".")
	return slices.Contains([]string{"nfs", "nfs4", "cifs", "smb3", "9p", "fuse", "autofs", "ceph", "afs"}, kind)
}

// Read returns the mounts that this process sees.
func Read() ([]Mount, error) { return readOf("self") }

// readOf returns those that a process sees.
func readOf(process string) ([]Mount, error) {
	text, err := os.ReadFile("/proc/" + process + "/mountinfo")
	return Parse(string(text)), err
}

// Parse reads the text of /proc/self/mountinfo (proc_pid_mountinfo(5)).
func Parse(text string) (list []Mount) {
	for line := range strings.Lines(text) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), " ") // other blanks stand for themselves
		if len(fields) < 6 {
			continue
		}
		_, kind, _ := strings.Cut(line, " - ")
		kind, _, _ = strings.Cut(kind, " ")
		list = append(list, Mount{
			Device: fields[2], Root: unescape(fields[3]), Point: unescape(fields[4]), Type: kind,
			ID: fields[0], ReadOnly: slices.Contains(strings.Split(fields[5], ","), "ro"),
		})
	}
	return list
}

// unescape undoes the octal escapes of blanks and backslashes.
func unescape(text string) string {
	if !strings.Contains(text, `\`) {
		return text // as nearly all, without the tables of a replacer
	}
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(text)
}
