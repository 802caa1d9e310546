package session

import (
	"path/filepath"
	"slices"
	"strconv"

	"claudebox/internal/agent"
	"claudebox/internal/diag"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/plan"
	"claudebox/internal/profile"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/workspace/project"
)

// mountsOf makes the mounts of the project, of the command line, of the plan's patterns of worktrees, and of this
// machine's policy files. linked maps a mount's source to the link that led to it, see [bound]. The plan's other mounts
// are made by [launch.Mounts].
func mountsOf(in *inputs) (made launch.Part, linked map[string]string, err error) {
	linked = map[string]string{}
	if in.branch == nil {
		kept := keptBy(in.Host, in.found)
		made = kept.Protection(in.project)
		made.Mount(kept.HeldMount(in.project)...)
	}
	for _, flag := range []struct {
		name  string
		kind  plan.MountKind
		words []string
	}{{"--mount-ro", plan.ROBind, in.Options.MountRO}, {"--mount-rw", plan.Bind, in.Options.MountRW}} {
		for _, word := range flag.words {
			m, link, err := in.lending().FlagMount(word, flag.kind, flag.name)
			if err != nil {
				return made, nil, err
			}
			if link != "" {
				linked[m.Source] = link
			}
			if err := judgeWithin(in, m); err != nil {
				return made, nil, err
			}
			made.Mount(m)
		}
	}
	if in.branch == nil { // else they are checkouts of the user's
		if err := in.lending().Worktrees(&made, in.Plan.Worktrees); err != nil {
			return made, nil, err
		}
	}
	for _, path := range in.policy.Files {
		made.Mount(launch.Mount{
			Kind: plan.ROBind, Source: path, Destination: agent.PolicyDir + "/" + filepath.Base(path),
			Why: "policy of this machine",
		})
	}
	return made, linked, nil
}

// judgeWithin returns an error for a mount of one of the project's folders over itself where something in it is
// covered: then it has a mount, which keeps it in its place.
func judgeWithin(in *inputs, m launch.Mount) error {
	pinned := func(of project.Mount) bool { return of.Path == m.Destination && of.Mode == project.Pin }
	if in.branch != nil || m.Source != m.Destination || !slices.ContainsFunc(in.project.Mounts, pinned) {
		return nil
	}
	remedy := "leave it out: what is in the project the agent may change"
	if rel, _ := pathname.Cut(m.Source, in.project.Path); m.Kind == plan.ROBind {
		glob := strconv.Quote(profile.ExactGlob(rel))
		remedy = "write `protect: [" + glob + "]` in a profile of yours: then it is read-only"
	}
	return diag.Errorf("mount "+diag.Name(m.Source)+" ("+m.Why+")", remedy,
		"it is a folder of the project in which something is covered, and has a mount for that")
}
