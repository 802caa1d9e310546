package branch

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/workspace/handover"
	"claudebox/internal/workspace/hostrun"
)

// Kept is a branch whose checkout is kept.
type Kept struct {
	Name     string    `json:"name"`
	Running  bool      `json:"running"` // a session works on it
	Killed   bool      `json:"killed"`  // one ended without handing over what it had not committed
	Ahead    int       `json:"ahead"`   // commits that the user's HEAD does not have
	Behind   int       `json:"behind"`  // commits of the user's HEAD that it does not have
	Removed  bool      `json:"removed"` // the user has no such branch
	Bytes    int64     `json:"bytes"`
	LastUsed time.Time `json:"lastUsed"`

	dir string
}

// Names lists the branches of the checkout at a path that are kept.
func Names(home, tree string) (names []string) {
	projects, _ := os.ReadDir(path.Join(home, foldersName)) // none are kept yet
	for _, p := range projects {
		dir := path.Join(home, foldersName, p.Name())
		branches, _ := os.ReadDir(dir)
		for _, b := range branches {
			if r, err := recall(path.Join(dir, b.Name())); err == nil && r.Project == tree {
				names = append(names, r.Name)
			}
		}
	}
	return names
}

// List lists the branches of a repository that are kept. r names no branch.
func List(r Request) (list []Kept, err error) {
	dir := folderOf(r.Home, r.Repo.Outer)
	found, _ := os.ReadDir(dir) // none are kept yet
	var script strings.Builder
	var bind []string
	fmt.Fprintf(&script, "export GIT_DIR=%s\n", diag.Quote(path.Join(r.Repo.Outer, Branch{Request: r}.rel())))
	for _, entry := range found {
		at := path.Join(dir, entry.Name())
		known, err := recall(at)
		if err != nil || known.Name == "" || handover.Flaw(known.Name) != "" {
			continue // what is not whole has nothing in it, or `branch remove` says what is wrong
		}
		k := Kept{Name: known.Name, Running: isHeld(at), dir: at}
		k.Killed = known.Open && !k.Running
		if info, err := os.Stat(at + recordName); err == nil {
			k.LastUsed = info.ModTime().UTC()
		}
		for _, name := range []string{"/tree", "/layers"} {
			bind = append(bind, at+"/closed"+name, "/run/claudebox/kept/"+entry.Name()+name)
		}
		ref := diag.Quote("refs/heads/" + known.Name)
		fmt.Fprintf(&script, "if ! g rev-parse -q --verify %s >/dev/null; then echo - -\n"+
			"elif g rev-parse -q --verify HEAD >/dev/null; then g rev-list --left-right --count HEAD...%[1]s --\n"+
			"else printf '0\\t'; g rev-list --count %[1]s --; fi\n"+
			"du -s -B1 /run/claudebox/kept/%s/tree /run/claudebox/kept/%[2]s/layers 2>/dev/null | { n=0; "+
			"while read -r s _; do n=$((n+s)); done; echo $n; } || :\n", ref, entry.Name())
		list = append(list, k)
	}
	if len(list) == 0 {
		return nil, nil
	}
	defer func() { slices.SortFunc(list, func(a, b Kept) int { return strings.Compare(a.Name, b.Name) }) }()
	answer, err := handover.Ask(r.Repo, r.Tools, script.String(), bind...)
	lines := strings.Split(string(answer), "\n")
	if err != nil || len(lines) < 2*len(list) {
		return nil, diag.Wrap("look at the branches", err, "see whether `git status` works here")
	}
	for i := range list {
		behind, ahead, _ := strings.Cut(lines[2*i], "\t")
		list[i].Removed = strings.HasPrefix(behind, "-")
		list[i].Behind, _ = strconv.Atoi(behind) // 0 where there is none
		list[i].Ahead, _ = strconv.Atoi(ahead)
		list[i].Bytes, _ = strconv.ParseInt(lines[2*i+1], 10, 64)
	}
	return list, nil
}

// At is a branch that is kept, by its record.
func At(r Request) (b Branch, err error) {
	b = Branch{Request: r, Dir: path.Join(folderOf(r.Home, r.Repo.Outer), handover.Name(r.Name))}
	known, err := recall(b.Dir)
	if err != nil {
		b.Damaged = true
		return b, diag.Wrap("find branch "+diag.Visible(r.Name), err,
			"remove it with --force: what has crossed is yours")
	}
	if known.Name != r.Name {
		return b, diag.Errorf("find branch "+diag.Visible(r.Name), "`claudebox branch list` names those that are kept",
			"no session worked on it in this repository")
	}
	b.Fresh, b.Modules = !known.Filled, known.Modules
	return b, nil
}

// lookIn begins a script that looks into a checkout, beside a session perhaps. Nothing can be written there.
const lookIn = `export GIT_DIR=/run/claudebox/work/.git GIT_WORK_TREE=/run/claudebox/work
cd "$GIT_WORK_TREE" || exit 1
`

// ask runs a script that looks into the checkout. What it prints is the agent's.
func (b Branch) askInside(script string) ([]byte, error) {
	return handover.Ask(b.Place(), b.Tools, lookIn+script, b.Checkout(), "/run/claudebox/work",
		b.Place().Inner(), "/run/claudebox/work/.git") // where submodules expect it
}

// Diff returns what is new on the branch since it left the user's HEAD, with what is not committed.
func (b Branch) Diff(stat bool) ([]byte, error) {
	how := "-p"
	if stat {
		how = "--stat"
	}
	text, err := b.askInside(fmt.Sprintf(`h=$(GIT_DIR=%s g rev-parse -q --verify HEAD) || :
b=$(g merge-base "$h" HEAD) || b=$(g hash-object -t tree /dev/null)
g -c core.quotePath=false diff --no-color --no-ext-diff --no-textconv %s "$b" -- || exit 1
g -c core.quotePath=false ls-files -o --exclude-standard --directory --no-empty-directory | {
  n=0
  while IFS= read -r f && ((n++ < 100)); do echo "new, not added: $f"; done
  [ -z "$f" ] || echo "new, not added: more than these"
  cat >/dev/null # git is to end well
}
`, diag.Quote(path.Join(b.Repo.Outer, b.rel())), how))
	if err != nil {
		err = diag.Wrap("compare branch "+b.Name, err, "`git diff HEAD..."+b.Name+"` compares what is committed")
	}
	return text, err
}

// Show returns a file of the checkout as it is now, or lists a folder.
func (b Branch) Show(file string) ([]byte, error) {
	text, err := b.askInside(fmt.Sprintf(`f=./%s
[ -e "$f" ] || { echo 'there is no such file in its checkout' >&2; exit 1; }
if [ -d "$f" ]; then ls -lA "$f"; else head -c 100000000 "$f"; fi || exit 1
`, diag.Quote(path.Clean("/" + file)[1:])))
	if err != nil {
		err = diag.Wrap("show "+diag.Name(file)+" of branch "+b.Name, err, "name a file by its path from the project")
	}
	return text, err
}

// Ran says what of the branch's commits the user's tools would run once it is checked out, and how many there are: of
// those of the repository, and of its submodules.
func (h *Held) Ran() (lines []string) {
	if h.left != h.record.Tip { // else nothing is new
		_, lines = h.ran(h.Repo, path.Join(h.Repo.Outer, h.rel()), "branch "+h.Name+": ", "git log")
	}
	for _, m := range h.Modules {
		p := handover.Place{Outer: m.Git, Folder: h.git()}
		tip, more := h.ran(p, m.Git, "branch "+h.Name+", submodule "+diag.Name(m.Path)+": ",
			"git -C "+diag.Quote(m.Path)+" log")
		if tip != h.record.Tips[m.Git] {
			lines = append(lines, more...)
		}
		if h.record.Tips == nil {
			h.record.Tips = map[string]string{}
		}
		h.record.Tips[m.Git] = tip
	}
	return lines
}

// ran is [Held.Ran] for one repository, in which the user is at HEAD of a git folder. tip is where the branch is there.
func (h *Held) ran(of handover.Place, git, about, log string) (tip string, lines []string) {
	answer, err := handover.Ask(of, h.Tools, fmt.Sprintf(`export GIT_DIR=%s
g rev-parse -q --verify %[2]s || exit 0
b=$(g merge-base HEAD %[2]s) || exit 0
g rev-list --count HEAD..%[2]s --
g diff --raw --no-renames --diff-filter=AMT -z "$b" %[2]s -- | head -c 10000000
`, diag.Quote(git), diag.Quote("refs/heads/"+h.Name)))
	tip, rest, _ := strings.Cut(string(answer), "\n")
	count, names, _ := strings.Cut(rest, "\n")
	if err != nil || count == "" || count == "0" {
		return tip, nil // there is no such branch any more, or nothing on it
	}
	lines = append(lines, about+"commits that your HEAD does not have: "+count+"; `"+log+" -p HEAD.."+h.Name+"`")
	if run := obeyed(names); len(run) > 0 {
		lines = append(lines, about+"look at these before you check it out, as your tools run or obey them: "+
			diag.Some(run, 5))
	}
	return tip, lines
}

// obeyed lists the files in what `git diff --raw -z` printed that tools run or obey: those that are run without being
// asked first.
func obeyed(changes string) (list []string) {
	var ordinary []string
	fields := strings.Split(changes, "\x00")
	for n := 0; n+1 < len(fields); n += 2 {
		means := hostrun.Means(fields[n+1])
		if words := strings.Fields(fields[n]); len(words) > 1 && words[1] == "120000" {
			means = cmp.Or(means, hostrun.MeansLink(fields[n+1]))
		}
		switch {
		case means == "":
		case hostrun.Ordinary(means):
			ordinary = append(ordinary, fields[n+1])
		default:
			list = append(list, fields[n+1])
		}
	}
	return append(list, ordinary...)
}

// Remove removes what is kept of a branch. The user's own branch stays. What the agent has made is closed until it is
// gone.
func (h *Held) Remove() error {
	for _, f := range []*beneath.Folder{h.tree, h.layers, h.Talk} {
		names, err := f.Names(".", mostNames)
		for _, name := range names {
			err = cmp.Or(err, f.RemoveAll(name))
		}
		if err != nil {
			return diag.Wrap("remove the checkout of branch "+h.Name, err, "remove "+h.Dir+" by hand")
		}
	}
	if err := os.Chmod(h.Dir+"/closed", 0o700); err != nil {
		return err
	}
	return os.RemoveAll(h.Dir)
}

// mostNames is how many names a folder of a checkout may have for it to be removed.
const mostNames = 1 << 22
