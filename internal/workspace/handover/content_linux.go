package handover

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/beneath"
)

// The content of Git LFS's files lies beside git's objects, each by its sum, and git knows nothing of it. The agent has
// the user's where git-lfs looks for that of a repository which is borrowed from. What it adds crosses before the
// commits that name it; by its sum it is what it says.

// contents is the folder of those files in a git folder.
const contents = "lfs/objects"

const (
	// mostContents is how many files are looked at, and mostContent how many bytes cross in a hand-over.
	mostContents, mostContent = 20_000, int64(mostPack)
)

// content matches a file of that folder.
var content = regexp.MustCompile(`^([0-9a-f]{2})/([0-9a-f]{2})/([0-9a-f]{64})$`)

// Contents is the mount of the user's content of Git LFS; ok is false if there is none.
func (p Place) Contents() (m Mount, ok bool) {
	m = Mount{p.Outer + "/" + contents, p.Shared() + "/" + contents, false}
	info, err := os.Lstat(m.Source)
	return m, err == nil && info.IsDir()
}

// carryContents brings what the agent's folder has and the user's has not.
func (p Place) carryContents() error {
	from, err := p.openInner()
	if err != nil {
		return nil //nolint:nilerr // there is none
	}
	defer from.Close()
	list, err := contentsOf(from)
	if err != nil || len(list) == 0 {
		return err
	}
	if err := os.MkdirAll(p.Outer+"/"+contents, 0o755); err != nil {
		return err
	}
	to, err := beneath.Open(p.Outer + "/" + contents)
	if err != nil {
		return err
	}
	defer to.Close()
	left := mostContent
	for _, rel := range list {
		there, err := to.Look(rel)
		if err != nil {
			return err
		}
		if there.Kind != beneath.Absent {
			continue
		}
		n, err := carryContent(from, to, rel, left)
		if err != nil {
			return fmt.Errorf("content of Git LFS, %s: %w", path.Base(rel), err)
		}
		left -= n
	}
	return nil
}

func (p Place) openInner() (*beneath.Folder, error) {
	inner, err := beneath.Open(p.Inner())
	if err != nil {
		return nil, err
	}
	defer inner.Close()
	return inner.Sub(contents)
}

// contentsOf lists the files by their paths.
func contentsOf(f *beneath.Folder) (list []string, err error) {
	err = eachName(f, ".", func(a string) error {
		return eachName(f, a, func(b string) error {
			return eachName(f, b, func(rel string) error {
				what, err := f.Look(rel)
				parts := content.FindStringSubmatch(rel)
				if err == nil && what.Kind == beneath.Regular && parts != nil && parts[3][:4] == parts[1]+parts[2] {
					list = append(list, rel)
				}
				return nil // the agent's; it may be gone again
			})
		})
	})
	if len(list) > mostContents {
		err = beneath.ErrTooLarge
	}
	return list, err
}

// eachName calls a function with the path of each name in a folder of the agent's; what is none has none.
func eachName(f *beneath.Folder, at string, do func(rel string) error) error {
	names, err := f.Names(at, mostContents)
	if errors.Is(err, beneath.ErrTooLarge) {
		return err
	}
	for _, name := range names {
		if err := do(path.Join(at, name)); err != nil {
			return err
		}
	}
	return nil
}

// carryContent copies one file, if its sum is its name: else it is passed over. It returns how many bytes it has read.
func carryContent(from, to *beneath.Folder, rel string, most int64) (n int64, err error) {
	fd, err := from.OpenFD(rel, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return 0, nil //nolint:nilerr // the agent has taken it away
	}
	source := os.NewFile(uintptr(fd), rel)
	defer source.Close()
	if info, err := source.Stat(); err != nil || !info.Mode().IsRegular() {
		return 0, err
	}
	for _, dir := range []string{path.Dir(path.Dir(rel)), path.Dir(rel)} {
		if err := to.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return 0, err
		}
	}
	fresh := rel + ".claudebox"
	_ = to.Remove(fresh) // of one that was killed
	if err := to.Create(fresh, nil, 0o644); err != nil {
		return 0, err
	}
	defer func() { _ = to.Remove(fresh) }()
	if fd, err = to.OpenFD(fresh, unix.O_WRONLY); err != nil {
		return 0, err
	}
	target, sum := os.NewFile(uintptr(fd), fresh), sha256.New()
	n, err = io.Copy(io.MultiWriter(target, sum), io.LimitReader(source, most+1))
	if err = errors.Join(err, target.Close()); err != nil {
		return n, err
	}
	if n > most {
		return n, fmt.Errorf("it is more than %d GiB in one session", mostContent>>30)
	}
	if fmt.Sprintf("%x", sum.Sum(nil)) != path.Base(rel) {
		return n, nil
	}
	return n, to.Rename(fresh, rel)
}
