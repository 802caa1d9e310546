package session

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/plan"
	"claudebox/internal/profile"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/workspace/project"
)

// addFlagMount adds HOST[:INSIDE] of a flag. Both are relative to the current
// folder, or absolute, or begin with "~/".
func (s *Session) addFlagMount(h *launch.Host, word string, kind plan.MountKind, flag string) error {
	source, inside, split := strings.Cut(word, ":")
	if !split {
		inside = source
	}
	op := "mount " + word + " (" + flag + ")"
	if source == "" || inside == "" {
		return diag.Errorf(op, "write "+flag+" HOST or "+flag+" HOST:INSIDE", "a side of the colon is empty")
	}
	real, err := s.real(s.absolute(source))
	if err != nil {
		return &diag.Error{Op: op, Err: err, Remedy: "name a file or folder that exists, by its own path"}
	}
	m := launch.Mount{Kind: kind, Source: real, Destination: s.absolute(inside), Open: true, Why: flag}
	if err := s.judgeFlagMount(op, m); err != nil {
		return err
	}
	h.Mounts = append(h.Mounts, m)
	return nil
}

// NamedPath reports whether a word names a path of the host, and which: what holds
// a slash does, and what is there in the current folder.
func (c call) NamedPath(word string) (string, bool) {
	path := c.absolute(word)
	if strings.HasPrefix(word, "~") || strings.Contains(word, "/") {
		return path, true
	}
	_, err := os.Lstat(path)
	return path, err == nil
}

// judgeFlagMount refuses at once what a profile could not say either.
func (s *Session) judgeFlagMount(op string, m launch.Mount) error {
	message, remedy := profile.SourceFault(m.Source)
	if message == "" {
		if err := s.judgeSource(m); err != nil {
			return err
		}
		message, remedy = profile.DestinationFault(profile.Tilde(s.Facts.Home, m.Destination))
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

// real resolves every link of a source that a user named, see [call.follow]. One
// that was reached by a link which an agent could have made, in a folder that it
// was given once, is noted. What lies in the project is the agent's anyway.
func (s *Session) real(path string) (string, error) {
	at, foreign, err := s.follow(path, s.project.Path)
	if foreign != "" && !pathname.Below(at, s.project.Path) {
		s.linked[at] = foreign
	}
	return at, err
}

// follow resolves every link of a path. The way may lead through the project,
// but no link of the project may lead out of it. What is judged is the very way
// that was resolved: a live session may change it between two looks. foreign is
// the last link that somebody else than the user could have made; empty: none.
func (c call) follow(path, project string) (at, foreign string, err error) {
	if free, err := beneath.Canonical(path); err == nil && free == path {
		return path, "", nil // no link on the way
	}
	const steps = 1000
	at, rest, passed := "/", strings.Split(path, "/"), false
	for range steps {
		if len(rest) == 0 {
			if passed && !pathname.Below(at, project) {
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
		passed = passed || pathname.Below(next, project)
		if !c.ownLink(next) {
			foreign = next
		}
		if filepath.IsAbs(text) {
			at = "/"
		}
		rest = append(strings.Split(text, "/"), rest...)
	}
	return "", "", unix.ELOOP
}

// ownLink reports whether no agent can have made a link: one of root or Nix, or one
// in the user's home itself, which is never mounted.
func (c call) ownLink(link string) bool {
	var st unix.Stat_t
	return filepath.Dir(link) == filepath.Clean(c.Facts.Home) || pathname.Below(link, "/nix/store") ||
		unix.Lstat(link, &st) == nil && st.Uid == 0
}

// LinkedMount is a mount whose source was reached by a link that an agent could
// have made: who has not approved of it must be asked.
type LinkedMount struct {
	launch.Mount
	Link string
}

// Linked are the linked mounts of the session.
func (s *Session) Linked() []LinkedMount {
	var list []LinkedMount
	if len(s.linked) == 0 {
		return nil
	}
	for _, m := range s.Launch.Mounts {
		if link := s.linked[m.Source]; link != "" && userNamed(m) {
			list = append(list, LinkedMount{m, link})
		}
	}
	return list
}

// warnOfLinks says which sources lie elsewhere than they were named.
func (s *Session) warnOfLinks() {
	for _, m := range s.Linked() {
		s.Launch.Warnings = append(s.Launch.Warnings,
			m.Source+" ("+m.Why+") is reached by the link "+m.Link+", which an agent could have made")
	}
}

// judgeSources refuses a mount that the user named and whose source shows a
// secret path of the host, unless a profile said so of exactly this mount
// (SAND-09), or what is protected and hidden in the project. It looks at the
// final sources: a link may have led anywhere.
func (s *Session) judgeSources() error {
	for _, m := range s.Launch.Mounts {
		if err := s.judgeSource(m); err != nil {
			return err
		}
		if err := s.judgeOverlap(m); err != nil {
			return err
		}
	}
	return nil
}

func (s *Session) judgeSource(m launch.Mount) error {
	if m.Secret || !m.Open || m.Why == plan.Base || pathname.Below(m.Source, s.project.Path) ||
		m.Source == s.emptyFolder() {
		return nil
	}
	home, err := beneath.Canonical(s.Facts.Home)
	if err != nil {
		home = s.Facts.Home
	}
	secret, relation := profile.Exposes(profile.Tilde(home, m.Source))
	if secret.Path == "~/.claude" && s.isImport(m.Source) {
		return nil // state chose these folders of it, and these only
	}
	if relation == profile.Apart && s.showsState(m.Source) {
		secret, relation = profile.SecretPath{Path: s.folders.Home, What: "the sandboxes of other projects"},
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
func (s *Session) judgeOverlap(m launch.Mount) error {
	if m.Kind != plan.Bind && m.Kind != plan.ROBind || !userNamed(m) {
		return nil
	}
	for i, given := range s.all() {
		for _, kept := range given.Mounts {
			granted := m.Secret && m.Source == kept.Path && m.Kind == plan.ROBind
			if granted || !opens(m, kept) || i > 0 && given.Path == m.Source {
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

// Program is the file of a program on PATH inside; empty: there is none.
func (s *Session) Program(name string) string {
	for _, dir := range s.Launch.Plan.Path {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file
		}
	}
	return ""
}
