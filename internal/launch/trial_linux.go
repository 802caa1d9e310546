package launch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	"claudebox/internal/diag"
)

// Trial is a sandbox with nothing to do. It shows what forbids sandboxes on
// this machine: the namespaces, the filter and the network are those of a
// launch, around the host's files, read-only.
type Trial struct {
	Bwrap   string
	Env     string // coreutils' env, which ends at once
	Tier    string
	Pasta   string // of tier inet
	Seccomp []byte
}

// Run starts the sandbox, waits for its end, and leaves nothing behind. It
// tells how tier inet is closed; empty: in another tier. Its error holds
// bwrap's own words and what is known to help.
func (t Trial) Run() (closed string, err error) {
	memory, err := memfd("seccomp filter", t.Seccomp)
	if err != nil {
		return "", err
	}
	filter := os.NewFile(uintptr(memory), "seccomp filter")
	defer filter.Close()
	l := Launch{Tier: t.Tier, Pasta: t.Pasta, OwnPIDs: CanOwnPIDs()}
	gate, err := l.newGate()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeWait)
	defer cancel()
	runtime.LockOSThread() // bwrap dies with the thread that starts it
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, t.Bwrap, t.words()...)
	cmd.Env, cmd.SysProcAttr = []string{}, asChild(l.OwnPIDs, l.OwnNetwork())
	cmd.ExtraFiles = append(cmd.ExtraFiles, filter)
	if gate.inside != nil {
		cmd.ExtraFiles = append(cmd.ExtraFiles, gate.inside)
	}
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	err = cmd.Start()
	gate.closeInside()
	if err != nil {
		return "", explainTrial(err, readSwitches())
	}
	inet, err := l.connect(&sandbox{pid: cmd.Process.Pid, gate: gate, post: &post{}})
	if err != nil {
		return "", err
	}
	if inet != nil {
		closed = inet.Closed()
		defer inet.Close()
	}
	if err := cmd.Wait(); err != nil {
		return "", explainTrial(failure(err, text.Bytes()), readSwitches())
	}
	return closed, nil
}

// words is bwrap's command line. The first of the extra files is descriptor
// 3. Without a program env prints its environment, in which there is only PWD.
func (t Trial) words() []string {
	words := slices.Clone(namespaces)
	switch {
	case t.Tier == "none":
		words = append(words, "--unshare-net")
	case (Launch{Tier: t.Tier}).OwnNetwork():
		words = append(words, "--block-fd", "4")
	}
	return append(words,
		"--seccomp", "3", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--chdir", "/",
		"--", t.Env)
}

// trialCauses are the known reasons why bwrap stops, by what it says.
var trialCauses = []struct {
	said   string // in bwrap's words
	cause  string
	remedy string
}{
	{"Unknown option", "it is too old", ownBwrap},
	{
		"Can't mount proc", "a container hides parts of /proc",
		"run claudebox on the host, or start the container with /proc as it is (docker: `--security-opt systempaths=unconfined`)",
	},
	{
		"PR_SET_SECCOMP", "this kernel takes no filter of system calls",
		"use a kernel that is built with CONFIG_SECCOMP_FILTER",
	},
	{"execvp", "what claudebox pins cannot be run", "install claudebox anew, or mend the store with `nix-store --verify --check-contents --repair`"},
}

// namespaceWords tell in bwrap's words that namespaces, or the rights in
// them, are what it could not get: "loopback: Failed RTM_NEWADDR: Operation
// not permitted", "setting up uid map: Permission denied".
var namespaceWords = []string{"namespace", "Operation not permitted", "Permission denied"}

// explainTrial names the reason why bwrap stopped, and what to do about it.
func explainTrial(err error, s switches) error {
	const op = "start an empty sandbox"
	for _, c := range trialCauses {
		if strings.Contains(err.Error(), c.said) {
			return &diag.Error{Op: op, Err: fmt.Errorf("%w: %s", err, c.cause), Remedy: c.remedy}
		}
	}
	if slices.ContainsFunc(namespaceWords, func(w string) bool { return strings.Contains(err.Error(), w) }) {
		return explainNamespaces(op, err, s)
	}
	return &diag.Error{Op: op, Err: err, Remedy: "report this with the output of `claudebox check`"}
}

// errSetUp is bwrap's failure before the agent ran. bwrap has said more on
// standard error by then.
var errSetUp = errors.New("bwrap stopped before the agent ran; its message is above")

// explain finds the cause of a failed set-up, where it is one that keeps any
// sandbox from starting. It costs nothing but on failure.
func (l Launch) explain(err error) error {
	if !errors.Is(err, errSetUp) {
		return err
	}
	b, asked := AskBwrap(l.Bwrap)
	if asked == nil {
		asked = b.Suits()
	}
	if asked != nil {
		return asked
	}
	if err := CheckUserNamespaces(); err != nil {
		return err
	}
	if _, err := (Trial{Bwrap: l.Bwrap, Env: l.Runner, Tier: l.Tier, Pasta: l.Pasta, Seccomp: l.Seccomp}).Run(); err != nil {
		return err
	}
	return &diag.Error{Op: "set up the sandbox", Err: err, Remedy: "leave out the mount that bwrap names; `claudebox plan` says why it is there"}
}
