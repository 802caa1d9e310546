package network

import (
	"errors"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/network/forbidden"
	"claudebox/internal/network/hostnet"
	"claudebox/internal/network/netfilter"
	"claudebox/internal/network/netns"
)

// Inet is the network of a sandbox that runs.
type Inet struct {
	sandbox int    // its process
	program string // pasta
	watch   *hostnet.Watch

	mu      sync.Mutex // of what follow, roam and Close share
	pasta   *pasta
	filter  *netfilter.Filter
	changes *os.File // of the resolver; nil: not watched
	why     error    // the network was cut; nil: it was not
	closed  bool
}

// ErrGone says that the sandbox ended before its network was there. The
// reason is the sandbox's own.
var ErrGone = errors.New("the sandbox ended before its network was there")

// Open connects a sandbox: a process that was started in a network namespace
// of its own, in a user namespace of its own, and has not let its agent run.
// It returns when the network is there. The network lasts as long as the
// calling thread and the sandbox do.
func Open(sandbox int, program string) (_ *Inet, err error) {
	if err := CheckTool(program); err != nil {
		return nil, err
	}
	n := &Inet{sandbox: sandbox, program: program}
	defer func() {
		if err != nil {
			err = n.orGone(err)
			n.Close()
		}
	}()
	ns, err := netns.Of(sandbox)
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	if n.watch, err = hostnet.NewWatch(); err != nil {
		return nil, err
	}
	host, err := hostnet.Read()
	if err != nil {
		return nil, err
	}
	if n.filter, err = netfilter.Load(ns, append(forbidden.Prefixes(), host.Prefixes...)); err != nil {
		return nil, err
	}
	before, _ := os.ReadFile(resolvConf) // before pasta does
	if n.pasta, err = startPasta(program, words(sandbox, host)); err != nil {
		return nil, &diag.Error{Op: "start " + program, Err: err, Remedy: ownPasta}
	}
	// While pasta makes the interface: let ping(8) work, where the kernel can do
	// it without rights.
	gid := strconv.Itoa(os.Getgid())
	_ = ns.Set("ipv4/ping_group_range", gid+" "+gid)
	if err := n.await(); err != nil {
		return nil, err
	}
	time.AfterFunc(settled, func() { n.roam(before) })
	go n.follow()
	return n, nil
}

// lastWait bounds, in milliseconds, how long a sandbox that is ending may take.
const lastWait = 100

// orGone is ErrGone for what fails because the sandbox ends: its namespaces go
// before it does.
func (n *Inet) orGone(err error) error {
	pidfd, gone := unix.PidfdOpen(n.sandbox, 0)
	if gone != nil {
		return ErrGone
	}
	defer unix.Close(pidfd)
	if ended, _ := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, lastWait); ended > 0 {
		return ErrGone
	}
	return err
}

// readyWait bounds, in milliseconds, what pasta may take. It needs some 15.
const readyWait = 10_000

// await waits until pasta has said that it is ready, or either side has ended.
func (n *Inet) await() error {
	pidfd, err := unix.PidfdOpen(n.sandbox, 0)
	if err != nil {
		return ErrGone
	}
	defer unix.Close(pidfd)
	ready, ended := int32(n.pasta.ready.Fd()), int32(n.pasta.pidfd.Fd())
	fds := []unix.PollFd{{Fd: ready, Events: unix.POLLIN}, {Fd: ended, Events: unix.POLLIN}, {Fd: int32(pidfd), Events: unix.POLLIN}}
	count := 0
	for {
		if count, err = unix.Poll(fds, readyWait); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	switch {
	case err != nil:
		return &diag.Error{Op: "wait for pasta", Err: err}
	case fds[2].Revents != 0:
		return ErrGone
	case fds[0].Revents&unix.POLLIN != 0:
		return nil
	case count == 0:
		return n.pasta.explain("it is not ready after 10 seconds")
	}
	return n.pasta.explain("it ended")
}

// follow forbids what this machine comes to, until the session is over.
func (n *Inet) follow() {
	for n.watch.Wait() {
		if !n.extend() {
			return
		}
	}
}

// extend forbids what is new. When it cannot, it cuts the network, and is
// false.
func (n *Inet) extend() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return false
	}
	host, err := hostnet.Read()
	if err == nil {
		err = n.filter.Forbid(host.Prefixes)
	}
	if err == nil {
		return true
	}
	n.why = err
	if n.pasta.kill() != nil {
		unix.Kill(n.sandbox, unix.SIGKILL) // AppArmor may protect pasta, not what claudebox started
	}
	return false
}

// Close ends the network, if it has not ended with the sandbox. Its error says
// why it was cut before.
func (n *Inet) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	if n.watch != nil {
		n.watch.Close()
	}
	if n.changes != nil {
		n.changes.Close()
	}
	if n.pasta != nil {
		n.pasta.kill()
		n.pasta.close()
	}
	if n.filter != nil {
		n.filter.Close()
	}
	return n.why
}
