package session

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/launch"
	"claudebox/internal/plan"
	"claudebox/internal/profile"
	"claudebox/internal/project"
	"claudebox/internal/state"
)

// addMounts adds what the project's repository, the agent's home and the
// command line ask for.
func (s *Session) addMounts(h *launch.Host, p plan.Plan, o Options, _ Purpose) error {
	for _, m := range s.project.Mounts {
		h.Mounts = append(h.Mounts, s.projectMount(m))
	}
	for _, p := range s.project.Placeholders() {
		h.StandIns = append(h.StandIns, launch.StandIn{Path: p.Root + "/" + p.Rel, Dir: p.Dir, Content: p.Content})
	}
	for _, word := range o.MountRO {
		if err := s.addFlagMount(h, word, plan.ROBind, "--mount-ro"); err != nil {
			return err
		}
	}
	for _, word := range o.MountRW {
		if err := s.addFlagMount(h, word, plan.Bind, "--mount-rw"); err != nil {
			return err
		}
	}
	for _, path := range h.Etc.Managed {
		h.Mounts = append(h.Mounts, launch.Mount{
			Kind: plan.ROBind, Source: path, Destination: "/etc/claude-code/" + filepath.Base(path), Why: "policy of this machine",
		})
	}
	return nil
}

// projectMount is a path of the project mounted over itself.
func (s *Session) projectMount(m project.Mount) launch.Mount {
	b := launch.Mount{Kind: plan.Bind, Source: m.Path, Destination: m.Path, Open: true, Why: m.Why}
	switch m.Mode {
	case project.ReadOnly:
		b.Kind = plan.ROBind
	case project.Made:
		b.Kind, b.Data, b.Open = plan.ROData, m.Content, false
	case project.Hidden:
		if m.Dir {
			b.Kind, b.Source = plan.ROBind, s.emptyFolder()
			break
		}
		b.Kind, b.Open = plan.ROData, false
	}
	return b
}

// emptyFolder stands in for folders that are hidden. It is out of the reach of
// every sandbox.
func (s *Session) emptyFolder() string { return filepath.Join(s.folders.Home, "empty") }

// makeEmptyFolder makes it when something needs it.
func (s *Session) makeEmptyFolder() error {
	if !slices.ContainsFunc(s.project.Mounts, func(m project.Mount) bool { return m.Mode == project.Hidden && m.Dir }) {
		return nil
	}
	if err := os.Mkdir(s.emptyFolder(), 0o555); err != nil && !errors.Is(err, fs.ErrExist) {
		return &diag.Error{Op: "make " + s.emptyFolder(), Err: cause(err), Remedy: "make its folder writable for you"}
	}
	return nil
}

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
	h.Mounts = append(h.Mounts, launch.Mount{
		Kind: kind, Source: real, Destination: s.absolute(inside), Open: true, Why: flag,
	})
	return nil
}

// errLedOut is a source that the agent could have exchanged: it may turn a
// folder of the project into a link to whatever it would like to have mounted
// next time.
var errLedOut = errors.New("a link in the project leads out of it, where an agent could have put it")

// real resolves every link of a source that a user named. The way may lead
// through the project, but no link of the project may lead out of it. What is
// judged is the very way that was resolved: a live Session may change it
// between two looks.
func (s *Session) real(path string) (string, error) {
	const steps = 1000
	at, rest, passed := "/", strings.Split(path, "/"), false
	for range steps {
		if len(rest) == 0 {
			if passed && !isBelow(at, s.project.Path) {
				return "", errLedOut
			}
			return at, nil
		}
		next := filepath.Join(at, rest[0])
		rest = rest[1:]
		text, err := os.Readlink(next)
		switch {
		case errors.Is(err, unix.EINVAL): // no link
			at = next
			continue
		case err != nil:
			return "", cause(err)
		case filepath.IsAbs(text):
			at = "/"
		}
		passed = passed || isBelow(next, s.project.Path)
		rest = append(strings.Split(text, "/"), rest...)
	}
	return "", unix.ELOOP
}

// cause is the error of the system call alone: its path has been said.
func cause(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

func (s *Session) absolute(path string) string {
	switch rest, tilde := strings.CutPrefix(path, "~"); {
	case tilde && (rest == "" || rest[0] == '/'):
		return filepath.Join(s.Facts.Home, rest)
	case filepath.IsAbs(path):
		return filepath.Clean(path)
	}
	return filepath.Join(s.Facts.Cwd, path)
}

// judgeSources refuses a mount whose source shows a secret path of the host,
// unless a profile said so of exactly this mount (SAND-09). It looks at the
// final sources: a link may have led anywhere.
func (s *Session) judgeSources() error {
	home, err := filepath.EvalSymlinks(s.Facts.Home)
	if err != nil {
		home = s.Facts.Home
	}
	for _, m := range s.Launch.Mounts {
		if m.Secret || !m.Open || m.Why == plan.Base || isBelow(m.Source, s.project.Path) || m.Source == s.emptyFolder() {
			continue
		}
		secret, relation := profile.Exposes(profile.Tilde(home, m.Source))
		if secret.Path == "~/.claude" && s.isImport(m.Source) {
			continue // state chose these folders of it, and these only
		}
		if relation == profile.Apart && s.showsState(m.Source) {
			secret, relation = profile.SecretPath{Path: s.folders.Home, What: "the sandboxes of other projects"}, profile.Around
		}
		if relation != profile.Apart {
			return diag.Errorf("mount "+m.Source+" ("+m.Why+")",
				"mount exactly what is needed by a profile's `mounts` with `secret: true`, or leave it out",
				"it would show %s (%s)", secret.Path, secret.What)
		}
	}
	return nil
}

func (s *Session) isImport(path string) bool {
	return slices.ContainsFunc(s.Instance.Imports, func(in state.Import) bool { return in.Source == path })
}

// showsState tells whether a canonical path is CLAUDEBOX_HOME, which may lie
// anywhere, or lies in it or around it.
func (s *Session) showsState(path string) bool {
	home, err := filepath.EvalSymlinks(s.folders.Home)
	return err == nil && (isBelow(path, home) || isBelow(home, path))
}
