package launch

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"claudebox/internal/diag"
	"claudebox/internal/network/helper"
	"claudebox/internal/plan"
	"claudebox/internal/sandbox/seccomp"
	"claudebox/internal/sandbox/storetree"
)

// Trial is a sandbox that does nothing, to find out what prevents sandboxes on this
// machine. Namespaces, filter and network are those of a launch; the files are the
// host's, read-only.
type Trial struct {
	Bwrap   string
	Shim    string // path of coreutils' env, the program that runs inside
	Tier    string
	Network *helper.Helper // of tiers inet and allow; nil: there is none
	Seccomp []byte
}

// Run starts the sandbox, waits for its end, and leaves nothing behind. Its error has
// bwrap's message and, if the cause is known, a remedy.
func (t Trial) Run() error { return t.within(probeWait) }

// within is [Trial.Run] for a sandbox that is killed when it has not ended after a time.
func (t Trial) within(wait time.Duration) error {
	runtime.LockOSThread() // bwrap dies with the thread that starts it
	defer runtime.UnlockOSThread()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	said, say, err := os.Pipe()
	if err != nil {
		return err
	}
	defer said.Close()
	defer say.Close()
	r := Runner{Launch: t.launch(), Network: t.Network, Signals: &Signals{}}
	lines, descriptors, err := r.Words()
	if err != nil {
		return err
	}
	fds, err := r.open(descriptors)
	if err != nil {
		return err
	}
	child, err := r.start([]int{int(null.Fd()), int(say.Fd()), int(say.Fd())}, arguments(lines), fds)
	if err != nil {
		return err
	}
	say.Close() // bwrap has it
	defer child.status.Close()
	end := time.AfterFunc(wait, func() {
		_ = syscall.Kill(child.pid, syscall.SIGKILL)
		_ = said.SetReadDeadline(time.Now())
	})
	defer end.Stop()
	if err := r.connect(child); err != nil {
		return err
	}
	text, _ := io.ReadAll(said)
	late := !end.Stop() // before the process id is free
	state, err := child.reap()
	switch {
	case late:
		err = fmt.Errorf("it did not end within %s, and was killed", wait)
	case err == nil && state != 0:
		err = failure(fmt.Errorf("it ended with status %d", state.ExitStatus()), text)
	}
	if err != nil {
		return explainTrial(err, readSwitches())
	}
	return nil
}

// launch returns the sandbox's launch. env without arguments prints its environment, in
// which there is only PWD. In tier full Tier stays empty, so that abstract sockets are
// not closed: the Landlock domain for that would stay on this thread for good.
func (t Trial) launch() Launch {
	l := Launch{
		Setting: Setting{Bwrap: t.Bwrap, Seccomp: t.Seccomp, Dir: "/"},
		Command: []string{t.Shim},
		Mounts: []Mount{
			{Kind: plan.ROBind, Source: "/", Destination: "/"},
			{Kind: plan.Proc, Destination: "/proc"},
			{Kind: plan.Dev, Destination: "/dev"},
		},
	}
	if t.Tier != "full" {
		l.Tier = t.Tier
	}
	if t.Network != nil {
		l.Plan.Network.Tier = InternetTier
	}
	return l
}

// wholeProc is the remedy where a container has changed /proc.
const wholeProc = "run claudebox on the host, or start the container with /proc as it is (docker: `--security-opt " +
	"systempaths=unconfined`)"

// trialCauses are the known reasons why bwrap fails, by a part of its message or of that of the stage before it.
var trialCauses = []struct {
	said   string // in bwrap's words
	cause  string
	remedy string
}{
	{"Unknown option", "it is too old", OwnBwrap},
	{"Can't mount proc", "a container hides parts of /proc", wholeProc},
	{storetree.NoProc, "a container hides parts of /proc", wholeProc},
	{
		"max_user_namespaces: Read-only file system", "a container keeps the kernel's settings from being written",
		wholeProc,
	},
	{
		"PR_SET_SECCOMP", "this kernel takes no filter of system calls",
		"use a kernel that is built with CONFIG_SECCOMP_FILTER",
	},
	{
		"execvp", "what claudebox pins cannot be run",
		diag.Reinstall,
	},
}

// namespaceWords are parts of bwrap's messages when it cannot make namespaces or lacks
// rights in them: "loopback: Failed RTM_NEWADDR: Operation not permitted", "setting up
// uid map: Permission denied".
var namespaceWords = []string{"namespace", "Operation not permitted", "Permission denied"}

// explainTrial wraps err, which has bwrap's message, with the likely cause and a remedy.
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

// errSetUp is the error if bwrap failed before the agent ran. bwrap has written its
// message to standard error by then.
var errSetUp = errors.New("bwrap stopped before the agent ran; its message is above")

// Diagnose returns what keeps every sandbox from starting on this machine; if nothing does, err, after which
// it is called. env and tier are as in [Trial].
func Diagnose(bwrap, env, tier string, err error) error {
	b, why := AskBwrap(bwrap)
	if why == nil {
		why = b.Suits()
	}
	if why == nil {
		why = CheckUserNamespaces()
	}
	if why == nil {
		why = (Trial{Bwrap: bwrap, Shim: env, Tier: tier, Seccomp: seccomp.Filter()}).Run()
	}
	return cmp.Or(why, err)
}

// explain returns a better error for errSetUp: what prevents every sandbox from starting, or that the next try may not
// meet it, see [ErrAgain]. Other errors are returned unchanged. It costs time only after a failure.
func (l Launch) explain(child *sandbox, err error) error {
	if !errors.Is(err, errSetUp) {
		return err
	}
	tier := "full"
	if l.Tier != tier {
		tier = "none" // a network of its own
	}
	if why := Diagnose(l.Bwrap, l.Setting.Env, tier, nil); why != nil {
		return why
	}
	if slices.ContainsFunc(l.Mounts, func(m Mount) bool { return m.Open && isReplaced(m.Source, child.began) }) {
		err = Again(err)
	}
	return &diag.Error{
		Op: "set up the sandbox", Err: err,
		Remedy: "leave out the mount that bwrap names; `claudebox plan` says why it is there",
	}
}
