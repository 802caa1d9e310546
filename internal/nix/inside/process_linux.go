package inside

import (
	"context"
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
	"claudebox/internal/linux/proctree"
	"claudebox/internal/linux/sockets"
	"claudebox/internal/linux/spawn"
	"claudebox/internal/nix/storepath"
)

// Name is the argv[0] of the filter's process.
const Name = "claudebox-nix-filter"

// The filter's descriptors besides the standard ones.
const (
	parentDescriptor = 3 + iota // a socket to its parent
	listenerDescriptor
	knownDescriptor
	onlyDescriptor // the list of paths, if the sandbox sees only a closure
)

// The messages of the filter to its parent, one byte each, and what may follow it. The parent answers saysMissing and
// saysDial, with the same byte; to the latter the connection comes with it as a descriptor, or more bytes with the
// reason why there is none.
const (
	saysReady     = 'r' // it is confined
	saysFailed    = 'f' // it could not start: more bytes, the reason, follow in the message
	saysDial      = 'd' // it needs a connection to the daemon
	saysMissing   = 'm' // the host has no such paths, which follow in lines: see [Filter.unlock]
	saysCollected = 'c' // a path that the inner store relies on is gone
)

// longestSaid bounds a message of the filter or its parent, in bytes.
const longestSaid = 4 << 10

// longestPath is what a store path and a newline take at most, in bytes (storepath.CheckBase).
const longestPath = 256

// Filter is a socket and the process that answers on it, which is started when it is first
// needed and dies with this process.
type Filter struct {
	request  Request
	bwrap    int // of the sandbox, a process id
	process  *os.Process
	line     *net.UnixConn // this process's end of the socket pair
	theirs   *os.File      // the end of the filter's process
	listener *os.File
	begun    sync.Mutex // held by Begin
	served   sync.WaitGroup
	closing  atomic.Bool // set by Close: the end of the process is not an error
	ctx      context.Context
	cancel   func() // called by Close: a connection that is being made is not waited for
}

// Request is what [Listen] needs to make a filter.
type Request struct {
	Dir   string   // folder of the host in which the socket is made
	Known *os.File // see [Host.Known]
	Only  []string // see [Host.Only]
	// Dial makes a connection to the daemon and returns its file, which the filter gets.
	Dial func(context.Context) (*os.File, error)
	// Lost is called with the reason when the filter no longer answers and the paths that the
	// inner store relies on may no longer be held. May be nil.
	Lost func(why string)
}

// Socket is the name of the filter's socket in its folder.
const Socket = "socket"

// Listen makes the socket. Clients that connect are answered after [Filter.Begin] has been
// called.
func Listen(r Request) (*Filter, error) {
	f := &Filter{request: r}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	if err := errors.Join(f.listen(), f.pair()); err != nil {
		f.Close()
		return nil, &diag.Error{Op: "start the filter of the Nix store inside", Err: err}
	}
	return f, nil
}

// socket is the path of the socket.
func (f *Filter) socket() string { return filepath.Join(f.request.Dir, Socket) }

// listen makes the socket.
func (f *Filter) listen() error {
	if err := os.Remove(f.socket()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	none := func(string) bool { return false }
	listener, err := sockets.ListenIn(f.request.Dir, Socket, none)
	if err != nil {
		return err
	}
	defer listener.Close()
	f.listener, err = listener.File()
	return err
}

// pair makes the sockets by which filter and parent communicate.
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
		f.line = conn.(*net.UnixConn)
	}
	return err
}

// Begin serves the sandbox of bwrap, a process id. It waits until a client connects and starts the process; if the
// inner store relies on paths of the host, it starts the process at once, to hold them. It returns when the process
// is confined (which serves nobody before that), or, with nil, when the filter is closed.
func (f *Filter) Begin(bwrap int) error {
	f.begun.Lock()
	defer f.begun.Unlock()
	f.bwrap = bwrap
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
	defer f.listener.Close() // refuse clients if nothing serves them
	known, err := f.request.Known.Stat()
	if err == nil && known.Size() == 0 {
		err = readable(f.listener)
	}
	if err != nil {
		return err
	}
	files := []*os.File{f.theirs, f.listener, f.request.Known}
	if f.request.Only != nil {
		list, err := spawn.InMemory([]byte(strings.Join(f.request.Only, "\n") + "\n"))
		if err != nil {
			return err
		}
		only := os.NewFile(uintptr(list), "closure")
		defer only.Close()
		files = append(files, only)
	}
	ready := make(chan error, 1)
	if err := f.run(files, ready); err != nil {
		return err
	}
	f.theirs.Close() // with this one open, the end of the process would go unnoticed
	return <-ready
}

// readable waits until file can be read, or, for a listener, accepted from.
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

// run starts the process, on a thread that then serves it. The process dies when the thread
// that started it ends.
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
		began := f.serve(ready)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if began && !f.closing.Load() {
			f.lose("its filter ended")
		}
	})
	return <-started
}

// serve answers the filter's messages until it ends. It sends one value to ready, nil when the filter is confined, and
// reports whether it was nil.
func (f *Filter) serve(ready chan<- error) (began bool) {
	why := errors.New("its process ended")
	defer func() {
		if !began {
			ready <- why
		}
	}()
	for {
		var said [longestSaid]byte
		n, err := f.line.Read(said[:])
		if err != nil || n == 0 {
			return began
		}
		switch {
		case said[0] == saysReady && !began:
			began = true
			ready <- nil
		case said[0] == saysFailed && !began:
			why = errors.New(string(said[1:n]))
			return false
		case said[0] == saysDial:
			if f.connect() != nil {
				return began
			}
		case said[0] == saysMissing:
			f.unlock(string(said[1:n]))
			if _, err := f.line.Write(said[:1]); err != nil {
				return began
			}
		case said[0] == saysCollected:
			f.lose("the host collected a store path that it relies on")
			_, _ = f.request.Known.WriteString(collectedLine)
		default:
			return began
		}
	}
}

func (f *Filter) lose(why string) {
	if f.request.Lost != nil {
		f.request.Lost(why)
	}
}

// unlock removes, in the sandbox, what the host's Nix left of its locks on paths, given in lines: one file beside each
// path whose build failed, which only the host's root can open, and without which Nix inside does not build the path.
// The overlay then hides the file, which stays in the host's store. A lock that a Nix inside holds is this user's.
func (f *Filter) unlock(paths string) {
	root, err := unix.Open(fmt.Sprintf("/proc/%d/root", proctree.Init(f.bwrap)), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return // the sandbox has ended
	}
	defer unix.Close(root)
	store, err := unix.Openat2(root, storepath.Dir[1:], &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH,
	})
	if err != nil {
		return // what the agent has moved is its own to mend
	}
	defer unix.Close(store)
	for path := range strings.SplitSeq(paths, "\n") {
		lock := filepath.Base(path) + ".lock"
		var st unix.Stat_t
		if storepath.Check(path) == nil && unix.Fstatat(store, lock, &st, unix.AT_SYMLINK_NOFOLLOW) == nil &&
			int(st.Uid) != os.Getuid() {
			_ = unix.Unlinkat(store, lock, 0)
		}
	}
}

// connect sends the filter a connection to the daemon, or the reason why there is none.
func (f *Filter) connect() error {
	var rights []byte
	answer := []byte{saysDial}
	if conn, err := f.request.Dial(f.ctx); err == nil {
		defer conn.Close()
		rights = unix.UnixRights(int(conn.Fd()))
	} else {
		answer = append(answer, err.Error()...)
		answer = answer[:min(len(answer), longestSaid)]
	}
	_, _, err := f.line.WriteMsgUnix(answer, rights, nil)
	return err
}

// PID returns the id of the filter's process; 0 if none was started.
func (f *Filter) PID() int {
	if f.process == nil {
		return 0
	}
	return f.process.Pid
}

// Close ends the filter and removes its socket.
func (f *Filter) Close() {
	f.closing.Store(true)
	f.cancel()
	for _, end := range []*os.File{f.listener, f.theirs} {
		closeFile(end)
	}
	if f.line != nil {
		f.line.Close()
	}
	f.begun.Lock()
	defer f.begun.Unlock()
	f.served.Wait()
	_ = os.Remove(f.socket())
}

// Run runs the filter's process if words, the program's arguments with argv[0], ask for it.
// It returns the exit status; ran is false for any other words.
func Run(words []string) (status int, ran bool) {
	if len(words) != 2 || words[0] != Name {
		return 0, false
	}
	closure := words[1] == "true"
	line := os.NewFile(parentDescriptor, "parent")
	err := confineSelf(closure)
	if err == nil {
		err = filter(line, closure)
	}
	if err != nil {
		_, _ = line.Write(append([]byte{saysFailed}, err.Error()...)) // the parent may be gone
		return 125, true
	}
	return 0, true
}

// filter serves until the parent is gone.
func filter(line *os.File, closure bool) error {
	// The collector runs often, before the garbage of hundreds of clients adds up.
	debug.SetGCPercent(50)
	debug.SetMemoryLimit(8 << 20)
	conn, err := net.FileConn(line)
	if err != nil {
		return err
	}
	p := &parent{conn: conn.(*net.UnixConn), answers: make(chan answer)}
	listener, err := net.FileListener(os.NewFile(listenerDescriptor, "listener"))
	if err != nil {
		return err
	}
	host := &Host{
		Dial: p.dial, Known: os.NewFile(knownDescriptor, "known"), Missing: p.unlock,
		Lost: func() { _ = p.say(saysCollected) },
	}
	if closure {
		if host.Only, err = setOf(os.NewFile(onlyDescriptor, "closure")); err != nil {
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

// prepare holds the paths that earlier sessions listed.
func prepare(host *Host) {
	if size, err := host.Known.Seek(0, io.SeekEnd); err == nil && size == 0 {
		return // do not wake the daemon for nothing
	}
	_ = host.Prepare() // the next query returns the error
}

// setOf returns the store paths of a list as a set.
func setOf(list *os.File) (map[string]bool, error) {
	only := map[string]bool{}
	for path, err := range Known(list) {
		if err != nil {
			return nil, err
		}
		only[path] = true
	}
	return only, nil
}
