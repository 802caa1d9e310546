// Package live is how claudebox's commands reach the sessions that run. Each session listens on a socket in a folder of
// CLAUDEBOX_HOME, which no sandbox sees, and answers the user's own processes outside of any sandbox.
package live

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/accept"
	"claudebox/internal/linux/sockets"
	"claudebox/internal/network/helper"
)

// Info says which session it is.
type Info struct {
	ID      string    `json:"id"`
	Began   time.Time `json:"began"`
	Project string    `json:"project"`           // its folder
	Dir     string    `json:"dir"`               // where claudebox was called
	Kind    string    `json:"kind"`              // the profile's `project`
	Profile string    `json:"profile"`           // its name, or the absolute path of its file
	Plan    string    `json:"plan,omitempty"`    // of --plan
	Network string    `json:"network,omitempty"` // of --network
	Tier    string    `json:"tier"`
	Branch  string    `json:"branch,omitempty"`
}

// Question is what a command asks of a session. The zero Question asks for its [Info] alone.
type Question struct {
	Open    *helper.Opening `json:"open,omitempty"`    // let these be reached from now on
	Refused bool            `json:"refused,omitempty"` // the hosts that were refused, and that could be allowed
	After   *int            `json:"after,omitempty"`   // wait for events after this number
}

// Answer is the session's answer.
type Answer struct {
	Info    Info     `json:"info"`
	Error   string   `json:"error,omitempty"` // why it could not be done
	Refused []string `json:"refused,omitempty"`
	Events  []Event  `json:"events,omitempty"`
}

const (
	folder     = "live"  // in CLAUDEBOX_HOME
	unfinished = ".new-" // before the id of the process
	most       = 1 << 20 // bytes of a question or an answer
	together   = 16      // questions at a time
	patience   = 5 * time.Second

	lastAnswers = 200 * time.Millisecond
)

// Server answers for one session. The zero Server does nothing.
type Server struct {
	listener *net.UnixListener
	file     string
	id       string
	room     chan struct{} // has an element for each answer, and one for the next
}

// Serve begins to answer questions about a session, whose ID it sets. home is CLAUDEBOX_HOME. answer is called from
// many goroutines.
func Serve(home string, info Info, answer func(Question) Answer) (s Server, err error) {
	dir, err := open(home, true)
	if err != nil {
		return s, diag.Wrap("make "+filepath.Join(home, folder), err, "make its folder writable for you alone")
	}
	defer dir.Close()
	ended := sockets.OfEnded(unfinished)
	sockets.RemoveLeft(dir, func(name string) bool { return !strings.HasPrefix(name, unfinished) || ended(name) })
	info.ID = strings.ToLower(rand.Text()[:8])
	// Under another name at first: a socket that nobody listens on yet looks like one that was left behind.
	s.id = info.ID
	s.file, s.room = filepath.Join(home, folder, info.ID), make(chan struct{}, together)
	fresh := unfinished + strconv.Itoa(os.Getpid())
	_ = unix.Unlinkat(int(dir.Fd()), fresh, 0) // of a process that was killed and had the same id
	s.listener, err = sockets.Listen(dir, fresh)
	if err == nil {
		err = unix.Renameat(int(dir.Fd()), fresh, int(dir.Fd()), info.ID)
	}
	if err != nil {
		s.Close()
		at := filepath.Join(home, folder)
		return Server{}, diag.Wrap("listen in "+at, err, "make "+at+" writable for you")
	}
	go accept.Each(s.listener, s.room, func(c net.Conn) { //nolint:errcheck // it was closed
		defer c.Close()
		serve(c.(*net.UnixConn), info, answer)
	})
	return s, nil
}

func serve(c *net.UnixConn, info Info, answer func(Question) Answer) {
	_ = c.SetDeadline(time.Now().Add(patience))
	if err := judge(c); err != nil {
		_ = json.NewEncoder(c).Encode(Answer{Error: err.Error()})
		_, _ = io.CopyN(io.Discard, c, most) // the question is not read, but its end is waited for
		return
	}
	var q Question
	if json.NewDecoder(io.LimitReader(c, most)).Decode(&q) != nil {
		return
	}
	said := answer(q)
	_ = c.SetDeadline(time.Now().Add(patience)) // how long that took does not count
	said.Info = info
	_ = json.NewEncoder(c).Encode(said)
}

// ID is the session's.
func (s Server) ID() string { return s.id }

// Close takes no more questions, and waits a moment for the last answers to arrive.
func (s Server) Close() {
	if s.listener == nil {
		return
	}
	s.listener.Close()
	_ = os.Remove(s.file)
	for began := time.Now(); len(s.room) > 1 && time.Since(began) < lastAnswers; {
		time.Sleep(time.Millisecond)
	}
}

// judge returns an error unless the other end is a process of the user's in this process's user namespace. No process
// of a sandbox is.
func judge(c *net.UnixConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	controlled := raw.Control(func(fd uintptr) {
		peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err := errors.Join(controlled, err); err != nil {
		return err
	}
	ours, err := os.Readlink("/proc/self/ns/user")
	if err != nil {
		return err
	}
	theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/user", peer.Pid))
	if err != nil || theirs != ours || int(peer.Uid) != os.Getuid() {
		return errors.New("you are not outside of all sandboxes and containers, where this session was started")
	}
	return nil
}

// open opens the folder of the sockets, which only the user may enter.
func open(home string, make bool) (*os.File, error) {
	at := filepath.Join(home, folder)
	if make {
		if err := os.Mkdir(at, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	fd, err := unix.Open(at, unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: at, Err: err}
	}
	dir := os.NewFile(uintptr(fd), at)
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil && (st.Mode&0o077 != 0 || int(st.Uid) != os.Getuid()) {
		err = errors.New("it is not a folder that only you can enter")
	}
	if err != nil {
		dir.Close()
		return nil, err
	}
	return dir, nil
}

// Ask asks the session called id. It returns [ErrGone] if there is none.
func Ask(home, id string, q Question) (a Answer, err error) {
	dir, err := open(home, false)
	if errors.Is(err, fs.ErrNotExist) {
		return a, ErrGone
	}
	if err != nil {
		return a, err
	}
	defer dir.Close()
	return ask(dir, id, q)
}

// ErrGone is returned for a session that does not run.
var ErrGone = errors.New("no such session runs")

func ask(dir *os.File, id string, q Question) (a Answer, err error) {
	if id != filepath.Base(id) || strings.HasPrefix(id, ".") {
		return a, ErrGone
	}
	c, err := sockets.Dial(dir, id)
	switch {
	case errors.Is(err, unix.ECONNREFUSED):
		_ = unix.Unlinkat(int(dir.Fd()), id, 0) // its claudebox was killed
		return a, ErrGone
	case errors.Is(err, fs.ErrNotExist):
		return a, ErrGone
	case err != nil:
		return a, err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	if err = json.NewEncoder(c).Encode(q); err == nil {
		err = json.NewDecoder(io.LimitReader(c, most)).Decode(&a)
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return a, errors.New("it does not answer: is it suspended?")
	case errors.Is(err, io.EOF), errors.Is(err, unix.ECONNRESET), errors.Is(err, unix.EPIPE):
		return a, ErrGone
	case err == nil && a.Error != "":
		return a, errors.New(a.Error)
	}
	return a, err
}

// List returns the sessions that run, the oldest first, and why some do not answer, by their ids.
func List(home string) (list []Info, silent map[string]error, err error) {
	dir, err := open(home, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	silent = map[string]error{}
	for _, name := range names {
		a, err := ask(dir, name, Question{})
		switch {
		case err == nil:
			list = append(list, a.Info)
		case !errors.Is(err, ErrGone):
			silent[name] = err
		}
	}
	slices.SortFunc(list, func(a, b Info) int { return a.Began.Compare(b.Began) })
	return list, silent, err
}
