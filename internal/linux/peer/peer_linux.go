// Package peer judges who holds the other end of a TCP connection on this machine: nobody in a sandbox may. An agent in
// the host's network can listen wherever a program of the user's does not, or beside it (SO_REUSEPORT).
package peer

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// name begins the name of each process of claudebox's outside (proc_pid_status(5)), by [Mark] or by its file.
const name = "claudebox"

// Mark names this process, so that what it starts in another pid namespace is known as a sandbox. A link to the program
// could have given it any name.
func Mark() error { return os.WriteFile("/proc/self/comm", []byte(name), 0) }

// Inside is the error for a connection that leads into a sandbox.
type Inside struct{ PID int }

func (e Inside) Error() string {
	return fmt.Sprintf("a sandbox answers there (process %d) and no program of yours, so it got nothing: "+
		"end that process, then start your program", e.PID)
}

// ErrUnseen means that the other end is held by no process that this one can look into.
var ErrUnseen = errors.New("it cannot be seen which program answers there, so it got nothing: " +
	"end that, or start it as yourself, in the login that you start claudebox from")

// one lets one connection be judged at a time: the agent can make any number.
var one sync.Mutex

// Judge returns nil if what is sent on a connection of this process, or of one beside it, reaches no sandbox on this
// machine: the other end is held by processes outside alone, by another user, or by another machine. It waits a second
// for a server that has not accepted the connection yet, or hands it from one process to another.
func Judge(local, remote netip.AddrPort) error {
	one.Lock()
	defer one.Unlock()
	for wait := 5 * time.Millisecond; ; wait *= 2 {
		err := judge(plain(local), plain(remote))
		if err == nil || errors.As(err, new(Inside)) || wait > time.Second/2 {
			return err
		}
		time.Sleep(wait)
	}
}

// judge judges by the socket at the other end. While nobody has accepted that, the sockets that listen count: they are
// read first, so one that has gone since took the connection with it, or had accepted it. The same is done for a
// connection that a rule of the kernel leads on, as to a container.
func judge(local, remote netip.AddrPort) error {
	sockets, err := atPort(remote.Port())
	if err != nil {
		return err
	}
	var listening []socket
	isHere := remote.Addr().IsLoopback()
	for _, s := range sockets {
		switch {
		case s.listens:
			listening = append(listening, s)
		case s.local == remote && s.remote == local && s.inode != 0:
			return s.judge()
		case s.local == remote && s.remote == local:
			isHere = true
		}
	}
	if !isHere {
		return nil
	}
	if len(listening) == 0 {
		return ErrUnseen
	}
	for _, s := range listening {
		if err := s.judge(); err != nil {
			return err
		}
	}
	return nil
}

// judge judges a socket by its owner, and the processes that hold it. Sockets made in a sandbox have this user's id.
func (s socket) judge() error {
	if int(s.uid) != os.Getuid() {
		return nil
	}
	holders := holdersOf(s.inode)
	for _, pid := range holders {
		if !isOutside(pid) {
			return Inside{pid}
		}
	}
	if len(holders) == 0 {
		return ErrUnseen
	}
	return nil
}

// holdersOf returns the processes that hold a socket, of those that this one can look into.
func holdersOf(inode uint32) (list []int) {
	link := fmt.Sprintf("socket:[%d]", inode)
	for _, process := range names("/proc") {
		pid, err := strconv.Atoi(process)
		if err != nil {
			continue
		}
		folder := "/proc/" + process + "/fd/"
		for _, fd := range names(folder) {
			if to, err := os.Readlink(folder + fd); err == nil && to == link {
				list = append(list, pid)
				break
			}
		}
	}
	return list
}

// names are the names in a folder; none if it cannot be read.
func names(folder string) []string {
	dir, err := os.Open(folder)
	if err != nil {
		return nil
	}
	defer dir.Close()
	list, _ := dir.Readdirnames(-1)
	return list
}

// isOutside reports whether a process is in no sandbox, and none of claudebox's, which may carry a published port.
// A sandbox is a pid namespace that a process of claudebox's started: so containers, and what listens for them, are
// outside, though in a namespace of their own.
func isOutside(pid int) bool {
	for {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		called, parent, isBeside := read(text)
		switch {
		case err != nil || strings.HasPrefix(called, name):
			return false
		case isBeside:
			return true
		}
		pid = parent
	}
}

// read reads of proc_pid_status(5) a process's name, its parent, and whether it is in the pid namespace of this one.
func read(status []byte) (called string, parent int, isBeside bool) {
	for line := range bytes.Lines(status) {
		key, value, _ := strings.Cut(string(line), ":\t")
		switch key {
		case "Name":
			called = strings.TrimSpace(value)
		case "PPid":
			parent, _ = strconv.Atoi(strings.TrimSpace(value))
		case "NSpid":
			isBeside = len(strings.Fields(value)) == 1
		}
	}
	return called, parent, isBeside
}

func plain(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}
