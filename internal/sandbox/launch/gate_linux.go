package launch

import (
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
)

// gate holds bwrap, and so the agent, until all is there: bwrap reads its
// filter of system calls when everything else is set up, and from a pipe it
// waits for it. Should claudebox die it gets none, which it does not go on
// with; the end of --block-fd it takes for leave to. The zero gate holds
// nothing.
type gate struct {
	inside, outside *os.File // the pipe
	// a pipe with a byte in it: bwrap closes its end when it comes to the gate. Nil: it is not waited for
	rings, bell *os.File
	filter      []byte
}

// newGate is the gate of a launch.
func (l Launch) newGate() (gate, error) {
	if !l.gated() {
		return gate{}, nil
	}
	g, err := makeGate(l.rings())
	g.filter = l.Seccomp
	return g, err
}

// rings reports whether claudebox waits for bwrap to come to the gate: to lay
// mounts, and to know all its processes.
func (l Launch) rings() bool { return l.Lay || l.Held }

// makeGate makes a gate, with a bell if that is to ring.
func makeGate(rings bool) (g gate, err error) {
	if g.inside, g.outside, err = os.Pipe(); err == nil && rings {
		if g.rings, g.bell, err = os.Pipe(); err == nil {
			_, err = g.bell.Write([]byte{0})
		}
	}
	if err != nil {
		g.close()
		return gate{}, &diag.Error{Op: "start bwrap", Err: err}
	}
	return g, nil
}

// files are what bwrap gets, in the order in which [words.gate] names them.
func (g gate) files() (fds []int) {
	for _, f := range []*os.File{g.inside, g.rings} {
		if f != nil {
			fds = append(fds, int(f.Fd()))
		}
	}
	return fds
}

// closeInside closes the ends that bwrap has got.
func (g gate) closeInside() { closeFiles(g.inside, g.rings) }

// close closes all of a gate that is not used.
func (g gate) close() { closeFiles(g.inside, g.rings, g.outside, g.bell) }

func closeFiles(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// reached returns when bwrap has come to the gate, or is gone.
func (g gate) reached() error {
	defer g.bell.Close()
	bell := []unix.PollFd{{Fd: int32(g.bell.Fd())}} // POLLERR: nobody reads any more (pipe(7))
	return uninterrupted(func() error { _, err := unix.Poll(bell, -1); return err })
}

// open lets the agent run.
func (g gate) open() error {
	_, err := g.outside.Write(g.filter)
	return errors.Join(err, g.outside.Close())
}

// gate adds the words for what bwrap gets through its gate, and for its bell.
func (w *words) gate(l Launch) {
	next := FirstDescriptor + len(w.descriptors)
	w.add("--seccomp", strconv.Itoa(next))
	if l.rings() {
		w.add("--block-fd", strconv.Itoa(next+1))
	}
}
