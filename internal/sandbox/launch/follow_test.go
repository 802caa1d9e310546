package launch

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"claudebox/checks/kit/must"
)

// What replaces resolv.conf may be no file, or one without end: its copy stays as it was, and nobody waits.
func TestACopyFollowsFilesOnly(t *testing.T) {
	dir := t.TempDir()
	original, copied := filepath.Join(dir, "original"), filepath.Join(dir, "copy")
	d := Descriptor{Follows: original, Folder: dir, Name: "copy"}
	for _, step := range []struct {
		name string
		make func() error
		want string
	}{
		{"a file", func() error { return os.WriteFile(original, []byte("nameserver 192.0.2.1"), 0o600) }, "nameserver 192.0.2.1"},
		{"a pipe", func() error { return syscall.Mkfifo(original, 0o600) }, "nameserver 192.0.2.1"},
		{"a device", func() error { return os.Symlink("/dev/zero", original) }, "nameserver 192.0.2.1"},
		{"a long file", func() error { return os.WriteFile(original, make([]byte, 1<<20+1), 0o600) }, "nameserver 192.0.2.1"},
		{"another file", func() error { return os.WriteFile(original, []byte("nameserver ::1"), 0o600) }, "nameserver ::1"},
	} {
		os.Remove(original)
		must.Do(t, step.make())
		done := make(chan struct{})
		go func() { update(d); close(done) }()
		select {
		case <-done:
		case <-time.After(20 * time.Second):
			t.Fatalf("%s: it waits", step.name)
		}
		if got, err := os.ReadFile(copied); err != nil || string(got) != step.want {
			t.Errorf("%s: the copy has %q, %v", step.name, got, err)
		}
	}
}
