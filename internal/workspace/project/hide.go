package project

import (
	"errors"
	"net"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/workspace/gitconfig"
	"claudebox/internal/workspace/secretfile"
	"claudebox/internal/workspace/survey"
)

const (
	// hideLimit is how many files are covered at most: each costs a mount.
	hideLimit = 2000
	// hideDepth is how deep a file may lie that is covered by itself: each folder
	// above it costs a mount, too.
	hideDepth = 30
	// lookLimit is how many small files are looked into whose name tells nothing:
	// some ten milliseconds.
	lookLimit = 1000
	// leastToken is shorter than any token, in bytes.
	leastToken = 16

	whyHidden = "it looks secret"
)

// holdsSecret judges a file by the verdict on its name, and by its content where
// that leaves it open.
func holdsSecret(tree *beneath.Folder, rel string, verdict secretfile.Verdict) bool {
	switch verdict {
	case secretfile.Secret:
		return true
	case secretfile.Look:
		content, err := tree.Read(rel, secretfile.SmallLimit)
		return err == nil && secretfile.HoldsToken(content)
	case secretfile.Ask:
		content, err := tree.Read(rel, secretfile.Limit)
		return err != nil || secretfile.Holds(content)
	}
	return false
}

// hider hides what looks secret and is not in git's index: a tracked file is
// in the repository's objects anyway, and a covered one would be committed
// empty (SEC-05).
type hider struct {
	*view
	looked int // how many files were looked into whose name tells nothing
}

func (h *hider) all() error {
	for _, rel := range h.hide {
		if err := h.one(rel); err != nil {
			return err
		}
	}
	for _, f := range h.seen.Files {
		if !h.isSecret(f) {
			continue
		}
		if err := h.one(f.Rel); err != nil {
			return err
		}
	}
	if err := h.still(); err != nil {
		return err
	}
	slices.Sort(h.hidden)
	h.hidden = slices.Compact(h.hidden)
	if all := slices.Concat(h.hidden, h.copied); len(all) > hideLimit {
		return diag.Errorf("hide secret files",
			"remove those that you did not make, name their folder in `hide`, or in `show` what is none",
			"%d files look secret, %s among them; %d can be covered", len(all), all[0], hideLimit)
	}
	if len(h.hidden) > 0 {
		h.note(false, "hidden inside, `show` lets them in: %s", strings.Join(h.hidden, ", "))
	}
	return nil
}

// isSecret judges one file that was seen. A link is judged by its own name: what
// it leads to in the project is covered then.
func (h *hider) isSecret(f survey.File) bool {
	if f.Kind != beneath.Regular && f.Kind != beneath.Link {
		return false
	}
	folder, name := split([]byte(f.Rel))
	verdict := secretfile.Of(folder, name)
	switch {
	case verdict == secretfile.Secret || h.scope.isNamed(name):
		return true
	case verdict == secretfile.Plain || f.Kind != beneath.Regular,
		h.shown(f.Rel) || h.tracked.Has(f.Rel): // would not be covered, and need not be read
		return false
	case verdict == secretfile.Look:
		_, tracked := slices.BinarySearch(h.tracked.Small, f.Rel)
		if tracked || f.Stamp.Size < leastToken || f.Stamp.Size > secretfile.SmallLimit {
			return false
		}
		if h.looked++; h.looked == lookLimit+1 {
			h.note(true, "more than %d small files are not tracked: tokens in %s and further ones are not looked for",
				lookLimit, f.Rel)
		}
		return h.looked <= lookLimit && holdsSecret(h.tree.Folder, f.Rel, verdict)
	}
	return holdsSecret(h.tree.Folder, f.Rel, verdict)
}

// one hides a file or folder, or what a link leads to at last if that lies in the
// project.
func (h *hider) one(rel string) error {
	if h.shown(rel) || h.tracked.Has(rel) {
		return nil
	}
	if parts := strings.Split(rel, "/"); len(parts) > hideDepth {
		rel = path.Join(parts[:hideDepth]...)
	}
	what, err := h.tree.look(rel)
	linked := err == nil && what.Kind == beneath.Link
	if linked {
		real, fault := filepath.EvalSymlinks(h.tree.Join(rel))
		if fault != nil || !h.contains(real) || real == h.path {
			return nil //nolint:nilerr // it leads nowhere
		}
		rel = relative(h.path, real)
		if h.shown(rel) || h.tracked.Has(rel) {
			return nil
		}
		what, err = h.tree.Look(rel)
	}
	if err != nil || what.Kind != beneath.Regular && what.Kind != beneath.Dir {
		return err
	}
	h.tree.hide(rel, what.Kind == beneath.Dir)
	if linked {
		h.stay = append(h.stay, rel)
	}
	return nil
}

// still covers what an earlier session did not see for a reason that the agent
// could take away: a link can be removed, and a repository made none.
func (h *hider) still() error {
	if h.Memory == nil {
		return nil
	}
	for _, rel := range h.Memory.StillHidden(h.path) {
		what, err := h.tree.Look(rel)
		if err == nil && what.Kind != beneath.Regular && what.Kind != beneath.Dir ||
			slices.Contains(h.judged, path.Dir(rel)) {
			continue // not what was hidden, or judged as a configuration of git
		}
		if err := h.one(rel); err != nil {
			return err
		}
		h.stay = append(h.stay, rel)
	}
	return nil
}

// sockets covers those of the host's tools: who can connect to one can give
// its tool orders. A socket that nobody listens to is left over.
func (h *hider) sockets() {
	for _, rel := range h.seen.Sockets {
		if h.beside || h.shown(rel) || !listens(h.tree.Folder, rel) {
			continue
		}
		h.tree.add(rel, Mount{Mode: Hidden, Why: "a tool of the host listens there"})
		h.hidden = append(h.hidden, rel)
		h.note(false, "the socket %s is hidden inside; `show` lets it in", rel)
	}
}

// listens tries a connection. Only a refusal says that nobody is there.
func listens(tree *beneath.Folder, rel string) bool {
	fd, err := tree.OpenFD(rel, unix.O_PATH)
	if err != nil {
		return true
	}
	defer unix.Close(fd)
	const patience = 50 * time.Millisecond
	c, err := net.DialTimeout("unix", "/proc/self/fd/"+strconv.Itoa(fd), patience)
	if err == nil {
		c.Close()
	}
	return !errors.Is(err, unix.ECONNREFUSED)
}

// Shown reports whether patterns of a profile's `show` let a path in: it, or a
// folder above.
func Shown(patterns []string, rel string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		whole := strings.Contains(strings.TrimSuffix(pattern, "/"), "/")
		for at := rel; at != "."; at = path.Dir(at) {
			if whole && beneath.Matches(pattern, at) || !whole && beneath.Matches(pattern, path.Base(at)) {
				return true
			}
		}
		return false
	})
}

// Lent is a file that looks secret in a folder of the user that an agent may read:
// skills, plugins and the like of ~/.claude. It is no more the agent's than one in
// the project (SEC-05).
type Lent struct {
	Rel     string // from the folder
	Content []byte // what is to be laid over it; nil: nothing is in it
}

// LentLimit is how many entries of such a folder are looked at: some ten
// milliseconds.
const LentLimit = 50_000

// LookLent looks through a folder. shown tells what may be read all the same.
// cut: there was more than could be looked at.
func LookLent(dir string, shown func(rel string) bool) (secrets []Lent, cut bool, err error) {
	at, err := beneath.Open(dir)
	if err != nil {
		return nil, false, err
	}
	defer at.Close()
	wanted := func(folder string) func([]byte, bool) bool {
		above := []byte(folder)
		return func(name []byte, dir bool) bool { return !dir && secretfile.Of(above, name) != secretfile.Plain }
	}
	filled := []string{"node_modules", ".venv"} // by tools, with nothing of the user's
	seen := survey.Walk(at, survey.Question{Wanted: wanted, Skipped: filled, Limit: LentLimit}, nil)
	configs := map[string]bool{} // those of git, of which only the secrets are left out
	for _, place := range seen.Git {
		rel := path.Join(place, "config")
		configs[rel] = true
		content, err := at.Read(rel, secretfile.Limit)
		if err == nil && gitconfig.HoldsSecrets(content) && !shown(rel) {
			secrets = append(secrets, Lent{rel, gitconfig.Sanitise(content)})
		}
	}
	for _, f := range seen.Files {
		verdict := secretfile.Of(split([]byte(f.Rel)))
		if f.Kind == beneath.Regular && !configs[f.Rel] && !shown(f.Rel) && holdsSecret(at, f.Rel, verdict) {
			secrets = append(secrets, Lent{Rel: f.Rel})
		}
	}
	return secrets, seen.Cut, nil
}
