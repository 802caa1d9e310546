package nixeval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"claudebox/internal/linux/capture"
)

const (
	maxAnswer = 256 << 20 // bytes of JSON; 10,000 packages take 5 MB
	maxStderr = 256 << 10
)

var errNoProgram = errors.New("there is no nix-instantiate to run")

// evalError means that nix-instantiate ran and failed. It holds what Nix printed to its standard error.
type evalError struct{ stderr string }

func (e evalError) Error() string { return reason(e.stderr) }

func isEvalError(err error) bool { return errors.As(err, new(evalError)) }

// Eval runs one nix-instantiate on expr, with further args, and decodes the JSON it prints into answer.
// Nix 2.8 prints half an answer before it fails, so the exit status is checked first.
func (e Evaluator) Eval(ctx context.Context, expr string, args []string, answer any) error {
	if !filepath.IsAbs(e.Program) {
		return errNoProgram
	}
	cmd := exec.CommandContext(ctx, e.Program,
		append([]string{"--eval", "--strict", "--json", "--expr", expr}, args...)...)
	// A home that does not exist keeps Nix from reading one; the last three keep it
	// from a user's configuration, search path and colours.
	cmd.Env = append([]string{
		"HOME=/homeless-shelter", "NIX_USER_CONF_FILES=/dev/null", "NIX_PATH=", "NO_COLOR=1",
	}, e.Env...)
	cmd.Dir = "/"                    // not the project
	cmd.WaitDelay = 10 * time.Second // a grandchild may hold the pipes; a busy machine is slow to drain them
	stdout, stderr := &capture.Head{Most: maxAnswer}, &tail{max: maxStderr}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &exit) && exit.Exited():
		return evalError{string(stderr.kept)}
	case err != nil:
		return fmt.Errorf("run %s: %w", e.Program, err)
	case stdout.Over:
		return fmt.Errorf("the answer is over %d bytes", maxAnswer)
	}
	if err := json.Unmarshal(stdout.Bytes(), answer); err != nil {
		return fmt.Errorf("%s gives an answer that is not understood: %w", e.Program, err)
	}
	return nil
}

// tail keeps at least the last max bytes that are written to it: Nix prints the reason of a failure last.
type tail struct {
	kept []byte
	max  int
}

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if len(t.kept) > 2*t.max {
		t.kept = append(t.kept[:0], t.kept[len(t.kept)-t.max:]...)
	}
	return len(p), nil
}

// reason returns why an evaluation failed, from what Nix printed: the paragraph after the last
// "error:", without the position in the source that some versions add.
func reason(stderr string) string {
	at := strings.LastIndex(stderr, "error:")
	if at < 0 {
		return strings.TrimSpace(stderr)
	}
	last := stderr[at+len("error:"):]
	var lines []string
	for line := range strings.SplitSeq(strings.TrimSpace(last), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "at /") || strings.HasPrefix(line, "at «") ||
			strings.HasPrefix(line, "(use '--show-trace'") {
			break
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}
