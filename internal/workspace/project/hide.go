package project

import (
	"errors"
	"fmt"
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
	"claudebox/internal/workspace/secretfile"
	"claudebox/internal/workspace/survey"
)

const (
	// hideLimit is how many files are covered at most: each costs a mount.
	hideLimit = 2000
	// hideDepth is how deep a file may lie that is covered by itself: each folder
	// above it costs a mount, too.
	hideDepth = 30
)

const whyHidden = "it looks secret"

// anchored are the patterns that are relative to the project.
func anchored(patterns []string) []string {
	return slices.DeleteFunc(slices.Clone(patterns), func(p string) bool { return !strings.Contains(p, "/") })
}

// hide covers what looks secret and is not in git's index: a tracked file is
// in the repository's objects anyway, and a covered one would be committed
// empty (SEC-05).
func (o *opener) hide() error {
	for _, rel := range o.hideGlobs {
		if err := o.hideOne(rel); err != nil {
			return err
		}
	}
	for _, f := range o.Seen.Files {
		if !o.isSecret(f) {
			continue
		}
		if err := o.hideOne(f.Rel); err != nil {
			return err
		}
	}
	slices.Sort(o.Hidden)
	o.Hidden = slices.Compact(o.Hidden)
	if err := o.still(); err != nil {
		return err
	}
	o.ReadOnly, o.Stay = append(o.ReadOnly, o.copied...), append(o.Stay, o.copied...)
	if all := slices.Concat(o.Hidden, o.copied); len(all) > hideLimit {
		return diag.Errorf("hide secret files",
			"remove those that you did not make, name their folder in `hide`, or in `show` what is none",
			"%d files look secret, %s among them; %d can be covered", len(all), all[0], hideLimit)
	}
	if len(o.Hidden) > 0 {
		o.note(false, "hidden inside, `show` lets them in: "+strings.Join(o.Hidden, ", "))
	}
	return nil
}

// isSecret judges one file by its name, and by its content where the name
// leaves it open. A link is judged by its own name: what it leads to in the
// project is covered then.
func (o *opener) isSecret(f survey.File) bool {
	if f.Kind != beneath.Regular && f.Kind != beneath.Link {
		return false
	}
	folder, name := lastTwo([]byte(f.Rel))
	verdict := secretfile.Of(folder, name)
	if verdict == secretfile.Secret || verdict == secretfile.Plain || o.Scope.isNamed(name) {
		return verdict == secretfile.Secret || o.Scope.isNamed(name)
	}
	if f.Kind != beneath.Regular || o.shown(f.Rel) || o.tracked.Has(f.Rel) {
		return false // the last two would not be covered, and need not be read
	}
	if verdict == secretfile.Look {
		return o.holdsToken(f)
	}
	content, err := o.tree.Read(f.Rel, secretfile.Limit)
	return err != nil || secretfile.Holds(content)
}

// lookLimit is how many small files are looked into whose name tells nothing:
// some ten milliseconds.
const lookLimit = 1000

// holdsToken looks into a small file that is not tracked.
func (o *opener) holdsToken(f survey.File) bool {
	_, tracked := slices.BinarySearch(o.tracked.Small, f.Rel)
	if tracked || f.Stamp.Size < leastToken || f.Stamp.Size > secretfile.SmallLimit {
		return false
	}
	if o.looked++; o.looked > lookLimit {
		if o.looked == lookLimit+1 {
			o.note(true, fmt.Sprintf(
				"more than %d small files are not tracked: tokens in %s and further ones are not looked for", lookLimit,
				f.Rel))
		}
		return false
	}
	content, err := o.tree.Read(f.Rel, secretfile.SmallLimit)
	return err == nil && secretfile.HoldsToken(content)
}

// leastToken is shorter than any token, in bytes.
const leastToken = 16

// hideOne covers one file or folder.
func (o *opener) hideOne(rel string) error {
	if o.shown(rel) || o.tracked.Has(rel) {
		return nil
	}
	g := guard{o, o.tree}
	if parts := strings.Split(rel, "/"); len(parts) > hideDepth {
		rel = path.Join(parts[:hideDepth]...)
	}
	what, err := g.look(rel)
	linked := err == nil && what.Kind == beneath.Link
	if linked {
		rel, what, err = o.behind(rel)
	}
	if err != nil || what.Kind != beneath.Regular && what.Kind != beneath.Dir {
		return err
	}
	g.pin(path.Dir(rel), whyHidden) // or it could be moved to where no launch looks
	g.add(Mount{Mode: Hidden, Dir: what.Kind == beneath.Dir, Why: whyHidden}, rel)
	o.Hidden = append(o.Hidden, rel)
	if linked {
		o.keepHidden(rel)
	}
	return nil
}

// behind gives what a link leads to at last, if that lies in the project.
func (o *opener) behind(rel string) (string, beneath.Entry, error) {
	real, err := filepath.EvalSymlinks(o.tree.Join(rel))
	if err != nil || !o.contains(real) || real == o.Path {
		return rel, beneath.Entry{}, nil //nolint:nilerr // it leads nowhere
	}
	target := relative(o.Path, real)
	what, err := o.tree.Look(target)
	if o.tracked.Has(target) || o.shown(target) {
		return target, beneath.Entry{}, err
	}
	return target, what, err
}

// still covers what an earlier session did not see for a reason that the agent
// could take away: a link can be removed, and a repository made none.
func (o *opener) still() error {
	if o.Memory == nil {
		return nil
	}
	for _, rel := range o.Memory.StillHidden(o.Path) {
		what, err := o.tree.Look(rel)
		if err == nil && what.Kind != beneath.Regular && what.Kind != beneath.Dir ||
			slices.Contains(o.judged, path.Dir(rel)) {
			continue // not what was hidden, or judged as a configuration of git
		}
		if err := o.hideOne(rel); err != nil {
			return err
		}
		o.keepHidden(rel)
	}
	return nil
}

// keepHidden has a file hidden in later sessions too, and keeps it at its path.
func (o *opener) keepHidden(rel string) { o.Stay = append(o.Stay, rel) }

// shown reports whether the profile lets a path in: it, or a folder above.
func (o *opener) shown(rel string) bool { return Shown(o.Show, rel) }

// Shown reports whether patterns of a profile's `show` let a path in.
func Shown(patterns []string, rel string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return shows(pattern, rel) })
}

func shows(pattern, rel string) bool {
	for ; rel != "."; rel = path.Dir(rel) {
		name := rel
		if !strings.Contains(strings.TrimSuffix(pattern, "/"), "/") {
			name = path.Base(rel)
		}
		if beneath.Matches(pattern, name) {
			return true
		}
	}
	return false
}

// sockets covers those of the host's tools: who can connect to one can give
// its tool orders. A socket that nobody listens to is left over.
func (o *opener) sockets() error {
	for _, rel := range o.Seen.Sockets {
		if o.beside || o.shown(rel) || !listens(o.tree, rel) {
			continue
		}
		guard{o, o.tree}.add(Mount{Mode: Hidden, Why: "a tool of the host listens there"}, rel)
		o.Hidden = append(o.Hidden, rel)
		o.note(false, fmt.Sprintf("the socket %s is hidden inside; `show` lets it in", rel))
	}
	return nil
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
