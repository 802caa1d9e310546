package branch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/linux/watch"
	"claudebox/internal/workspace/handover"
)

// Held is a branch that this process works on: its folder is locked, and its checkout open.
type Held struct {
	Branch
	lock         *os.File
	closed       *beneath.Folder // the folders tree and layers
	tree, layers *beneath.Folder
	Talk         *beneath.Folder // of conversations
	record       record
	left         string       // the branch as an earlier session left it
	missing      []string     // submodules that could not be checked out
	entered      bool         // all is open, and the record could be read
	stirred      bool         // this session has changed the checkout, or one that was killed may have
	rest         *watch.Quiet // see [Held.Watch]; nil: it is not known whether the checkout is as it was
}

// Open locks the branch, and makes its folder.
func (b Branch) Open() (*Held, error) {
	h := &Held{Branch: b}
	if err := h.open(); err != nil {
		h.Close()
		remedy := diag.MakeRoom
		switch {
		case errors.Is(err, errHeld):
			remedy = "wait for its end, or use another name"
		case errors.Is(err, errByPath):
			remedy = "set CLAUDEBOX_HOME on ext4, xfs or btrfs"
		}
		return nil, diag.Wrap("open the checkout of branch "+b.Name, err, remedy)
	}
	return h, nil
}

func (h *Held) open() (err error) {
	if err := os.MkdirAll(h.Dir+"/closed", 0o700); err != nil {
		return err
	}
	ignore := path.Join(h.Home, foldersName, ".gitignore") // for a repository of the user's home
	if err := os.WriteFile(ignore, []byte("*\n"), 0o600); err != nil {
		return err
	}
	if h.lock, err = hold(h.Dir); err != nil {
		return err
	}
	if h.record, err = recall(h.Dir); err != nil && !h.Damaged {
		return err
	}
	h.Fresh = !h.record.Filled
	h.Modules = h.record.withModules(h.Modules)
	h.record.Name, h.record.Project, h.record.Outer = h.Name, h.Tree, h.Repo.Outer
	if err := h.record.remember(h.Dir); err != nil {
		return err
	}
	if err := h.enter(); err != nil {
		if h.Fresh && errors.Is(err, errByPath) {
			err = errors.Join(err, os.Chmod(h.Dir+"/closed", 0o700), os.RemoveAll(h.Dir))
		}
		return err
	}
	h.entered = !h.Damaged
	return nil
}

// enter opens the closed folder for a moment, to have descriptors of what is in it.
func (h *Held) enter() (err error) {
	if h.closed, err = beneath.Open(h.Dir + "/closed"); err != nil {
		return err
	}
	if err := os.Chmod(h.Dir+"/closed", 0o700); err != nil {
		return err
	}
	for name, to := range map[string]**beneath.Folder{"tree": &h.tree, "layers": &h.layers, "home": &h.Talk} {
		if err = h.closed.Mkdir(name, 0o700); err == nil || errors.Is(err, fs.ErrExist) {
			*to, err = h.closed.Sub(name)
		}
		if err != nil {
			break
		}
	}
	if err = errors.Join(err, os.Chmod(h.Dir+"/closed", 0)); err != nil {
		return err
	}
	if _, err := h.layers.Look("-"); errors.Is(err, fs.ErrPermission) {
		return errByPath
	}
	return nil
}

// errByPath is the error of a file system in which a folder that is open cannot be used once the one above it is
// closed. Most of FUSE are such: their program finds each file by its whole path.
var errByPath = errors.New("its file system finds files by their whole paths (FUSE), and cannot keep a closed folder")

// Done notes that what the session has made was handed over.
func (h *Held) Done() error {
	h.record.Open = false
	return h.record.remember(h.Dir)
}

// Close lets go of the branch. Of a checkout that was not finished nothing stays: no agent was there.
func (h *Held) Close() {
	if h.lock != nil {
		h.release()
	}
	if h.entered && !h.record.Filled {
		_ = h.Remove() // else it is finished the next time
	}
	h.rest.Close()
	for _, f := range []*beneath.Folder{h.tree, h.layers, h.Talk, h.closed} {
		if f != nil {
			f.Close()
		}
	}
	if h.lock != nil {
		h.lock.Close()
	}
}

// entry is the folder in the user's git folder by which their git takes the branch for checked out elsewhere.
func (h *Held) entry() string { return h.Repo.Outer + "/worktrees/claudebox-" + handover.Name(h.Name) }

// Take keeps the user's git from switching to the branch, and from removing it, until [Held.Close]: by a worktree of
// which nothing is there.
func (h *Held) Take() error {
	h.release()
	err := h.makeEntry()
	for again := 0; (errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist)) && again < 20; again++ {
		err = h.makeEntry()
	}
	if err != nil {
		remedy := "make " + h.Repo.Outer + " writable for you"
		if diag.IsFull(err) {
			remedy = diag.MakeRoom
		}
		return diag.Wrap("keep branch "+h.Name+" for the session", err, remedy)
	}
	return nil
}

// makeEntry fails with [fs.ErrNotExist] or [fs.ErrExist] where another session, or the user's git, removes the folder
// of all worktrees meanwhile: both do when it is empty. The lock is first, so that the user's git removes no entry that
// is half made.
func (h *Held) makeEntry() error {
	err := os.MkdirAll(h.entry(), 0o755)
	for _, file := range [][2]string{
		{"locked", "a session of claudebox works on it; after a crash, `claudebox branch list` frees it"},
		{"commondir", "../.."},
		{"gitdir", h.Place().Checkout() + "/.git"},
		{"HEAD", "ref: refs/heads/" + h.Name},
	} {
		if err == nil {
			err = os.WriteFile(h.entry()+"/"+file[0], []byte(file[1]+"\n"), 0o644)
		}
	}
	return err
}

// release undoes [Held.Take], also that of a session that was killed.
func (h *Held) release() {
	if os.RemoveAll(h.entry()) == nil {
		_ = os.Remove(path.Dir(h.entry())) // unless there are others
	}
}

// OpenPath opens a path as [beneath.OpenPath] does, also one in the closed folder.
func (h *Held) OpenPath(at string) (int, error) {
	for _, f := range []*beneath.Folder{h.tree, h.layers, h.Talk} {
		if rel, below := pathname.Cut(at, f.Path()); below {
			return f.OpenFD(path.Join(".", rel), unix.O_PATH)
		}
	}
	return beneath.OpenPath(at)
}

// run runs a script in a box with the checkout.
func (h *Held) run(ctx context.Context, script, input string, limit time.Duration, bind ...string) ([]byte, error) {
	fd, err := h.tree.OpenFD(".", unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	tree := os.NewFile(uintptr(fd), "tree")
	defer tree.Close()
	work := handover.Work{Place: h.Place(), Tools: h.Tools, Tree: tree, At: h.Tree, Time: limit}
	return work.Run(ctx, script, input, bind...)
}

// Has reports whether a folder, or a file, is in the checkout, at a path with no link on the way.
func (h *Held) Has(rel string, folder bool) bool {
	what, err := h.tree.Look(path.Join(".", rel))
	return err == nil && (folder && what.Kind == beneath.Dir || !folder && what.Kind == beneath.Regular)
}

// fillTime is how long a checkout may take.
const fillTime = 10 * time.Minute

// forwardScript brings what the user has added to the branch since the last session, if the agent has added nothing.
func forwardScript(name string) string {
	own, users := diag.Quote("refs/heads/"+name), diag.Quote("refs/remotes/user/"+name)
	return fmt.Sprintf(`cd "$GIT_WORK_TREE" || exit 1
g update-index -q --refresh || :
if [ "$(g symbolic-ref -q HEAD)" = %[1]s ] && g rev-parse -q --verify %[2]s >/dev/null &&
  g merge-base --is-ancestor HEAD %[2]s && g diff-index --quiet HEAD --; then g merge -q --ff-only %[2]s || :; fi
`, own, users)
}

const (
	usersTree  = "/run/claudebox/users"       // the user's folder, in a box
	usersIndex = "/run/claudebox/users-index" // their index
)

// changesScript commits what the user has changed and not committed, but for what is hidden: in a new branch, and in no
// index of theirs.
func (h *Held) changesScript() string {
	if !h.Changes {
		return ""
	}
	var not, restore strings.Builder
	for _, at := range h.Hidden {
		if pathname.BelowAny(at, ModuleNames(h.Modules)) {
			continue // of a submodule git adds the commit alone, and it takes no path in one
		}
		not.WriteString(" " + diag.Quote(":(exclude,literal,top)"+at))
		fmt.Fprintf(&restore, "g restore --staged --source=HEAD -- %s 2>/dev/null || :\n",
			diag.Quote(":(literal,top)"+at))
	}
	return fmt.Sprintf(`(
cp %[1]s /tmp/changes && cd %[2]s || exit 1
export GIT_INDEX_FILE=/tmp/changes GIT_WORK_TREE=%[2]s
g add -u -- .%[3]s || exit 1
%[4]st=$(g write-tree) || exit 1
[ "$t" = "$(g rev-parse 'HEAD^{tree}')" ] || { c=$(g commit-tree -p HEAD -m 'changes that were not committed' "$t") &&
  g update-ref -m 'claudebox: --with-changes' HEAD "$c"; } || exit 1
) || exit 1
`, usersIndex, usersTree, not.String(), restore.String())
}

// anewScript makes the index of an inner folder that was made anew. In the checkout is what both sides had last, with
// what the agent has left; what the user has made of the branch since is put there, unless it is in the agent's way.
const anewScript = `[ -e "$GIT_DIR/index" ] || {
  t=%s; cd "$GIT_WORK_TREE" && [ "$t" ] && g read-tree "$t" && { g update-index -q --refresh || :; } &&
    g read-tree -m -u "$t" HEAD; } 2>/dev/null || g read-tree HEAD || exit 1
`

// Fill checks the branch out, if that was not done yet. The inner git folder is there.
func (h *Held) Fill(ctx context.Context) error {
	script := fmt.Sprintf(anewScript, diag.Quote(h.Place().Before())) + forwardScript(h.Name)
	var bind []string
	if !h.record.Filled { // no agent has been there: what git runs in the box is none of an agent's
		bind = []string{h.Tree, usersTree, path.Join(h.Repo.Outer, h.rel(), "index"), usersIndex}
		script = h.changesScript() +
			"g -c checkout.workers=0 read-tree -u --reset HEAD || exit 1\n" + modulesScript(h.Modules)
		for n, m := range h.Modules {
			bind = append(bind, m.Git, boxed(n))
		}
	}
	h.stirred = h.record.Open
	if h.record.Open { // that of a session which was killed
		_ = h.takeOutPipes()
	}
	if h.record.Open || !h.record.Filled { // this process alone works there: these are of a git that was killed
		for _, lock := range []string{"index.lock", "HEAD.lock"} {
			_ = os.Remove(path.Join(h.Place().Inner(), lock)) // most times there is none
		}
	}
	if _, err := os.Lstat(h.Place().Inner() + "/index"); err == nil && h.record.Filled && h.tip == h.record.Tip {
		h.record.Open = true
		return h.record.remember(h.Dir) // as it was left
	}
	h.stirred = true
	err := h.tree.Mkdir(".git", 0o700) // the inner git folder is mounted there
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	var answer []byte
	if err == nil {
		answer, err = h.run(ctx, script, "", fillTime, bind...)
	}
	h.missing = strings.FieldsFunc(string(answer), func(r rune) bool { return r == 0 })
	if err == nil {
		h.record.Filled, h.record.Open = true, true
		err = h.record.remember(h.Dir)
	}
	if err != nil {
		return diag.Wrap("check out branch "+h.Name, err,
			fmt.Sprintf("make room; `claudebox branch remove %s` takes away what is there", h.Name))
	}
	return nil
}
