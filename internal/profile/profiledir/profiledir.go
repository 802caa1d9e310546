// Package profiledir knows where profiles and their plans lie on this host.
package profiledir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/host"
	"claudebox/internal/linux/smallfile"
	"claudebox/internal/nix/storepath"
	"claudebox/internal/profile"
)

// Folders are where claudebox keeps and looks for things on this host.
type Folders struct {
	Home   string // CLAUDEBOX_HOME: instances, profiles, plans
	Config string // XDG_CONFIG_HOME/claudebox
	Cache  string // XDG_CACHE_HOME/claudebox
	Beside string // where the manifest is: what this claudebox was built with; empty: nothing
}

// SystemFolder is where a NixOS module puts profiles and plans.
const SystemFolder = "/etc/claudebox"

// FoldersOf follows CLAUDEBOX_HOME and the XDG base directory specification.
// Manifest is claudebox's own file, or empty.
func FoldersOf(f host.Facts, manifest string) Folders {
	within := func(variable, fallback, name string) string {
		base := f.Env.Value(variable, "")
		if !filepath.IsAbs(base) { // the XDG specification: a relative path is ignored
			base = filepath.Join(f.Home, fallback)
		}
		return filepath.Join(base, name)
	}
	beside := ""
	if manifest != "" {
		beside = filepath.Dir(manifest)
	}
	return Folders{
		Beside: beside,
		Home:   within("CLAUDEBOX_HOME", ".claudebox", ""),
		Config: within("XDG_CONFIG_HOME", ".config", "claudebox"),
		Cache:  within("XDG_CACHE_HOME", ".cache", "claudebox"),
	}
}

// Own are the folders that no project may lie in or hold.
func (f Folders) Own() []string { return []string{f.Home, f.Config, f.Cache} }

// Search are the places of profiles and plans, first match first.
func (f Folders) Search() []string {
	places := []string{f.Home, f.Config, SystemFolder}
	if f.Beside != "" {
		places = append(places, f.Beside)
	}
	return places
}

// Files looks profiles up on disk; it is a [profile.Opener].
type Files struct {
	Home    string // the user's, for what begins with "~/"
	cwd     string
	uid     int
	folders []string // where names are looked up, first match first
	// Seen is called with each file before it is looked for; it may be nil.
	Seen func(file string)
}

// read reads a profile file, and notes how it was found.
func (f Files) read(file string) ([]byte, error) {
	if f.Seen != nil {
		f.Seen(file)
	}
	return Read(file, f.uid)
}

// New looks where [Folders.Search] says.
func New(f host.Facts, manifest string) Files {
	files := Files{cwd: f.Cwd, Home: f.Home, uid: f.UID}
	for _, dir := range FoldersOf(f, manifest).Search() {
		files.folders = append(files.folders, filepath.Join(dir, "profiles"))
	}
	return files
}

// Own is the folder of the user's own profiles.
func (f Files) Own() string { return f.folders[0] }

// Open finds and reads a profile as [profile.Opener] asks. A file that a
// profile extends is relative to that profile, one of the command line to
// the current folder.
func (f Files) Open(ref string, from diag.Position) (name, file string, src []byte, err error) {
	if !profile.IsFile(ref) {
		return f.openName(ref)
	}
	file = f.Absolute(ref, from)
	src, err = f.read(file)
	if errors.Is(err, fs.ErrNotExist) {
		err = &profile.NotFoundError{Ref: ref}
	}
	return profile.NameOf(file), f.Shown(file), src, err
}

func (f Files) openName(name string) (_, file string, src []byte, err error) {
	for _, folder := range f.folders {
		for _, extension := range profile.Extensions {
			file := filepath.Join(folder, name+extension)
			src, err := f.read(file)
			if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) {
				return name, f.Shown(file), src, err
			}
		}
	}
	return "", "", nil, &profile.NotFoundError{Ref: name, Looked: f.folders, Known: f.Names()}
}

// Absolute is the file that a reference names.
func (f Files) Absolute(ref string, from diag.Position) string {
	if rest, found := strings.CutPrefix(ref, "~/"); found {
		return filepath.Join(f.Home, rest)
	}
	if filepath.IsAbs(ref) {
		return filepath.Clean(ref)
	}
	folder := f.cwd
	if from.File != "" {
		folder = filepath.Dir(filepath.Join(f.cwd, from.File))
		if filepath.IsAbs(from.File) {
			folder = filepath.Dir(from.File)
		}
	}
	return filepath.Join(folder, ref)
}

// Shown is how messages show a file: short below the current folder. One file
// has one such text, and the text names the file.
func (f Files) Shown(file string) string {
	if rest, below := strings.CutPrefix(file, f.cwd+"/"); below {
		return rest
	}
	return file
}

// Entry is a profile, or the plan of one, that was found by its name.
type Entry struct {
	Name, File string
	Plan       bool   // a plan that a module made of a profile
	Behind     string // the file of the same name that comes first; empty: none
}

// List is everything that --profile can name, in the order of lookup, and the
// built-in profile last: in each place plans come before profiles. A folder
// that cannot be read is left out.
func (f Files) List() []Entry {
	var entries []Entry
	first := map[string]string{}
	add := func(folder string, names []string, plan bool) {
		for _, file := range names {
			name, file := strings.TrimSuffix(file, filepath.Ext(file)), filepath.Join(folder, file)
			entries = append(entries, Entry{name, file, plan, first[name]})
			if first[name] == "" {
				first[name] = file
			}
		}
	}
	for _, folder := range f.folders {
		plans := filepath.Join(filepath.Dir(folder), "plans")
		add(plans, filesIn(plans, []string{".json"}), true)
		add(folder, filesIn(folder, profile.Extensions), false)
	}
	return append(entries, Entry{profile.Default, profile.BuiltIn, false, first[profile.Default]})
}

// filesIn are the files of a folder with one of the extensions: by name, and
// then in the order of the extensions.
func filesIn(folder string, extensions []string) []string {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil
	}
	var files []string
	for _, extension := range extensions {
		for _, entry := range entries {
			if filepath.Ext(entry.Name()) == extension && entry.Name() != extension {
				files = append(files, entry.Name())
			}
		}
	}
	slices.SortStableFunc(files, func(a, b string) int {
		return strings.Compare(strings.TrimSuffix(a, filepath.Ext(a)), strings.TrimSuffix(b, filepath.Ext(b)))
	})
	return files
}

// Names are the names of all profiles, each once.
func (f Files) Names() []string {
	var names []string
	for _, entry := range f.List() {
		if !entry.Plan && !slices.Contains(names, entry.Name) {
			names = append(names, entry.Name)
		}
	}
	return names
}

// Read reads a file that may decide what the agent sees: a regular
// file that nobody but the user and root can write. Links are followed, as
// home-manager makes them, and what they lead to is judged.
func Read(file string, uid int) ([]byte, error) {
	fd, err := unix.Open(file, smallfile.Flags, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: file, Err: err}
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, fmt.Errorf("stat %s: %w", file, err)
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return nil, diag.Errorf("read "+file, "name a file", "it is not a regular file")
	case writableByOthers(st):
		return nil, diag.Errorf("read "+file, "chmod go-w "+file, "others may write it")
	case int(st.Uid) != uid && st.Uid != 0 && !inStore(fd):
		return nil, diag.Errorf("read "+file, "copy it to a file of your own", "it belongs to another user (uid %d)",
			st.Uid)
	}
	// One byte more than is taken lets the decoder say that it is too much.
	src, err := smallfile.ReadFD(fd, profile.MaxSize+1)
	if err != nil && !errors.Is(err, smallfile.ErrTooLarge) {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return src, nil
}

// writableByOthers allows a group that is the user's alone, which many
// distributions give each user together with a umask of 002: it has the
// user's own number.
func writableByOthers(st unix.Stat_t) bool {
	group := st.Mode&unix.S_IWGRP != 0 && st.Gid != st.Uid
	return group || st.Mode&unix.S_IWOTH != 0
}

// inStore reports whether an open file lies in the Nix store, which nobody
// writes. In a Nix build its owner is a user without a name.
func inStore(fd int) bool {
	target, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	return err == nil && strings.HasPrefix(target, storepath.Dir+"/")
}
