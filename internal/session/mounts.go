package session

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/agent"
	"claudebox/internal/agent/state"
	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/plan"
	"claudebox/internal/profile"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/workspace/handover"
	"claudebox/internal/workspace/project"
)

// mountsOf makes the mounts of the project, of the command line, of the plan's patterns of worktrees, and of this
// machine's policy files. linked maps a mount's source to the link that led to it, see [bound]. The plan's other mounts
// are made by [launch.Mounts].
func mountsOf(in inputs) (made part, linked map[string]string, err error) {
	linked = map[string]string{}
	if in.branch == nil {
		made = protection(in, in.project)
		made.mount(heldMount(in, in.project))
	}
	for _, flag := range []struct {
		name  string
		kind  plan.MountKind
		words []string
	}{{"--mount-ro", plan.ROBind, in.options.MountRO}, {"--mount-rw", plan.Bind, in.options.MountRW}} {
		for _, word := range flag.words {
			m, link, err := flagMount(in, word, flag.kind, flag.name)
			if err != nil {
				return made, nil, err
			}
			if link != "" {
				linked[m.Source] = link
			}
			made.mount(m)
		}
	}
	if err := made.addWorktrees(in); err != nil {
		return made, nil, err
	}
	for _, path := range in.policy.Files {
		made.mount(launch.Mount{
			Kind: plan.ROBind, Source: path, Destination: agent.PolicyDir + "/" + filepath.Base(path),
			Why: "policy of this machine",
		})
	}
	return made, linked, nil
}

// protection makes the mounts that keep the agent from changing what the host obeys in a folder, and from reading
// what is hidden there; and those of git folders, of which the agent has its own.
func protection(in inputs, folder project.Project) (made part) {
	empty := emptyFolder(in.call)
	for _, m := range folder.Mounts {
		if isDirenv(folder, m) && m.Mode == project.Own {
			made.mount(launch.Mount{
				Kind: plan.Bind, Source: filepath.Join(in.Instance.Dir, direnvFolder(folder)), Destination: m.Path,
				Why: plan.Base,
			})
			continue
		}
		made.mount(projectMount(m, empty, handover.Place{Folder: placeFolder(in, m.Path)}.Inner()))
	}
	made.mount(objectsOf(folder)...)
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

// emptyFolder is the folder that is mounted over hidden folders. No sandbox can reach it in any other way.
func emptyFolder(c call) string { return filepath.Join(c.folders.Home, "empty") }

// hidesFolder reports whether a mount hides a folder of the project.
func hidesFolder(m project.Mount) bool { return m.Mode == project.Hidden && m.Dir }

// addWorktrees mounts the folders beside the project that a pattern of the
// profile names, read-write. Links are left out: they lead elsewhere.
func (p *part) addWorktrees(in inputs) error {
	if in.branch != nil {
		return nil // they are checkouts of the user's
	}
	for _, pattern := range in.plan.Worktrees {
		found, err := filepath.Glob(filepath.Join(in.project.Path, pattern))
		if err != nil {
			const remedy = "mend the pattern in the profile"
			return &diag.Error{Op: "look for worktrees by " + pattern, Err: err, Remedy: remedy}
		}
		for _, folder := range found {
			m := launch.Mount{Kind: plan.Bind, Source: folder, Destination: folder, Open: true, Why: whyWorktree}
			known := slices.ContainsFunc(p.Mounts, func(o launch.Mount) bool { return o.Destination == folder })
			if !isFolder(folder) || known || folder == in.project.Path {
				continue
			}
			if err := judgeNamed(in, "mount "+diag.Name(folder)+" (worktrees)", m); err != nil {
				return err
			}
			p.mount(m)
		}
	}
	return nil
}

// whyWorktree is the rule behind a mount of `worktrees`.
const whyWorktree = "worktrees"

// isFolder reports whether a folder, not a link to one, is at a path.
func isFolder(name string) bool {
	info, err := os.Lstat(name)
	return err == nil && info.IsDir()
}

// flagMount makes the mount of a flag's word, HOST[:INSIDE]. Both are relative to the current folder,
// or absolute, or begin with "~/". link is what [follow] returns as foreign.
func flagMount(in inputs, word string, kind plan.MountKind, flag string) (m launch.Mount, link string, err error) {
	source, inside := sides(word)
	op := "mount " + word + " (" + flag + ")"
	if source == "" || inside == "" {
		return m, "", diag.Errorf(op, "write "+flag+" HOST or "+flag+" HOST:INSIDE", "a side of the colon is empty")
	}
	real, link, err := follow(in, in.absolute(source))
	if err != nil {
		const remedy = "name a file or folder that exists, by its own path"
		return m, "", &diag.Error{Op: op, Err: err, Remedy: remedy}
	}
	m = launch.Mount{Kind: kind, Source: real, Destination: in.absolute(inside), Open: true, Why: flag}
	return m, link, judgeNamed(in, op, m)
}

// sides splits a flag's word at its first colon; without one, both sides are the whole word.
func sides(word string) (outside, inside string) {
	outside, inside, split := strings.Cut(word, ":")
	if !split {
		inside = outside
	}
	return outside, inside
}

// judgeNamed returns an error for a mount that a profile could not ask for either.
func judgeNamed(in inputs, op string, m launch.Mount) error {
	message, remedy := profile.SourceFault(m.Source)
	if message == "" {
		if err := judgeSource(in, m); err != nil {
			return err
		}
		message, remedy = profile.DestinationFault(profile.Tilde(in.Facts.Home, m.Destination))
	}
	if message != "" {
		return diag.Errorf(op, remedy, "%s", message)
	}
	return nil
}

// errLedOut refuses a source that is reached by a link in the project that leads out of it: an agent may have turned a
// folder of the project into a link, to whatever it would like to have mounted next time.
var errLedOut = errors.New("a link in the project leads out of it, where an agent could have put it")

// follow resolves every link on the way to a source that a user named. The way may lead through the project, but no
// link in the project may lead out of it ([errLedOut]). The links are judged as they are followed, in one walk: a
// live session may change them between two looks. foreign is the last link on the way that an agent could have made,
// in a folder that it was given once; empty if there is none, or if the source lies in the project, which is the
// agent's anyway.
func follow(in inputs, path string) (at, foreign string, err error) {
	if free, err := beneath.Canonical(path); err == nil && free == path {
		return path, "", nil // no link on the way
	}
	passed := false
	at, err = beneath.Follow(beneath.OnDisk{}, "/", path, func(name string, info fs.FileInfo, _ bool) error {
		if info.Mode()&fs.ModeSymlink == 0 {
			return nil
		}
		passed = passed || pathname.Below(name, in.project.Path)
		// the user's home itself is never mounted
		if !beneath.OfRoot(name, info) && filepath.Dir(name) != filepath.Clean(in.Facts.Home) {
			foreign = name
		}
		return nil
	})
	switch inside := pathname.Below(at, in.project.Path); {
	case err != nil:
		return "", "", diag.Cause(err)
	case inside:
		foreign = ""
	case passed:
		return "", "", errLedOut
	}
	return at, foreign, nil
}

// judgeSources returns an error for a mount that the user named and that shows a secret path of the host, unless a
// profile allows exactly this mount, or that opens what is protected or hidden in the project. It looks
// at the final sources: a link may have led anywhere.
func judgeSources(in inputs, mounts []launch.Mount, list []given) error {
	for _, m := range mounts {
		if err := cmp.Or(judgeSource(in, m), judgeOverlap(m, list)); err != nil {
			return err
		}
	}
	return nil
}

// judgeSource returns an error for a mount that shows a secret path of the host, see [judgeSources].
func judgeSource(in inputs, m launch.Mount) error {
	if m.Secret || !m.Open || m.Why == plan.Base || m.Why == launch.WhyHeld ||
		pathname.Below(m.Source, in.project.Path) || m.Source == emptyFolder(in.call) || !userNamed(m) &&
		(pathname.Below(m.Source, filepath.Join(in.Instance.Dir, handover.Folder)) || in.isOfBranch(m.Source)) {
		return nil
	}
	home, err := beneath.Canonical(in.Facts.Home)
	if err != nil {
		home = in.Facts.Home
	}
	secret, relation := profile.Exposes(profile.Tilde(home, m.Source))
	isImport := func(in state.Import) bool { return in.Source == m.Source }
	chosen := slices.ContainsFunc(in.Instance.Imports, isImport) // by state: these folders of it, and these only
	if secret.Path == "~/.claude" && chosen {
		return nil
	}
	if config, err := beneath.Canonical(in.configFolder()); err == nil && relation == profile.Apart && !chosen &&
		(pathname.Below(m.Source, config) || pathname.Below(config, m.Source)) {
		secret, relation = profile.SecretPath{Path: in.configFolder(), What: "your own Claude Code"}, profile.Around
	}
	// CLAUDEBOX_HOME may lie anywhere
	own, err := beneath.Canonical(in.folders.Home)
	shows := err == nil && (pathname.Below(m.Source, own) || pathname.Below(own, m.Source))
	if relation == profile.Apart && shows {
		secret, relation = profile.SecretPath{Path: in.folders.Home, What: "the sandboxes of other projects"},
			profile.Around
	}
	remedy := "mount exactly what is needed by a profile's `mounts` with `secret: true`, or leave it out"
	switch relation {
	case profile.Apart:
		return nil
	case profile.Around:
		remedy = "mount the files and folders in it that are needed"
	}
	return diag.Errorf("mount "+diag.Name(m.Source)+" ("+m.Why+")", remedy, "it would show %s (%s)", secret.Path,
		secret.What)
}

// judgeOverlap returns an error for a mount by which the agent would reach what is
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
			return diag.Errorf("mount "+diag.Name(m.Source)+" ("+m.Why+")",
				"mount files and folders apart from it; `hide`, `show` and `protect` are set in the profile",
				"it would open %s to the agent (%s)", diag.Name(kept.Path), kept.Why)
		}
	}
	return nil
}

// userNamed reports whether a flag or a profile asked for a mount.
func userNamed(m launch.Mount) bool {
	return profile.IsProjectRule(m.Why) || slices.ContainsFunc([]string{"--mount-", whyWorktree, "profile "},
		func(prefix string) bool { return strings.HasPrefix(m.Why, prefix) })
}

// opens reports whether a mount lets the agent write to what kept protects or, if kept covers it, read it.
func opens(m launch.Mount, kept project.Mount) bool {
	covered := kept.Mode == project.Made || kept.Mode == project.Hidden || kept.Mode == project.Inner
	if !covered && !(kept.Mode == project.ReadOnly && m.Kind == plan.Bind) {
		return false
	}
	if rest, around := strings.CutPrefix(kept.Path, m.Source+"/"); around {
		return m.Destination+"/"+rest != kept.Path // if they are equal, kept is mounted over m
	}
	return pathname.Below(m.Source, kept.Path)
}
