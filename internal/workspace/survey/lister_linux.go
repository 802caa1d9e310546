package survey

import (
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// lister sorts the entries of one folder.
type lister struct {
	*walker
	folder *folder
	fd     int
	wanted func(name []byte, dir bool) bool

	// What makes git take a folder for a repository, by name (setup.c,
	// is_git_directory): with a commondir the rest may be elsewhere.
	head, objects, refs, commondir bool
}

// entry notes one name of a type as getdents(2) gives it.
func (l *lister) entry(name []byte, kind byte) {
	l.folder.Entries++
	if kind == unix.DT_UNKNOWN {
		kind = l.kindOf(name)
	}
	if l.isGits(name) {
		l.folder.Git = append(l.folder.Git, l.join(name))
		return
	}
	switch {
	case kind == unix.DT_SOCK:
		l.folder.Sockets = append(l.folder.Sockets, l.join(name))
	case kind == unix.DT_FIFO, l.wanted != nil && l.wanted(name, kind == unix.DT_DIR):
		l.note(name)
	}
	switch {
	case kind == unix.DT_LNK && l.LinksSince > 0:
		l.noteLink(name)
	case kind != unix.DT_DIR, l.tooDeep(name):
	case slices.Contains(l.Skipped, string(name)):
		l.folder.Skipped = append(l.folder.Skipped, l.join(name))
	default:
		l.folder.Folders = append(l.folder.Folders, l.join(name))
	}
}

// tooDeep reports whether a folder's path is longer than the kernel takes (path
// names, PATH_MAX). Nobody can name what is in there: git gives up, and so does
// every other program. To look costs the square of the depth, and an agent can
// make a depth that would take hours.
func (l *lister) tooDeep(name []byte) bool {
	return len(l.root.Path())+1+len(l.folder.Rel)+1+len(name) >= unix.PathMax
}

// isGits tells an entry named .git from others, and notes the names that make
// a folder a repository. A folder may take capitals for the same (casefold in
// ext4(5)), so they count as the same here.
func (l *lister) isGits(name []byte) bool {
	for _, sign := range [...]struct {
		name string
		seen *bool
	}{{".git", nil}, {"HEAD", &l.head}, {"refs", &l.refs}, {"objects", &l.objects}, {"commondir", &l.commondir}} {
		if len(name) != len(sign.name) || !strings.EqualFold(string(name), sign.name) {
			continue
		}
		if sign.seen == nil {
			return true
		}
		*sign.seen = true
	}
	return false
}

func (l *lister) join(name []byte) string {
	if l.folder.Rel == "." {
		return string(name)
	}
	return l.folder.Rel + "/" + string(name)
}

func (l *lister) note(name []byte) {
	var st unix.Stat_t
	if unix.Fstatat(l.fd, string(name), &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
		l.folder.Files = append(l.folder.Files, fileOf(l.join(name), &st))
	}
}

func (l *lister) noteLink(name []byte) {
	var st unix.Stat_t
	if unix.Fstatat(l.fd, string(name), &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Ctim.Nano() >= l.LinksSince {
		l.folder.NewLinks = append(l.folder.NewLinks, l.join(name))
	}
}

// kindOf asks for what some file systems do not say in a listing.
func (l *lister) kindOf(name []byte) byte {
	var st unix.Stat_t
	if unix.Fstatat(l.fd, string(name), &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return unix.DT_UNKNOWN
	}
	return byte(st.Mode & unix.S_IFMT >> 12) // IFTODT(3)
}
