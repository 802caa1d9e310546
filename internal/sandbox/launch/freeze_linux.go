package launch

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/proctree"
)

// stopping are the signals that stop a job: Ctrl-Z, and a terminal that belongs
// to another job. Whoever stops claudebox stops what watches over the covers of
// files, so all inside has to be stopped first: a process that ignores them, or
// is in a group of its own, would read what the user changes meanwhile.
var stopping = []syscall.Signal{syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU}

const (
	// tidying is how long processes in claudebox's process group (the agent's) may take to stop by themselves: a
	// program puts the terminal in order first.
	tidying = 300 * time.Millisecond
	// freezing is how long all may take.
	freezing = 3 * time.Second
	// stoppedStates are those of processes that do not run: stopped, or gone.
	stoppedStates = "TtZX"
	// settling is how long to wait for the kernel to stop what was told to.
	settling = time.Millisecond
)

var errRestless = errors.New("its processes do not stop, and unwatched they may read what is hidden")

// pause stops the sandbox, then this process; when that is continued, it lets the sandbox go on.
func (p *Post) pause(s syscall.Signal) {
	frozen := p.freeze()
	if p.before != nil {
		p.before()
	}
	stopBy(s)
	frozen.thaw()
}

// stopBy stops this process as if the signal had not been caught: not at all,
// where its group is an orphan (setpgid(2)). It returns when it goes on.
func stopBy(s syscall.Signal) {
	runtime.LockOSThread() // a signal for a thread has come when the call is over
	defer runtime.UnlockOSThread()
	caught, err := setAction(s, action{})
	if err != nil {
		return // the agent is let go on, as watched as before
	}
	_ = unix.Tgkill(os.Getpid(), unix.Gettid(), s)
	_, _ = setAction(s, caught)
}

// action is what a signal does: the kernel's struct sigaction. The zero one is
// what the signal does by itself (SIG_DFL).
type action struct{ handler, flags, restorer, mask uintptr }

// setAction sets what a signal does, and returns what it did. [signal.Reset] is not enough: it leaves Go's handler in
// place, which takes SIGTSTP, SIGTTIN and SIGTTOU and does nothing (runtime.sigdisable).
func setAction(s syscall.Signal, now action) (before action, err error) {
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&now)),
		uintptr(unsafe.Pointer(&before)),
		unsafe.Sizeof(now.mask), 0, 0)
	if errno != 0 {
		return before, errno
	}
	return before, nil
}

// freeze stops everything inside. A sandbox that does not stop is ended.
func (p *Post) freeze() frozen {
	f := frozen{}
	if err := f.stopAll(p.bwrap); err != nil {
		p.mu.Lock()
		p.fault = err
		p.mu.Unlock()
		syscall.Kill(p.bwrap, syscall.SIGKILL)
	}
	return f
}

// frozen are the processes that were stopped here, and not by themselves.
type frozen map[int]bool

// stopAll sends SIGSTOP until every process under bwrap has stopped; errRestless after freezing. What loses its parent
// becomes a child of bwrap's process 1, so nothing inside is elsewhere. Who waits for a disk, or for a child that
// shares its memory (vfork(2)), is stopped before it runs again. No signal of the terminal stops bwrap's own two
// processes, so they get SIGSTOP at once.
func (f frozen) stopAll(bwrap int) error {
	group, init, begun := syscall.Getpgrp(), proctree.Init(bwrap), time.Now()
	for {
		waits := false
		for _, pid := range proctree.All(bwrap) {
			state, of := proctree.State(pid)
			if strings.IndexByte(stoppedStates, state) >= 0 || state == 'D' && f[pid] {
				continue
			}
			waits = true
			if of != group || pid == bwrap || pid == init || time.Since(begun) > tidying {
				f[pid] = true
				syscall.Kill(pid, syscall.SIGSTOP)
			}
		}
		switch {
		case !waits:
			return nil
		case time.Since(begun) > freezing:
			return errRestless
		}
		time.Sleep(settling)
	}
}

// thaw lets go on what was stopped here. A process that is gone cannot have
// given its number to another: nobody inside ends while all are stopped, but by
// SIGKILL from outside, and then a number is free for long.
func (f frozen) thaw() {
	for pid := range f {
		if state, _ := proctree.State(pid); state == 'T' || state == 'D' {
			syscall.Kill(pid, syscall.SIGCONT)
		}
	}
}
