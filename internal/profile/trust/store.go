package trust

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/profile"
	"claudebox/internal/profile/grant"
)

// Verdict is the user's answer, allowed or denied, for one content of one file.
type Verdict struct {
	Version int    `json:"version"`
	Path    string `json:"path"`
	SHA256  string `json:"sha256"` // of the content
	Allowed bool   `json:"allowed"`
	// Changes are the widenings that were shown. Version 1 has them in Widens instead, as they were printed.
	Changes []grant.Change `json:"changes,omitempty"`
	Widens  []string       `json:"widens,omitempty"`
}

const verdictVersion = 2

// Decide returns the profile to use. If the verdict allows all that asked (base
// with the project's profile f merged on top) adds to base, that is asked, and
// there are no widenings. Otherwise it is what [grant.Narrow] returns: base narrowed by
// asked, and the widenings that were left out.
func (v Verdict) Decide(f File, base, asked profile.Profile, at grant.Place) (profile.Profile, []grant.Change) {
	narrowed, widenings := grant.Narrow(base, asked, at)
	if v.Allows(f, widenings) {
		return asked, nil
	}
	return narrowed, widenings
}

// On reports whether the verdict is for this path and this content.
func (v Verdict) On(f File) bool { return v.Path == f.Path && v.SHA256 == f.SHA256() }

// Allows reports whether the verdict is for f and allows every widening in list.
// That the content is the same is not enough: merged over another profile of the
// user it can widen more than it did when it was allowed.
func (v Verdict) Allows(f File, list []grant.Change) bool {
	return v.Allowed && v.On(f) && !slices.ContainsFunc(list, func(c grant.Change) bool {
		return !slices.ContainsFunc(v.Changes, c.Same) && !slices.Contains(v.Widens, c.String())
	})
}

// Store keeps verdicts: one file for each path, in the folder Dir. No agent
// can write there.
type Store struct {
	Dir string // below CLAUDEBOX_HOME; created with the first verdict
	UID int    // the user who must own the files; others are refused
}

const verdictLimit = 4 << 20 // bytes

func fileName(path string) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(path)))[:16] + ".json"
}

// Find returns the verdict for a path, or the zero Verdict if there is none. If the
// file is damaged, or others can write it, that is an error: the caller then has no
// verdict, and the next [Store.Keep] replaces the file.
func (s Store) Find(path string) (Verdict, error) {
	v, err := s.read(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Verdict{}, &diag.Error{
			Op: "read what you said of " + path, Err: err,
			Remedy: "say it again: `claudebox allow` or `claudebox deny`",
		}
	}
	return v, nil
}

// read reads the verdict for a path. The error is [fs.ErrNotExist] if there is none.
func (s Store) read(path string) (v Verdict, err error) {
	name := fileName(path)
	file := filepath.Join(s.Dir, name)
	dir, err := s.open()
	if err != nil {
		return v, err
	}
	defer dir.Close()
	what, err := dir.Look(name)
	const writableByOthers = 0o022
	switch {
	case err != nil:
		return v, err
	case what.Kind == beneath.Absent:
		return v, fs.ErrNotExist
	case what.Kind != beneath.Regular || what.UID != uint32(s.UID) || what.Perm&writableByOthers != 0:
		return v, errors.New(file + " is not a file that only you can write")
	}
	content, err := dir.Read(name, verdictLimit)
	if err == nil {
		err = json.Unmarshal(content, &v)
	}
	if err != nil || v.Version < 1 || v.Version > verdictVersion || v.Path != path {
		return Verdict{}, errors.New(file + " is damaged")
	}
	return v, nil
}

// Keep writes a verdict to its file, atomically, in place of an earlier one for the same path.
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

// open opens the folder Dir. Links in the path that leads to it are followed, as
// the user made them; Dir itself must not be a link.
func (s Store) open() (*beneath.Folder, error) {
	parent, err := filepath.EvalSymlinks(filepath.Dir(s.Dir))
	if err != nil {
		return nil, err
	}
	return beneath.Open(filepath.Join(parent, filepath.Base(s.Dir)))
}

// File is a project's own profile. It is read once, so that the bytes that are
// checked, shown and allowed are the same.
type File struct {
	Root   string // of the project
	Path   string // canonical
	Source []byte // YAML, also of a list of packages
}

// Name returns the path from the project's root.
func (f File) Name() string { return profile.ProjectFileOf(f.Path) }

// SHA256 returns the SHA-256 of the content, in hex.
func (f File) SHA256() string { return fmt.Sprintf("%x", sha256.Sum256(f.Source)) }

// Read reads the profile at the root of a project. It returns nil, nil if there is none. An agent may have made the
// file, so a link, pipe or folder of that name, or a file of more than [profile.MaxSize] bytes, is an error. So are two
// of them, and a file that looks like one and would not count.
func Read(root string) (*File, error) {
	dir, err := beneath.Open(root)
	if err != nil {
		return nil, diag.Wrap("look for "+profile.ProjectFile, err, "")
	}
	defer dir.Close()
	real, err := filepath.EvalSymlinks(root)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		return nil, diag.Wrap("look for "+profile.ProjectFile, err, "")
	}
	name, err := find(dir, real)
	if name == "" || err != nil {
		return nil, err
	}
	content, err := dir.Read(name, profile.MaxSize)
	if err != nil {
		return nil, refusal(filepath.Join(real, name), err)
	}
	if name == profile.ToolsFile {
		content = profile.OfTools(content)
	}
	return &File{Root: real, Path: filepath.Join(real, name), Source: content}, nil
}

// refusal is the error for a project's profile that is not read because of err.
func refusal(file string, err error) error {
	switch {
	case errors.Is(err, unix.ELOOP):
		err = errors.New("it is a link, which may lead anywhere")
	case errors.Is(err, unix.ENXIO): // a socket, or a device without a driver
		err = beneath.ErrNotRegular
	case errors.Is(err, beneath.ErrTooLarge):
		err = errors.New("it is larger than 1 MiB")
	}
	return diag.Wrap("read "+diag.Name(file), err, "look at it, and remove it or put a file in its place")
}

// everything is more entries than a folder has.
const everything = math.MaxInt32

// find returns the path of a project's own profile in its folder; empty: there is none. It fails where another file
// would be passed over: a second profile, or one that looks like it.
func find(dir *beneath.Folder, root string) (string, error) {
	names, err := dir.Names(".", everything)
	if err != nil {
		return "", diag.Wrap("look for "+profile.ProjectFile, err, "make the project's folder readable for you")
	}
	folder := path.Dir(profile.ToolsFile)
	var found, misnamed []string
	for _, name := range names {
		switch {
		case name == folder:
			tools, others, err := findTools(dir)
			if err != nil {
				return "", refusal(filepath.Join(root, folder), err)
			}
			found, misnamed = append(found, tools...), append(misnamed, others...)
		case name == profile.ProjectFile, name == profile.ProjectYML:
			found = append(found, name)
		case profile.IsMisnamed(name):
			misnamed = append(misnamed, name)
		}
	}
	slices.Sort(found)
	slices.Sort(misnamed)
	switch {
	case len(misnamed) > 0:
		return "", diag.Errorf("read "+diag.Name(filepath.Join(root, misnamed[0])),
			"write what it says into "+profile.ProjectFile+" (`man claudebox-profile`), and remove it or give it another "+
				"name",
			"it looks like a project's profile, but claudebox reads none of that name")
	case len(found) > 1:
		return "", diag.Errorf("read "+diag.Name(filepath.Join(root, found[0])),
			"write all into "+profile.ProjectFile+", and remove the other",
			"%s is there as well, and only one of them would count", found[1])
	case len(found) == 0:
		return "", nil
	}
	return found[0], nil
}

// findTools looks into the folder of [profile.ToolsFile] as [find] does.
func findTools(dir *beneath.Folder) (found, misplaced []string, err error) {
	folder := path.Dir(profile.ToolsFile)
	names, err := dir.Names(folder, everything)
	for _, name := range names {
		switch rel := folder + "/" + name; {
		case rel == profile.ToolsFile:
			found = append(found, rel)
		case profile.IsMisplaced(name):
			misplaced = append(misplaced, rel)
		}
	}
	return found, misplaced, err
}
