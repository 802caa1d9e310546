package handover

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/capture"
	"claudebox/internal/linux/proctree"
	"claudebox/internal/linux/spawn"
	"claudebox/internal/workspace/atwork"
)

// Tools are the programs that a hand-over runs. They are claudebox's own, whatever the user's PATH says.
type Tools struct {
	Bwrap, Bash, Git string
	Path             []string      // folders with git, sha256sum, head, cp, mv, rm, mkdir
	Seccomp          []byte        // the filter of system calls of a box, as bwrap takes it; nil: none
	Time             time.Duration // how long one script may take, or be silent with a pack; 0: [answerTime]
}

func (t Tools) limit() time.Duration { return cmp.Or(t.Time, answerTime) }

// side runs scripts on one of the two repositories of a place.
type side struct {
	place  Place
	tools  Tools
	boxed  bool   // the inner one, in a box
	folder string // what a box has in the outer's place; empty: the inner folder
	part   string // the repository below the outer's place; empty: that itself
	work   *Work  // nil: the box has no working tree
}

// innerOf returns the agent's side of a place.
func innerOf(p Place, tools Tools) side { return side{place: p, tools: tools, boxed: true} }

// outerOf returns the user's side of a place.
func outerOf(p Place, tools Tools) side { return side{place: p, tools: tools} }

// contained returns the user's side in a box: what takes a pack from the agent apart reaches nothing else.
func (s side) contained() side {
	return side{place: s.place, tools: s.tools, boxed: true, folder: s.place.Outer}
}

// answerTime is how long one script may take. git needs a second for a large repository; a hostile one could be without
// end.
const answerTime = 20 * time.Second

// system are the folders of the host that a box has, beside Nix's store, as far as they exist.
var system = []string{"/usr", "/bin", "/lib", "/lib64", "/etc/alternatives"}

// environment is all that the programs of a hand-over get. git reads no configuration but the repository's own.
func (s side) environment() []string {
	return []string{
		"PATH=" + strings.Join(s.tools.Path, ":"), "HOME=/nonexistent", "LC_ALL=C",
		"C=" + path.Join(s.place.Outer, s.part),
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0",
		"GIT_NO_REPLACE_OBJECTS=1", "GIT_NO_LAZY_FETCH=1", "GIT_WORK_TREE=" + s.workTree(),
		"GIT_AUTHOR_NAME=claudebox", "GIT_AUTHOR_EMAIL=" + atwork.OwnEmail,
		"GIT_COMMITTER_NAME=claudebox", "GIT_COMMITTER_EMAIL=" + atwork.OwnEmail,
	}
}

// emptyTree is an empty folder: git sees no working tree, so no .gitattributes of the agent's.
const emptyTree = "/run/claudebox/tree"

func (s side) workTree() string {
	switch {
	case s.work != nil:
		return s.work.At
	case s.boxed:
		return emptyTree
	}
	return s.place.Folder + "/tree"
}

// mostMemory is how much each program in a box may allocate, in bytes: git reads some files of the agent's whole, and
// one of holes costs the agent nothing. What git maps, as packs, does not count (RLIMIT_DATA).
const mostMemory = 4 << 30

// devices are the words for bwrap by which a box has the two devices that git opens. Of the others some have no end, as
// /dev/zero, and an agent can lead a file that git reads whole to one.
var devices = []string{"--dev-bind", "/dev/null", "/dev/null", "--dev-bind", "/dev/urandom", "/dev/urandom"}

// command returns a script as a process: in the box with the inner folder, or for the user's side without one. bind are
// further folders for the box, read-only: source, destination. The script comes by standard input, before the input,
// as it may be longer than an argument.
func (s side) command(ctx context.Context, script string, input io.Reader, writes bool, bind ...string) *exec.Cmd {
	begin := `eval "$(head -c %d)"`
	if len(script) < readable {
		begin = `IFS= read -r -N %d s && eval "$s"`
	}
	begin = fmt.Sprintf(begin, len(script))
	if s.boxed {
		begin = fmt.Sprintf("ulimit -Sd %d && ", mostMemory>>10) + begin
	}
	cmd := s.process(ctx, begin, writes, bind...)
	cmd.Stdin = io.MultiReader(strings.NewReader(script), input)
	return cmd
}

// readable is up to how many bytes bash reads a script itself, which it does byte by byte.
const readable = 16 << 10

func (s side) process(ctx context.Context, script string, writes bool, bind ...string) *exec.Cmd {
	words := []string{s.tools.Bash, "--noprofile", "--norc", "-c", script}
	if !s.boxed {
		cmd := begin(ctx, words)
		cmd.Dir, cmd.Env = s.workTree(), s.environment()
		return cmd
	}
	how := "--ro-bind"
	if writes {
		how = "--bind"
	}
	args, files := s.tools.box()
	args = append(args, devices...)
	args = append(args, "--tmpfs", "/tmp", "--dir", emptyTree)
	if s.work != nil {
		args = append(args, "--bind-fd", strconv.Itoa(3+len(files)), s.work.At)
		files = append(files, again(int(s.work.Tree.Fd())))
	}
	args = append(args, s.laid(how)...)
	if s.work != nil && s.place.Outer != s.work.At+"/.git" { // where submodules expect it
		args = append(args, how, cmp.Or(s.folder, s.place.Inner()), s.work.At+"/.git")
	}
	for i := 0; i+1 < len(bind); i += 2 {
		args = append(args, "--ro-bind-try", bind[i], bind[i+1])
	}
	args = append(args, "--chdir", s.workTree(), "--")
	cmd := begin(ctx, slices.Concat([]string{s.tools.Bwrap}, args, words))
	cmd.Env, cmd.ExtraFiles = s.environment(), files
	return cmd
}

// laid returns the words for bwrap by which a box has the repository.
func (s side) laid(how string) []string {
	words := []string{
		how, cmp.Or(s.folder, s.place.Inner()), s.place.Outer,
		"--ro-bind", s.place.Outer + "/objects", s.place.Shared() + "/objects",
	}
	if s.place.inner != "" && s.folder != s.place.Outer {
		words = append(words, "--ro-bind", s.place.borrowing(), s.place.Outer+"/"+alternates)
	}
	for _, dir := range s.place.Borrows() {
		words = append(words, "--ro-bind-try", dir, dir)
	}
	return words
}

// box returns the words for bwrap that every box begins with, and the files that they name: the system's programs, and
// nothing else.
func (t Tools) box() (args []string, files []*os.File) {
	args = []string{
		"--unshare-all", "--cap-drop", "ALL", "--die-with-parent",
		"--ro-bind-try", "/nix/store", "/nix/store",
	}
	if !strings.HasPrefix(t.Git, "/nix/store/") {
		for _, dir := range system {
			args = append(args, "--ro-bind-try", dir, dir)
		}
	}
	if t.Seccomp != nil {
		filter, err := spawn.InMemory(t.Seccomp)
		if err != nil {
			return append(args, "--seccomp", "-1"), nil // bwrap does not start with that
		}
		files, args = []*os.File{os.NewFile(uintptr(filter), "filter")}, append(args, "--seccomp", "3") // of ExtraFiles
	}
	return args, files
}

// errLost is returned for an inner folder that is not the one that was made, or has lost what was in it.
var errLost = errors.New(lostText)

// errInUse is returned if the other one has changed a side since it was read, or is just writing there.
var errInUse = errors.New("it was changed meanwhile")

// errSilent is returned for a script, or a pack, that took too long.
var errSilent = errors.New("git did not answer")

// run runs a script to its end and returns what it printed.
func (s side) run(script, input string, writes bool, bind ...string) ([]byte, error) {
	return s.runIn(context.Background(), script, input, writes, bind...)
}

// runIn is [side.run] as long as a context lasts.
func (s side) runIn(within context.Context, script, input string, writes bool, bind ...string) ([]byte, error) {
	answer := &capture.Head{Most: mostAnswer}
	err := s.serve(within, script, strings.NewReader(input), answer, writes, bind...)
	if err == nil && answer.Over {
		err = fmt.Errorf("git's answer is longer than %d MiB", mostAnswer>>20)
	}
	if err != nil {
		return nil, err
	}
	return answer.Bytes(), nil
}

// serve runs a script to its end with what it reads and prints.
func (s side) serve(within context.Context, script string, input io.Reader, output io.Writer, writes bool,
	bind ...string,
) error {
	limit := s.tools.limit()
	if s.work != nil {
		limit = s.work.Time
	}
	if err := s.isSound(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(within, limit)
	defer cancel()
	cmd := s.command(ctx, script, input, writes, bind...)
	defer closeFiles(cmd)
	faults := &capture.Head{Most: mostFaults}
	cmd.Stdout, cmd.Stderr = output, faults
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	runtime.LockOSThread() // with which the box dies, also before bwrap has asked for that itself
	defer runtime.UnlockOSThread()
	err := cmd.Run()
	exit := (*exec.ExitError)(nil)
	switch {
	case within.Err() != nil:
		return within.Err()
	case ctx.Err() != nil:
		return s.about(fmt.Errorf("%w within %v", errSilent, limit))
	case errors.As(err, &exit):
		return s.ended(exit.ExitCode(), faults.Bytes())
	case err != nil:
		return s.fault(err, faults.Bytes())
	}
	return nil
}

// ended says what the exit code of a script means.
func (s side) ended(code int, said []byte) error {
	switch code {
	case 0:
		return nil
	case changed:
		return errInUse
	case gone:
		return errLost
	}
	return s.about(s.fault(fmt.Errorf("exit status %d", code), said))
}

// begin returns a command in a session of its own, without a terminal, that ends with a context, and all that it has
// begun with it.
func begin(ctx context.Context, words []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	const closing = 10 * time.Second // what dies with a box may hold the pipes; a busy machine is slow to end it
	cmd.SysProcAttr, cmd.WaitDelay = &syscall.SysProcAttr{Setsid: true}, closing
	cmd.Cancel = func() error { endGroup(cmd); return nil }
	return cmd
}

// endGroup ends the process group of a command, and waits until nothing runs in its box. Of a bwrap alone that is just
// making a box a child would stay, which waits for it without end, and holds what the box prints to.
func endGroup(cmd *exec.Cmd) {
	const most = 10 * time.Second // more only where the kernel cannot end it
	inside := -1
	if init := proctree.Init(cmd.Process.Pid); init != 0 {
		inside, _ = unix.PidfdOpen(init, 0)
	}
	_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
	if inside >= 0 { // with it all that runs in the box has ended
		err := error(unix.EINTR)
		for err == unix.EINTR {
			_, err = unix.Poll([]unix.PollFd{{Fd: int32(inside), Events: unix.POLLIN}}, int(most.Milliseconds()))
		}
		unix.Close(inside)
	}
}

func closeFiles(cmd *exec.Cmd) {
	for _, f := range cmd.ExtraFiles {
		f.Close()
	}
}

// about returns an error of the side: in a box it is one of what the agent has made.
func (s side) about(err error) error {
	if s.boxed {
		return unfit{err}
	}
	return err
}

// fault returns err with the last line that a program said. In a box it is the agent's, perhaps.
func (s side) fault(err error, said []byte) error {
	said = bytes.TrimSpace(said)
	last := said[bytes.LastIndexByte(said, '\n')+1:]
	if len(last) == 0 {
		return err
	}
	return fmt.Errorf("%s%s", diag.Visible(fmt.Sprintf("%.300s", last)), s.place.spaceRemedy(string(said)))
}

const freeSpace = "; free some space"

// spaceRemedy follows a fault that comes from a full disk; else it is empty.
func (p Place) spaceRemedy(said string) string {
	for _, full := range []error{unix.ENOSPC, unix.EDQUOT} {
		if strings.Contains(strings.ToLower(said), full.Error()) && !strings.Contains(said, freeSpace) {
			return freeSpace + ": `df -h --output=avail,iavail,target " + diag.Quote(p.Outer) + " " +
				diag.Quote(p.Folder) + "` shows for how many bytes and how many files there is room"
		}
	}
	return ""
}

// read reads what a side holds.
func (s side) read() (Side, error) {
	s.place.Trees = s.place.treesOf(!s.boxed)
	answer, err := s.run(readScript(s.place, s.boxed), "", false)
	if err != nil {
		return Side{}, err
	}
	return parse(answer, s.place.Trees)
}

// apply does changes. While only the file of an index is replaced under it, as by a `git status` in a loop, it tries
// again at once: what was read still stands.
func (s side) apply(c Changes, why string) (err error) {
	const most = 20
	for range most {
		if err = s.tryApply(c, why); !errors.Is(err, errReplaced) {
			break
		}
	}
	return err
}

func (s side) tryApply(c Changes, why string) error {
	if c.none() {
		return nil
	}
	var bind []string
	for _, t := range c.Trees {
		for _, name := range t.Copied {
			bind = append(bind, path.Join(s.place.dir(t.Tree), name), path.Join(usersFolder, t.Rel, name))
		}
	}
	ended := s.place.Folder + "/ended"
	if s.boxed {
		ended = "/tmp/ended" // which ends with the box
	}
	script, input := applyScript(s.place, c, why, ended)
	swaps, err := s.swapsOf(c.Trees)
	defer swaps.close()
	if err != nil {
		return err
	}
	err = s.serve(context.Background(), script, io.MultiReader(strings.NewReader(input), swaps), swaps, true, bind...)
	return cmp.Or(swaps.err, err)
}

const (
	// mostPack is how large a pack may be, in bytes.
	mostPack = 4 << 30
	// loose is from how many objects on a pack is kept as one, as git's fetch.unpackLimit has it.
	loose = 100
)

// lenient are faults of old histories that harm nothing.
const lenient = "badDate=warn,badDateOverflow=warn,badEmail=warn,badName=warn,badTimezone=warn,missingEmail=warn," +
	"missingNameBeforeEmail=warn,missingSpaceBeforeDate=warn,missingSpaceBeforeEmail=warn,multipleAuthors=warn," +
	"zeroPaddedDate=warn"

// fetch brings objects of the inner repository into the user's, with all that they refer to and the user does not have.
// The user's git checks them (--strict).
func fetch(inner, outer side, want, have []string) error {
	if len(want) == 0 {
		return nil
	}
	const making = prelude + inCommon + "g pack-objects --revs --stdout -q --thin --delta-base-offset --threads=1"
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	pack := inner.command(ctx, making, strings.NewReader(since(want, have)), false)
	defer closeFiles(pack)
	said, refused := &capture.Head{Most: mostFaults}, &capture.Head{Most: mostFaults}
	pack.Stderr = said
	from, err := pack.StdoutPipe()
	if err != nil {
		return err
	}
	if err := pack.Start(); err != nil {
		return err
	}
	defer func() { cancel(); _ = pack.Wait() }()
	watch := time.AfterFunc(inner.tools.limit(), cancel)
	defer watch.Stop()
	first := make([]byte, packHead)
	if _, err := io.ReadFull(from, first); err != nil || !isPack(first) {
		if ctx.Err() != nil {
			return errUnended
		}
		cancel()
		_ = pack.Wait()
		return inner.fault(errNoPack, said.Bytes())
	}
	whole := &paced{io.MultiReader(bytes.NewReader(first), from), watch, inner.tools.limit()}
	unpack := outer.contained().command(ctx, taking(first), whole, true)
	defer closeFiles(unpack)
	unpack.Stderr = refused
	if err := unpack.Run(); err != nil {
		if ctx.Err() != nil {
			return errUnended
		}
		return outer.fault(err, refused.Bytes())
	}
	return nil
}

// packHead is how many bytes a pack has before the first object.
const packHead = 12

var (
	errNoPack  = errors.New("no pack of objects came")
	errUnended = fmt.Errorf("the pack of objects did not come to its end: %w", errSilent)
)

func isPack(begin []byte) bool { return len(begin) >= packHead && string(begin[:4]) == "PACK" }

// taking returns the script that takes a pack, of which the beginning is known, apart.
func taking(begin []byte) string {
	take := "unpack-objects -q --strict"
	if binary.BigEndian.Uint32(begin[8:]) >= loose {
		take = "index-pack --stdin --fix-thin --strict=" + lenient
	}
	return fmt.Sprintf("%sulimit -v 4194304; ulimit -t 600\n"+ // KiB; seconds
		"g -c pack.threads=1 -c core.bigFileThreshold=64m %s --max-input-size=%d >/dev/null",
		prelude+inCommon, take, mostPack)
}

// paced sets a timer anew each time that something is read.
type paced struct {
	from  io.Reader
	watch *time.Timer
	limit time.Duration
}

func (p *paced) Read(b []byte) (int, error) {
	n, err := p.from.Read(b)
	if n > 0 {
		p.watch.Reset(p.limit)
	}
	return n, err
}
