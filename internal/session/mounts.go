package session

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"claudebox/internal/agent/state"
	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/plan"
	"claudebox/internal/profile"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/workspace/project"
)

// namedOf adds what the project's repository, the command line and the plan's patterns of worktrees have mounted.
func namedOf(g ground) (made part, linked map[string]string, err error) {
	made, linked = protection(g.project, emptyFolder(g.call)), map[string]string{}
	for _, flag := range []struct {
		name  string
		kind  plan.MountKind
		words []string
	}{{"--mount-ro", plan.ROBind, g.options.MountRO}, {"--mount-rw", plan.Bind, g.options.MountRW}} {
		for _, word := range flag.words {
			m, link, err := flagMount(g, word, flag.kind, flag.name)
			if err != nil {
				return made, nil, err
			}
			if link != "" {
				linked[m.Source] = link
			}
			made.mount(m)
		}
	}
	if err := made.addWorktrees(g); err != nil {
		return made, nil, err
	}
	for _, path := range g.etc.Managed {
		made.mount(launch.Mount{
			Kind: plan.ROBind, Source: path, Destination: "/etc/claude-code/" + filepath.Base(path),
			Why: "policy of this machine",
		})
	}
	return made, linked, nil
}

// protection is what keeps the agent from what the host obeys in a folder, and
// from what is hidden there. empty stands in for folders that are hidden.
func protection(folder project.Project, empty string) (made part) {
	for _, m := range folder.Mounts {
		made.mount(projectMount(m, empty))
	}
	if slices.ContainsFunc(folder.Mounts, hidesFolder) {
		made.standIns = append(made.standIns, launch.StandIn{Path: empty, Dir: true})
	}
	for _, p := range folder.StandIns {
		standIn := launch.StandIn{Path: p.Root + "/" + p.Rel, Dir: p.Dir, Content: p.Content}
		made.standIns = append(made.standIns, standIn)
	}
	return made
}

// projectMount is a path of the project mounted over itself.
func projectMount(m project.Mount, empty string) launch.Mount {
	b := launch.Mount{Kind: plan.Bind, Source: m.Path, Destination: m.Path, Open: true, Why: m.Why}
	switch m.Mode {
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

// emptyFolder stands in for folders that are hidden. It is out of the reach of every sandbox.
func emptyFolder(c call) string { return filepath.Join(c.folders.Home, "empty") }

func hidesFolder(m project.Mount) bool { return m.Mode == project.Hidden && m.Dir }

// addWorktrees mounts the folders beside the project that a pattern of the
// profile names, read-write. Links are left out: they lead elsewhere.
func (p *part) addWorktrees(g ground) error {
	for _, pattern := range g.plan.Beside {
		found, err := filepath.Glob(filepath.Join(g.project.Path, pattern))
		if err != nil {
			const remedy = "mend the pattern in the profile"
			return &diag.Error{Op: "look for worktrees by " + pattern, Err: err, Remedy: remedy}
		}
		for _, folder := range found {
			m := launch.Mount{Kind: plan.Bind, Source: folder, Destination: folder, Open: true, Why: whyWorktree}
			known := slices.ContainsFunc(p.mounts, func(o launch.Mount) bool { return o.Destination == folder })
			if !isFolder(folder) || known || folder == g.project.Path {
				continue
			}
			if err := judgeNamed(g, "mount "+folder+" (worktrees)", m); err != nil {
				return err
			}
			p.mount(m)
		}
	}
	return nil
}

// whyWorktree is the rule behind a mount of `worktrees`.
const whyWorktree = "worktrees"

func isFolder(name string) bool {
	info, err := os.Lstat(name)
	return err == nil && info.IsDir()
}

// flagMount is HOST[:INSIDE] of a flag. Both are relative to the current folder,
// or absolute, or begin with "~/". link is that of [follow].
func flagMount(g ground, word string, kind plan.MountKind, flag string) (m launch.Mount, link string, err error) {
	source, inside, split := strings.Cut(word, ":")
	if !split {
		inside = source
	}
	op := "mount " + word + " (" + flag + ")"
	if source == "" || inside == "" {
		return m, "", diag.Errorf(op, "write "+flag+" HOST or "+flag+" HOST:INSIDE", "a side of the colon is empty")
	}
	real, link, err := follow(g, g.absolute(source))
	if err != nil {
		const remedy = "name a file or folder that exists, by its own path"
		return m, "", &diag.Error{Op: op, Err: err, Remedy: remedy}
	}
	m = launch.Mount{Kind: kind, Source: real, Destination: g.absolute(inside), Open: true, Why: flag}
	return m, link, judgeNamed(g, op, m)
}

// judgeNamed refuses at once what a profile could not say either.
func judgeNamed(g ground, op string, m launch.Mount) error {
	message, remedy := profile.SourceFault(m.Source)
	if message == "" {
		if err := judgeSource(g, m); err != nil {
			return err
		}
		message, remedy = profile.DestinationFault(profile.Tilde(g.Facts.Home, m.Destination))
	}
	if message != "" {
		return diag.Errorf(op, remedy, "%s", message)
	}
	return nil
}

// errLedOut is a source that the agent could have exchanged: it may turn a
// folder of the project into a link to whatever it would like to have mounted
// next time.
var errLedOut = errors.New("a link in the project leads out of it, where an agent could have put it")

// follow resolves every link of a source that a user named. The way may lead
// through the project, but no link of the project may lead out of it. What is
// judged is the very way that was resolved: a live session may change it between
// two looks. foreign is the last link by which it is reached that an agent could
// have made, in a folder that it was given once; empty: none, or what lies in the
// project, which is the agent's anyway.
func follow(g ground, path string) (at, foreign string, err error) {
	if free, err := beneath.Canonical(path); err == nil && free == path {
		return path, "", nil // no link on the way
	}
	const steps = 1000
	at, rest, passed := "/", strings.Split(path, "/"), false
	for range steps {
		if len(rest) == 0 {
			switch inside := pathname.Below(at, g.project.Path); {
			case inside:
				foreign = ""
			case passed:
				return "", "", errLedOut
			}
			return at, foreign, nil
		}
		next := filepath.Join(at, rest[0])
		rest = rest[1:]
		text, err := os.Readlink(next)
		switch {
		case errors.Is(err, unix.EINVAL): // no link
			at = next
			continue
		case err != nil:
			return "", "", diag.Cause(err)
		}
		passed = passed || pathname.Below(next, g.project.Path)
		// no agent can have made a link of root or Nix, or one in the user's home
		// itself, which is never mounted
		var st unix.Stat_t
		own := filepath.Dir(next) == filepath.Clean(g.Facts.Home) || pathname.Below(next, "/nix/store") ||
			unix.Lstat(next, &st) == nil && st.Uid == 0
		if !own {
			foreign = next
		}
		if filepath.IsAbs(text) {
			at = "/"
		}
		rest = append(strings.Split(text, "/"), rest...)
	}
	return "", "", unix.ELOOP
}

// judgeSources refuses a mount that the user named and whose source shows a
// secret path of the host, unless a profile said so of exactly this mount
// (SAND-09), or what is protected and hidden in the project. It looks at the
// final sources: a link may have led anywhere.
func judgeSources(g ground, mounts []launch.Mount, list []given) error {
	for _, m := range mounts {
		if err := judgeSource(g, m); err != nil {
			return err
		}
		if err := judgeOverlap(m, list); err != nil {
			return err
		}
	}
	return nil
}

func judgeSource(g ground, m launch.Mount) error {
	if m.Secret || !m.Open || m.Why == plan.Base || pathname.Below(m.Source, g.project.Path) ||
		m.Source == emptyFolder(g.call) {
		return nil
	}
	home, err := beneath.Canonical(g.Facts.Home)
	if err != nil {
		home = g.Facts.Home
	}
	secret, relation := profile.Exposes(profile.Tilde(home, m.Source))
	isImport := func(in state.Import) bool { return in.Source == m.Source }
	if secret.Path == "~/.claude" && slices.ContainsFunc(g.Instance.Imports, isImport) {
		return nil // state chose these folders of it, and these only
	}
	// CLAUDEBOX_HOME may lie anywhere
	own, err := beneath.Canonical(g.folders.Home)
	shows := err == nil && (pathname.Below(m.Source, own) || pathname.Below(own, m.Source))
	if relation == profile.Apart && shows {
		secret, relation = profile.SecretPath{Path: g.folders.Home, What: "the sandboxes of other projects"},
			profile.Around
	}
	remedy := "mount exactly what is needed by a profile's `mounts` with `secret: true`, or leave it out"
	switch relation {
	case profile.Apart:
		return nil
	case profile.Around:
		remedy = "mount the files and folders in it that are needed"
	}
	return diag.Errorf("mount "+m.Source+" ("+m.Why+")", remedy, "it would show %s (%s)", secret.Path, secret.What)
}

// judgeOverlap refuses a mount by which the agent would reach what is
// protected or hidden in the project by another way.
func judgeOverlap(m launch.Mount, list []given) error {
	if m.Kind != plan.Bind && m.Kind != plan.ROBind || !userNamed(m) {
		return nil
	}
	for i, folder := range list {
		for _, kept := range folder.Mounts {
			granted := m.Secret && m.Source == kept.Path && m.Kind == plan.ROBind
			if granted || !opens(m, kept) || i > 0 && folder.Path == m.Source {
				continue
			}
			return diag.Errorf("mount "+m.Source+" ("+m.Why+")",
				"mount files and folders apart from it; `hide`, `show` and `protect` are set in the profile",
				"it would open %s to the agent (%s)", kept.Path, kept.Why)
		}
	}
	return nil
}

// userNamed reports whether a flag or a profile asked for a mount.
func userNamed(m launch.Mount) bool {
	return slices.ContainsFunc([]string{"--mount-", whyWorktree, "profile ", profile.ProjectFile + ":"},
		func(prefix string) bool {
			return strings.HasPrefix(m.Why, prefix)
		})
}

// opens reports whether a mount makes reachable what another keeps the agent
// from: from writing to it or, where it is covered, from reading it.
func opens(m launch.Mount, kept project.Mount) bool {
	switch kept.Mode {
	case project.ReadOnly:
		if m.Kind != plan.Bind {
			return false
		}
	case project.Made, project.Hidden:
	default:
		return false
	}
	if rest, around := strings.CutPrefix(kept.Path, m.Source+"/"); around {
		return m.Destination+"/"+rest != kept.Path // else the one that keeps lies over it
	}
	return pathname.Below(m.Source, kept.Path)
}
