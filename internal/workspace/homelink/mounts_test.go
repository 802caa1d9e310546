package homelink

import (
	"fmt"
	"slices"
	"testing"

	"claudebox/internal/linux/mountinfo"
)

// A bind mount is no link, and shows the same file at two paths: either of them may be in the home.
func TestWhatIsBoundElsewhere(t *testing.T) {
	const host = "22 1 254:0 / / rw - ext4 /dev/vda rw\n23 22 0:5 / /proc rw - proc proc rw\n24 22 254:1 /u /home/u rw - ext4 /dev/vdb rw\n"
	q := Question{Home: "/home/u", Folders: []string{"/opt/tools", "/usr/bin"}}
	for name, tc := range map[string]struct {
		mounts string
		want   []string
	}{
		"nothing":                         {"", nil},
		"a file of the home":              {"30 24 254:1 /u/p/zshenv /home/u/.zshenv rw - x x rw\n", []string{"/home/u/.zshenv > /home/u/p/zshenv"}},
		"a folder, with blanks":           {`30 24 254:1 /u/my\040p/cl /home/u/.claude rw - x x rw` + "\n", []string{"/home/u/.claude > /home/u/my p/cl"}},
		"a folder of PATH":                {"30 24 254:1 /u/p/bin /opt/tools rw - x x rw\n", []string{"/opt/tools > /home/u/p/bin"}},
		"a secret of the home, elsewhere": {"30 24 254:1 /u/.ssh /home/u/p/x rw - x x rw\n", []string{"/home/u/.ssh > /home/u/p/x"}},
		"all of the home":                 {"30 24 254:1 /u /home/u/p/x rw - x x rw\n", []string{"/home/u > /home/u/p/x", "/home/u > /home/u/p/x"}},
		"what no tool looks at":           {"30 24 254:1 /u/a /home/u/b rw - x x rw\n31 24 254:1 /u/a /home/u/.cache/b rw - x x rw\n", nil},
		"another file system":             {"30 24 254:9 /u/p/zshenv /home/u/.zshenv rw - x x rw\n", nil},
	} {
		var got []string
		for _, l := range q.bound(mountinfo.Parse(host + tc.mounts)) {
			got = append(got, l.Path+" > "+l.Leads)
		}
		if slices.Sort(got); !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %s, want %s", name, fmt.Sprintf("%q", got), tc.want)
		}
	}
}
