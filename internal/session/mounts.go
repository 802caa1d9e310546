package session

import (
	"crypto/sha256"
	"encoding/hex"
	"path"
	"path/filepath"
	"slices"

	"claudebox/internal/agent"
	"claudebox/internal/plan"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/session/lending"
	"claudebox/internal/workspace/handover"
	"claudebox/internal/workspace/project"
)

// mountsOf makes the mounts of the project, of the command line, of the plan's patterns of worktrees, and of this
// machine's policy files. linked maps a mount's source to the link that led to it, see [bound]. The plan's other mounts
// are made by [launch.Mounts].
func mountsOf(in inputs) (made launch.Part, linked map[string]string, err error) {
	linked = map[string]string{}
	if in.branch == nil {
		made = protection(in, in.project)
		made.Mount(heldMount(in, in.project))
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

// protection makes the mounts that keep the agent from changing what the host obeys in a folder, and from reading
// what is hidden there; and those of git folders, of which the agent has its own.
func protection(in inputs, folder project.Project) (made launch.Part) {
	empty := lending.EmptyFolder(in.Folders.Home)
	for _, m := range folder.Mounts {
		if isDirenv(folder, m) && m.Mode == project.Own {
			made.Mount(launch.Mount{
				Kind: plan.Bind, Source: filepath.Join(in.Instance.Dir, direnvFolder(folder)), Destination: m.Path,
				Why: plan.Base,
			})
			continue
		}
		made.Mount(projectMount(m, empty, handover.Place{Folder: placeFolder(in, m.Path)}.Inner()))
	}
	made.Mount(objectsOf(folder)...)
	if slices.ContainsFunc(folder.Mounts, hidesFolder) {
		made.StandIns = append(made.StandIns, launch.StandIn{Path: empty, Dir: true})
	}
	for _, p := range folder.StandIns {
		standIn := launch.StandIn{Path: p.Root + "/" + p.Rel, Dir: p.Dir, Content: p.Content}
		made.StandIns = append(made.StandIns, standIn)
	}
	return made
}

// isDirenv reports whether a mount is that of direnv's folder of a project, where that is not tracked.
func isDirenv(folder project.Project, m project.Mount) bool {
	return m.Path == folder.Path+"/.direnv" && m.Dir && (m.Mode == project.ReadOnly || m.Mode == project.Own)
}

// withOwnDirenv gives direnv inside a folder of its own in the place of the user's: what it makes there leads into the
// store inside, and would lead nowhere outside.
func withOwnDirenv(opened project.Project) project.Project {
	opened.Mounts = slices.Clone(opened.Mounts)
	for i, m := range opened.Mounts {
		if isDirenv(opened, m) {
			opened.Mounts[i].Mode = project.Own
		}
	}
	return opened
}

// direnvFolder is the folder of the instance that is direnv's of a project; worktrees share an instance.
func direnvFolder(folder project.Project) string {
	sum := sha256.Sum256([]byte(folder.Path))
	return "direnv-" + hex.EncodeToString(sum[:8])
}

// objectsOf mounts the objects of a folder's repositories, read-only.
func objectsOf(folder project.Project) (list []launch.Mount) {
	for _, place := range folder.Places {
		objects := place.Mounts()[1]
		list = append(list, launch.Mount{
			Kind: plan.ROBind, Source: objects.Source, Destination: objects.Destination, Open: true,
			Why: launch.WhyObjects,
		})
	}
	return list
}

// placeFolder is claudebox's folder for what belongs to a git folder of the user's.
func placeFolder(in inputs, outer string) string {
	return filepath.Join(in.Instance.Dir, handover.Folder, handover.Name(outer))
}

// projectMount mounts a path of the project over itself, in the mode of m. empty is mounted over a hidden folder, inner
// over a git folder.
func projectMount(m project.Mount, empty, inner string) launch.Mount {
	b := launch.Mount{Kind: plan.Bind, Source: m.Path, Destination: m.Path, Open: true, Why: m.Why}
	switch m.Mode {
	case project.Inner:
		b.Source = inner
	case project.Own:
		b.Source = path.Dir(inner) + "/folder"
	case project.ReadOnly:
		b.Kind = plan.ROBind
	case project.Made:
		b.Kind, b.Data, b.Open = plan.ROData, m.Content, false
	case project.Hidden:
		if m.Dir {
			b.Kind, b.Source = plan.ROBind, empty
			break
		}
		b.Kind, b.Open = plan.ROData, false
	}
	return b
}

// hidesFolder reports whether a mount hides a folder of the project.
func hidesFolder(m project.Mount) bool { return m.Mode == project.Hidden && m.Dir }
