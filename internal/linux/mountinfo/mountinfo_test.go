package mountinfo

import (
	"slices"
	"testing"
)

func TestParse(t *testing.T) {
	got := Parse("22 1 0:21 / /proc rw - proc proc rw\n31 1 8:1 /a\\040b /nix/store/x\\134y ro,nosuid - ext4 /dev/sda1 rw\nshort line\n32 1 8:1 / /a\u00a0b\r\u3000c rw - ext4 x rw\n")
	want := []Mount{{"0:21", "/", "/proc", "proc", "22", false}, {"8:1", "/a b", `/nix/store/x\y`, "ext4", "31", true}, {"8:1", "/", "/a\u00a0b\r\u3000c", "ext4", "32", false}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v; want %v", got, want)
	}
	if far := Parse("40 1 0:50 / /home/u/cloud rw shared:1 - fuse.rclone x rw\n"); !far[0].IsFar() || want[1].IsFar() || !want[0].IsKernels() || want[1].IsKernels() {
		t.Errorf("got %v", far)
	}
	if list, err := Read(); err != nil || !slices.ContainsFunc(list, func(m Mount) bool { return m.Point == "/proc" }) {
		t.Errorf("this process sees %v, %v", list, err)
	}
}
