package inside_test

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/checks/kit/must"
	"claudebox/internal/nix/inside"
	"claudebox/internal/nix/nixdaemon"
)

// Store paths of a host.
const (
	pathA  = "/nix/store/00bgd045z0d4icpbc2yyz4gx48ak44la-a"
	pathB  = "/nix/store/11bgd045z0d4icpbc2yyz4gx48ak44la-b"
	pathC  = "/nix/store/22bgd045z0d4icpbc2yyz4gx48ak44la-c"
	absent = "/nix/store/33bgd045z0d4icpbc2yyz4gx48ak44la-absent"
)

// recorder stands in for the daemon of a host and writes down what it is asked.
type recorder struct {
	mu      sync.Mutex
	valid   map[string]*nixdaemon.PathInfo
	asked   map[uint64]int // operations, by number
	texts   map[string]bool
	held    []string // temporary roots of the connection that there is
	dials   int
	current net.Conn
	fault   bool // it was asked what it does not know, or in a wrong form
}

func newRecorder() *recorder {
	info := func(path string, references ...string) *nixdaemon.PathInfo {
		return &nixdaemon.PathInfo{
			Path: path, Deriver: pathC, NARHash: "0123", References: references,
			Registered: time.Unix(7, 0).UTC(), NARSize: 99, Ultimate: true, Signatures: []string{"key:sig"}, CA: "fixed:x",
		}
	}
	return &recorder{
		valid: map[string]*nixdaemon.PathInfo{pathA: info(pathA, pathB), pathB: info(pathB), pathC: info(pathC)},
		asked: map[uint64]int{}, texts: map[string]bool{},
	}
}

// dial gives the client's end of a connection with the recorder.
func (r *recorder) dial(context.Context) (*os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	theirs := os.NewFile(uintptr(fds[1]), "")
	defer theirs.Close()
	conn, err := net.FileConn(theirs)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.dials++
	r.held, r.current = nil, conn
	r.mu.Unlock()
	go r.serve(conn)
	return os.NewFile(uintptr(fds[0]), ""), nil
}

// hangUp ends the connection that there is.
func (r *recorder) hangUp() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current.Close()
}

// client is dial for a [inside.Host].
func (r *recorder) client() (*nixdaemon.Client, error) {
	file, err := r.dial(context.Background())
	if err != nil {
		return nil, err
	}
	defer file.Close()
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, err
	}
	return nixdaemon.Attach(context.Background(), conn.(*net.UnixConn), nixdaemon.Options{})
}

func (r *recorder) serve(conn net.Conn) {
	defer conn.Close()
	s := nixdaemon.NewServer(conn)
	if s.Handshake("recorder") != nil {
		return
	}
	for {
		op, err := s.Next()
		if err != nil {
			return
		}
		r.mu.Lock()
		known := r.answer(s, op)
		r.mu.Unlock()
		if !known || s.Send() != nil {
			return
		}
	}
}

func (r *recorder) text(s *nixdaemon.Server) string {
	text := s.Text()
	r.texts[text] = true
	return text
}

func (r *recorder) answer(s *nixdaemon.Server, op uint64) bool {
	r.asked[op]++
	switch op {
	case 6, 33:
		r.text(s)
		s.Succeed()
		s.PutTexts([]string{pathA, pathC})
	case 11:
		r.held = append(r.held, r.text(s))
		s.Succeed()
		s.PutNumber(1)
	case 26:
		path := r.text(s)
		s.Succeed()
		s.PutInfo(r.valid[path])
	case 31:
		var valid []string
		for n := s.Count(); n > 0; n-- {
			if path := r.text(s); r.valid[path] != nil {
				valid = append(valid, path)
			}
		}
		if s.Number() != 0 { // substitute
			r.fault = true
		}
		s.Succeed()
		s.PutTexts(valid)
	default:
		r.fault = true
		return false
	}
	return s.Err() == nil
}

// onlyQuestions fails when the daemon was asked anything else.
func (r *recorder) onlyQuestions(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for op := range r.asked {
		if !slices.Contains([]uint64{6, 11, 26, 31, 33}, op) {
			t.Errorf("operation %d reached the daemon", op)
		}
	}
	if r.fault {
		t.Error("the daemon was asked for what it does not know")
	}
}

// filtered is a filter in this process over a recorder.
type filtered struct {
	*recorder
	host   *inside.Host
	known  *os.File
	socket string
}

func newFiltered(t testing.TB, only map[string]bool) *filtered {
	t.Helper()
	dir := t.TempDir()
	known, err := os.OpenFile(filepath.Join(dir, "known"), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	must.Do(t, err)
	f := &filtered{recorder: newRecorder(), known: known, socket: filepath.Join(dir, "socket")}
	f.host = &inside.Host{Dial: f.client, Known: known, Only: only}
	listener, err := net.Listen("unix", f.socket)
	must.Do(t, err)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = inside.Serve(listener, f.host)
	}()
	t.Cleanup(func() {
		listener.Close()
		<-served
		known.Close()
	})
	return f
}

// connect gives a Nix client of the filter.
func (f *filtered) connect(t testing.TB) *nixdaemon.Client {
	t.Helper()
	c, err := nixdaemon.Dial(context.Background(), f.socket, nixdaemon.Options{})
	must.Do(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// list is what the filter wrote down.
func (f *filtered) list(t *testing.T) []string {
	t.Helper()
	paths, err := known(f.known)
	must.Do(t, err)
	return paths
}

// known is all of a list of store paths.
func known(file io.ReaderAt) (paths []string, err error) {
	for path, err := range inside.Known(file) {
		if err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}
