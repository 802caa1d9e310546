package launch

import (
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/within"
)

// gate makes bwrap, and so the agent, wait until everything is ready. bwrap reads its
// seccomp filter last, when all else is set up; it gets the filter through a pipe, and
// claudebox writes it when the agent may run. If claudebox dies, bwrap reads no filter
// and stops. --block-fd alone is not safe: its end of file lets bwrap go on.
type gate struct {
	theirs  []*os.File // the ends that bwrap gets, in the order in which [words.gate] names them
	outside *os.File   // write end of the filter's pipe
	// bell is the write end of the --block-fd pipe, in which there is a byte already: bwrap
	// closes its end when it comes to the gate.
	bell   *os.File
	filter []byte
}

// newGate returns the gate of a launch.
func (l Launch) newGate() (g gate, err error) {
	g.filter, g.theirs = l.Seccomp, make([]*os.File, 2)
	g.theirs[0], g.outside, err = os.Pipe()
	if err == nil {
		g.theirs[1], g.bell, err = os.Pipe()
	}
	if err == nil {
		_, err = g.bell.Write([]byte{0})
	}
	if err != nil {
		g.closeInside()
		g.outside.Close()
		g.bell.Close()
		return gate{}, &diag.Error{Op: "start bwrap", Err: err}
	}
	return g, nil
}

// closeInside closes our copies of the ends that bwrap has inherited.
func (g gate) closeInside() {
	for _, f := range g.theirs {
		f.Close()
	}
}

// reached waits until bwrap has come to the gate, or has ended. From then on no process in
// the sandbox starts another, until the gate is opened.
func (g gate) reached() error {
	defer g.bell.Close()
	bell := []unix.PollFd{{Fd: int32(g.bell.Fd())}} // POLLERR: all read ends are closed (pipe(7))
	if err := uninterrupted(func() error { _, err := unix.Poll(bell, -1); return err }); err != nil {
		return &diag.Error{Op: "wait for bwrap", Err: err}
	}
	return nil
}

// open lets the agent run: it sends bwrap the filter. [within.ErrGone]: bwrap has ended.
func (g gate) open() error {
	_, err := g.outside.Write(g.filter)
	if errors.Is(err, unix.EPIPE) {
		err = within.ErrGone
	}
	return errors.Join(err, g.outside.Close())
}

// gate adds the options for the pipes of the gate: the filter's and the bell's.
func (w *words) gate() {
	next := FirstDescriptor + len(w.descriptors)
	w.add("--seccomp", strconv.Itoa(next))
	w.add("--block-fd", strconv.Itoa(next+1))
}
