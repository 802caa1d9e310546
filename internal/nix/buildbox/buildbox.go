package buildbox

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"claudebox/internal/nix/nixdaemon"
)

// Box is how far a daemon's builds are isolated from the host.
type Box string

// The values of Box, each with the value of the daemon's setting "sandbox" that leads to it.
const (
	Closed  Box = "true"    // no build sees the host
	Relaxed Box = "relaxed" // a build that asks for it sees the host (__noChroot)
	Open    Box = "false"   // every build sees the host
)

//go:embed probe.nix
var probeExpr string

// Probe is what is needed to build the probe and to read its result.
type Probe struct {
	System string   // "x86_64-linux"
	Bash   string   // path of bash in the store
	Marks  []string // files that every user of the host sees, but no build in a sandbox
	// Read reads a file of the daemon's store.
	Read func(path string) ([]byte, error)
}

// Evaluator writes the probe's derivation to the daemon's store; [nixeval.Evaluator] is one.
type Evaluator interface {
	Eval(ctx context.Context, expr string, args []string, answer any) error
}

// Daemon is the part of a Nix daemon that builds; [nixdaemon.Client] is one.
type Daemon interface {
	BuildPaths(ctx context.Context, targets []string) ([]nixdaemon.BuildResult, error)
}

// Ask has the daemon build the probe twice: as an ordinary build, and as one that
// asks for no sandbox. Any outcome that is not known of a daemon is an error;
// Ask never guesses.
func (p Probe) Ask(ctx context.Context, nix Evaluator, daemon Daemon) (Box, error) {
	usual, err := p.build(ctx, nix, daemon, false)
	if err != nil || usual == Open {
		return usual, err
	}
	without, err := p.build(ctx, nix, daemon, true)
	switch {
	case err != nil:
		return "", err
	case without == Open:
		return Relaxed, nil
	}
	return Closed, nil
}

// build has the daemon build the probe once and returns what that build saw: Open or Closed. It is Closed, too, if the
// daemon refuses the build because it asks for no sandbox.
func (p Probe) build(ctx context.Context, nix Evaluator, daemon Daemon, without bool) (Box, error) {
	marks, _ := json.Marshal(p.Marks) // strings cannot fail
	var probe struct{ Drv, Out string }
	err := nix.Eval(ctx, probeExpr, []string{
		"--read-write-mode", "--option", "restrict-eval", "false", "--option", "pure-eval", "false",
		"--argstr", "system", p.System, "--argstr", "bash", p.Bash, "--argstr", "marks", string(marks),
		"--argstr", "nonce", rand.Text(), "--arg", "without", strconv.FormatBool(without),
	}, &probe)
	if err != nil {
		return "", err
	}
	results, err := daemon.BuildPaths(ctx, []string{probe.Drv + "!out"})
	if err == nil {
		err = results[0].Err()
	}
	switch {
	case err != nil && without && strings.Contains(err.Error(), "__noChroot"):
		return Closed, nil // "… has '__noChroot' set, but that's not allowed …"
	case err != nil:
		return "", err
	}
	said, err := p.Read(probe.Out)
	if err != nil {
		return "", err
	}
	switch box := Box(strings.TrimSpace(string(said))); box {
	case Open, Closed:
		return box, nil
	}
	return "", errors.New("the probe says something else than it should")
}
