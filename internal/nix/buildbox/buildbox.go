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

// Box is what stands between a build and the host.
type Box string

// The boxes, by the daemon's setting that leads to them.
const (
	Closed  Box = "true"    // no build sees the host
	Relaxed Box = "relaxed" // a build that asks for it does (__noChroot)
	Open    Box = "false"   // every build does
)

// Probe is what has to be known to ask.
type Probe struct {
	System string   // "x86_64-linux"
	Bash   string   // of the store
	Marks  []string // what is there on the host, for all to see, and in no sandbox
	// Read reads a file of the daemon's store.
	Read func(path string) ([]byte, error)
}

// Daemon is the part of a Nix daemon that builds; [nixdaemon.Client] is one.
type Daemon interface {
	AddText(ctx context.Context, name, text string, references []string) (string, error)
	BuildPaths(ctx context.Context, targets []nixdaemon.DerivedPath) ([]nixdaemon.BuildResult, error)
}

// Ask has the daemon build the probe: as anybody would, and as a build that
// wants no sandbox. Whatever else happens than what a daemon is known to do is
// an error, and no answer.
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

// build gives what one build sees.
func (p Probe) build(ctx context.Context, daemon Daemon, wantsNone bool) (Box, error) {
	bash, err := storepath.Of(p.Bash)
	if err != nil {
		return "", err
	}
	out, text := p.derivation(wantsNone, rand.Text())
	drv, err := daemon.AddText(ctx, name+".drv", text, []string{bash})
	if err != nil {
		return "", err
	}
	results, err := daemon.BuildPaths(ctx, []nixdaemon.DerivedPath{{Path: drv, Outputs: []string{"out"}}})
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

// name is the probe's; noBox the variable by which a build wants no sandbox.
const name, noBox = "claudebox-probe", "__noChroot"

// look is bash's own: the probe needs no other program.
const look = `said=true; for mark; do [[ ! -e $mark ]] || said=false; done; echo "$said" >"$out"`

// derivation is the probe as Nix writes one, and the path of what it builds. The
// nonce makes it one that no cache can have.
func (p Probe) derivation(wantsNone bool, nonce string) (out, text string) {
	bash, _ := storepath.Of(p.Bash)
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

// quoted writes texts in the form of a derivation, with commas between.
func quoted(texts ...string) string {
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`)
	for i, text := range texts {
		texts[i] = `"` + escape.Replace(text) + `"`
	}
	return strings.Join(texts, ",")
}
