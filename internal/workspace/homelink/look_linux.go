package homelink

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/cachefile"
	"claudebox/internal/linux/mountinfo"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/survey"
)

// Link is a path in the home that leads elsewhere, by a link or a bind mount, or a path in a variable.
type Link struct {
	Path  string
	Leads string   // where it leads at last, also if nothing is there
	Way   []string // the links on the way from Path, those in it included
	Of    string   // the variable that names Path, such as PATH: then it may be no link; empty: it is one
	There Inode    // of what it leads to; zero: nothing is there
}

// Enters reports whether a path lies, or one of the links on its way does, at or below a folder.
func (l Link) Enters(dir string) bool {
	into := func(at string) bool { return pathname.Below(at, dir) }
	return into(l.Leads) || slices.ContainsFunc(l.Way, into)
}

// Inode is the identity of a file.
type Inode struct{ Dev, Ino uint64 }

// Question says where to look.
type Question struct {
	Home    string
	Folders []string // those of PATH, absolute
	Named   []Named  // what other variables name
	Cache   string   // folder of what was found; empty: none
	Build   string   // of claudebox: what another build has kept is not used
	Whole   bool     // wait for all of it: a person is shown what is found
	// Walked returns what was seen a moment ago in a folder, by its canonical path; nil if it was not walked, or not
	// all that is in it was seen.
	Walked func(folder string) *survey.Folder
}

// Named is a path that tools obey, and the variable that names it.
type Named struct{ Variable, Path string }

// Found is what is in the home now, as far as earlier looks have seen it; [Found.Missed] has what a look at the places
// adds to that. What no agent can change (links into the Nix store, or to what root owns) is left out.
type Found struct {
	Links []Link
	// Named are the files that have further names (hard links) somewhere outside of the places looked at.
	Named map[Inode]string

	question Question
	known    []Link       // without what mounts show
	look     func() whole // waits for the look
}

// kept is what the cache holds of all looks by a question.
type kept struct {
	Build, Question string
	Links           []Link
	Named           []file
}

// file is a path of a file.
type file struct {
	Inode Inode
	Path  string
}

// whole is what a look at all places has found.
type whole struct {
	links   []Link
	named   map[Inode]string
	folders []folder
	more    int  // levels further than the places say
	same    bool // as the cache has it
}

// keptFolders is what the cache holds of the folders that were looked into.
type keptFolders struct {
	Build   string
	Folders []folder
}

// folder is what the cache keeps of one folder.
type folder struct {
	Of    listing
	State state
	Links []Link
	Inner []string // names of the folders in it
	Leads []string // names of the links in it that lead to folders
	Files []string // names of the files in it that may have other names
}

// listing says of which folder names are listed, and which.
type listing struct {
	Path  string
	All   bool // ordinary names, too, see [place]
	Files bool // those of files, too
}

// state changes whenever a name in a folder is made, removed or exchanged. The zero state is that of no folder.
type state struct {
	Dev, Ino     uint64
	Mtime, Ctime int64
}

// Look returns the links that earlier looks have found, as they lead now, and looks at the places meanwhile. Where none
// has asked the same, it looks deep into the home, and waits for that.
func Look(q Question) Found {
	f := Found{question: q}
	var before kept
	known := q.find(&before)
	mounts, _ := mountinfo.Read()
	if q.Whole || !known {
		all := look(q, further, mounts)
		f.look = func() whole { return all }
		f.known, f.Named = all.links, all.named
	} else {
		f.look = sync.OnceValue(func() whole { return look(q, 0, mounts) })
		go f.look()
		f.known, f.Named = newDisk().renewed(before.Links), stillNamed(before.Named)
	}
	f.Links = slices.Concat(f.known, q.bound(mounts))
	return f
}

// find reads what earlier looks by the question have kept; false: there is none.
func (q Question) find(before *kept) bool {
	return q.Cache != "" && cachefile.Find(q.links(), before) && before.Build == q.Build && before.Question == q.text()
}

// text tells questions apart.
func (q Question) text() string { return fmt.Sprint(q.Home, q.Folders, q.Named) }

// links is the file of [kept], and folders that of [keptFolders] for a look that goes further by so many levels.
func (q Question) links() string {
	sum := sha256.Sum256([]byte(q.text()))
	return filepath.Join(q.Cache, "links-"+hex.EncodeToString(sum[:8]))
}

func (q Question) folders(more int) string {
	return filepath.Join(q.Cache, fmt.Sprint("folders-", more))
}

// Missed waits for the look at the places, and returns what it has found that was not known: links, and files with
// further names.
func (f Found) Missed() (links []Link, files map[Inode]string) { return f.missed(f.look()) }

func (f Found) missed(all whole) (links []Link, files map[Inode]string) {
	files = maps.Clone(all.named)
	maps.DeleteFunc(files, func(inode Inode, _ string) bool { return f.Named[inode] != "" })
	return made(all.links, f.known), files
}

// made are links that were not there before, or led elsewhere.
func made(now, before []Link) []Link {
	known := make(map[string]Link, len(before))
	for _, link := range before {
		known[link.Path+"\x00"+link.Of] = link
	}
	return slices.DeleteFunc(slices.Clone(now), func(link Link) bool {
		was, is := known[link.Path+"\x00"+link.Of]
		return is && was.Leads == link.Leads && slices.Equal(was.Way, link.Way)
	})
}

// Write keeps what was found for the next look.
func (f Found) Write() { f.write(f.look()) }

func (f Found) write(all whole) {
	q := f.question
	if q.Cache == "" {
		return
	}
	if !all.same {
		cachefile.Keep(q.folders(all.more), keptFolders{q.Build, all.folders})
	}
	links, files := f.missed(all)
	maps.Copy(files, f.Named)
	links = slices.Concat(f.known, links)
	var latest kept
	if q.find(&latest) { // a session beside may have looked deeper
		isKnown := map[string]bool{}
		for _, link := range links {
			isKnown[link.Path] = true
		}
		known := func(l Link) bool { return isKnown[l.Path] }
		links = append(links, slices.DeleteFunc(newDisk().renewed(latest.Links), known)...)
		maps.Copy(files, stillNamed(latest.Named))
	}
	now := kept{Build: q.Build, Question: q.text(), Links: links}
	for inode, at := range files {
		now.Named = append(now.Named, file{inode, at})
	}
	slices.SortFunc(now.Named, func(a, b file) int { return strings.Compare(a.Path, b.Path) })
	if !bytes.Equal(cachefile.Encode(now), cachefile.Encode(latest)) {
		const most = 40 // questions: PATH is not the same in every terminal
		cachefile.Prune(q.Cache, most)
		cachefile.Keep(q.links(), now)
	}
}

// Again looks once more, and deeper, keeps what it finds, and returns what was not known before, as [Found.Missed].
func (f Found) Again() (links []Link, files map[Inode]string) {
	mounts, _ := mountinfo.Read()
	before, now := f.look(), look(f.question, further, mounts)
	f.known = slices.Concat(f.known, made(before.links, f.known))
	links, files = f.missed(now)
	maps.DeleteFunc(files, func(inode Inode, _ string) bool { return before.named[inode] != "" })
	f.write(now)
	return links, files
}

const (
	// mostEntries is how many names of one folder are looked at. No folder that people fill by links has as many.
	mostEntries = 20_000
	// mostFolders is how many folders of one place are looked into, and of all that links lead to.
	mostFolders = 2000
	// mostFiles is how many files of one place are looked at for further names, and of all that links lead to.
	mostFiles = 20_000
)

// walk is one look at the home.
type walk struct {
	Question
	kept    map[listing]folder // from the cache
	seen    map[string]reach   // how a folder was looked at already, by path
	within  map[Inode]reach    // likewise, by what it is: links may lead round in a circle
	skipped map[string]bool    // mounts whose server may not answer, and those of the kernel's own
	later   []func()           // looks at what links lead to
	found   whole
	left    int // folders that may be looked into of a place
	files   int // of a place, that were looked at for further names
	names   map[Inode]int
	linked  map[Inode]uint64
	counted map[entry]bool
	listed  map[listing]bool
	noted   map[string]bool // links, by path
	disk    disk
}

// entry is a name in a folder, by whatever path one comes there.
type entry struct {
	folder Inode
	name   string
}

// look looks at all places of the home, so many levels further than they say, and the folders of PATH. Of folders that
// have not changed since the last such look it only asks where their links lead now.
func look(q Question, more int, mounts []mountinfo.Mount) whole {
	if more > 0 {
		q.Walked = nil // no launch waits for it, or it is at the end
	}
	var before keptFolders
	if !cachefile.Find(q.folders(more), &before) || before.Build != q.Build {
		before.Folders = nil
	}
	w := &walk{
		Question: q, kept: make(map[listing]folder, len(before.Folders)), seen: map[string]reach{},
		within: map[Inode]reach{}, skipped: map[string]bool{}, names: map[Inode]int{}, linked: map[Inode]uint64{},
		counted: map[entry]bool{}, listed: map[listing]bool{}, noted: map[string]bool{}, disk: newDisk(),
	}
	w.found = whole{named: map[Inode]string{}, more: more, same: true}
	for _, f := range before.Folders {
		w.kept[f.Of] = f
	}
	for _, m := range mounts {
		w.skipped[m.Point] = m.IsFar() || m.IsKernels()
	}
	for dir := q.Home; ; dir = path.Dir(dir) {
		w.within[inode(dir)] = reach{math.MaxInt, math.MaxInt, true} // no link leads to a place there
		if dir == path.Dir(dir) {
			break
		}
	}
	for _, p := range places {
		p.deep += more
		w.place(path.Join(q.Home, p.rel), p)
	}
	for _, dir := range q.Folders {
		w.name("PATH", dir)
		w.place(dir, ofPath)
	}
	for _, at := range q.Named {
		w.name(at.Variable, at.Path)
		w.place(at.Path, named)
	}
	for w.left, w.files = mostFolders, 0; len(w.later) > 0; {
		next := w.later[0]
		w.later = w.later[1:]
		next()
	}
	for inode, names := range w.names {
		if uint64(names) >= w.linked[inode] {
			delete(w.found.named, inode) // they are names of each other, as rustup's are
		}
	}
	w.found.same = w.found.same && len(before.Folders) == len(w.found.folders)
	return w.found
}

// name notes where a path leads that a variable names.
func (w *walk) name(variable, at string) {
	if link, ok := w.disk.resolve(at); ok {
		link.Of = variable
		w.found.links = append(w.found.links, link)
	}
}

// place looks at a place, level by level: what is near its top is seen first.
func (w *walk) place(top string, p place) {
	w.left, w.files = mostFolders, 0
	w.below([]string{top}, p, 0)
}

// below looks at folders so many levels below the top of a place, and at what is in them. What links lead to is looked
// at last: what has a place of its own is then known by that.
func (w *walk) below(level []string, p place, depth int) {
	for ; depth < p.deep && w.left > 0 && len(level) > 0; depth++ {
		var next, led []string
		for _, dir := range level[:min(w.left, len(level))] {
			f := w.enter(dir, p, depth)
			rel, ofHome := pathname.Cut(dir, w.Home)
			for i, name := range slices.Concat(f.Inner, f.Leads) {
				switch at := path.Join(dir, name); {
				case ofHome && !enters(rel, name):
				case i < len(f.Inner):
					next = append(next, at)
				default:
					led = append(led, at)
				}
			}
		}
		if len(led) > 0 {
			w.later = append(w.later, func() { w.below(led, p, depth+1) })
		}
		w.left -= len(level)
		level = next
	}
}

// reach is how closely a folder is looked at, and what is below it.
type reach struct {
	deep  int  // levels of folders, 1: the folder alone
	files int  // levels whose files count
	all   bool // ordinary names count
}

// covers reports whether a look at a folder has seen all that another one would.
func (r reach) covers(o reach) bool {
	return r.deep >= o.deep && r.files >= o.files && (r.all || !o.all)
}

// and is what two looks have seen.
func (r reach) and(o reach) reach {
	return reach{max(r.deep, o.deep), max(r.files, o.files), r.all && r.deep >= o.deep || o.all && o.deep >= r.deep}
}

// enter looks at a folder of a place, so many levels below its top.
func (w *walk) enter(dir string, p place, depth int) (f folder) {
	was, need := w.seen[dir], reach{p.deep - depth, max(min(p.files, p.deep)-depth, 0), p.all || depth > 0}
	if was.covers(need) || depth > 0 && w.skipped[dir] {
		return f
	}
	again := was != reach{}
	w.seen[dir] = was.and(need)
	seen := w.walked(dir)
	now, here, ofRoot := state{}, Inode{}, false
	if seen != nil {
		here = Inode{seen.Dev, seen.Stamp.Ino}
	} else {
		var err error
		if now, here, ofRoot, err = stateOf(dir); err != nil {
			return f
		}
	}
	if depth > 0 && (!again && w.within[here].covers(need) || ofRoot) {
		return f
	}
	w.within[here] = w.within[here].and(need)
	if seen != nil {
		f = listed(seen)
	} else {
		f = w.list(listing{dir, need.all, need.files > 0 && !ofRoot}, now)
	}
	if need.files > 0 {
		w.count(dir, here, f.Files)
	}
	return f
}

// list lists a folder that is in such a state, or takes that from the cache, and notes its links.
func (w *walk) list(of listing, now state) folder {
	f, known := w.kept[of]
	if known = known && f.State == now && now != (state{}); known {
		w.renew(&f)
	} else {
		var err error
		if f, err = w.disk.read(of, now); err != nil {
			return f
		}
	}
	w.found.same = w.found.same && known
	if !w.listed[of] {
		w.found.folders = append(w.found.folders, f)
	}
	w.listed[of] = true
	for _, link := range f.Links {
		if !w.noted[link.Path] {
			w.found.links = append(w.found.links, link)
		}
		w.noted[link.Path] = true
	}
	return f
}

// walked returns what was seen of a folder that was walked a moment ago and has no link in it; else nil.
func (w *walk) walked(dir string) *survey.Folder {
	if w.Walked == nil {
		return nil
	}
	seen := w.Walked(dir)
	isLink := func(f survey.File) bool { return f.Kind == beneath.Link }
	if seen == nil || slices.ContainsFunc(seen.Found.Files, isLink) {
		return nil
	}
	return seen
}

// listed is what is in such a folder. The cache has nothing of it.
func listed(seen *survey.Folder) (f folder) {
	for _, folders := range [][]string{seen.Folders, seen.Found.Skipped} {
		for _, rel := range folders {
			f.Inner = append(f.Inner, path.Base(rel))
		}
	}
	for _, file := range seen.Found.Files {
		if file.Names > 1 {
			f.Files = append(f.Files, path.Base(file.Rel))
		}
	}
	return f
}

// renew asks where the links of a folder lead now.
func (w *walk) renew(f *folder) {
	if now := w.disk.renewed(f.Links); !slices.EqualFunc(now, f.Links, func(a, b Link) bool {
		return a.There == b.There && a.Leads == b.Leads && slices.Equal(a.Way, b.Way)
	}) {
		f.Links = now
		w.found.same = false
	}
	if now := toFolders(f.Links); !slices.Equal(now, f.Leads) {
		f.Leads = now
		w.found.same = false
	}
}

// toFolders are the names of those links of a folder that lead to folders.
func toFolders(links []Link) (names []string) {
	for _, link := range links {
		if info, err := os.Stat(link.Path); err == nil && info.IsDir() {
			names = append(names, path.Base(link.Path))
		}
	}
	return names
}

// isAsItWas reports whether a link certainly leads to the same file at the same place, and by the same way: what it
// leads to may have been moved, and be reached by a link that was put in its old place. isReal says of a folder whether
// no link is on the way to it.
func (l Link) isAsItWas(isReal func(dir string) bool) bool {
	var st unix.Stat_t
	direct := len(l.Way) == 0 || len(l.Way) == 1 && path.Base(l.Way[0]) == path.Base(l.Path)
	return direct && l.There != (Inode{}) && inode(l.Path) == l.There && isReal(path.Dir(l.Leads)) &&
		unix.Lstat(l.Leads, &st) == nil && l.There == Inode{st.Dev, st.Ino}
}

// renewed are links that are still there, as they lead now.
func (d disk) renewed(links []Link) []Link {
	now, real := make([]Link, 0, len(links)), map[string]bool{}
	isReal := func(dir string) bool {
		is, known := real[dir]
		if !known {
			at, err := target(dir)
			is = err == nil && at == dir
			real[dir] = is
		}
		return is
	}
	for _, link := range links {
		if !link.isAsItWas(isReal) {
			var st unix.Stat_t
			if link.Of == "" && unix.Lstat(link.Path, &st) != nil {
				continue
			}
			of := link.Of
			link, _ = d.resolve(link.Path)
			link.Of = of
		}
		now = append(now, link)
	}
	return now
}

// stillNamed are the files of an earlier look that are the same.
func stillNamed(files []file) map[Inode]string {
	named := map[Inode]string{}
	for _, f := range files {
		var st unix.Stat_t
		if unix.Lstat(f.Path, &st) == nil && f.Inode == (Inode{st.Dev, st.Ino}) && st.Nlink > 1 {
			named[f.Inode] = f.Path
		}
	}
	return named
}

// inode returns the identity of what a path leads to; zero: nothing is there.
func inode(at string) Inode {
	var st unix.Stat_t
	if unix.Stat(at, &st) != nil {
		return Inode{}
	}
	return Inode{st.Dev, st.Ino}
}

// count notes which files of a folder have more names than those that are looked at. Two paths may lead to a folder:
// a name in it counts once.
func (w *walk) count(dir string, here Inode, files []string) {
	if w.files += len(files); w.files > mostFiles || len(files) == 0 {
		return
	}
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	for _, name := range files {
		var st unix.Stat_t
		if unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil || st.Nlink < 2 ||
			st.Mode&unix.S_IFMT != unix.S_IFREG {
			continue
		}
		inode, at := Inode{st.Dev, st.Ino}, entry{here, name}
		if !w.counted[at] {
			w.names[inode]++
		}
		w.counted[at] = true
		w.linked[inode] = uint64(st.Nlink)
		w.found.named[inode] = path.Join(dir, name)
	}
}

// stateOf returns the state of a folder, what it is, and whether it is root's; links to it are followed. One that was
// changed a moment ago has the zero state: another change may not be seen in its times.
func stateOf(dir string) (now state, here Inode, ofRoot bool, err error) {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return now, here, false, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return now, here, false, unix.ENOTDIR
	}
	if beneath.IsSettled(st.Ctim.Nano(), time.Now().UnixNano()) {
		now = state{st.Dev, st.Ino, st.Mtim.Nano(), st.Ctim.Nano()}
	}
	return now, Inode{st.Dev, st.Ino}, st.Uid == 0, nil
}

// read lists a folder.
func (d disk) read(of listing, now state) (folder, error) {
	made, dir := folder{Of: of, State: now}, of.Path
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
		case !of.All && !counts(name):
		case kind&fs.ModeSymlink != 0:
			if link, ok := d.resolve(at); ok {
				link.Path = path.Join(dir, name)
				made.Links = append(made.Links, link)
			}
		case kind.IsDir():
			made.Inner = append(made.Inner, name)
		case kind.IsRegular() && of.Files:
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
	made.Leads = toFolders(made.Links)
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

// disk is the file system of this machine in one look. Folders that root alone can exchange are looked at once:
// thousands of links lead through them.
type disk struct {
	beneath.OnDisk
	known map[string]fs.FileInfo // by canonical path
}

func newDisk() disk { return disk{known: map[string]fs.FileInfo{}} }

// Lstat is [os.Lstat].
func (d disk) Lstat(name string) (fs.FileInfo, error) {
	if info := d.known[name]; info != nil {
		return info, nil
	}
	info, err := d.OnDisk.Lstat(name)
	if err == nil && info.IsDir() && beneath.OfRoot(name, info) && d.isRoots(path.Dir(name)) {
		d.known[name] = info
	}
	return info, err
}

// isRoots reports whether root or Nix alone can exchange what is in a folder.
func (d disk) isRoots(dir string) bool {
	const others = 0o022
	info := d.known[dir]
	return dir == "/" || pathname.Below(dir, "/nix/store") || info != nil && info.Mode().Perm()&others == 0
}

// resolve follows a path. ok is false if no agent can change where it leads: all of the way is root's or the Nix
// store's, beyond the first link.
func (d disk) resolve(at string) (link Link, ok bool) {
	link.Path = at
	own, end := false, fs.FileInfo(nil)
	met := func(name string, info fs.FileInfo, _ bool) error {
		end = info
		if beneath.OfRoot(name, info) {
			return nil
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			link.Way = append(link.Way, name)
			own = own || name != at
		} else if !info.IsDir() {
			own = true
		}
		return nil
	}
	leads, err := beneath.Follow(d, "/", path.Clean(at), met)
	if err == nil && end != nil {
		st := end.Sys().(*syscall.Stat_t)
		link.Leads, link.There = leads, Inode{st.Dev, st.Ino}
		return link, own || !beneath.OfRoot(leads, end)
	}
	link.There = inode(at)
	if link.Leads, _ = beneath.Leads(at); link.Leads == "" {
		return link, errors.Is(err, fs.ErrNotExist) // a circle leads nowhere
	}
	return link, err != nil // "/" is no link
}
