package session

import (
	"path/filepath"

	"claudebox/internal/agent"
	"claudebox/internal/plan"
	"claudebox/internal/sandbox/launch"
)

// mountsOf makes the mounts of the project, of the command line, of the plan's patterns of worktrees, and of this
// machine's policy files. linked maps a mount's source to the link that led to it, see [bound]. The plan's other mounts
// are made by [launch.Mounts].
func mountsOf(in *inputs) (made launch.Part, linked map[string]string, err error) {
	linked = map[string]string{}
	if in.branch == nil {
		kept := keptBy(in.Host, in.found)
		made = kept.Protection(in.project)
		made.Mount(kept.HeldMount(in.project))
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
