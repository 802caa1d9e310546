package launch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/spawn"
	"claudebox/internal/network/helper"
)

// Trial is a sandbox with nothing to do. It shows what forbids sandboxes on
// this machine: the namespaces, the filter and the network are those of a
// launch, around the host's files, read-only.
type Trial struct {
	Bwrap   string
	Env     string // coreutils' env, which ends at once
	Tier    string
	Network *helper.Helper // of tiers inet and allow; nil: there is none
	Seccomp []byte
}

// Run starts the sandbox, waits for its end, and leaves nothing behind. Its
// error holds bwrap's own words and what is known to help.
func (t Trial) Run() error {
	runtime.LockOSThread() // bwrap dies with the thread that starts it
	defer runtime.UnlockOSThread()
	r := Runner{Launch: Launch{Tier: t.Tier, Seccomp: t.Seccomp, OwnPIDs: CanOwnPIDs()}, Network: t.Network}
	child, said, err := t.start(r)
	if err != nil {
		return explainTrial(err, readSwitches())
	}
	defer said.Close()
	if err := r.connect(child); err != nil {
		return err
	}
	if text, err := await(child.pid, said); err != nil {
		return explainTrial(failure(err, text), readSwitches())
	}
	return nil
}

// start starts bwrap; said is what it says.
func (t Trial) start(r Runner) (child *sandbox, said *os.File, err error) {
	filter, err := memfd("seccomp filter", t.Seccomp)
	if err != nil {
		return nil, nil, err
	}
	defer unix.Close(filter)
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, nil, err
	}
	defer null.Close()
	gate, err := r.newGate()
	if err != nil {
		return nil, nil, err
	}
	defer gate.closeInside()
	said, say, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer say.Close()
	out := int(say.Fd())
	files := []int{int(null.Fd()), out, out, filter}
	if r.gated() {
		files = append(files[:3], gate.files()...)
	}
	pid, err := spawn.Start(spawn.Program{
		Path: t.Bwrap, Args: t.words(), Files: files, PIDs: r.OwnPIDs, Network: r.Network != nil,
	})
	if err != nil {
		said.Close()
		return nil, nil, err
	}
	return &sandbox{pid: pid, gate: gate, post: &Post{}}, said, nil
}

// await reads what a process says until it ends, and kills it when it does
// not.
func await(pid int, said *os.File) ([]byte, error) {
	_ = said.SetReadDeadline(time.Now().Add(probeWait))
	text, late := io.ReadAll(said)
	if late != nil {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	var state syscall.WaitStatus
	if err := uninterrupted(func() error {
		_, err := syscall.Wait4(pid, &state, 0, nil)
		return err
	}); err != nil || state == 0 {
		return text, err
	}
	return text, fmt.Errorf("it ended with status %d", state.ExitStatus())
}

// words is bwrap's command line. The first of the extra files is descriptor
// 3. Without a program env prints its environment, in which there is only PWD.
func (t Trial) words() []string {
	words := append([]string{"bwrap"}, namespaces...)
	if t.Tier == "none" && t.Network == nil {
		words = append(words, "--unshare-net")
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
		"run claudebox on the host, or start the container with /proc as it is (docker: `--security-opt " +
			"systempaths=unconfined`)",
	},
	{
		"max_user_namespaces: Read-only file system", "a container keeps the kernel's settings from being written",
		"run claudebox on the host, or start the container with /proc as it is (docker: `--security-opt " +
			"systempaths=unconfined`)",
	},
	{
		"PR_SET_SECCOMP", "this kernel takes no filter of system calls",
		"use a kernel that is built with CONFIG_SECCOMP_FILTER",
	},
	{
		"execvp", "what claudebox pins cannot be run",
		"install claudebox anew, or mend the store with `nix-store --verify --check-contents --repair`",
	},
}

// namespaceWords are those by which bwrap says that namespaces, or the rights in
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
	if err := (Trial{Bwrap: l.Bwrap, Env: l.Shim, Tier: "full", Seccomp: l.Seccomp}).Run(); err != nil {
		return err
	}
	return &diag.Error{
		Op: "set up the sandbox", Err: err,
		Remedy: "leave out the mount that bwrap names; `claudebox plan` says why it is there",
	}
}
