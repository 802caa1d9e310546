package branch

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/identity"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/handover"
)

// sessionsWorktrees are those of other sessions.
const sessionsWorktrees = ".claude/worktrees"

// excludes is the part of a script that makes the file which says what git ignores for the user everywhere.
func (b Branch) excludes() string {
	return "printf %s " + diag.Quote(string(b.Ignore)) + " >/tmp/excludes\n"
}

// lookIgnored says what becomes of what the user's git ignores.
func (b *Branch) lookIgnored(paths []string) error {
	users, err := beneath.Open(b.Tree)
	if err != nil {
		return err
	}
	defer users.Close()
	l := limits
	b.NoLayers = b.noOverlays()
	l.NoOverlays = b.NoLayers
	var entries []Entry
	for _, at := range paths {
		at = strings.TrimSuffix(at, "/")
		if isPlain(at) && at != sessionsWorktrees {
			entries = append(entries, measure(users, at, l))
		}
	}
	b.Parts = decide(entries, b.Hidden, l)
	return nil
}

// lookWith refuses what --with cannot copy.
func (b *Branch) lookWith(at string) error {
	op := "copy " + diag.Name(at) + " (--with)"
	rel, is := pathname.Cut(at, b.Tree)
	if !is || !isPlain(rel) {
		return diag.Errorf(op, "use --mount-ro", "it is not in the project")
	}
	if pathname.BelowAny(rel, b.Hidden) {
		return diag.Errorf(op, "show it by `show` in the profile", "it looks secret, and does not enter")
	}
	users, err := beneath.Open(b.Tree)
	if err != nil {
		return err
	}
	defer users.Close()
	if what, err := users.Look(rel); err != nil || what.Kind != beneath.Regular && what.Kind != beneath.Dir {
		return diag.Wrap(op, cmp.Or(err, errors.New("no file or folder is there, or behind a link")),
			"name a file or folder of the project that git does not have")
	}
	return nil
}

// noOverlays says why claudebox's own folder cannot hold the layer of an overlay; empty: it can.
func (b Branch) noOverlays() string {
	var st unix.Statfs_t
	if unix.Statfs(b.Request.Home, &st) != nil {
		return ""
	}
	kind := map[int64]string{
		unix.FUSE_SUPER_MAGIC: "FUSE", unix.OVERLAYFS_SUPER_MAGIC: "an overlay", unix.NFS_SUPER_MAGIC: "NFS",
		unix.ECRYPTFS_SUPER_MAGIC: "eCryptfs",
	}[int64(st.Type)]
	if kind == "" {
		return ""
	}
	return "an overlay cannot be on " + kind + ": make it inside, or set CLAUDEBOX_HOME on ext4, xfs or btrfs"
}

// measure looks at an entry, and counts what is in a folder up to the limits.
func measure(users *beneath.Folder, at string, l Limits) Entry {
	e := Entry{Path: at}
	what, err := users.Look(at)
	switch {
	case err != nil:
	case what.Kind == beneath.Regular:
		e.Kind, e.Bytes = File, what.Stamp.Size
	case what.Kind == beneath.Link:
		e.Kind = Link
	case what.Kind == beneath.Dir:
		e.Kind = Folder
		sub, err := users.Sub(at)
		if err != nil {
			return Entry{Path: at}
		}
		defer sub.Close()
		git, _ := sub.Look(".git")
		e.Nested = git.Kind != beneath.Absent
		count(sub, &e, l)
	}
	return e
}

// count counts what is in a folder, until a limit is passed.
func count(f *beneath.Folder, e *Entry, l Limits) {
	names, err := f.Names(".", l.Files)
	if err != nil { // too many, or closed: an overlay shows it as it is
		e.Files = l.Files + 1
	}
	for _, name := range names {
		if e.Files > l.Files || e.Bytes > l.Bytes {
			return
		}
		e.Files++
		what, err := f.Look(name)
		if err != nil {
			continue
		}
		e.Bytes += what.Stamp.Size
		if what.Kind != beneath.Dir {
			continue
		}
		if sub, err := f.Sub(name); err == nil {
			if git, err := sub.Look(".git"); err == nil && git.Kind != beneath.Absent {
				e.Files = l.Files + 1 // a copy would be a repository of the agent's
			}
			count(sub, e, l)
			sub.Close()
		}
	}
}

// Lay puts what is ignored into the checkout: copies, empty files, and the folders on which the layers are mounted. It
// returns the paths of the layers that cannot be mounted, and lines for people.
func (h *Held) Lay() (without, lines []string, err error) {
	users, err := beneath.Open(h.Tree)
	if err != nil {
		return nil, nil, err
	}
	defer users.Close()
	if err := h.copyAsked(users); err != nil { // first: an ignored file may lie in such a folder
		return nil, nil, err
	}
	var met []string
	h.Parts, met = h.free(h.Parts)
	taken, err := h.ignoredInside()
	if err != nil {
		return nil, nil, err
	}
	without = slices.Clone(met)
	if len(h.missing) > 0 {
		lines = append(lines, "branch "+h.Name+": submodules are not there, as yours do not have their commits: "+
			diag.Some(h.missing, 3)+"; `git submodule update --init` fetches them inside")
	}
	if len(met) > 0 {
		lines = append(lines,
			"branch "+h.Name+": left out, as the agent has put something else there: "+diag.Some(met, 3))
	}
	var left []string
	for _, p := range h.Parts {
		switch {
		case p.How == LeftOut:
		case !taken[p.Path]:
			left = append(left, p.Path)
			without = append(without, p.Path)
		case p.How == Overlaid:
			line, ok := h.layLayer(users, p.Path)
			if line != "" {
				lines = append(lines, line)
			}
			if !ok {
				without = append(without, p.Path)
			}
		case !slices.Contains(h.record.Copied, p.Path):
			if err := h.copyIn(users, p); err != nil {
				return nil, nil, diag.Wrap("copy "+diag.Name(p.Path)+" into the checkout", err, "make room")
			}
			h.record.Copied = append(h.record.Copied, p.Path)
		}
	}
	if len(left) > 0 {
		lines = append(lines, "branch "+h.Name+": not ignored there, and left out: "+diag.Some(left, 3))
	}
	return without, lines, h.record.remember(h.Dir)
}

// copyAsked copies what --with names, once.
func (h *Held) copyAsked(users *beneath.Folder) error {
	for _, at := range h.With {
		rel, _ := pathname.Cut(at, h.Tree)
		if slices.Contains(h.record.Copied, rel) {
			continue
		}
		if err := h.copyIn(users, Part{Entry: Entry{Path: rel}}); err != nil {
			return diag.Wrap("copy "+diag.Name(rel)+" into the checkout", err, "make room")
		}
		h.record.Copied = append(h.record.Copied, rel)
	}
	return nil
}

// free returns the parts in whose place, and on the way to it, the checkout has nothing but folders; and the paths of
// the others.
func (h *Held) free(parts []Part) (free []Part, met []string) {
	for _, p := range parts {
		at := p.Path
		if p.Kind != Folder {
			at = path.Dir(at)
		}
		if p.How == LeftOut || isClear(h.tree, at) {
			free = append(free, p)
		} else {
			met = append(met, p.Path)
		}
	}
	return free, met
}

// isClear reports whether a path has nothing but folders in it, as far as it is there.
func isClear(in *beneath.Folder, rel string) bool {
	if rel == "." {
		return true
	}
	what, err := in.Look(rel)
	return err == nil && (what.Kind == beneath.Dir || what.Kind == beneath.Absent) && isClear(in, path.Dir(rel))
}

// inIt is a path in an ignored folder.
const inIt = "/claudebox-ignored"

// isLaid reports whether an earlier session had a part. Then it is there whatever the branch's rules are by now.
func (h *Held) isLaid(p Part) bool {
	_, is := h.record.Layers[p.Path]
	return is && p.How == Overlaid || slices.Contains(h.record.Copied, p.Path)
}

// ignoredInside returns those of the parts that the branch's own rules ignore as well: what they do not, the agent
// would commit.
func (h *Held) ignoredInside() (map[string]bool, error) {
	taken, ask := map[string]bool{}, ""
	for _, p := range h.Parts {
		if h.isLaid(p) {
			taken[p.Path] = true
		} else if p.How != LeftOut {
			ask += p.Path
			if p.Kind == Folder { // which may not be there: its pattern may be one of folders only
				ask += inIt
			}
			ask += "\x00"
		}
	}
	if ask == "" {
		return taken, nil
	}
	const script = "g -c core.excludesFile=/tmp/excludes check-ignore -z --stdin || [ $? = 1 ]\n"
	answer, err := h.run(context.Background(), h.excludes()+script, ask, time.Minute)
	for at := range strings.SplitSeq(string(answer), "\x00") {
		taken[strings.TrimSuffix(at, inIt)] = true
	}
	return taken, err
}

// folders makes the folders on the way to a path in the checkout. It reports whether they are there, and are no links
// or files that the agent has put there.
func folders(in *beneath.Folder, rel string) bool {
	if rel == "." || rel == "" {
		return true
	}
	if !folders(in, path.Dir(rel)) {
		return false
	}
	what, err := in.Look(rel)
	if err == nil && what.Kind == beneath.Absent {
		return in.Mkdir(rel, 0o755) == nil
	}
	return err == nil && what.Kind == beneath.Dir
}

// layLayer makes the mount point and the layer of a folder, and hides there what is hidden. It reports whether the
// layer can be mounted.
func (h *Held) layLayer(users *beneath.Folder, at string) (line string, ok bool) {
	about := "branch " + h.Name + ": " + diag.Name(at)
	if !folders(h.tree, at) {
		return about + " is left out: the agent has put something else there", false
	}
	if names, err := h.tree.Names(at, 1); err != nil || len(names) > 0 {
		return "", false // the agent has one of its own
	}
	key, now := handover.Name(at), h.stateOf(users, at)
	if was, known := h.record.Layers[at]; known && was != now {
		if err := h.setAside(key); err != nil {
			return about + " is left out: " + err.Error(), false
		}
		line = about + " was made again outside: what the agent had changed in it is set aside"
	}
	for _, name := range []string{key, key + "/upper", key + "/work"} {
		if err := h.layers.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return about + " is left out: " + err.Error(), false
		}
	}
	if h.record.Layers == nil {
		h.record.Layers = map[string]string{}
	}
	h.record.Layers[at] = now
	if rel, err := h.maskAll(users, key+"/upper", at); err != nil {
		return about + " is left out, as " + diag.Name(rel) + " in it cannot be hidden: " + err.Error(), false
	}
	return line, true
}

// maskAll hides in the layer of a folder what is hidden there. rel is what could not be.
func (h *Held) maskAll(users *beneath.Folder, upper, at string) (rel string, err error) {
	masks := slices.Clone(h.Instead)
	for _, hidden := range h.Hidden {
		masks = append(masks, Instead{Path: hidden})
	}
	for _, m := range masks {
		rel, is := pathname.Cut(m.Path, at)
		if !is || rel == "" {
			continue
		}
		if err := h.mask(users, path.Join(upper, rel), m); err != nil {
			return rel, err
		}
	}
	return "", nil
}

// setAside moves a layer away. The one that was set aside before is removed.
func (h *Held) setAside(key string) error {
	old := key + ".before"
	if err := h.layers.RemoveAll(old); err != nil {
		return err
	}
	err := h.layers.Rename(key, old)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return err
}

// installed are files by which package managers note, in a folder, what they have put there.
var installed = []string{".package-lock.json", ".yarn-integrity", ".modules.yaml", "pyvenv.cfg"}

// stateOf identifies a folder, and what a package manager notes in it.
func (h *Held) stateOf(users *beneath.Folder, at string) string {
	text := string(identity.At(users.FD(), at))
	const limit = 16 << 20
	for _, name := range installed {
		if content, err := users.Read(path.Join(at, name), limit); err == nil {
			text += fmt.Sprintf(" %s %x", name, sha256.Sum256(content))
		}
	}
	return text
}

// mask hides a path of the user's by a file or an empty folder in the layer. What the agent has put on the way hides it
// already.
func (h *Held) mask(users *beneath.Folder, in string, m Instead) error {
	below, err := users.Look(m.Path)
	if err != nil || below.Kind == beneath.Absent {
		return nil //nolint:nilerr // it is gone, or behind a link
	}
	if !folders(h.layers, path.Dir(in)) {
		return nil
	}
	what, err := h.layers.Look(in)
	switch {
	case err != nil:
		return err
	case below.Kind != beneath.Dir && what.Kind == beneath.Absent:
		return h.layers.Create(in, m.Content, 0o400)
	case below.Kind != beneath.Dir:
		return nil
	case what.Kind == beneath.Absent:
		if err := h.layers.Mkdir(in, 0o700); err != nil {
			return err
		}
	case what.Kind != beneath.Dir:
		return nil
	}
	fd, err := h.layers.OpenFD(in, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Fsetxattr(fd, "user.overlay.opaque", []byte("y"), 0)
}

// copyIn copies a file, link or folder of the user's into the checkout, if nothing is there. What is hidden is empty,
// or as [Request.Instead] has it.
func (h *Held) copyIn(users *beneath.Folder, p Part) error {
	if !folders(h.tree, path.Dir(p.Path)) {
		return nil // the agent has put something else there
	}
	return h.copyOne(users, p.Path)
}

// copyOne is [Held.copyIn] for one path, with all below it.
func (h *Held) copyOne(users *beneath.Folder, at string) error {
	what, err := users.Look(at)
	if err != nil {
		return nil //nolint:nilerr // it is gone meanwhile
	}
	hidden := pathname.BelowAny(at, h.Hidden)
	var content []byte
	if i := slices.IndexFunc(h.Instead, func(m Instead) bool { return m.Path == at }); i >= 0 && !hidden {
		hidden, content = true, h.Instead[i].Content
	}
	exists := func(err error) error {
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	}
	switch what.Kind {
	case beneath.Regular:
		if hidden {
			return exists(h.tree.Create(at, content, 0o600))
		}
		return exists(h.copyFile(users, at, what.Perm))
	case beneath.Link:
		to, err := users.Readlink(at)
		if err != nil || hidden {
			return nil //nolint:nilerr // it is gone meanwhile, or behind another one
		}
		return exists(h.tree.Symlink(to, at))
	case beneath.Dir:
		if err := h.tree.Mkdir(at, 0o755); err != nil || hidden {
			return exists(err)
		}
		names, err := users.Names(at, mostNames)
		if err != nil {
			return nil //nolint:nilerr // it cannot be read
		}
		for _, name := range names {
			if err := h.copyOne(users, path.Join(at, name)); err != nil {
				return err
			}
		}
		return h.tree.Chmod(at, what.Perm|0o700)
	}
	return nil
}

func (h *Held) copyFile(users *beneath.Folder, at string, perm uint32) error {
	fd, err := users.OpenFD(at, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return nil //nolint:nilerr // it cannot be read
	}
	from := os.NewFile(uintptr(fd), at)
	defer from.Close()
	if info, err := from.Stat(); err != nil || !info.Mode().IsRegular() {
		return err
	}
	if err := h.tree.Create(at, nil, perm&0o777|0o600); err != nil {
		return err
	}
	fd, err = h.tree.OpenFD(at, unix.O_WRONLY)
	if err != nil {
		return err
	}
	to := os.NewFile(uintptr(fd), at)
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}
