package inside

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
)

// Name is what the filter's process is called by: the first of a program's
// words.
const Name = "claudebox-nix-filter"

// The filter's descriptors besides the standard ones.
const (
	parentDescriptor = 3 + iota // a socket to its parent
	listenerDescriptor
	knownDescriptor
	onlyDescriptor // where the sandbox sees a closure only
)

// What the filter says to its parent, a byte each.
const (
	saysReady     = 'r' // it is confined
	saysDial      = 'd' // it needs a connection to the daemon
	saysCollected = 'c' // a path that the inner store relies on is gone
)

// Filter answers at a socket, by a process that is started when there is need of
// one. It ends with this process.
type Filter struct {
	request  Request
	process  *os.Process
	parent   *net.UnixConn
	theirs   *os.File // the process's end of parent
	listener *os.File
	dir      *os.File
	begun    sync.Mutex // held by Begin
	served   sync.WaitGroup
	closing  atomic.Bool // its end is no fault
}

// Request is what a filter is made of.
type Request struct {
	Dir   string   // folder of the host in which the socket is made
	Known *os.File // see [Host.Known]
	Only  []string // see [Host.Only]
	// Dial makes a connection to the daemon, whose file the filter gets.
	Dial func() (*os.File, error)
	// Lost is called with the reason when nothing is answered any more, and what the
	// inner store relies on may not be held. May be nil.
	Lost func(why string)
}

// Socket is the name of the filter's socket in its folder.
const Socket = "socket"

// Listen makes the socket. Who connects is answered once [Filter.Begin] was
// called.
func Listen(r Request) (*Filter, error) {
	f := &Filter{request: r}
	if err := errors.Join(f.listen(), f.pair()); err != nil {
		f.Close()
		return nil, &diag.Error{Op: "start the filter of the Nix store inside", Err: err}
	}
	return f, nil
}

// listen makes the socket. Its path may be longer than an address can be, so it
// is reached by its folder's descriptor.
func (f *Filter) listen() error {
	dir := f.request.Dir
	var err error
	if f.dir, err = os.Open(dir); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(dir, Socket)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	address := fmt.Sprintf("/proc/self/fd/%d/%s", f.dir.Fd(), Socket)
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: address})
	if err != nil {
		return err
	}
	defer listener.Close()
	listener.SetUnlinkOnClose(false)
	if err := os.Chmod(address, 0o600); err != nil { // whatever the caller's umask
		return err
	}
	f.listener, err = listener.File()
	return err
}

// pair makes the socket by which filter and parent speak.
func (f *Filter) pair() error {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	ours := os.NewFile(uintptr(fds[0]), "filter")
	defer ours.Close()
	f.theirs = os.NewFile(uintptr(fds[1]), "parent")
	conn, err := net.FileConn(ours)
	if err == nil {
		f.parent = conn.(*net.UnixConn)
	}
	return err
}

// Begin starts the process when somebody connects, or at once where the inner
// store relies on paths of the host, which it has to hold. It returns when the
// process is confined, and serves nobody before; or when the filter is closed.
func (f *Filter) Begin() error {
	f.begun.Lock()
	defer f.begun.Unlock()
	if err := f.begin(); err != nil && !f.closing.Load() {
		return &diag.Error{
			Op: "start the filter of the Nix store inside", Err: err,
			Remedy: "report this with the output of `claudebox check`; `nix: {daemon: off}` starts without Nix inside",
		}
	}
	return nil
}

func (f *Filter) begin() error {
	defer f.theirs.Close()
	defer f.listener.Close() // whoever connects where nobody serves is to be refused
	known, err := f.request.Known.Stat()
	if err == nil && known.Size() == 0 {
		err = readable(f.listener)
	}
	if err != nil {
		return err
	}
	files := []*os.File{f.theirs, f.listener, f.request.Known}
	if f.request.Only != nil {
		only, err := listOf(f.request.Only)
		if err != nil {
			return err
		}
		defer only.Close()
		files = append(files, only)
	}
	ready := make(chan error, 1)
	if err := f.run(files, ready); err != nil {
		return err
	}
	return <-ready
}

// readable waits until there is something to read, or to accept.
func readable(file *os.File) error {
	conn, err := file.SyscallConn()
	if err != nil {
		return err
	}
	return conn.Read(func(fd uintptr) bool {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return n > 0 || err != nil && err != unix.EINTR
	})
}

// listOf is a file of lines that has no name.
func listOf(lines []string) (*os.File, error) {
	fd, err := unix.MemfdCreate("closure", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "closure")
	if _, err := file.WriteString(strings.Join(lines, "\n") + "\n"); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// run starts the process. The thread that does is the one that serves it: with
// it the process dies.
func (f *Filter) run(files []*os.File, ready chan<- error) error {
	started := make(chan error)
	f.served.Go(func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		cmd := exec.Command("/proc/self/exe", strconv.FormatBool(f.request.Only != nil))
		cmd.Args[0], cmd.Env, cmd.Dir, cmd.ExtraFiles = Name, []string{}, "/", files
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
		err := cmd.Start()
		f.process = cmd.Process
		started <- err
		if err != nil {
			return
		}
		f.serve(ready)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return <-started
}

// serve does what the filter asks for, until it ends.
func (f *Filter) serve(ready chan<- error) {
	tell := func(err error) { // what was said first counts
		select {
		case ready <- err:
		default:
		}
	}
	defer func() {
		tell(errors.New("its process ended"))
		if !f.closing.Load() {
			f.lose("its filter ended")
		}
	}()
	for {
		var said [1]byte
		n, err := f.parent.Read(said[:])
		if err != nil || n == 0 {
			return
		}
		switch said[0] {
		case saysReady:
			tell(nil)
		case saysDial:
			if f.connect() != nil {
				return
			}
		case saysCollected:
			f.lose("the host collected a store path that it relies on")
			_, _ = f.request.Known.WriteString(collectedLine)
		default:
			return
		}
	}
}

func (f *Filter) lose(why string) {
	if f.request.Lost != nil {
		f.request.Lost(why)
	}
}

// connect sends the filter a connection, or nothing but a byte.
func (f *Filter) connect() error {
	var rights []byte
	if conn, err := f.request.Dial(); err == nil {
		defer conn.Close()
		rights = unix.UnixRights(int(conn.Fd()))
	}
	_, _, err := f.parent.WriteMsgUnix([]byte{saysDial}, rights, nil)
	return err
}

// PID is the filter's process; 0: none was started.
func (f *Filter) PID() int {
	if f.process == nil {
		return 0
	}
	return f.process.Pid
}

// Close ends the filter and takes its socket away.
func (f *Filter) Close() {
	f.closing.Store(true)
	for _, end := range []*os.File{f.listener, f.theirs} {
		closeFile(end)
	}
	if f.parent != nil {
		f.parent.Close()
	}
	f.begun.Lock()
	defer f.begun.Unlock()
	f.served.Wait()
	if f.dir != nil {
		_ = unix.Unlinkat(int(f.dir.Fd()), Socket, 0)
		f.dir.Close()
	}
}

// Run is the filter's process, when the words of this program are its, and gives
// its exit status.
func Run(words []string) (status int, ran bool) {
	if len(words) != 2 || words[0] != Name {
		return 0, false
	}
	closure := words[1] == "true"
	if err := confineSelf(closure); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 125, true
	}
	if err := filter(closure); err != nil {
		return 125, true
	}
	return 0, true
}

// filter serves until the parent is gone.
func filter(closure bool) error {
	// What hundreds of clients leave behind is collected before it adds up.
	debug.SetGCPercent(50)
	debug.SetMemoryLimit(8 << 20)
	conn, err := net.FileConn(os.NewFile(parentDescriptor, "parent"))
	if err != nil {
		return err
	}
	p := &parent{conn: conn.(*net.UnixConn), answers: make(chan *os.File)}
	listener, err := net.FileListener(os.NewFile(listenerDescriptor, "listener"))
	if err != nil {
		return err
	}
	host := &Host{
		Dial: p.dial, Known: os.NewFile(knownDescriptor, "known"), Lost: func() { _ = p.say(saysCollected) },
	}
	if closure {
		if host.Only, err = readOnly(os.NewFile(onlyDescriptor, "closure")); err != nil {
			return err
		}
	}
	if err := p.say(saysReady); err != nil {
		return err
	}
	go prepare(host)
	go func() { _ = Serve(listener, host) }()
	return p.listen()
}

// prepare holds what is known from earlier sessions.
func prepare(host *Host) {
	if size, err := host.Known.Seek(0, io.SeekEnd); err == nil && size == 0 {
		return // a daemon that nobody asks is not woken
	}
	_ = host.Prepare() // the next question says why not
}

func readOnly(list *os.File) (map[string]bool, error) {
	only := map[string]bool{}
	for path, err := range Known(list) {
		if err != nil {
			return nil, err
		}
		only[path] = true
	}
	return only, nil
}
