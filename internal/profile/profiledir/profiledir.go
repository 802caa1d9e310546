// Package profiledir finds and reads profiles, and plans made from them, on this host.
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

// Folders are the folders where claudebox stores and searches files on this host.
type Folders struct {
	Home   string // CLAUDEBOX_HOME: instances, profiles, plans
	Config string // XDG_CONFIG_HOME/claudebox
	Cache  string // XDG_CACHE_HOME/claudebox
	Beside string // the folder of the manifest that this claudebox was built with; empty: it has none
}

// SystemFolder is where the NixOS module puts profiles and plans.
const SystemFolder = "/etc/claudebox"

// JudgeHome returns an error if CLAUDEBOX_HOME is relative. To ignore it would drop the profiles of that folder, which
// may be narrower than the ones that would be found.
func JudgeHome(f host.Facts) error {
	home := f.Env.Value("CLAUDEBOX_HOME", "")
	if home == "" || filepath.IsAbs(home) {
		return nil
	}
	return diag.Errorf("read CLAUDEBOX_HOME", "write it as a path that begins with a slash",
		"%q is relative, and no folder to keep profiles and instances in", home)
}

// FoldersOf returns the folders by CLAUDEBOX_HOME and the XDG base directory
// specification. manifest is the path of claudebox's manifest, or empty.
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

// Own returns claudebox's own folders. No project may lie in one of them or contain one.
func (f Folders) Own() []string { return []string{f.Home, f.Config, f.Cache} }

// Search returns the folders to search for profiles and plans; the first match wins.
func (f Folders) Search() []string {
	places := []string{f.Home, f.Config, SystemFolder}
	if f.Beside != "" {
		places = append(places, f.Beside)
	}
	return places
}

// Files finds and reads profiles on disk; it is a [profile.Opener].
type Files struct {
	Home    string // the user's home, for paths that begin with "~/"
	cwd     string
	uid     int
	folders []string // searched for names; the first match wins
	// Seen is called with each file before it is opened, whether or not it exists; it may be nil.
	Seen func(file string)
}

// read calls Seen and reads a profile file as [Read] does.
func (f Files) read(file string) ([]byte, error) {
	if f.Seen != nil {
		f.Seen(file)
	}
	return Read(file, f.uid)
}

// New returns a Files that searches the folder "profiles" in each folder of [Folders.Search].
func New(f host.Facts, manifest string) Files {
	files := Files{cwd: f.Cwd, Home: f.Home, uid: f.UID}
	for _, dir := range FoldersOf(f, manifest).Search() {
		files.folders = append(files.folders, filepath.Join(dir, "profiles"))
	}
	return files
}

// Own returns the folder of the user's own profiles.
func (f Files) Own() string { return f.folders[0] }

// Open finds and reads a profile as [profile.Opener] requires. A relative file is
// relative to the profile that extends it, or to the current folder if it comes
// from the command line.
func (f Files) Open(ref string, from diag.Position) (name, file string, src []byte, err error) {
	if !profile.IsFile(ref) {
		return f.openName(ref, from)
	}
	file = f.Absolute(ref, from)
	src, err = f.read(file)
	if errors.Is(err, fs.ErrNotExist) {
		err = &profile.NotFoundError{Ref: ref}
	}
	return profile.NameOf(file), f.Shown(file), src, err
}

func (f Files) openName(name string, from diag.Position) (_, file string, src []byte, err error) {
	for _, folder := range f.folders {
		for _, extension := range profile.Extensions {
			file := filepath.Join(folder, name+extension)
			src, err := f.read(file)
			if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) {
				return name, f.Shown(file), src, err
			}
		}
		if err := f.judgeMisnamed(folder, name); err != nil {
			return "", "", nil, err
		}
	}
	info, err := os.Stat(name)
	here := from == diag.Position{} && err == nil && info.Mode().IsRegular()
	return "", "", nil, &profile.NotFoundError{Ref: name, Looked: f.folders, Known: f.Names(), Here: here}
}

// judgeMisnamed returns an error if a file in a folder without the named profile looks like it: to pass it over could
// mean a wider one.
func (f Files) judgeMisnamed(folder, name string) error {
	if _, err := os.Stat(folder); err != nil {
		return nil //nolint:nilerr // there is none, as [Files.Seen] knows by the files that were looked for in it
	}
	if f.Seen != nil {
		f.Seen(folder)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return diag.Wrap("look for profile "+name+" in "+folder, err, "make that folder readable for you")
	}
	for _, e := range entries {
		if profile.IsMisnamedAs(name, e.Name()) {
			return diag.Errorf("look for profile "+name,
				"call it "+name+".yaml, and write it as YAML, or remove it",
				"%s looks like it, and is none by its name", diag.Name(filepath.Join(folder, e.Name())))
		}
	}
	return nil
}

// Absolute returns the absolute path of the file that ref names; from is as in [Files.Open].
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

// Shown returns an absolute file as messages show it: relative if it is below the
// current folder, else unchanged. Different files never have the same text.
func (f Files) Shown(file string) string {
	if rest, below := strings.CutPrefix(file, f.cwd+"/"); below {
		return rest
	}
	return file
}

// Entry is a profile, or a plan made from one, in a folder that is searched.
type Entry struct {
	Name, File string
	Plan       bool   // a plan that a Nix module made from a profile
	Behind     string // the file of the same name that is found first and so hides this one; empty: none
}

// List returns all profiles and plans that --profile can name, in the order of
// lookup; in each place plans come before profiles, and the built-in profile is
// last. A folder that cannot be read is skipped.
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

// Plan returns the file of the plan that a Nix module made from the profile ref, or
// "" if the profile is to be used. A plan is preferred to a profile of the same name
// in the same place, but not to one in an earlier place.
func (f Files) Plan(ref string) (file string) {
	entries := f.List()
	first := slices.IndexFunc(entries, func(e Entry) bool {
		if e.Name != ref {
			return false
		}
		_, err := os.Stat(e.File) // the entry may be a dangling link
		return err == nil
	})
	if profile.IsFile(ref) || first < 0 || !entries[first].Plan {
		return ""
	}
	return entries[first].File
}

// filesIn returns the names of the files in a folder that have one of the
// extensions, sorted by name without extension, then in the order of extensions.
// It returns nil if the folder cannot be read.
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

// Names returns the names of all profiles, without duplicates.
func (f Files) Names() []string {
	var names []string
	for _, entry := range f.List() {
		if !entry.Plan && !slices.Contains(names, entry.Name) {
			names = append(names, entry.Name)
		}
	}
	return names
}

// Read reads a file that decides what the agent sees, at most [profile.MaxSize]
// bytes and one more. It must be a regular file that only the user uid and root can
// write. Links are followed, as home-manager makes links; their target is checked.
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
	// One byte more than the limit lets the decoder report that the file is too large.
	src, err := smallfile.ReadFD(fd, profile.MaxSize+1)
	if err != nil && !errors.Is(err, smallfile.ErrTooLarge) {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return src, nil
}

// writableByOthers reports whether other users can write a file. A group whose
// number is that of the owner does not count: many distributions give each user a
// group of their own, together with a umask of 002.
func writableByOthers(st unix.Stat_t) bool {
	group := st.Mode&unix.S_IWGRP != 0 && st.Gid != st.Uid
	return group || st.Mode&unix.S_IWOTH != 0
}

// inStore reports whether an open file lies in the Nix store, where no user can
// write. In a Nix build the store's owner is a user without a name, not root.
func inStore(fd int) bool {
	target, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	return err == nil && strings.HasPrefix(target, storepath.Dir+"/")
}
