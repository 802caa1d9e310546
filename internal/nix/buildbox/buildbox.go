package buildbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"claudebox/internal/nix/nixdaemon"
	"claudebox/internal/nix/storepath"
)

// Box is how far a daemon's builds are isolated from the host.
type Box string

// The values of Box, each with the value of the daemon's setting "sandbox" that leads to it.
const (
	Closed  Box = "true"    // no build sees the host
	Relaxed Box = "relaxed" // a build that asks for it sees the host (__noChroot)
	Open    Box = "false"   // every build sees the host
)

// Probe is what is needed to build the probe and to read its result.
type Probe struct {
	System string   // "x86_64-linux"
	Bash   string   // path of bash in the store
	Marks  []string // files that every user of the host sees, but no build in a sandbox
	// Read reads a file of the daemon's store.
	Read func(path string) ([]byte, error)
}

// Daemon is the part of a Nix daemon that builds; [nixdaemon.Client] is one.
type Daemon interface {
	AddText(ctx context.Context, name, text string, references []string) (string, error)
	BuildPaths(ctx context.Context, targets []string) ([]nixdaemon.BuildResult, error)
}

// Ask has the daemon build the probe twice: as an ordinary build, and as one that
// asks for no sandbox. Any outcome that is not known of a daemon is an error;
// Ask never guesses.
func (p Probe) Ask(ctx context.Context, daemon Daemon) (Box, error) {
	usual, err := p.build(ctx, daemon, false)
	if err != nil || usual == Open {
		return usual, err
	}
	without, err := p.build(ctx, daemon, true)
	switch {
	case err != nil && strings.Contains(err.Error(), noBox):
		return Closed, nil // "… has '__noChroot' set, but that's not allowed …"
	case err != nil:
		return "", err
	case without == Open:
		return Relaxed, nil
	}
	return Closed, nil
}

// build has the daemon build the probe once and returns what that build saw: Open or Closed.
func (p Probe) build(ctx context.Context, daemon Daemon, wantsNone bool) (Box, error) {
	bash, err := storepath.Of(p.Bash)
	if err != nil {
		return "", err
	}
	out, text := p.derivation(bash, wantsNone, rand.Text())
	drv, err := daemon.AddText(ctx, name+".drv", text, []string{bash})
	if err != nil {
		return "", err
	}
	results, err := daemon.BuildPaths(ctx, []string{drv + "!out"})
	if err == nil {
		err = results[0].Err()
	}
	if err != nil {
		return "", err
	}
	said, err := p.Read(out)
	if err != nil {
		return "", err
	}
	switch box := Box(strings.TrimSpace(string(said))); box {
	case Open, Closed:
		return box, nil
	}
	return "", errors.New("the probe says something else than it should")
}

// name is the name of the probe's derivation; noBox is the variable by which a build asks for no sandbox.
const name, noBox = "claudebox-probe", "__noChroot"

// look uses only builtins of bash: the probe needs no other program.
const look = `said=true; for mark; do [[ ! -e $mark ]] || said=false; done; echo "$said" >"$out"`

// derivation returns the probe in Nix's text form of a derivation, and its output path.
// No cache can have that output, because the nonce is part of the derivation.
func (p Probe) derivation(bash string, wantsNone bool, nonce string) (out, text string) {
	write := func(out string) string {
		variables := [][2]string{
			{"allowSubstitutes", ""},
			{"builder", p.Bash},
			{"name", name},
			{"nonce", nonce},
			{"out", out},
			{"preferLocalBuild", "1"},
			{"system", p.System},
		}
		if wantsNone {
			variables = append([][2]string{{noBox, "1"}}, variables...)
		}
		var env []string
		for _, v := range variables {
			env = append(env, "("+quoted(v[0], v[1])+")")
		}
		words := append([]string{"-c", look, name}, p.Marks...)
		return fmt.Sprintf("Derive([(%s)],[],[%s],%s,[%s],[%s])", quoted("out", out, "", ""), quoted(bash),
			quoted(p.System, p.Bash), quoted(words...), strings.Join(env, ","))
	}
	out = storepath.Made("output:out", write(""), name)
	return out, write(out)
}

// quoted writes texts as quoted strings of a derivation, with commas between them.
func quoted(texts ...string) string {
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`)
	for i, text := range texts {
		texts[i] = `"` + escape.Replace(text) + `"`
	}
	return strings.Join(texts, ",")
}
