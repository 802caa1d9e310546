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

// stopping are the signals that stop a job: by Ctrl-Z, or for using a terminal that
// belongs to another job. A stopped claudebox does not watch over the mounts that hide
// files, so everything inside must be stopped before it: a process that ignores these
// signals, or is in another process group, could read what the user changes meanwhile.
var stopping = []syscall.Signal{syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU}

const (
	// tidying is how long processes in claudebox's process group (the agent's) may take to stop by themselves: a
	// program puts the terminal in order first.
	tidying = 300 * time.Millisecond
	// freezing is how long all may take.
	freezing = 3 * time.Second
	// stoppedStates are the states in /proc/PID/stat of processes that are stopped or have ended.
	stoppedStates = "TtZX"
	// settling is the pause between two looks at whether the processes have stopped.
	settling = time.Millisecond
)

var errRestless = errors.New("its processes do not stop, and unwatched they may read what is hidden")

// pause stops the sandbox, then this process; when that is continued, it lets the sandbox go on.
func (sig *Signals) pause(s syscall.Signal) {
	frozen := sig.freeze()
	if sig.before != nil {
		sig.before()
	}
	stopBy(s)
	frozen.thaw()
}

// stopBy stops this process as if the signal s were not caught, and returns when it is
// continued. The kernel does not stop it if its process group is orphaned (setpgid(2)).
func stopBy(s syscall.Signal) {
	runtime.LockOSThread() // a signal that a thread sends to itself is delivered before tgkill(2) returns
	defer runtime.UnlockOSThread()
	caught, err := setAction(s, action{})
	if err != nil {
		return // do not stop: the agent goes on, and claudebox watches as before
	}
	_ = unix.Tgkill(os.Getpid(), unix.Gettid(), s)
	_, _ = setAction(s, caught)
}

// action is the kernel's struct sigaction. The zero action is the signal's default
// (SIG_DFL).
type action struct{ handler, flags, restorer, mask uintptr }

// setAction sets the action of a signal and returns the one before. [signal.Reset] is not enough: it leaves Go's
// handler in place, which catches SIGTSTP, SIGTTIN and SIGTTOU and does nothing (runtime.sigdisable).
func setAction(s syscall.Signal, now action) (before action, err error) {
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&now)),
		uintptr(unsafe.Pointer(&before)), unsafe.Sizeof(now.mask), 0, 0)
	if errno != 0 {
		return before, errno
	}
	return before, nil
}

// freeze stops everything inside. If that fails it kills the sandbox and sets fault.
func (sig *Signals) freeze() frozen {
	f := frozen{}
	if err := f.stopAll(sig.bwrap); err != nil {
		sig.mu.Lock()
		sig.fault = err
		sig.mu.Unlock()
		syscall.Kill(sig.bwrap, syscall.SIGKILL)
	}
	return f
}

// frozen are the ids of processes that got SIGSTOP here, and did not stop by themselves.
type frozen map[int]bool

// stopAll sends SIGSTOP until every process under bwrap has stopped, or returns errRestless after freezing. An orphaned
// process becomes a child of bwrap's process 1, so all processes inside are found below bwrap. A process that waits for
// a disk, or for a child that shares its memory (vfork(2)), counts as stopped: it stops before it runs again. No signal
// of the terminal stops bwrap's own two processes, so they get SIGSTOP at once.
func (f frozen) stopAll(bwrap int) error {
	group, init, begun := syscall.Getpgrp(), proctree.Init(bwrap), time.Now()
	for {
		list, whole := proctree.Whole(bwrap)
		waits := !whole // the agent may have taken all files that this machine has
		for _, pid := range list {
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

// thaw continues the processes that were stopped here. Their ids are not reused: while
// all are stopped, a process inside can end only by SIGKILL from outside, and the kernel
// does not give its id to another for a long time.
func (f frozen) thaw() {
	for pid := range f {
		if state, _ := proctree.State(pid); state == 'T' || state == 'D' {
			syscall.Kill(pid, syscall.SIGCONT)
		}
	}
}
