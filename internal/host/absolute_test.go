package host

import "testing"

func TestAPathOfTheCommandLineIsFromTheFolderTheHomeOrTheRoot(t *testing.T) {
	f := Facts{Home: "/home/u", Cwd: "/home/u/project"}
	for path, want := range map[string]string{
		"x/../y": "/home/u/project/y", "~": "/home/u", "~/x": "/home/u/x", "~x": "/home/u/project/~x", "/a//b/": "/a/b",
	} {
		if got := f.Absolute(path); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}
