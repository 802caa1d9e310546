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

// Filter is a running filter. It ends with this process.
type Filter struct {
	process *os.Process
	parent  *net.UnixConn
	dir     *os.File
	ready   chan error
	served  sync.WaitGroup
	closing atomic.Bool // its end is no fault
}

// Request is what a filter is started with.
type Request struct {
	Dir   string   // folder of the host in which the socket is made
	Known *os.File // see [Host.Known]
	Only  []string // see [Host.Only]
	// Dial makes a connection to the daemon, whose file the filter gets.
	Dial func() (*os.File, error)
	// Collected is called when what the inner store relies on was collected on the
	// host. May be nil.
	Collected func()
}

// Socket is the name of the filter's socket in its folder.
const Socket = "socket"

// Start begins a filter. It listens when Start returns; that it is confined says
// [Filter.Ready].
func Start(r Request) (*Filter, error) {
	f, err := start(r)
	if err != nil {
		return nil, &diag.Error{Op: "start the filter of the Nix store inside", Err: err}
	}
	return f, nil
}

func start(r Request) (f *Filter, err error) {
	f = &Filter{ready: make(chan error, 1)}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	listener, err := f.listen(r.Dir)
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	theirs, err := f.pair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	files := []*os.File{theirs, listener, r.Known}
	if r.Only != nil {
		only, err := listOf(r.Only)
		if err != nil {
			return nil, err
		}
		defer only.Close()
		files = append(files, only)
	}
	return f, f.run(files, r)
}

// listen makes the socket. Its path may be longer than an address can be, so it
// is reached by its folder's descriptor.
func (f *Filter) listen(dir string) (*os.File, error) {
	var err error
	if f.dir, err = os.Open(dir); err != nil {
		return nil, err
	}
	if err := os.Remove(filepath.Join(dir, Socket)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	address := fmt.Sprintf("/proc/self/fd/%d/%s", f.dir.Fd(), Socket)
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: address})
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	listener.SetUnlinkOnClose(false)
	if err := os.Chmod(address, 0o600); err != nil { // whatever the caller's umask
		return nil, err
	}
	return listener.File()
}

// pair makes the socket by which filter and parent speak.
func (f *Filter) pair() (theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	ours := os.NewFile(uintptr(fds[0]), "filter")
	defer ours.Close()
	theirs = os.NewFile(uintptr(fds[1]), "parent")
	conn, err := net.FileConn(ours)
	if err != nil {
		theirs.Close()
		return nil, err
	}
	f.parent = conn.(*net.UnixConn)
	return theirs, nil
}

// listOf is a file of lines that has no name.
func listOf(lines []string) (*os.File, error) {
	fd, err := unix.MemfdCreate("closure", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "closure")
	for _, line := range lines {
		if _, err := file.WriteString(line + "\n"); err != nil {
			file.Close()
			return nil, err
		}
	}
	return file, nil
}

// run starts the process. The thread that does is the one that serves it: with
// it the process dies.
func (f *Filter) run(files []*os.File, r Request) error {
	started := make(chan error)
	f.served.Go(func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		cmd := exec.Command("/proc/self/exe", strconv.FormatBool(r.Only != nil))
		cmd.Args[0], cmd.Env, cmd.Dir, cmd.ExtraFiles = Name, []string{}, "/", files
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
		err := cmd.Start()
		f.process = cmd.Process
		started <- err
		if err != nil {
			return
		}
		f.serve(r)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return <-started
}

// serve does what the filter asks for, until it ends.
func (f *Filter) serve(r Request) {
	defer func() {
		if f.closing.Load() {
			f.tell(nil)
		} else {
			f.tell(errors.New("its process ended"))
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
			f.tell(nil)
		case saysDial:
			if f.connect(r.Dial) != nil {
				return
			}
		case saysCollected:
			if r.Collected != nil {
				r.Collected()
			}
		default:
			return
		}
	}
}

// tell says how far the filter came; what was said first counts.
func (f *Filter) tell(err error) {
	select {
	case f.ready <- err:
	default:
	}
}

// connect sends the filter a connection, or nothing but a byte.
func (f *Filter) connect(dial func() (*os.File, error)) error {
	var rights []byte
	if conn, err := dial(); err == nil {
		defer conn.Close()
		rights = unix.UnixRights(int(conn.Fd()))
	}
	_, _, err := f.parent.WriteMsgUnix([]byte{saysDial}, rights, nil)
	return err
}

// Ready waits until the filter is confined, or ended by [Filter.Close]. It serves
// nobody before it is.
func (f *Filter) Ready() error {
	err := <-f.ready
	f.tell(err)
	if err != nil {
		return &diag.Error{
			Op: "confine the filter of the Nix store inside", Err: err,
			Remedy: "report this with the output of `claudebox check`; `nix: {daemon: off}` starts without Nix inside",
		}
	}
	return nil
}

// PID is the filter's process.
func (f *Filter) PID() int { return f.process.Pid }

// Close ends the filter and takes its socket away.
func (f *Filter) Close() {
	f.closing.Store(true)
	if f.parent != nil {
		f.parent.Close()
	}
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
	// The garbage of one long answer is collected before the next.
	debug.SetGCPercent(50)
	debug.SetMemoryLimit(12 << 20)
	conn, err := net.FileConn(os.NewFile(parentDescriptor, "parent"))
	if err != nil {
		return err
	}
	p := &parent{conn: conn.(*net.UnixConn), answers: make(chan *os.File)}
	listener, err := net.FileListener(os.NewFile(listenerDescriptor, "listener"))
	if err != nil {
		return err
	}
	host := &Host{Dial: p.dial, Known: os.NewFile(knownDescriptor, "known")}
	if closure {
		if host.Only, err = readOnly(os.NewFile(onlyDescriptor, "closure")); err != nil {
			return err
		}
	}
	if err := p.say(saysReady); err != nil {
		return err
	}
	go p.prepare(host)
	go func() { _ = Serve(listener, host) }()
	return p.listen()
}

// prepare holds what is known from earlier sessions, and says so when some of it
// is gone.
func (p *parent) prepare(host *Host) {
	if size, err := host.Known.Seek(0, io.SeekEnd); err == nil && size == 0 {
		return // a daemon that nobody asks is not woken
	}
	if errors.Is(host.Prepare(), ErrCollected) {
		_ = p.say(saysCollected)
	}
}

func readOnly(list *os.File) (map[string]bool, error) {
	paths, err := ReadKnown(list)
	if err != nil {
		return nil, err
	}
	only := make(map[string]bool, len(paths))
	for _, path := range paths {
		only[path] = true
	}
	return only, nil
}
