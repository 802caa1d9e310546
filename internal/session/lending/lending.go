// Package lending mounts what of this host the user has lent to the agent: folders and files that flags, a profile, or
// their own set-up name. It judges each source first.
package lending

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/agent/state"
	"claudebox/internal/diag"
	"claudebox/internal/host"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/plan"
	"claudebox/internal/profile"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/workspace/handover"
	"claudebox/internal/workspace/project"
	"claudebox/internal/workspace/secretfile"
)

// Host is this host as its folders and files are judged by.
type Host struct {
	Facts    host.Facts
	Project  string               // the project's folder
	Config   string               // folder of the user's own Claude Code
	Own      string               // claudebox's own folder
	Instance string               // the instance's folder
	Imports  []state.Import       // what enters of the user's own Claude Code
	Branch   string               // folder of what a branch has of its own; empty: the session is on none
	Show     []string             // patterns of what the profile shows
	Places   []profile.SecretPath // of secrets
	Kept     []string             // files of the profile's `secrets`, which stay outside
	Cache    string               // folder of what was searched for secrets
	Build    string               // of claudebox
	Walks    Walks                // of folders of the user's own
	Over     func(at string) bool // whether something else lies over a path inside; nil: not in what is lent
}

// EmptyFolder is the folder that is mounted over hidden folders. No sandbox can reach it in any other way.
func EmptyFolder(own string) string { return filepath.Join(own, "empty") }

// FlagMount makes the mount of a flag's word, HOST[:INSIDE]. Both are relative to the current folder,
// or absolute, or begin with "~/". link is what [Host.Follow] returns as foreign.
func (h Host) FlagMount(word string, kind plan.MountKind, flag string) (m launch.Mount, link string, err error) {
	op := "mount " + word + " (" + flag + ")"
	if strings.HasPrefix(word, ":") || strings.HasSuffix(word, ":") || word == "" {
		return m, "", diag.Errorf(op, "write "+flag+" HOST or "+flag+" HOST:INSIDE", "a side of the colon is empty")
	}
	if bare, options := dockers(word); options != "" {
		for only, name := range map[string]string{"ro": "--mount-ro", "rw": "--mount-rw"} {
			if slices.Contains(strings.Split(options, ","), only) {
				flag = name
			}
		}
		return m, "", diag.Errorf(op, "leave :"+options+" out: "+flag+" "+bare,
			"%q is an option of Docker's; a place of that name is ./%[1]s", options)
	}
	source, inside := h.Facts.Sides(word)
	real, link, err := h.Follow(source)
	if err != nil {
		const remedy = "name a file or folder that exists, by its own path"
		return m, "", &diag.Error{Op: op, Err: err, Remedy: remedy}
	}
	m = launch.Mount{Kind: kind, Source: real, Destination: inside, Open: true, Why: flag}
	return m, link, h.judgeNamed(op, m)
}

// dockers splits a flag's word as Docker writes it, HOST[:INSIDE]:OPTIONS; options are empty in any other.
func dockers(word string) (bare, options string) {
	at := strings.LastIndex(word, ":")
	for option := range strings.SplitSeq(word[at+1:], ",") {
		if at < 0 || !slices.Contains(strings.Fields("ro rw z Z cached consistent delegated"), option) {
			return word, ""
		}
	}
	return word[:at], word[at+1:]
}

// Mountable returns the flag that mounts a file or folder of the user's read-only at its own place, or why a launch
// refuses that.
func (h Host) Mountable(name string) (flag string, fault error) {
	flag = "--mount-ro"
	real, link, err := h.Follow(name)
	if err != nil {
		return "", err
	}
	m := launch.Mount{Kind: plan.ROBind, Source: real, Destination: name, Open: true, Why: flag}
	var refused *diag.Error
	if errors.As(h.judgeNamed(flag, m), &refused) {
		return "", refused.Err
	}
	if link != "" {
		return flag + " " + diag.Name(real) + ":" + diag.Name(name), nil
	}
	return flag + " " + diag.Name(name), nil
}

// Worktrees mounts the folders beside the project that patterns of the profile name, read-write, where p has none of
// theirs. Links are left out: they lead elsewhere.
func (h Host) Worktrees(p *launch.Part, patterns []string) error {
	for _, pattern := range patterns {
		found, err := filepath.Glob(filepath.Join(h.Project, pattern))
		if err != nil {
			return fmt.Errorf("bug: %q is no pattern: %w", pattern, err) // the profile and the plan were checked
		}
		for _, folder := range found {
			m := launch.Mount{Kind: plan.Bind, Source: folder, Destination: folder, Open: true, Why: whyWorktree}
			if !IsFolder(folder) || p.Has(folder) || folder == h.Project {
				continue
			}
			if err := h.judgeNamed("mount "+diag.Name(folder)+" (worktrees)", m); err != nil {
				return err
			}
			p.Mount(m)
		}
	}
	return nil
}

// whyWorktree is the rule behind a mount of `worktrees`.
const whyWorktree = "worktrees"

// IsFolder reports whether a folder, not a link to one, is at a path.
func IsFolder(name string) bool {
	info, err := os.Lstat(name)
	return err == nil && info.IsDir()
}

// judgeNamed returns an error for a mount that a profile could not ask for either.
func (h Host) judgeNamed(op string, m launch.Mount) error {
	message, remedy := profile.SourceFault(m.Source)
	if message == "" {
		if err := h.judgeSource(m); err != nil {
			return err
		}
		message, remedy = profile.DestinationFault(profile.Tilde(h.Facts.Home, m.Destination))
	}
	if message != "" {
		return diag.Errorf(op, remedy, "%s", message)
	}
	return nil
}

// Follow resolves every link on the way to a source that a user named. The way may lead through the project, but no
// link in the project may lead out of it: an agent may have turned a folder into a link, to whatever it would like to
// have mounted next time. The links are judged as they are followed, in one walk: a
// live session may change them between two looks. foreign is the last link on the way that an agent could have made,
// in a folder that it was given once; empty if there is none, or if the source lies in the project, which is the
// agent's anyway.
func (h Host) Follow(path string) (at, foreign string, err error) {
	if free, err := beneath.Canonical(path); err == nil && free == path {
		return path, "", nil // no link on the way
	}
	passed := false
	at, err = beneath.Follow(beneath.OnDisk{}, "/", path, func(name string, info fs.FileInfo, _ bool) error {
		if info.Mode()&fs.ModeSymlink == 0 {
			return nil
		}
		passed = passed || pathname.Below(name, h.Project)
		// the user's home itself is never mounted
		if !beneath.OfRoot(name, info) && filepath.Dir(name) != filepath.Clean(h.Facts.Home) {
			foreign = name
		}
		return nil
	})
	switch inside := pathname.Below(at, h.Project); {
	case err != nil:
		return "", "", diag.Cause(err)
	case inside:
		foreign = ""
	case passed:
		return "", "", diag.Errorf("follow it", "name what it leads to itself: "+diag.Name(at),
			"a link in the project leads out of it, where an agent could have put it")
	}
	return at, foreign, nil
}

// Judge returns an error for a mount that the user named and that shows a secret path of the host, unless a
// profile allows exactly this mount, or that opens what is protected or hidden in the project. It looks
// at the final sources: a link may have led anywhere.
func (h Host) Judge(mounts []launch.Mount, list []project.Project) error {
	for _, m := range mounts {
		if err := cmp.Or(h.judgeSource(m), judgeOverlap(m, list)); err != nil {
			return err
		}
	}
	return nil
}

// judgeSource returns an error for a mount that shows a secret path of the host, see [Host.Judge].
func (h Host) judgeSource(m launch.Mount) error {
	if m.Secret || !m.Open || m.Why == plan.Base || m.Why == launch.WhyHeld ||
		pathname.Below(m.Source, h.Project) || m.Source == EmptyFolder(h.Own) || !UserNamed(m) &&
		(pathname.Below(m.Source, filepath.Join(h.Instance, handover.Folder)) ||
			h.Branch != "" && pathname.Below(m.Source, h.Branch)) {
		return nil
	}
	source := profile.Tilde(beneath.Real(h.Facts.Home), m.Source)
	secret, relation := profile.Exposed(h.Places, source)
	isImport := func(of state.Import) bool { return of.Source == m.Source }
	chosen := slices.ContainsFunc(h.Imports, isImport) // by state: these folders of it, and these only
	if secret.What == profile.OfClaude && chosen {
		return nil
	}
	remedy, mode, shows := "mount the files and folders in it that are needed", "ro", "would show"
	op := "mount " + diag.Name(m.Source) + " (" + m.Why + ")"
	if m.Kind == plan.Bind {
		mode = "rw"
	}
	whole := "leave it out, or have a profile of yours show it: `mounts: [{host: " + diag.Name(m.Source) +
		", mode: " + mode + ", secret: true}]`"
	switch {
	case relation == profile.Apart:
		if why := h.ofFile(m, source); why != "" {
			return diag.Errorf(op, whole, "%s", why)
		}
		return nil
	case relation == profile.Within:
		if strings.Count(source, "/") > strings.Count(secret.Path, "/") {
			shows = "lies in"
		}
		remedy = whole
	}
	return diag.Errorf(op, remedy, "it %s %s (%s)", shows, secret.Path, secret.What)
}

// ofFile says why a file that the user gives by itself is secret; empty: it is not, or it is no such file. source is
// its name from the home. The settings of programs there may hold a password of any shape: they are judged by the names
// before it, too.
func (h Host) ofFile(m launch.Mount, source string) (why string) {
	info, err := os.Lstat(m.Source)
	if err != nil || !info.Mode().IsRegular() || !UserNamed(m) || pathname.Below(m.Source, "/nix/store") {
		return ""
	}
	q := h.question(m.Source, m.Destination)
	q.All = info.Size() <= secretfile.Limit // larger ones are data, and are searched if their names ask for it
	q.Settings = q.All && info.Mode()&0o111 == 0 && strings.HasPrefix(source, "~/.")
	q.Cache = "" // it is small
	why, _ = refusal(project.LookLent(m.Source, q))
	return why
}

// judgeOverlap returns an error for a mount by which the agent would reach what is
// protected or hidden in the project by another way.
func judgeOverlap(m launch.Mount, list []project.Project) error {
	if m.Kind != plan.Bind && m.Kind != plan.ROBind || !UserNamed(m) {
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

// UserNamed reports whether a flag or a profile asked for a mount.
func UserNamed(m launch.Mount) bool {
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

// pattern returns a path as `show` in a profile names it outside of the project: from the user's home, or from the root.
func (h Host) pattern(path string) string {
	if rest, ok := strings.CutPrefix(path, h.Facts.Home+"/"); ok {
		return rest
	}
	return strings.TrimPrefix(path, "/")
}

// IsShown reports whether the profile shows a path outside of the project.
func (h Host) IsShown(path string) bool {
	return project.Matches(h.Show, h.pattern(path), true)
}

// Cover covers what looks secret in a folder that the agent can read, and names that. own says that the folder is of
// what the user has set up for agents: then programs are searched for tokens, too. It returns the links in it, and
// whether all of it was looked at.
func (h Host) Cover(source, destination string, own bool) (made launch.Part, links []string, whole bool, err error) {
	found, err := h.look(source, destination, own)
	if err != nil {
		return made, nil, false, diag.Wrap("look for secrets in "+source, err, diag.StartAgain)
	}
	if n := len(found.Secrets); n > project.HideLimit {
		return made, nil, false, diag.Errorf("hide secret files of "+source, "take them out, or let them in by `show`",
			"%d files look secret, %s among them; %d can be covered", n, diag.Name(found.Secrets[0].Rel),
			project.HideLimit)
	}
	for _, c := range found.Secrets {
		at := filepath.Join(source, c.Rel)
		cover := launch.Mount{
			Kind: plan.ROData, Source: at, Destination: destination + "/" + c.Rel, Data: c.Content,
			Why: launch.WhyHidden,
		}
		if c.Dir {
			cover.Kind, cover.Source = plan.ROBind, EmptyFolder(h.Own)
			made.StandIns = append(made.StandIns, launch.StandIn{Path: cover.Source, Dir: true})
		}
		made.Mount(cover)
	}
	made.Left = h.told(source, found.Secrets, own)
	some := func(text string, rels []string) string {
		in := diag.Name(profile.Tilde(h.Facts.Home, source))
		return fmt.Sprintf("in %s, files "+text+" enter: %s", in, diag.Some(rels, mostTold))
	}
	if len(found.Large) > 0 {
		made.Warn(some("too large to be searched for secrets", found.Large))
	}
	if own && len(found.Addresses) > 0 {
		made.Note(some("with a password in an address", found.Addresses))
	}
	return made, found.Links, !found.Cut, nil
}

// mostTold is how many files of a folder are named in one remark.
const mostTold = 5

// told names what looks secret in a folder, and says which word lets in the first of it.
func (h Host) told(source string, secrets []project.Lent, red bool) []diag.Left {
	if len(secrets) == 0 {
		return nil
	}
	var names []string
	for _, c := range secrets[:min(mostTold, len(secrets))] {
		name := diag.Name(profile.Tilde(h.Facts.Home, filepath.Join(source, c.Rel)))
		if c.What != "" {
			name += " (" + c.What + ")"
		}
		names = append(names, name)
	}
	first := profile.ExactGlob(h.pattern(filepath.Join(source, secrets[0].Rel)))
	text := fmt.Sprintf("%s looks secret and does not enter; `show: [%q]` lets it in", names[0], first)
	if more := len(secrets) - len(names); len(secrets) > 1 {
		list := strings.Join(names, ", ")
		if more > 0 {
			list += fmt.Sprintf(" and %d more", more)
		}
		text = fmt.Sprintf("%s look secret and do not enter; `show: [%q]` lets in the first", list, first)
	}
	return []diag.Left{{Kind: "secret file", Red: red, Also: len(secrets) - 1, Text: text}}
}

// question asks for secrets in a folder or file that the agent can read, at destination.
func (h Host) question(source, destination string) project.LentQuestion {
	return project.LentQuestion{
		Shown: func(rel string) bool {
			return len(h.Show) > 0 && h.IsShown(filepath.Join(source, rel)) ||
				h.Over != nil && h.Over(filepath.Join(destination, rel))
		},
		Named: h.secretOf(), Cache: h.Cache, Build: h.Build,
	}
}

// look looks for secrets in a folder or file that the agent can read, at destination.
func (h Host) look(source, destination string, own bool) (project.LentFound, error) {
	q := h.question(source, destination)
	if q.All = own; own {
		q.Walked = h.Walks.of(source)
	}
	return project.LookLent(source, q)
}

// Lend mounts a folder of the user's, read-only, without what looks secret in it.
func (h Host) Lend(folder, why string) (lent launch.Part, err error) {
	real, link, err := h.Follow(folder)
	if err == nil && link != "" {
		err = errors.New("it is reached by the link " + link + ", which an agent could have made")
	}
	m := launch.Mount{Kind: plan.ROBind, Source: real, Destination: folder, Open: true, Why: why}
	if err == nil {
		err = h.judgeNamed(why+" "+folder, m)
	}
	if err != nil {
		return lent, err
	}
	lent, _, whole, err := h.Cover(real, folder, true)
	if err != nil || !whole {
		return launch.Part{}, errors.New("it has too many files")
	}
	lent.Mounts = slices.Insert(lent.Mounts, 0, m)
	return lent, nil
}
