package identity_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"claudebox/checks/kit/must"
	"claudebox/internal/linux/identity"
)

func id(t *testing.T, file string) identity.ID {
	t.Helper()
	got := identity.At(unix.AT_FDCWD, file)
	if got == "" {
		t.Fatalf("%s has no identity", file)
	}
	return got
}

func TestAFileIsKnownByAnyName(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"a", "b"} {
		must.Write(t, file(name), "")
	}
	a, b := id(t, file("a")), id(t, file("b"))
	if a == b {
		t.Errorf("two files are one: %s", a)
	}
	must.Do(t, os.Rename(file("a"), file("c")))
	must.Do(t, os.Link(file("c"), file("d")))
	if c, d := id(t, file("c")), id(t, file("d")); c != a || d != a {
		t.Errorf("%s is called %s and %s", a, c, d)
	}
	fd, err := unix.Open(file("c"), unix.O_PATH, 0)
	must.Do(t, err)
	defer unix.Close(fd)
	if got := identity.Of(fd); got != a {
		t.Errorf("open: %s, want %s", got, a)
	}
	if got := identity.At(unix.AT_FDCWD, file("none")); got != "" {
		t.Errorf("nothing is %s", got)
	}
}
