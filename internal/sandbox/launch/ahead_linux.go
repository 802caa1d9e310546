package launch

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/spawn"
)

// Needs is what bwrap is started with besides its words, and for which launches
// that holds.
type Needs struct {
	Program string
	Tier    string   // of the network
	Asks    bool     // the user confirms it
	Held    bool     // some of the files are there only while a session runs
	Command []string // without the caller's words
	Files   []string // what each descriptor is opened from; empty: memory
	Lay     bool     // it waits at a gate until mounts are laid
}

// teach tells [Launch.Learn] what the next launch by the same plan in the same
// folder will most likely need, where it can be begun so.
func (l Launch) teach(descriptors []Descriptor) {
	if l.Learn == nil || l.OwnNetwork() || l.hasTree() || !l.OwnPIDs || len(descriptors) > mostAhead {
		return
	}
	n := Needs{
		Program: l.Bwrap, Tier: l.Tier, Asks: l.Plan.Asks(), Held: len(l.StandIns) > 0,
		Lay: l.Lay, Command: l.Command[:len(l.Command)-len(l.Request)],
	}
	for _, d := range descriptors {
		n.Files = append(n.Files, d.file())
	}
	l.Learn(n)
}

// mostAhead is how many descriptors are opened before they are known to be
// needed, see [raiseFileLimit].
const mostAhead = 200

// file is what the descriptor is opened from; empty: memory.
func (d Descriptor) file() string {
	if d.Follows != "" {
		return filepath.Join(d.Folder, d.Name)
	}
	return d.Path
}

// Ahead is a bwrap that is started while its launch is still being prepared,
// on another processor: a fifth of its time goes by before it knows what to do.
// It gets its namespaces, its command line and the descriptors that the launch
// is expected to need, and waits for its words.
//
// Nothing rests on the guess. Its descriptors are compared with those that the
// launch then needs, which are opened and checked as ever; when one of them is
// another, this bwrap is killed without having done anything, and one is
// started the usual way.
type Ahead struct {
	needs   Needs
	command []string

	pid    int
	fds    opened
	gate   gate
	words  int  // memory for bwrap's words
	hold   int  // bwrap reads its words when this is closed
	status int  // what bwrap reports comes here
	spent  bool // its launch has it, or nobody wants it
}

// Begin starts a bwrap for a launch, or returns nil where that fails:
// why is said when it fails again in [Launch.Run], which takes it over. Who does
// not get there calls [Ahead.Discard]. The calling goroutine keeps its OS
// thread, as bwrap dies when that does (PR_SET_PDEATHSIG).
func Begin(n Needs, request []string) *Ahead {
	a := &Ahead{needs: n, command: slices.Concat(n.Command, request), words: -1, hold: -1, status: -1}
	runtime.LockOSThread()
	if a.start() != nil {
		a.Discard()
		return nil
	}
	return a
}

func (a *Ahead) start() error {
	if err := CheckBwrap(a.needs.Program); err != nil {
		return err
	}
	for _, file := range a.needs.Files {
		fd, err := a.open(file)
		if err != nil {
			return err
		}
		a.fds = append(a.fds, fd)
	}
	var err error
	if a.words, err = newMemory(); err != nil {
		return err
	}
	var hold, status [2]int
	if err := unix.Pipe2(hold[:], unix.O_CLOEXEC); err != nil {
		return err
	}
	a.hold = hold[1]
	defer unix.Close(hold[0])
	if err := unix.Pipe2(status[:], unix.O_CLOEXEC); err != nil {
		return err
	}
	a.status = status[0]
	defer unix.Close(status[1])
	if a.needs.Lay {
		if a.gate, err = makeGate(true); err != nil {
			return err
		}
		defer a.gate.closeInside()
	}
	if err := isolateAbstractSockets(a.needs.Tier); err != nil {
		return err
	}
	files := slices.Concat([]int{0, 1, 2, hold[0], status[1]}, a.fds, a.gate.files(), []int{a.words})
	a.pid, err = spawn.Start(spawn.Program{Path: a.needs.Program, Args: a.commandLine(), Files: files, PIDs: true})
	return err
}

func (a *Ahead) open(file string) (int, error) {
	if file == "" {
		return newMemory()
	}
	return openPath(file)
}

// commandLine has bwrap read its words from two files: first from a pipe that
// never has any, whose end lets it go on, and then from memory.
func (a *Ahead) commandLine() []string {
	words := strconv.Itoa(FirstDescriptor + len(a.fds) + len(a.gate.files()))
	return append([]string{"bwrap", "--args", strconv.Itoa(ArgsDescriptor), "--args", words, "--"}, a.command...)
}

// Discard ends a bwrap that nobody needs. It does nothing for nil, and for one
// that is in use.
func (a *Ahead) Discard() {
	if a == nil || a.spent {
		return
	}
	a.spent = true
	if a.pid > 0 {
		_ = syscall.Kill(a.pid, syscall.SIGKILL)
		_ = uninterrupted(func() error { _, err := syscall.Wait4(a.pid, nil, 0, nil); return err })
	}
	for _, fd := range []int{a.words, a.hold, a.status} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	a.fds.close()
	a.gate.close()
}

// open opens the launch's descriptors. With a bwrap that waits and has the
// same, it returns that one as well; one that has not is discarded.
func (l Launch) open(list []Descriptor) (opened, *Ahead, error) {
	if l.Ahead == nil {
		fds, err := open(list)
		return fds, nil, err
	}
	if fds, ok := l.Ahead.suits(l, list); ok {
		return fds, l.Ahead, nil
	}
	l.Ahead.Discard()
	fds, err := open(list)
	return fds, nil, err
}

// suits tells whether this bwrap has what the launch needs, and puts the data
// of its descriptors in them.
func (a *Ahead) suits(l Launch, list []Descriptor) (fds opened, ok bool) {
	if l.OwnNetwork() || l.hasTree() || l.Lay != a.needs.Lay || l.Tier != a.needs.Tier || l.Bwrap != a.needs.Program ||
		!slices.Equal(l.Command, a.command) || !slices.EqualFunc(list, a.needs.Files, func(d Descriptor, file string) bool { return d.file() == file }) {
		return nil, false
	}
	for i, d := range list {
		fd, err := a.match(a.fds[i], d)
		if err != nil {
			fds.close()
			return nil, false
		}
		fds = append(fds, fd)
	}
	return fds, true
}

var errOther = errors.New("it is another file by now")

// match opens what a descriptor stands for, and makes sure that bwrap has the
// very same.
func (a *Ahead) match(has int, d Descriptor) (int, error) {
	if d.file() == "" {
		if err := seal(has, d.Data); err != nil {
			return -1, err
		}
		return unix.FcntlInt(uintptr(has), unix.F_DUPFD_CLOEXEC, 0)
	}
	fd, err := openOne(d)
	if err != nil {
		return -1, err
	}
	var mine, its unix.Stat_t
	if err = errors.Join(unix.Fstat(fd, &mine), unix.Fstat(has, &its)); err == nil && (mine.Dev != its.Dev || mine.Ino != its.Ino) {
		err = errOther
	}
	if err != nil {
		unix.Close(fd)
	}
	return fd, err
}

// release gives bwrap its words. Their first byte comes last: when claudebox is
// killed in between, the pipe ends as well, and bwrap must not take for its
// words what is only their beginning.
func (a *Ahead) release(words, filter []byte, post *Post) (*sandbox, error) {
	err := fill(a.words, words[1:], 1)
	if err == nil {
		err = seal(a.words, words[:1])
	}
	if err != nil {
		a.Discard()
		return nil, &diag.Error{Op: "hand bwrap its words", Err: err}
	}
	a.spent = true
	unix.Close(a.hold)
	unix.Close(a.words)
	a.fds.close()
	a.gate.filter = filter
	post.forwardTo(a.pid, true)
	return &sandbox{pid: a.pid, status: os.NewFile(uintptr(a.status), "bwrap's report"), gate: a.gate, post: post}, nil
}
