package project

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/cachefile"
	"claudebox/internal/linux/smallfile"
	"claudebox/internal/secret/leak"
	"claudebox/internal/workspace/git"
	"claudebox/internal/workspace/homelink"
	"claudebox/internal/workspace/secretfile"
	"claudebox/internal/workspace/survey"
)

// LentQuestion says how a folder or file of the user's that an agent may read is looked through for secrets first.
type LentQuestion struct {
	Shown func(rel string) bool // what the agent may read all the same
	// All has every file searched for tokens, a program as well: people write these into scripts of their own. Else
	// only files are whose names ask for it, as in a project.
	All bool
	// Settings has a file judged as one whose name suggests a secret: it holds the settings of a program.
	Settings bool
	// Named returns of which secret of the user's an inode is, so that another name (hard link) of that is found;
	// empty: of none.
	Named func(homelink.Inode) string
	Cache string // folder of what is kept of each look for the next one; empty: none
	Build string // of claudebox: what another build has kept is not used
	// Walked is the folder as it was walked a moment ago, by [WalkLent]; the zero value: it is walked now.
	Walked LentWalk
}

// LentWalk is a folder as it was walked for one question.
type LentWalk struct {
	*survey.Survey               // nil: it was not walked
	began          time.Time     // when
	root           beneath.Stamp // of the folder itself
	before         lentKept
}

// Lent is a file, or a folder in a git folder, that looks secret in what an agent may read of the user's, such as the
// skills and plugins in ~/.claude. Like a secret file of the project it is not for the agent.
type Lent struct {
	Rel     string // from the folder
	Dir     bool   // it is a folder
	Content []byte // what is to be laid over a file; nil: nothing is in it
	What    string // what it holds, where that was searched: "a GitHub token"
}

// LentFound is what was found. Paths are relative to the folder.
type LentFound struct {
	Secrets   []Lent
	Addresses []string // files that enter, and have an address with a password, as manuals do
	Large     []string // files that enter, and were too large to be searched
	Links     []string // all symbolic links, if all was searched
	Cut       bool     // there was more than could be looked at
}

// LentLimit is how many entries of such a folder are looked at: some ten milliseconds.
const LentLimit = 50_000

const (
	// lentBytes is how much of files that are new is searched in one look: some seconds. What was searched is kept, so
	// that the next look searches on.
	lentBytes = 512 << 20
	// lentCaches is how many folders' searches are kept.
	lentCaches = 400
)

// lentFile is what was found of a file.
type lentFile struct {
	Rel    string
	Secret bool
	What   string // as in [Lent], or [leak.Address]
}

// Code is for [cachefile.Encode].
func (f *lentFile) Code(c *cachefile.Codec) {
	c.Text(&f.Rel)
	c.Bool(&f.Secret)
	c.Text(&f.What)
}

// lentKept is what the cache holds of a look by one question.
type lentKept struct {
	Build, Question string
	Folders         []survey.Folder // with their files, as these were when they were judged
	Judged          []lentFile      // sorted
}

// lender looks through one folder.
type lender struct {
	LentQuestion
	LentFound
	at          *beneath.Folder
	around      string    // name of the folder, by which a file's name may tell more
	began       time.Time // when the files' states were looked at
	before, now lentKept
	same        bool                   // nothing is in another state than at the last look
	was         map[string]survey.File // else: how the files were
	next        int                    // of before.Judged: files are judged in their order
	left        int64                  // bytes that may be searched
}

// LookLent looks for secrets in a folder that an agent may read, or in a file; of that, rel is its name.
func LookLent(name string, q LentQuestion) (LentFound, error) {
	l := lender{
		LentQuestion: q, left: lentBytes, began: time.Now(), now: lentKept{Build: q.Build, Question: q.text(name)},
	}
	at, err := beneath.Open(name)
	file, folder := "", name
	if errors.Is(err, unix.ENOTDIR) {
		folder, file = path.Split(path.Clean(name))
		at, err = beneath.Open(path.Clean(folder))
	}
	l.around = path.Base(folder)
	if err != nil {
		return LentFound{}, err
	}
	defer at.Close()
	l.at = at
	if file == "" {
		l.folder(name)
	} else if what, err := at.Look(file); err == nil {
		l.before = q.kept(name)
		f := survey.File{Rel: file, Kind: what.Kind, Names: what.Names, Stamp: what.Stamp}
		l.now.Folders, l.same = []survey.Folder{{Found: survey.Found{Files: []survey.File{f}}}}, l.isAsItWas(f)
		l.judge(f)
	}
	if file := q.file(name); file != "" && !(l.same && slices.Equal(l.now.Judged, l.before.Judged)) {
		cachefile.Prune(q.Cache, lentCaches)
		cachefile.Keep(file, l.now)
	}
	return l.LentFound, nil
}

// WalkLent walks a folder before it is known whether an agent is to read it.
func WalkLent(name string, q LentQuestion) (w LentWalk) {
	at, err := beneath.Open(name)
	if err != nil {
		return w
	}
	defer at.Close()
	return q.walk(at, name)
}

// walk walks a folder, by what an earlier look has kept of it.
func (q LentQuestion) walk(at *beneath.Folder, name string) LentWalk {
	around := path.Base(name)
	wanted := func(folder string) func(string, bool) bool {
		folder = path.Join(around, folder)
		return func(name string, dir bool) bool {
			return !dir && (q.All || secretfile.Of(folder, name) != secretfile.Plain)
		}
	}
	filled := []string{"node_modules", ".venv"} // by tools, with nothing of the user's
	w := LentWalk{began: time.Now(), before: q.kept(name)}
	if what, err := at.Look("."); err == nil {
		w.root = what.Stamp
	}
	question := survey.Question{Wanted: wanted, Skipped: filled, Limit: LentLimit}
	w.Survey = survey.Walk(at, question, survey.Of(w.before.Folders))
	return w
}

// isOf reports whether an open folder was walked a moment ago, and no name in it has come or gone since. What a launch
// does meanwhile may take minutes: then the user may have put there what is to be seen.
func (w LentWalk) isOf(at *beneath.Folder) bool {
	const moment = 100 * time.Millisecond
	now, err := at.Look(".")
	return w.Survey != nil && time.Since(w.began) < moment && err == nil && now.Stamp == w.root
}

// text tells questions about folders apart, by what decides on what is searched in a file, and how.
func (q LentQuestion) text(name string) string {
	return fmt.Sprintf("all %t %t %s", q.All, q.Settings, name)
}

// file is where what is found of a folder or file is kept; empty: nowhere.
func (q LentQuestion) file(name string) string {
	if q.Cache == "" || q.Build == "" {
		return ""
	}
	return filepath.Join(q.Cache, hex.EncodeToString([]byte(sumOf([]byte(q.text(name))))[:16]))
}

// kept is what an earlier look has kept.
func (q LentQuestion) kept(name string) (kept lentKept) {
	file := q.file(name)
	if file == "" || !cachefile.Find(file, &kept) || kept.Build != q.Build ||
		kept.Question != q.text(name) {
		return lentKept{}
	}
	return kept
}

func (l *lender) folder(name string) {
	seen := l.Walked
	if !seen.isOf(l.at) {
		seen = l.walk(l.at, name)
	}
	l.before, l.Cut, l.same, l.began = seen.before, seen.Cut, seen.Same, seen.began
	if l.now.Folders = l.before.Folders; !l.same {
		l.now.Folders = seen.Folders()
	}
	look := git.Look{Git: seen.Git, Bare: seen.Bare}
	if git.IsFolder(name) {
		look.Own = []string{"."}
	}
	found := git.Gather(l.at, look)
	judged := map[string]bool{} // of a configuration only the secrets are left out
	for _, f := range found.Folders {
		judged[path.Join(f.Rel, "config")] = true
		for _, s := range f.Secrets() {
			if rel := path.Join(f.Rel, s.Name); !l.Shown(rel) {
				judged[rel] = true
				l.Secrets = append(l.Secrets, Lent{Rel: rel, Dir: s.Dir, Content: s.Copy})
			}
		}
	}
	for _, f := range seen.Files {
		switch {
		case f.Kind == beneath.Link && l.All:
			l.Links = append(l.Links, f.Rel)
		case !judged[f.Rel]:
			l.judge(f)
		}
	}
}

// judge judges one file.
func (l *lender) judge(f survey.File) {
	if f.Kind != beneath.Regular || l.Shown(f.Rel) {
		return
	}
	found, keep := l.known(f)
	if !keep {
		found, keep = l.look(f)
	}
	if keep {
		l.now.Judged = append(l.now.Judged, found)
	}
	if what := l.otherName(f); what != "" {
		found.Secret, found.What = true, what
	}
	switch {
	case found.Secret:
		l.Secrets = append(l.Secrets, Lent{Rel: f.Rel, What: found.What})
	case found.What != "":
		l.Addresses = append(l.Addresses, f.Rel)
	}
}

// known returns what the last look found of a file, if that has not changed since.
func (l *lender) known(f survey.File) (found lentFile, known bool) {
	for l.next < len(l.before.Judged) && l.before.Judged[l.next].Rel < f.Rel {
		l.next++
	}
	if l.next == len(l.before.Judged) || l.before.Judged[l.next].Rel != f.Rel || !l.isAsItWas(f) {
		return found, false
	}
	return l.before.Judged[l.next], true
}

// look judges a file by its name, and by what it holds. keep is false if the next look is to look again.
func (l *lender) look(f survey.File) (found lentFile, keep bool) {
	dir, name := split(f.Rel)
	verdict := secretfile.Of(path.Join(l.around, dir), name)
	if l.Settings {
		verdict = max(verdict, secretfile.Suspect)
	}
	found, keep = lentFile{Rel: f.Rel, Secret: verdict == secretfile.Secret}, true
	if !found.Secret && f.Stamp.Size >= leastToken {
		found.What, keep = l.search(f, verdict)
		found.Secret = found.What != "" && found.What != leak.Address
	}
	return found, keep
}

// otherName returns of which secret a file is another name.
func (l *lender) otherName(f survey.File) string {
	var st unix.Stat_t
	if f.Names < 2 || l.Named == nil || unix.Fstatat(l.at.FD(), f.Rel, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return ""
	}
	return l.Named(homelink.Inode{Dev: st.Dev, Ino: st.Ino})
}

// search returns what a file holds.
func (l *lender) search(f survey.File, verdict secretfile.Verdict) (what string, keep bool) {
	suspect := verdict == secretfile.Suspect
	switch {
	case suspect:
	case !l.All && f.Stamp.Size > secretfile.SmallLimit:
		return "", true
	case f.Stamp.Size > l.left:
		l.Large = append(l.Large, f.Rel)
		return "", false
	default:
		l.left -= f.Stamp.Size
	}
	fd, err := l.at.OpenFD(f.Rel, smallfile.Flags)
	if err != nil {
		return unopened(suspect, err), false
	}
	file := os.NewFile(uintptr(fd), f.Rel)
	defer file.Close()
	if suspect {
		if isSecret(smallfile.ReadFD(fd, secretfile.Limit)) {
			what = aSecret
		}
	} else {
		what = l.tokens(file, f.Stamp.Size)
	}
	if (what == "" || what == leak.Address) && l.All && f.Stamp.Size <= secretfile.Limit {
		content, err := smallfile.ReadFD(fd, secretfile.Limit)
		if err == nil && secretfile.HoldsLogin(path.Base(f.Rel), content) {
			what = "a login"
		}
	}
	return what, l.isSettled(fd, f)
}

// aSecret is what a file holds whose name suggests it.
const aSecret = "a secret"

// unopened returns what counts as the content of a file that could not be opened. What the user may not read, or what
// is gone, the agent cannot read either.
func unopened(suspect bool, err error) (what string) {
	switch {
	case suspect:
		return aSecret
	case errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ELOOP):
		return ""
	}
	return "it could not be searched: " + err.Error()
}

// isSettled reports whether an open file is the one that was seen, and was not changed since, also not while it was
// searched: whatever came after the walk began has another time than what was seen.
func (l *lender) isSettled(fd int, f survey.File) bool {
	var st unix.Stat_t
	return beneath.IsSettled(f.Stamp.Change, l.began.UnixNano()) && unix.Fstat(fd, &st) == nil &&
		l.at.StampOf(f.Rel, &st) == f.Stamp
}

// isAsItWas reports whether a file is in the same state as at the last look.
func (l *lender) isAsItWas(f survey.File) bool {
	if l.same {
		return true
	}
	if l.was == nil {
		l.was = map[string]survey.File{}
		for _, folder := range l.before.Folders {
			for _, file := range folder.Found.Files {
				l.was[file.Rel] = file
			}
		}
	}
	return l.was[f.Rel] == f
}

// tokens searches a file, which may be larger than it was, piece by piece, and returns what it holds.
func (l *lender) tokens(file io.Reader, size int64) (what string) {
	const (
		most    = 1 << 20
		overlap = 32 << 10 // more than any token takes, in two bytes a letter
	)
	piece := min(most, size+overlap+1)
	text := make([]byte, 0, piece)
	for err := error(nil); err == nil; {
		kept := copy(text[:overlap], text[max(0, len(text)-overlap):])
		var n int
		n, err = io.ReadFull(file, text[kept:piece])
		text = text[:kept+n]
		if found := secretfile.Text(text); found != "" && found != leak.Address {
			return found
		} else if !l.All && found == leak.Address {
			continue // it is no secret of a project, either
		} else {
			what = cmp.Or(what, found)
		}
	}
	return what
}
