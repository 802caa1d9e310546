package main

import (
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"time"
)

// adopting measures how much longer a session takes in which the agent makes twenty repositories in the project, which
// become the user's, than one in which it makes them where nobody looks; against as many clones by git.
func (w *world) adopting(out io.Writer, rounds int) error {
	const number = 20
	dir := filepath.Join(w.home, "adopting")
	if err := makeProject(dir, number, 0); err != nil {
		return err
	}
	n := 0
	session := func(at string) way {
		return func() (*exec.Cmd, error) {
			n++
			made := fmt.Sprintf("for i in $(seq %d); do git init -q %s%d/$i && git -C %[2]s%d/$i -c user.name=n -c user.email=e@e "+
				"commit -q --allow-empty -m one; done; sleep 0.1", number, at, n)
			cmd, err := w.command("shell", "-P", w.profile("plain", ""), "--yes", "--no-report", "--", "bash", "-euc", made)()
			if err == nil {
				cmd.Dir = dir
			}
			return cmd, err
		}
	}
	clones := func() (*exec.Cmd, error) {
		n++
		return exec.Command("bash", "-euc", fmt.Sprintf("for i in $(seq %d); do git clone -q --no-local %s/1/$i %[2]s/clones%d/$i; done",
			number, dir, n)), nil
	}
	if _, err := once(session(""), whole); err != nil { // which are cloned
		return err
	}
	time.Sleep(settled)
	times, err := takeTurns(max(3, rounds/5), session("made"), session("/tmp/made"), clones)
	if err != nil {
		return err
	}
	more := times[0] - times[1]
	fmt.Fprintf(out, "| %d repositories of the agent's become the user's | %s | as many `git clone --no-local` %s | %.2f |\n", number,
		more, times[2], float64(more)/float64(times[2]))
	return nil
}
