package devshell

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/smallfile"
)

// Names in the folder of a dev shell.
const (
	linkName    = "shell"    // the profile that keeps the environment from collection
	logName     = "log"      // what Nix said
	hookLogName = "hook.log" // what the hook said
	hookName    = "hook.sh"  // the script of the hook
	leftName    = "hook.env" // the environment that the hook leaves
	typedName   = "bashrc"   // what a bash has beside its environment
)

// mostLog bounds each log, in bytes.
const mostLog = 1 << 20

// hookTime is how long a hook may take.
const hookTime = 10 * time.Second

var errSkipped = errors.New("skipped")

// errNoSuch says that a flake has no such dev shell.
var errNoSuch = errors.New("the flake has no such dev shell")

// evaluate has Nix make the environment of a target, in the profile of the folder. It returns the files of the project
// that were read. status is told what goes on.
func evaluate(ctx context.Context, r Request, t target, status func(string)) (files []string, err error) {
	log, err := create(filepath.Join(r.State, logName))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	if t.file != "" {
		return evaluateOne(ctx, r, t, []string{"--file", t.file}, log, status)
	}
	for _, ref := range t.refs {
		files, err = evaluateOne(ctx, r, t, []string{ref}, log, status)
		if !errors.Is(err, errNoSuch) {
			break
		}
	}
	return files, err
}

func evaluateOne(ctx context.Context, r Request, t target, what []string, log io.Writer, status func(string)) (
	[]string, error,
) {
	words := []string{
		"print-dev-env", "-v", "--log-format", "raw", "--no-write-lock-file", "--option", "eval-cache", "false",
		"--option", "accept-flake-config", "false", "--profile", filepath.Join(r.State, linkName),
	}
	if t.impure {
		words = append(words, "--impure")
	}
	cmd := alone(ctx, r.Nix, append(words, what...)...)
	cmd.Dir = t.dir
	said, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	read, left := reading{t: t}, mostLog
	var fault []string // the lines of the last error
	lines := bufio.NewReaderSize(said, 64<<10)
	for {
		line, more, err := lines.ReadLine()
		if err != nil {
			break
		}
		text := string(line)
		if more || read.take(text) {
			continue
		}
		status(text)
		if n := len(text) + 1; n <= left {
			left -= n
			fmt.Fprintln(log, text)
		}
		if strings.HasPrefix(text, "error:") {
			fault = nil
		}
		if len(fault) < 200 {
			fault = append(fault, text)
		}
	}
	err = cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return read.files, context.Cause(ctx)
	case err != nil:
		return read.files, cause(fault)
	}
	return read.files, nil
}

// cause makes one line of Nix's lines of an error: the last that begins with "error:", which is the innermost.
func cause(lines []string) error {
	text := ""
	for _, line := range lines {
		if rest, is := strings.CutPrefix(strings.TrimSpace(line), "error:"); is && strings.TrimSpace(rest) != "" {
			text = strings.TrimSpace(rest)
		}
	}
	if text == "" {
		return errors.New("no reason was given")
	}
	if strings.Contains(text, "does not provide attribute") {
		return errNoSuch
	}
	return errors.New(text)
}

// alone is a command in a session of its own, without a terminal: neither Ctrl-C nor a question reaches it. With ctx
// it ends, and all of its group.
func alone(ctx context.Context, program string, words ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, words...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: unix.SIGKILL}
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	cmd.WaitDelay = time.Second
	return cmd
}

// runHook runs the hook of a shell in bash, in the environment that it shall change, and returns what it leaves.
func runHook(r Request, s shell, env environment) (environment, error) {
	script, left := filepath.Join(r.State, hookName), filepath.Join(r.State, leftName)
	_ = os.Remove(left)
	text := s.definitions(kept(r, env)) +
		fmt.Sprintf("trap 'exec %s -0 >%s' EXIT\neval \"${shellHook:-}\"\n", r.Env, left)
	if err := write(script, text); err != nil {
		return nil, err
	}
	log, err := create(filepath.Join(r.State, hookLogName))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	ctx, cancel := context.WithTimeout(context.Background(), hookTime)
	defer cancel()
	cmd := alone(ctx, r.Bash, "--noprofile", "--norc", script)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = r.Dir, env.list(), log, log
	err = cmd.Run()
	_ = log.Truncate(min(sizeOf(log), mostLog)) // what it left running writes on
	if ctx.Err() != nil {
		return nil, fmt.Errorf("did not end in %v", hookTime)
	}
	content, fault := smallfile.Read(left, mostShell)
	switch {
	case fault != nil && err != nil:
		return nil, err
	case fault != nil:
		return nil, errors.New("ended in another program")
	}
	return environmentOf(strings.Split(strings.TrimSuffix(string(content), "\x00"), "\x00")), nil
}

// create makes a file in the place of whatever is there: an earlier session may have left a pipe, which nobody reads.
func create(name string) (*os.File, error) {
	if err := os.RemoveAll(name); err != nil {
		return nil, err
	}
	return os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
}

func write(name, text string) error {
	file, err := create(name)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}

// kept reports of each variable whether a bash keeps what it has: because it is in its environment, or refused.
func kept(r Request, env environment) func(name string) bool {
	return func(name string) bool {
		_, set := env[name]
		return set || strings.HasPrefix(name, "BASH") || matches(refused, name) || matches(r.Refused, name)
	}
}

// sizeOf is the size of an open file, in bytes.
func sizeOf(file *os.File) int64 {
	info, err := file.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}
