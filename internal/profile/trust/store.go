package trust

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/profile"
)

// Verdict is what the user said of one content of one file.
type Verdict struct {
	Version int      `json:"version"`
	Path    string   `json:"path"`
	SHA256  string   `json:"sha256"` // of the content
	Allowed bool     `json:"allowed"`
	Widens  []string `json:"widens,omitempty"` // what was shown and allowed
}

const verdictVersion = 1

// Decide gives the profile that counts, and what of the asked one is left out
// because the user was not asked yet.
func (v Verdict) Decide(f File, base, asked profile.Profile, at Place) (profile.Profile, []Widening) {
	narrowed, widenings := Narrow(base, asked, at)
	if v.Allows(f, widenings) {
		return asked, nil
	}
	return narrowed, widenings
}

// On reports whether the verdict is on this content at this place.
func (v Verdict) On(f File) bool { return v.Path == f.Path && v.SHA256 == f.SHA256() }

// Allows reports whether all of a list was shown and allowed. The same content
// can ask for more over another profile than it did over the one it was
// allowed with.
func (v Verdict) Allows(f File, list []Widening) bool {
	return v.Allowed && v.On(f) &&
		!slices.ContainsFunc(list, func(w Widening) bool { return !slices.Contains(v.Widens, w.What) })
}

// Store keeps verdicts: one file for each path, in the folder Dir. No agent
// can write there.
type Store struct {
	Dir string // below CLAUDEBOX_HOME; made when the first verdict is kept
	UID int    // who must own what is believed
}

const verdictLimit = 4 << 20 // bytes

func fileName(path string) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(path)))[:16] + ".json"
}

// Find gives the verdict on a path; zero when there is none. One that cannot
// be believed is an error: it is then as good as none, and a new one replaces
// it.
func (s Store) Find(path string) (Verdict, error) {
	file := filepath.Join(s.Dir, fileName(path))
	failed := func(err error) (Verdict, error) {
		return Verdict{}, &diag.Error{
			Op: "read what you said of " + path, Err: err,
			Remedy: "say it again: `claudebox allow` or `claudebox deny`",
		}
	}
	dir, err := s.open()
	if errors.Is(err, fs.ErrNotExist) {
		return Verdict{}, nil
	}
	if err != nil {
		return failed(err)
	}
	defer dir.Close()
	what, err := dir.Look(fileName(path))
	const writableByOthers = 0o022
	switch {
	case err != nil:
		return failed(err)
	case what.Kind == beneath.Absent:
		return Verdict{}, nil
	case what.Kind != beneath.Regular || what.UID != uint32(s.UID) || what.Perm&writableByOthers != 0:
		return failed(errors.New(file + " is not a file that only you can write"))
	}
	content, err := dir.Read(fileName(path), verdictLimit)
	var v Verdict
	if err == nil {
		err = json.Unmarshal(content, &v)
	}
	if err != nil || v.Version != verdictVersion || v.Path != path {
		return failed(errors.New(file + " is damaged"))
	}
	return v, nil
}

// Keep writes a verdict down, whole or not at all.
func (s Store) Keep(v Verdict) error {
	v.Version = verdictVersion
	content, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if err = os.MkdirAll(s.Dir, 0o700); err == nil {
		var dir *beneath.Folder
		if dir, err = s.open(); err == nil {
			defer dir.Close()
			err = dir.Replace(fileName(v.Path), append(content, '\n'), 0o600)
		}
	}
	if err != nil {
		return diag.Wrap("keep your word in "+s.Dir, err,
			"make it a folder that you can write, with space on its disk")
	}
	return nil
}

// open opens the folder. The way to it is the user's own, links and all; the
// folder itself must be one.
func (s Store) open() (*beneath.Folder, error) {
	parent, err := filepath.EvalSymlinks(filepath.Dir(s.Dir))
	if err != nil {
		return nil, err
	}
	return beneath.Open(filepath.Join(parent, filepath.Base(s.Dir)))
}

// File is a project's own profile as it was read once: what is judged, shown
// and allowed are these bytes.
type File struct {
	Path   string // canonical
	Source []byte
}

// SHA256 is of the content, in hex.
func (f File) SHA256() string { return fmt.Sprintf("%x", sha256.Sum256(f.Source)) }

// Read reads the profile at the root of a project; nil when there is none,
// which costs one system call. The file may be anything an agent can make: a
// link, a pipe or a folder of that name, or more than [profile.MaxSize] bytes,
// is refused.
func Read(root string) (*File, error) {
	content, err := beneath.ReadIn(root, profile.ProjectFile, profile.MaxSize)
	if errors.Is(err, unix.ENOENT) {
		return nil, nil
	}
	real, wayErr := filepath.EvalSymlinks(root)
	if wayErr == nil {
		real, wayErr = filepath.Abs(real)
	}
	file := filepath.Join(real, profile.ProjectFile)
	switch {
	case errors.Is(err, unix.ELOOP):
		err = errors.New("it is a link, which may lead anywhere")
	case errors.Is(err, unix.ENXIO): // a socket, or a device without a driver
		err = beneath.ErrNotRegular
	case errors.Is(err, beneath.ErrTooLarge):
		err = errors.New("it is larger than 1 MiB")
	}
	if err = errors.Join(err, wayErr); err != nil {
		return nil, diag.Wrap("read "+file, err, "look at it, and remove it or put a file in its place")
	}
	return &File{Path: file, Source: content}, nil
}
