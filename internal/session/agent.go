package session

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/agent"
	"claudebox/internal/linux/cachefile"
	"claudebox/internal/linux/smallfile"
	"claudebox/internal/nix/storepath"
	"claudebox/internal/plan"
	"claudebox/internal/plan/resolve"
	"claudebox/internal/sandbox/launch"

	"golang.org/x/sys/unix"
)

// agentPart is the program that runs inside, and what its loader needs.
type agentPart struct {
	part
	words     []string // the program and what it is always called with
	lookUp    bool     // it is a name for the PATH inside
	owns      bool     // it takes a terminal for itself
	libraries bool     // the mounts hold the host's library folders
	closure   []string // store paths that it needs beyond the plan's
}

func agentOf(g ground, k *keeper) (made agentPart, err error) {
	if len(g.why.Command) > 0 {
		return agentPart{words: g.why.Command, lookUp: true}, nil
	}
	p := g.plan
	program, err := agent.Find(agent.Request{
		Name: p.Agent.Name, Command: p.Agent.Command,
		Pinned: plan.ToolPath(p, resolve.ToolAgent), Node: plan.ToolPath(p, resolve.ToolNode),
		Loader: plan.ToolPath(p, resolve.ToolLoader) != "" && p.Compat == "nix-ld", Inside: p.Path,
		Path: g.Facts.Env.Value("PATH", ""), Project: g.project.Path, Home: g.Facts.Home, UID: g.Facts.UID,
		GID: g.Facts.GID, Flake: g.caller.flake(),
	})
	if err != nil {
		return made, err
	}
	made = agentPart{
		words: slices.Concat([]string{program.Path}, program.Args, p.Agent.Args), owns: true,
		libraries: program.Libraries,
	}
	made.note(program.Notes...)
	for _, m := range program.Mounts {
		kind := plan.ROBind
		if m.Link {
			kind = plan.Symlink
		}
		made.mount(launch.Mount{Kind: kind, Source: m.Source, Destination: m.Destination, Why: "agent"})
	}
	if program.Store && p.Nix.Store == "closure" {
		made.closure, err = closureOfAgent(g, k, program.Path)
	}
	return made, err
}

// flake is where claudebox was built from, if that is known and still there.
func (c Caller) flake() string {
	const longest = 4 << 10
	text, err := smallfile.Read(filepath.Join(filepath.Dir(c.Manifest), "flake"), longest)
	if err != nil {
		return ""
	}
	flake := strings.TrimSpace(string(text))
	if storepath.Check(flake) != nil || unix.Access(filepath.Join(flake, "flake.nix"), unix.R_OK) != nil {
		return ""
	}
	return flake
}

// closureOfAgent is what a program of the store refers to; none where the plan's
// own closure has it. The daemon is asked once for as long as the path is the one
// that it was: a valid path loses nothing that it refers to.
func closureOfAgent(g ground, k *keeper, program string) (paths []string, err error) {
	root, err := storepath.Of(program)
	if err != nil || slices.Contains(g.plan.Pins.Closure, root) {
		return nil, err
	}
	file, key := filepath.Join(g.folders.Cache, "agent-closure"), root+" "+cachefile.State(root)
	if paths, ok := keptClosure(file, key); ok {
		return paths, nil
	}
	err = interruptible(g.ignored, func(ctx context.Context) (err error) {
		paths, err = closure(ctx, k.store(), []string{root})
		return err
	})
	if err == nil && !g.why.Dry {
		cachefile.WriteBelow(file, []byte(key+"\n"+strings.Join(paths, "\n")))
	}
	return paths, err
}

// keptClosure is the content of a file that begins with key, if all of it is
// there.
func keptClosure(file, key string) ([]string, bool) {
	first, rest, _ := strings.Cut(string(cachefile.Read(file)), "\n")
	paths := strings.Split(rest, "\n")
	gone := func(path string) bool {
		_, err := os.Lstat(path)
		return err != nil || storepath.Check(path) != nil
	}
	return paths, first == key && !slices.ContainsFunc(paths, gone)
}
