package homelink

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/cachefile"
	"claudebox/internal/linux/mountinfo"
	"claudebox/internal/linux/pathname"
)

// Link is a path in the home that leads elsewhere, by a link or a bind mount, or a path in a variable.
type Link struct {
	Path  string
	Leads string   // where it leads at last, also if nothing is there
	Way   []string // the links on the way from Path, those in it included
	Of    string   // the variable that names Path, such as PATH: then it may be no link; empty: it is one
	There Inode    // of what it leads to; zero: nothing is there
}

// Inode is the identity of a file.
type Inode struct{ Dev, Ino uint64 }

// Question says where to look.
type Question struct {
	Home    string
	Folders []string // those of PATH, absolute
	Named   []Named  // what other variables name
	Cache   string   // file that keeps what was found; empty: none
	Build   string   // of claudebox: what another build has kept is not used
}

// Named is a path that tools obey, and the variable that names it.
type Named struct{ Variable, Path string }

// Found is what is in the home now. What no agent can change (links into the Nix store, or to what root owns) is left
// out.
type Found struct {
	Links []Link
	// Named are the files that have further names (hard links) somewhere outside of the places looked at.
	Named map[Inode]string

	question Question
	folders  []folder
	same     bool // as the cache has it
}

// kept is what the cache holds.
type kept struct {
	Build   string
	Folders []folder
}

// folder is what the cache keeps of one folder.
type folder struct {
	Path  string
	State state
	Links []Link
	Inner []string // names of the folders in it, or that links in it lead to
	Files []string // names of the files in it that may have other names, see [place]
}

// state changes whenever a name in a folder is made, removed or exchanged. The zero state is that of no folder.
type state struct {
	Dev, Ino     uint64
	Mtime, Ctime int64
}

// mostEntries is how many names of one folder are looked at. No folder that people fill by links has as many.
const mostEntries = 20_000

// walk is one look at the home.
type walk struct {
	Question
	kept  map[string]folder // by path, from the cache
	seen  map[string]int    // levels already looked at below a folder, by path
	found Found
	names map[Inode]int
	links map[Inode]uint64
}

// Look looks at all places of the home, and the folders of PATH. Of folders that have not changed since the last look
// it only asks where their links lead now.
func Look(q Question) Found {
	var before kept
	if q.Cache == "" || !cachefile.Decode(cachefile.Read(q.Cache), &before) || before.Build != q.Build {
		before = kept{}
	}
	return look(q, before.Folders)
}

// look is [Look] by what was found before.
func look(q Question, before []folder) Found {
	w := &walk{
		Question: q, kept: make(map[string]folder, len(before)), seen: make(map[string]int, len(before)),
		names: map[Inode]int{}, links: map[Inode]uint64{},
	}
	w.found = Found{question: q, Named: map[Inode]string{}, same: true}
	for _, f := range before {
		w.kept[f.Path] = f
	}
	for _, p := range places {
		w.enter(path.Join(q.Home, p.rel), p, p.deep)
	}
	for _, dir := range q.Folders {
		w.name("PATH", dir)
		w.enter(dir, place{rel: "PATH", deep: 1, file: true, all: true}, 1)
	}
	for _, named := range q.Named {
		w.name(named.Variable, named.Path)
		w.enter(named.Path, place{rel: named.Variable, deep: 2, file: true, all: true}, 2)
	}
	if mounts, err := mountinfo.Read(); err == nil {
		w.found.Links = append(w.found.Links, q.bound(mounts)...)
	}
	for inode, names := range w.names {
		if uint64(names) >= w.links[inode] {
			delete(w.found.Named, inode) // they are names of each other, as rustup's are
		}
	}
	w.found.same = w.found.same && len(before) == len(w.found.folders)
	return w.found
}

// name notes where a path leads that a variable names.
func (w *walk) name(variable, at string) {
	if link, ok := resolve(at); ok {
		link.Of = variable
		w.found.Links = append(w.found.Links, link)
	}
}

// Write keeps what was found for the next look.
func (f Found) Write() {
	if !f.same && f.question.Cache != "" {
		cachefile.Write(f.question.Cache, cachefile.Encode(kept{f.question.Build, f.folders}))
	}
}

// Again looks once more, and returns the links that were not there before, or led elsewhere.
func (f Found) Again() (made []Link) {
	for _, link := range look(f.question, f.folders).Links {
		if !slices.ContainsFunc(f.Links, func(l Link) bool {
			return l.Path == link.Path && l.Leads == link.Leads && slices.Equal(l.Way, link.Way)
		}) {
			made = append(made, link)
		}
	}
	return made
}

// enter looks at a folder of a place, and at the folders in it as far as deep says.
func (w *walk) enter(dir string, p place, deep int) {
	if w.seen[dir] >= deep {
		return
	}
	again := w.seen[dir] > 0
	w.seen[dir] = deep
	now, st, err := stateOf(dir)
	if err != nil {
		return
	}
	f, known := w.kept[dir]
	if known = known && f.State == now && now != (state{}); known {
		w.renew(&f)
	} else if f, err = read(dir, now, p); err != nil {
		return
	} else if !p.file || st.Uid == 0 {
		f.Files = nil
	}
	w.found.same = w.found.same && known
	if !again {
		w.found.folders = append(w.found.folders, f)
		w.found.Links = append(w.found.Links, f.Links...)
		w.count(dir, f.Files)
	}
	for _, name := range f.Inner {
		if deep > 1 && p.enters(name) {
			within := place{rel: p.rel + "/" + name, file: p.file && p.rel != "" && p.rel != config, all: true}
			w.enter(path.Join(dir, name), within, deep-1)
		}
	}
}

// renew asks where the links of a folder lead now. One that leads to the same file does so by the same way.
func (w *walk) renew(f *folder) {
	for i, link := range f.Links {
		if inode(link.Path) == link.There && link.There != (Inode{}) {
			continue
		}
		now, _ := resolve(link.Path)
		if now.Leads != link.Leads || !slices.Equal(now.Way, link.Way) || now.There != link.There {
			f.Links = slices.Clone(f.Links)
			f.Links[i] = now
			w.found.same = false
		}
	}
}

// inode returns the identity of what a path leads to; zero: nothing is there.
func inode(at string) Inode {
	var st unix.Stat_t
	if unix.Stat(at, &st) != nil {
		return Inode{}
	}
	return Inode{st.Dev, st.Ino}
}

// count notes which files of a folder have more names than those that are looked at.
func (w *walk) count(dir string, files []string) {
	for _, name := range files {
		var st unix.Stat_t
		at := path.Join(dir, name)
		if unix.Lstat(at, &st) != nil || st.Nlink < 2 || st.Mode&unix.S_IFMT != unix.S_IFREG {
			continue
		}
		inode := Inode{st.Dev, st.Ino}
		w.names[inode]++
		w.links[inode] = uint64(st.Nlink)
		w.found.Named[inode] = at
	}
}

// stateOf returns the state of a folder; links to it are followed. A folder that was changed a moment ago has the zero
// state: another change may not be seen in its times.
func stateOf(dir string) (state, unix.Stat_t, error) {
	const tick = 20 * time.Millisecond
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return state{}, st, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return state{}, st, unix.ENOTDIR
	}
	if since := time.Now().UnixNano() - st.Ctim.Nano(); since < tick.Nanoseconds() {
		return state{}, st, nil
	}
	return state{st.Dev, st.Ino, st.Mtim.Nano(), st.Ctim.Nano()}, st, nil
}

// read lists a folder.
func read(dir string, now state, p place) (folder, error) {
	made := folder{Path: dir, State: now}
	file, err := os.Open(dir)
	if err != nil {
		return made, err
	}
	defer file.Close()
	real, err := target(dir) // how the folder itself is reached is told of its own link
	if err != nil {
		return made, err
	}
	entries, _ := file.ReadDir(mostEntries)
	for _, entry := range entries {
		name, at := entry.Name(), path.Join(real, entry.Name())
		switch kind := entry.Type(); {
		case !p.counts(name):
		case kind&fs.ModeSymlink != 0:
			if link, ok := resolve(at); ok {
				link.Path = path.Join(dir, name)
				made.Links = append(made.Links, link)
				if info, err := os.Stat(at); err == nil && info.IsDir() {
					made.Inner = append(made.Inner, name)
				}
			}
		case kind.IsDir():
			made.Inner = append(made.Inner, name)
		case kind.IsRegular():
			made.Files = append(made.Files, name)
		}
	}
	slices.Sort(made.Inner)
	slices.SortFunc(made.Links, func(a, b Link) int {
		if a.Path < b.Path {
			return -1
		}
		return 1
	})
	return made, nil
}

// target returns where a path leads that exists: the kernel follows its links.
func target(at string) (string, error) {
	fd, err := unix.Open(at, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	return os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
}

// resolve follows a path. ok is false if no agent can change where it leads: all of the way is root's or the Nix
// store's, beyond the first link.
func resolve(at string) (link Link, ok bool) {
	link.Path, link.There = at, inode(at)
	own := false
	met := func(name string, info fs.FileInfo, _ bool) error {
		switch {
		case info.Mode()&fs.ModeSymlink != 0 && !beneath.OfRoot(name, info):
			link.Way = append(link.Way, name)
			own = own || name != at
		case info.Mode()&fs.ModeSymlink == 0 && !info.IsDir() && !beneath.OfRoot(name, info):
			own = true
		}
		return nil
	}
	_, err := beneath.Follow(beneath.OnDisk{}, "/", path.Clean(at), met)
	if link.Leads, _ = beneath.Leads(at); link.Leads == "" {
		return link, errors.Is(err, fs.ErrNotExist) // a circle leads nowhere
	}
	if err == nil && !own {
		var st unix.Stat_t
		own = unix.Stat(link.Leads, &st) != nil || st.Uid != 0 && !pathname.Below(link.Leads, "/nix/store")
	}
	return link, own || err != nil
}
