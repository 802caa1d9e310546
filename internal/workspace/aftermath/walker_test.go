package aftermath_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/handover"
	"claudebox/internal/workspace/project"
)

// walker is an agent that does whatever comes into its head, below the project.
// No step starts a process: what git would make is written by hand.
type walker struct {
	world
	*rand.Rand
	evil    string            // a configuration that runs a program
	hook    string            // a script that leaves a trace
	index   []string          // indexes that git made: what is tracked, and which folders are submodules
	given   project.Project   // of the session that lives
	held    bool              // what is mounted over the project holds
	secrets map[uint64]string // by inode
	done    []string
}

// names are what it calls things: what git obeys, and a few others, so that
// names meet.
var names = []string{
	".git", ".git", ".git", "a", "b", "a/b", "n", "e", "HEAD", "objects", "refs", "refs/heads", "logs", "config", "config.worktree", "commondir", "gitdir",
	"hooks", "hooks/post-index-change", "hooks/reference-transaction", "modules", "modules/s", "worktrees", "worktrees/w", "info", "info/attributes",
	"objects/info", "objects/info/alternates", "rebase-merge", "rebase-merge/msgnum", "lfs", "remotes", "remotes/origin", "index", ".gitattributes",
	"b.git", "node_modules", "objects/pack", "claudebox-aside", "index.lock", ".env", "sub.env",
}

// words are the vocabulary: each does one thing with a path that may be there,
// and says what. That it may fail is part of it.
var words = []func(w *walker) (done string){
	func(w *walker) string { return w.folder(w.place()) },
	func(w *walker) string {
		from, to := w.there(), w.place()
		if w.mayMove(from) && w.mayWrite(to) {
			os.Rename(from, to)
		}
		return "mv " + from + " " + to
	},
	func(w *walker) string {
		from, to := w.there(), w.there()
		if w.mayMove(from) && w.mayMove(to) {
			unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_EXCHANGE)
		}
		return "exchange " + from + " " + to
	},
	func(w *walker) string {
		from, to := w.there(), w.place()
		if w.mayWrite(from) && w.mayWrite(to) { // no link leads out of a mount
			os.Link(from, to)
		}
		return "ln " + from + " " + to
	},
	func(w *walker) string {
		from, to := w.there(), w.place()
		if w.mayWrite(to) {
			os.Symlink(from, to)
		}
		return "ln -s " + from + " " + to
	},
	func(w *walker) string {
		at := w.there()
		if w.mayWrite(at) {
			os.Chmod(at, []os.FileMode{0, 0o311, 0o555, 0o755}[w.IntN(4)])
		}
		return "chmod " + at
	},
	func(w *walker) string {
		at := w.there()
		if w.mayMove(at) {
			os.RemoveAll(at)
		}
		return "rm -r " + at
	},
	func(w *walker) string { return "init " + w.repository(w.place()+"/.git", w.evil) },
	func(w *walker) string { return "init --bare " + w.repository(w.place(), w.evil) },
	func(w *walker) string { // a clone of what may be there
		return "clone " + w.repository(w.place()+"/.git", w.evil+"[remote \"origin\"]\n\turl = "+w.there()+"\n")
	},
	func(w *walker) string {
		tree, git := w.place(), w.there()
		at := git + "/worktrees/" + filepath.Base(tree)
		w.file(at+"/HEAD", "ref: refs/heads/x\n")
		w.file(at+"/commondir", []string{"../..", w.there()}[w.IntN(2)]+"\n")
		w.file(at+"/gitdir", tree+"/.git\n")
		w.file(at+"/config.worktree", w.evil)
		w.file(tree+"/.git", "gitdir: "+at+"\n")
		return "worktree " + tree + " of " + git
	},
	func(w *walker) string {
		tree, git := w.place(), w.there()
		at := git + "/modules/" + filepath.Base(tree)
		w.repository(at, w.evil+"\tworktree = "+tree+"\n")
		w.file(tree+"/.git", "gitdir: "+at+"\n")
		return "submodule " + tree + " in " + git
	},
	func(w *walker) string { return "a .git file at " + w.file(w.place(), "gitdir: "+w.there()+"\n") },
	func(w *walker) string { return w.file(w.there()+"/commondir", w.there()+"\n") },
	func(w *walker) string { return "an evil " + w.file(w.there()+"/config", w.evil) },
	func(w *walker) string { return "an evil " + w.file(w.there()+"/config.worktree", w.evil) },
	func(w *walker) string { return "a hook at " + w.file(w.place(), w.hook) },
	func(w *walker) string { return w.file(w.there()+"/objects/info/alternates", w.there()+"/objects\n") },
	func(w *walker) string {
		return "an index at " + w.file([]string{w.there() + "/index", w.path("p/.git/index"), w.path("p/n/.git/index")}[w.IntN(3)], w.index[w.IntN(len(w.index))])
	},
	func(w *walker) string {
		at := w.place()
		if w.mayWrite(at) {
			unix.Mkfifo(at, 0o644)
		}
		return "mkfifo " + at
	},
}

// step does one thing.
func (w *walker) step() { w.done = append(w.done, words[w.IntN(len(words))](w)) }

// place is a path of one to four names.
func (w *walker) place() string {
	at := w.path("p")
	for range 1 + w.IntN(3) {
		at += "/" + names[w.IntN(len(names))]
	}
	return at
}

// there is a path of something that is there, as often as not in a git folder.
func (w *walker) there() string {
	at := w.path("p")
	for range 1 + w.IntN(5) {
		f, err := os.OpenFile(at, os.O_RDONLY|unix.O_DIRECTORY, 0) // to open a pipe waits
		if err != nil {
			return at
		}
		entries, _ := f.Readdirnames(-1)
		f.Close()
		if len(entries) == 0 {
			return at
		}
		slices.Sort(entries)
		at += "/" + entries[w.IntN(len(entries))]
	}
	return at
}

func (w *walker) folder(at string) string {
	if w.mayWrite(at) {
		os.MkdirAll(at, 0o755)
	}
	return "mkdir " + at
}

// file writes a file and the folders above it.
func (w *walker) file(at, content string) string {
	if !w.mayWrite(at) {
		return at + " (held)"
	}
	const how = os.O_WRONLY | os.O_CREATE | os.O_TRUNC | unix.O_NONBLOCK // it may be a pipe
	f, err := os.OpenFile(at, how, 0o755)
	if err != nil && os.MkdirAll(filepath.Dir(at), 0o755) == nil {
		f, err = os.OpenFile(at, how, 0o755)
	}
	if err == nil {
		f.WriteString(content)
		f.Close()
	}
	return at
}

// repository writes the least that git takes for one.
func (w *walker) repository(at, config string) string {
	w.folder(at + "/objects")
	w.folder(at + "/refs/heads")
	w.file(at+"/HEAD", "ref: refs/heads/x\n")
	w.file(at+"/config", config)
	w.file(at+"/index", w.index[0])
	w.file(at+"/hooks/post-index-change", w.hook)
	return at
}

// mayWrite reports whether nothing is mounted read-only at a path, or above it.
func (w *walker) mayWrite(at string) bool {
	if slices.ContainsFunc(handover.Outers(w.given.Places), func(git string) bool { return pathname.Below(really(at), git) }) {
		return false // it is not there inside
	}
	if !w.held {
		return true
	}
	at = really(at)
	for _, m := range w.given.Mounts {
		if m.Mode != project.Pin && m.Mode != project.Inner && isBelow(at, m.Path) {
			return false
		}
	}
	return true
}

// mayMove reports whether a path can be taken away: no mount lies there or
// below.
func (w *walker) mayMove(at string) bool {
	if at == w.path("p") {
		return false
	}
	for _, place := range w.given.Places { // a mount point, and what is on the way to it
		if isBelow(at, place.Outer) || isBelow(place.Outer, at) {
			return false
		}
	}
	if !w.held {
		return true
	}
	real := really(filepath.Dir(at)) + "/" + filepath.Base(at)
	for _, m := range w.given.Mounts {
		if isBelow(m.Path, real) || m.Mode != project.Pin && m.Mode != project.Inner && isBelow(real, m.Path) {
			return false
		}
	}
	return true
}

func isBelow(at, dir string) bool { return at == dir || strings.HasPrefix(at, dir+"/") }

// really is a path with all links resolved in what is there of it.
func really(at string) string {
	if real, err := filepath.EvalSymlinks(at); err == nil {
		return real
	}
	if to, err := os.Readlink(at); err == nil {
		return to // it leads to nothing yet
	}
	return really(filepath.Dir(at)) + "/" + filepath.Base(at)
}

// evilConfig is a configuration that runs a program at every status, and by an
// alias.
func evilConfig(evil string) string {
	return "[alias]\n\tst = " + strconv.Quote("!"+evil) + "\n[core]\n\tfsmonitor = " + strconv.Quote(evil) + "\n\trepositoryformatversion = 0\n"
}
