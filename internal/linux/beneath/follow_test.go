package beneath_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"claudebox/checks/kit/must"
	"claudebox/internal/linux/beneath"
)

func TestFollowShowsEachComponentBeforeItCounts(t *testing.T) {
	top, err := beneath.Canonical(t.TempDir())
	must.Do(t, err)
	must.Do(t, os.MkdirAll(filepath.Join(top, "a/b"), 0o700))
	must.Write(t, filepath.Join(top, "a/b/file"), "")
	must.Do(t, os.Symlink("a", filepath.Join(top, "relative")))
	must.Do(t, os.Symlink(filepath.Join(top, "a/b"), filepath.Join(top, "absolute")))
	must.Do(t, os.Symlink("circle", filepath.Join(top, "circle")))
	errRefused := errors.New("refused")
	for name, tc := range map[string]struct {
		path, end string
		links     []string // shown as links that are the last component for now
		refuse    string
		err       error
	}{
		"without a link":     {path: "a/b/file", end: "a/b/file"},
		"over a link":        {path: "relative/b/file", end: "a/b/file"},
		"to a link":          {path: "absolute", end: "a/b", links: []string{"absolute"}},
		"in a circle":        {path: "circle", err: unix.ELOOP},
		"to nothing":         {path: "relative/c", err: fs.ErrNotExist},
		"over what met bars": {path: "relative/b/file", refuse: "relative", err: errRefused},
	} {
		t.Run(name, func(t *testing.T) {
			var links []string
			end, err := beneath.Follow(beneath.OnDisk{}, top, tc.path, func(at string, info fs.FileInfo, last bool) error {
				rel, _ := filepath.Rel(top, at)
				if rel == tc.refuse {
					return errRefused
				}
				if last && info.Mode()&fs.ModeSymlink != 0 {
					links = append(links, rel)
				}
				return nil
			})
			if !errors.Is(err, tc.err) || (err == nil) != (tc.err == nil) {
				t.Fatalf("got %v, want %v", err, tc.err)
			}
			if err == nil && (end != filepath.Join(top, tc.end) || !slices.Equal(links, tc.links)) {
				t.Errorf("got %s by %q, want %s by %q", end, links, tc.end, tc.links)
			}
		})
	}
}
