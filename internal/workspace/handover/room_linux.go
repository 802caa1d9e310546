package handover

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"claudebox/internal/diag"
)

// room is a box that has several places, in which one script after another runs: to begin a box costs more than most
// scripts do. What is in them is all one agent's: one of them can make the others fail there, and answer for them as
// the agent could have made them answer. So what fails for one is to be asked again in a box of its own, and what an
// answer brings is judged as that of any box.
type room struct {
	tools Tools
	of    *rooms
	words []string // for bwrap: what it has
	cmd   *exec.Cmd
	end   func() // ends the box; it is done when it returns, also where another one ends it
	to    io.WriteCloser
	from  io.Reader
}

// rooms are the two that places share: one has the agent's side, the other takes its packs apart.
type rooms struct {
	inner, outer *room
	users        map[string]bool // the places that have been there
	failed       error           // of the one that is there
}

const (
	// mostInRoom is how long an answer may be there, in bytes.
	mostInRoom = 16 << 20
	// waiting is which part of the time of [Tools.limit] one script may take there: the others wait.
	waiting = 4
)

// errApart is returned for what a room does not do, for whichever reason: a box of its own may do it. errSilent is one
// for a script that took too long.
var (
	errApart  = errors.New("it is to be done in a box of its own")
	errSilent = fmt.Errorf("git did not answer in time: %w", errApart)
)

// serving runs scripts: it reads a line with the sizes of a script and its input and a mark, then these. It prints what
// the script prints, the mark, its exit code, and what it said if it failed.
const serving = `while IFS=' ' read -r n m mark; do
  IFS= read -r -N "$n" s && head -c "$m" >/tmp/in || exit
  (eval "$s") </tmp/in 2>/tmp/said
  c=$? said=
  [ $c = 0 ] || said=$(tail -c 4000 /tmp/said)
  printf '%s %d %s\n' "$mark" $c "${said//$'\n'/$'\r'}"
done
`

// newRooms returns the rooms of repositories that were laid. They begin when they are needed.
func newRooms(tools Tools, list []*adopting) *rooms {
	r := &rooms{users: map[string]bool{}}
	r.inner, r.outer = &room{tools: tools, of: r}, &room{tools: tools, of: r}
	for _, a := range list {
		r.inner.words = append(r.inner.words, a.laid()...)
		r.outer.words = append(r.outer.words, a.outer().contained().laid("--bind")...)
	}
	return r
}

// enter has a place use the rooms, and reports whether it is the first one there.
func (r *rooms) enter(l *live) (first bool) {
	l.rooms, r.failed = r, nil
	r.users[l.place.Outer] = true
	return len(r.users) == 1
}

// doubt returns an error if something failed that need not have failed in a box of its own.
func (r *rooms) doubt() error {
	switch {
	case r == nil || r.failed == nil:
		return nil
	case errors.Is(r.failed, errApart):
		return r.failed
	case len(r.users) > 1:
		return errApart
	}
	return nil
}

func (r *rooms) close() {
	r.inner.close()
	r.outer.close()
}

// open begins the box. The caller's thread is locked: the box ends with it.
func (r *room) open(env []string) (err error) {
	args, files := r.tools.box()
	args = append(args, "--dev", "/dev", "--proc", "/proc", "--size", fmt.Sprint(4*mostInRoom), "--tmpfs", "/tmp",
		"--dir", emptyTree)
	args = append(append(args, r.words...), "--chdir", emptyTree, "--")
	cmd := exec.Command(r.tools.Bwrap, append(args, r.tools.Bash, "--noprofile", "--norc", "-c", serving)...)
	cmd.Env, cmd.ExtraFiles = env, files
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	defer closeFiles(cmd)
	if r.to, err = cmd.StdinPipe(); err != nil {
		return err
	}
	if r.from, err = cmd.StdoutPipe(); err != nil {
		return err
	}
	if err = cmd.Start(); err == nil {
		r.cmd, r.end = cmd, sync.OnceFunc(func() { endGroup(cmd) })
	}
	return err
}

func (r *room) close() {
	if r.cmd != nil {
		r.end()
		_ = r.cmd.Wait()
		r.cmd = nil
	}
}

// run is [side.run] in the room. Where something happens that should not, the room begins anew for the next script.
func (r *room) run(s side, script, input string) (answer []byte, err error) {
	defer func() {
		if err != nil && !errors.Is(r.of.failed, errApart) {
			r.of.failed = err
		}
	}()
	if err := s.noPipes(); err != nil {
		return nil, err
	}
	if r.cmd == nil {
		if err := r.open(s.environment()); err != nil {
			return nil, err
		}
	}
	to := r.to // the room may have begun anew before it is done with
	watch := time.AfterFunc(r.tools.limit()/waiting, r.end)
	mark, asked := rand.Text(), make(chan error, 1)
	script = "export C=" + diag.Quote(path.Join(s.place.Outer, s.part)) + "\n" + script
	go func() {
		_, err := io.WriteString(to, fmt.Sprintf("%d %d %s\n", len(script), len(input), mark)+script+input)
		asked <- err
	}()
	answer, end, err := r.read(mark + " ")
	if err == nil {
		err = <-asked // or it would be taken for the next one
	}
	silent := !watch.Stop()
	number, said, _ := strings.Cut(end, " ")
	code, odd := strconv.Atoi(number)
	switch {
	case silent:
		r.close()
		return nil, errSilent
	case err != nil || odd != nil || code > killed:
		r.close()
		return nil, errApart
	}
	return answer, s.ended(code, []byte(strings.ReplaceAll(said, "\r", "\n")))
}

// killed is the greatest exit code of a script that was not.
const killed = 128

// read reads an answer, and what stands in the line after its mark.
func (r *room) read(mark string) (answer []byte, end string, err error) {
	const longest = 8 << 10 // of that line
	chunk := make([]byte, 64<<10)
	for {
		n, err := r.from.Read(chunk)
		answer = append(answer, chunk[:n]...)
		tail := max(0, len(answer)-longest)
		if at := bytes.LastIndex(answer[tail:], []byte(mark)); at >= 0 && answer[len(answer)-1] == '\n' {
			at += tail
			return answer[:at], string(answer[at+len(mark) : len(answer)-1]), nil
		}
		if err != nil || len(answer) > mostInRoom {
			return nil, "", errApart
		}
	}
}
