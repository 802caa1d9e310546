package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"claudebox/internal/sandbox/launch"
	"claudebox/internal/session"
	"claudebox/internal/session/planning"
)

// way is one of the ways that are compared: it makes a command anew for each
// round. What the making costs is not measured.
type way func() (*exec.Cmd, error)

// warmUp is how many rounds go by before the first is counted, at most: no more than a third of those.
const warmUp = 5

// settled is how old a profile must be for its plan to be kept. A warm start
// is one that finds the plan of an earlier one.
const settled = 1100 * time.Millisecond

// rest lets the kernel finish with the sandbox before: it takes namespaces
// apart when nobody waits for it any more.
const rest = 20 * time.Millisecond

// duration is a median, printed in milliseconds.
type duration time.Duration

func (d duration) String() string {
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}

// clock is how a command that has ended is measured, by when it was started and ended,
// and by what it said.
type clock func(ended *exec.Cmd, start, end time.Time, said string) (time.Duration, error)

// whole is from fork to the end of wait, as a shell would see it.
func whole(_ *exec.Cmd, start, end time.Time, _ string) (time.Duration, error) {
	return end.Sub(start), nil
}

// toAgent is until the agent runs, which says the time in nanoseconds.
func toAgent(_ *exec.Cmd, start, _ time.Time, said string) (time.Duration, error) {
	then, err := strconv.ParseInt(lastLine(said), 10, 64)
	return time.Unix(0, then).Sub(start), err
}

// lastLine is what a command itself said, below the remarks of a launch.
func lastLine(said string) string { return said[strings.LastIndexByte(said, '\n')+1:] }

// asSaid is what the command itself measured, in seconds.
func asSaid(_ *exec.Cmd, _, _ time.Time, said string) (time.Duration, error) {
	return time.ParseDuration(lastLine(said) + "s")
}

// takeTurns runs the ways in turn and gives the median of each.
func takeTurns(rounds int, ways ...way) ([]duration, error) {
	return takeTurnsBy(whole, rounds, ways...)
}

func takeTurnsBy(c clock, rounds int, ways ...way) ([]duration, error) {
	times := make([][]time.Duration, len(ways))
	before := min(warmUp, rounds/3)
	for round := range before + rounds {
		for i, w := range ways {
			took, err := once(w, c)
			if err != nil {
				return nil, err
			}
			if round >= before {
				times[i] = append(times[i], took)
			}
		}
	}
	medians := make([]duration, len(ways))
	for i := range times {
		medians[i] = duration(median(times[i]))
	}
	return medians, nil
}

func once(make way, c clock) (time.Duration, error) {
	cmd, err := make()
	if err != nil {
		return 0, err
	}
	defer closeAll(cmd.ExtraFiles)
	heard, said, err := os.Pipe() // it holds what little they say until they have ended
	if err != nil {
		return 0, err
	}
	defer heard.Close()
	cmd.Stdout, cmd.Stderr = said, said
	time.Sleep(rest)
	start := time.Now()
	err = cmd.Run()
	end := time.Now()
	said.Close()
	text, _ := io.ReadAll(heard)
	text = bytes.TrimSpace(text)
	var took time.Duration
	if err == nil {
		took, err = c(cmd, start, end, string(text))
	}
	if err != nil {
		return 0, fmt.Errorf("%q: %w\n%s", cmd.Args, err, text)
	}
	return took, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// againstBwrap compares a start by claudebox with bwrap and the same words.
func (w *world) againstBwrap(out io.Writer, name, profile string, rounds int) error {
	words := []string{"-P", profile, "--yes", "--no-report"}
	time.Sleep(settled)
	if _, err := once(w.command(words...), whole); err != nil { // makes the instance
		return err
	}
	said := planning.Options{Profile: profile, Yes: true, NoReport: true}
	s, err := session.Prepare(w.system().Caller(), said, planning.Purpose{Look: true}) // what the words stand for
	if err != nil {
		return err
	}
	l := s.Launch
	s.Close()
	bare := func() (*exec.Cmd, error) { return l.Bare() }
	if len(l.StandIns) > 0 {
		bare = func() (*exec.Cmd, error) { return withStandIns(l) }
	}
	times, err := takeTurns(rounds, w.command(words...), bare, aroundBy(w.floor, bare))
	if err != nil {
		return err
	}
	for i, other := range []string{"bare bwrap", "the least Go program around it"} {
		fmt.Fprintf(out, "| %s | %s | %s %s | %.2f |\n", name, times[0], other, times[i+1], float64(times[0])/float64(times[i+1]))
	}
	return nil
}

// aroundBy runs bare bwrap by a program that takes it for its last words.
func aroundBy(program string, bare way, words ...string) way {
	return func() (*exec.Cmd, error) {
		cmd, err := bare()
		if err != nil {
			return nil, err
		}
		words := append([]string{filepath.Base(program)}, words...)
		cmd.Args = slices.Concat(words, []string{strconv.Itoa(3 + len(cmd.ExtraFiles)), cmd.Path}, cmd.Args)
		cmd.Path = program
		return cmd, nil
	}
}

// withStandIns makes what the words' mounts lie on, which claudebox takes away
// at the end of each session.
func withStandIns(l launch.Launch) (*exec.Cmd, error) {
	for _, in := range l.StandIns {
		var err error
		if in.Dir {
			err = os.Mkdir(in.Path, 0o755)
		} else {
			err = os.WriteFile(in.Path, nil, 0o644)
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	return l.Bare()
}
