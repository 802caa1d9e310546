package network

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/network/hostnet"
)

// resolvConf is where the host names its resolvers. pasta reads it once, when
// it starts.
const resolvConf = "/etc/resolv.conf"

// settled is how long a session must last for a change of the resolver to
// count: to end a watch of files takes the kernel milliseconds, which a short
// command would feel.
const settled = time.Second

// roam connects the sandbox anew when this machine has got another resolver:
// a laptop elsewhere, a VPN. The sandbox's connections end with it; without, it
// would look up no name any more.
func (n *Inet) roam(before []byte) {
	// pasta dies with the thread that starts it, which this one does not end.
	runtime.LockOSThread()
	known := nameservers(before)
	changes, err := watchFile(resolvConf)
	if err != nil {
		return
	}
	defer changes.Close()
	if !n.keep(changes) {
		return
	}
	events := make([]byte, 4096)
	for err == nil {
		text, _ := os.ReadFile(resolvConf)
		// A file that is being written names none.
		if now := nameservers(text); len(now) > 0 && !slices.Equal(now, known) {
			if !n.reconnect() {
				return
			}
			known = now
		}
		_, err = changes.Read(events)
	}
}

// keep has Close close a file as well, unless all is closed by now.
func (n *Inet) keep(f *os.File) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.changes = f
	return !n.closed
}

// watchFile hears of writes to a file and, as most writers replace it, to the
// folders that it and the link at its place lie in.
func watchFile(path string) (*os.File, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, err
	}
	places := []string{path, filepath.Dir(path)}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		places = append(places, filepath.Dir(real))
	}
	for _, place := range places {
		unix.InotifyAddWatch(fd, place, unix.IN_CLOSE_WRITE|unix.IN_MOVED_TO|unix.IN_CREATE)
	}
	return os.NewFile(uintptr(fd), "changes of "+path), nil
}

// reconnect puts another pasta in the place of the one that runs. It is false
// when there is none in the end: the sandbox has no network then.
func (n *Inet) reconnect() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed || n.why != nil {
		return false
	}
	err := n.replacePasta()
	if !errors.Is(err, ErrGone) {
		n.why = err
	}
	return err == nil
}

func (n *Inet) replacePasta() error {
	if err := n.pasta.end(); err != nil {
		return err
	}
	host, err := hostnet.Read()
	if err != nil {
		return err
	}
	if err := n.filter.Forbid(host.Prefixes); err != nil {
		return err
	}
	next, err := startPasta(n.program, words(n.sandbox, host))
	if err != nil {
		return &diag.Error{Op: "start " + n.program, Err: err, Remedy: ownPasta}
	}
	n.pasta.close()
	n.pasta = next
	if err := n.await(); err != nil {
		n.pasta.kill()
		return err
	}
	return nil
}
