package project

import (
	"cmp"
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
	"claudebox/internal/linux/smallfile"
	"claudebox/internal/workspace/secretfile"
	"claudebox/internal/workspace/survey"
)

const (
	// HideLimit is how many files are covered at most: each costs a mount.
	HideLimit = 2000
	// hideDepth is how deep a file may lie that is covered by itself, because each folder above it costs a mount, too.
	// Of a deeper one, a folder above it is covered.
	hideDepth = 30
	// lookLimit is how many small files are read although their names tell nothing: some ten milliseconds.
	lookLimit = 1000
	// ledLimit is how many links to folders count: each costs a look at every name in an index.
	ledLimit = 100
	// leastToken is shorter than any token, in bytes.
	leastToken = 16

	whyHidden = "it looks secret"
	whyAsked  = "the profile's `hide` names it"
)

// holdsSecret judges a file by the verdict on its name, and by its content if the name leaves it open.
func holdsSecret(tree *beneath.Folder, rel string, verdict secretfile.Verdict) bool {
	switch verdict {
	case secretfile.Secret:
		return true
	case secretfile.Ordinary:
		content, err := tree.Read(rel, secretfile.SmallLimit)
		return err == nil && secretfile.HoldsToken(content)
	case secretfile.Suspect:
		return isSecret(tree.Read(rel, secretfile.Limit))
	}
	return false
}

// isSecret reports whether a file whose name suggests it holds a secret, by its content, or why that cannot be read.
func isSecret(content []byte, err error) bool { return err != nil || secretfile.Holds(content) }

// isCore reports whether a file is a core file, however large it is.
func isCore(tree *beneath.Folder, rel string) bool {
	fd, err := tree.OpenFD(rel, smallfile.Flags)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	head := make([]byte, secretfile.CoreHead)
	n, err := unix.Pread(fd, head, 0)
	return err == nil && secretfile.IsCore(head[:n])
}

// known reports whether an agent may know what a tracked file holds: git's objects, which are inside, have it, or
// a session could read it. Hidden, it would be committed empty. A folder need only be tracked.
func (v *view) known(rel string) bool {
	if !v.tracked.Has(rel) {
		return false
	}
	if what, err := v.tree.Look(rel); err == nil && what.Kind == beneath.Dir {
		return true
	}
	content, err := v.tree.Read(rel, secretfile.Limit)
	return err == nil && (v.seen.holds(rel, content) || v.Memory.Had(sumOf(content)))
}

// secrets returns the files that look secret; led are those that are reached by a link, too.
//
// Files that were hidden once are judged wherever they are: an agent can make so many others that no walk comes to
// them. Of more files than can be read, the newest are: what the user has written since a session is newer than all
// that the session made, and no program can set a file's time of change (inode(7), st_ctim).
func (v *view) secrets(led []survey.File) (rels []string) {
	found, looked := map[string]bool{}, 0
	judge := func(f survey.File) {
		if !found[f.Rel] && v.isSecret(f, &looked) {
			found[f.Rel], rels = true, append(rels, f.Rel)
		}
	}
	for _, rel := range v.wereHidden {
		if what, err := v.tree.look(rel); err == nil {
			judge(survey.File{Rel: rel, Kind: what.Kind, Stamp: what.Stamp})
		}
	}
	looked = 0
	files := slices.Concat(v.seen.Files, led)
	if len(files) > lookLimit {
		slices.SortStableFunc(files, func(a, b survey.File) int { return cmp.Compare(b.Stamp.Change, a.Stamp.Change) })
	}
	for _, f := range files {
		judge(f)
	}
	return rels
}

// hideAll hides what looks secret, and what earlier sessions hid.
func (v *view) hideAll() error {
	all := v.hide
	for _, at := range v.LedTo {
		if v.contains(at) && at != v.path {
			all = append(all, relative(v.path, at))
		}
	}
	for _, rel := range all {
		if err := v.hideOne(rel); err != nil {
			return err
		}
	}
	if err := v.hideStill(); err != nil {
		return err
	}
	_, hidden := v.sorted()
	if all := slices.Concat(hidden, v.copied); len(all) > HideLimit {
		return diag.Errorf("hide secret files",
			"remove those that you did not make, name their folder in `hide`, or in `show` what is none",
			"%d files look secret, %s among them; %d can be covered", len(all), diag.Name(all[0]), HideLimit)
	}
	if len(v.committed) > 0 {
		v.note(false, "git has %s, so the agent can read it; to hide it all the same, name it in `hide`", v.committed)
	}
	var had, changed []string
	for _, rel := range hidden {
		if !v.tracked.Has(rel) {
			continue
		}
		content, err := v.tree.Read(rel, indexLimit)
		if err != nil || v.seen.holds(rel, content) { // a folder, or as large
			had = append(had, rel)
		} else {
			changed = append(changed, rel)
		}
	}
	if len(had) > 0 {
		v.note(false, "git has %s: the agent can read it there; a commit of all changes inside would empty it",
			had)
	}
	if len(changed) > 0 {
		v.note(false, "git has another content of %s; a commit of all changes inside would empty it",
			changed)
	}
	return nil
}

// isSecret judges one file that was seen. A link is judged by its own name; what it leads to in the project is covered
// then. looked counts the files that were read although their names tell nothing.
func (v *view) isSecret(f survey.File, looked *int) bool {
	if f.Kind != beneath.Regular && f.Kind != beneath.Link {
		return false
	}
	verdict := v.scope.verdict(f.Rel)
	switch {
	case verdict == secretfile.Secret:
		return true
	case verdict == secretfile.Plain || f.Kind != beneath.Regular, v.shown(f.Rel):
		return false
	case verdict == secretfile.Ordinary:
		if v.tracked.Has(f.Rel) || f.Stamp.Size < leastToken {
			return false
		}
		if strings.Contains(path.Base(f.Rel), "core") && isCore(v.tree.Folder, f.Rel) {
			return true
		}
		if f.Stamp.Size > secretfile.SmallLimit {
			return false
		}
		if *looked++; *looked == lookLimit+1 {
			v.note(true, "more than %d small files are not tracked: tokens in %s and older ones are not looked for",
				lookLimit, f.Rel)
		}
		return *looked <= lookLimit && holdsSecret(v.tree.Folder, f.Rel, verdict)
	}
	return !v.known(f.Rel) && holdsSecret(v.tree.Folder, f.Rel, verdict)
}

// hideOne hides a file or folder. Of a link it hides what that leads to at last, if this lies in the project. What the
// profile's `hide` names is hidden although git has it.
func (v *view) hideOne(rel string) error {
	asked := Matches(v.Hide, rel, true)
	if v.shown(rel) {
		return nil
	}
	if !asked && v.known(rel) {
		content, err := v.tree.Read(rel, secretfile.Limit)
		if err == nil && secretfile.Holds(content) && !slices.Contains(v.committed, rel) {
			v.committed = append(v.committed, rel)
		}
		return nil
	}
	if parts := strings.Split(rel, "/"); len(parts) > hideDepth {
		rel = path.Join(parts[:hideDepth]...)
	}
	what, err := v.tree.look(rel)
	linked := err == nil && what.Kind == beneath.Link
	if linked {
		if rel = v.behind(rel); rel == "." || v.shown(rel) || !asked && (v.known(rel) || v.indexed(rel)) {
			return nil
		}
		what, err = v.tree.Look(rel)
	}
	if err != nil || what.Kind != beneath.Regular && what.Kind != beneath.Dir {
		return err
	}
	why := whyHidden
	if asked {
		why = whyAsked
	}
	v.tree.hide(rel, what.Kind == beneath.Dir, why)
	if linked || v.scope.byName(rel) < v.scope.verdict(rel) {
		v.stay = append(v.stay, rel)
	}
	return nil
}

// lookLed looks into folders of the project to which links lead that have the name of a folder of secrets: what is in
// them has that name, too.
func (v *view) lookLed() (led []Led, files []survey.File) {
	type link struct{ at, as string } // where it lies, and by which path it is judged
	var links []link
	queue := func(files []survey.File, as func(rel string) string) {
		for _, f := range files {
			folder, name := split(as(f.Rel))
			if f.Kind == beneath.Link && secretfile.Folders(folder)(name) {
				links = append(links, link{f.Rel, as(f.Rel)})
			}
		}
	}
	queue(v.seen.Files, path.Clean)
	known := map[Led]bool{}
	for left := walkLimit; len(links) > 0; {
		l := links[0]
		links = links[1:]
		to := v.behind(l.at)
		what, err := v.tree.Look(to)
		same := Led{to, path.Base(l.as)}
		if to == "." || !Searched(to) || err != nil || what.Kind != beneath.Dir || known[same] {
			continue
		}
		as := func(rel string) string { return path.Join(l.as, strings.TrimPrefix(rel, to)) }
		wanted := func(folder string) func(string, bool) bool { return Scope{}.wanted(as(folder)) }
		seen := survey.Walk(v.tree.Folder,
			survey.Question{From: []string{to}, Wanted: wanted, Skipped: unwalked, Limit: left}, nil)
		for _, f := range seen.Folders() {
			left -= f.Entries
		}
		if seen.Cut || len(known) == ledLimit {
			v.note(true, "links like %s lead to too many folders or files: not all that is secret there is hidden",
				l.at)
			break
		}
		known[same] = true
		led, files = append(led, Led{to, l.as}), append(files, seen.Files...)
		queue(seen.Files, as)
	}
	return led, files
}

// behind returns where a link with the name of a secret leads at last, below the project. "." is nowhere in it, or all
// of it; where it leads elsewhere is noted.
func (v *view) behind(link string) (rel string) {
	real, err := filepath.EvalSymlinks(v.tree.Join(link))
	switch {
	case err == nil && v.contains(real):
		return relative(v.path, real)
	case err == nil && !v.shown(link):
		v.away = append(v.away, real)
	}
	return "."
}

// hideStill hides what earlier sessions hid for a reason that the agent could take away: a link can be removed, and a
// repository made invalid.
func (v *view) hideStill() error {
	for _, rel := range v.stayHidden {
		what, err := v.tree.Look(rel)
		if err == nil && what.Kind != beneath.Regular && what.Kind != beneath.Dir ||
			slices.Contains(v.searched, path.Dir(rel)) {
			continue // not what was hidden, or judged as a configuration of git
		}
		if err := v.hideOne(rel); err != nil {
			return err
		}
		v.stay = append(v.stay, rel)
	}
	return nil
}

// hideSockets hides sockets of the host's tools: whoever can connect to one can command its tool. A socket to
// which nobody listens stays visible.
func (v *view) hideSockets() {
	for _, rel := range v.seen.Sockets {
		if v.Beside || v.shown(rel) || !listens(v.tree.Folder, rel) {
			continue
		}
		v.tree.add(rel, Mount{Mode: Hidden, Why: "a tool of the host listens there"})
		v.hidden = append(v.hidden, rel)
		v.note(false, "the socket %s is hidden inside; `show` lets it in", rel)
	}
}

// listens reports whether a program listens to a socket, by a connection. Only a refusal says that there is none.
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
