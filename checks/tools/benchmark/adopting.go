package main

import (
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
)

// adopting measures how much longer a session takes in which the agent makes twenty repositories in the project, which
// become the user's, than one in which it makes them where nobody looks; against as many clones by git. Each session is
// in a project of its own.
func (w *world) adopting(out io.Writer, rounds int) error {
	const number = 20
	n := 0
	session := func(at string) way {
		return func() (*exec.Cmd, error) {
			n++
			dir := filepath.Join(w.home, fmt.Sprint("adopting-", n))
			made := fmt.Sprintf("for i in $(seq %d); do git init -q %s/$i && git -C %[2]s/$i -c user.name=n -c user.email=e@e "+
				"commit -q --allow-empty -m one; done; sleep 0.1", number, at)
			cmd, err := w.command("shell", "-P", w.profile("plain", ""), "--yes", "--no-report", "--", "bash", "-euc", made)()
			if err == nil {
				cmd.Dir, err = dir, repository(dir)
			}
			return cmd, err
		}
	}
	clones := func() (*exec.Cmd, error) {
		n++
		return exec.Command("bash", "-euc", fmt.Sprintf("for i in $(seq %d); do git clone -q --no-local %s/adopting-1/made/$i %[2]s/clones%d/$i; done",
			number, w.home, n)), nil
	}
	if _, err := once(session("made"), whole); err != nil { // which are cloned
		return err
	}
	times, err := takeTurns(max(3, rounds/5), session("made"), session("/tmp/made"), clones)
	if err != nil {
		return err
	}
	more := times[0] - times[1]
	fmt.Fprintf(out, "| %d repositories of the agent's become the user's | %s | as many `git clone --no-local` %s | %.2f |\n", number,
		more, times[2], float64(more)/float64(times[2]))
	return nil
}
