package main

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// What a start may cost at most, by what it cost another claudebox in the same run. Its time is shown and not judged: on
// a busy machine it differs by more. Page faults are the same there, and processor time nearly so.
const (
	mostFaults    = 1.03
	mostProcessor = 1.10
)

// starts are those that are compared with another claudebox's.
var starts = []struct {
	name string
	make func(*world) (way, error)
}{
	{"start and end of `true`", func(w *world) (way, error) { return w.plainly("nix: {daemon: off}\n"), nil }},
	{"a start with every default", func(w *world) (way, error) { return w.plainly(""), nil }},
	{"a start in a small repository", func(w *world) (way, error) {
		dir := filepath.Join(w.home, "small")
		return w.startIn(dir), makeProject(dir, 20, 0)
	}},
	{"a later start on a branch", func(w *world) (way, error) {
		dir := filepath.Join(w.home, "branch")
		return w.onBranch(dir, func() string { return "again" }), makeCommitted(dir, 20, 0)
	}},
}

// plainly is a launch in an empty folder, without its report.
func (w *world) plainly(profile string) way {
	return w.command("-P", w.profile(fmt.Sprint("plain-", len(profile)), profile), "--yes", "--no-report")
}

// against compares starts of this claudebox with another's, each in a home of its own. It returns an error if one
// costs more than it may.
func (w *world) against(other *world, out io.Writer, rounds int) error {
	var lost []error
	var err error
	fmt.Fprintln(out, "| what | time | before | processor time | before | ratio | page faults | before | ratio |")
	fmt.Fprintln(out, "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
	for _, s := range starts {
		now, fault := s.make(w)
		before, faultBefore := s.make(other)
		if err := errors.Join(fault, faultBefore); err != nil {
			return err
		}
		if _, err := takeTurnsBy(whole, 1, now, before); err != nil { // makes what is kept
			return err
		}
		time.Sleep(settled)
		var medians [3][]duration
		for i, c := range []clock{whole, worked, pageFaults} {
			if medians[i], err = takeTurnsBy(c, rounds, now, before); err != nil {
				return err
			}
		}
		times, processors, faults := medians[0], medians[1], medians[2]
		longer, more := ratio(processors), ratio(faults)
		fmt.Fprintf(out, "| %s | %s | %s | %s | %s | %.2f | %d | %d | %.2f |\n", s.name, times[0], times[1],
			processors[0], processors[1], longer, faults[0], faults[1], more)
		if longer > mostProcessor || more > mostFaults {
			lost = append(lost, fmt.Errorf("%s costs %.2f × the processor time, %.2f × the page faults; at most %.2f, %.2f",
				s.name, longer, more, mostProcessor, mostFaults))
		}
	}
	return errors.Join(lost...)
}

func ratio(of []duration) float64 { return float64(of[0]) / float64(of[1]) }

// worked is the time that processors worked for a command and for all that it started and waited for.
func worked(ended *exec.Cmd, _, _ time.Time, _ string) (time.Duration, error) {
	return ended.ProcessState.UserTime() + ended.ProcessState.SystemTime(), nil
}

// pageFaults counts them likewise, in place of nanoseconds.
func pageFaults(ended *exec.Cmd, _, _ time.Time, _ string) (time.Duration, error) {
	return time.Duration(ended.ProcessState.SysUsage().(*syscall.Rusage).Minflt), nil
}
