// Package mountinfo reads which mounts a process sees.
package mountinfo

import (
	"os"
	"strings"
)

// Mount is a mount: what lies at Root in the file system of a device is seen at Point.
type Mount struct{ Device, Root, Point string }

// Read returns the mounts that this process sees.
func Read() ([]Mount, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	return Parse(string(text)), err
}

// Parse reads the text of /proc/self/mountinfo (proc_pid_mountinfo(5)).
func Parse(text string) (list []Mount) {
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) > 4 {
			list = append(list, Mount{fields[2], unescape(fields[3]), unescape(fields[4])})
		}
	}
	return list
}

// unescape undoes the octal escapes of blanks and backslashes.
func unescape(text string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(text)
}
