package branch

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/cachefile"
	"claudebox/internal/linux/identity"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/handover"
)

// Request is what a session on a branch is asked for with.
type Request struct {
	Home   string // claudebox's own folder
	Tree   string // the project: the top of a checkout of the user's; canonical
	Repo   handover.Place
	Name   string // of the branch
	From   string // where a new one begins; empty: HEAD
	Tools  handover.Tools
	Hidden []string // paths in the project that the agent does not see; relative to it
	// Instead is what the agent sees in the place of files and folders of git in what is ignored.
	Instead []Instead
	Ignore  []byte // what git ignores for the user everywhere
	// Changes says that a new branch begins with a commit of what the user has changed.
	Changes bool
	With    []string // untracked files and folders that are copied; absolute
	Modules []Module // submodules that the user has checked out
	Read    []string // files of the branch, to be looked at
}

// Instead is what is seen in the place of a file, or of a folder: that is empty.
type Instead struct {
	Path    string // from the project
	Dir     bool
	Content []byte
}

// Branch is a branch with its checkout, as far as it is there.
type Branch struct {
	Request
	Dir      string   // its folder
	Fresh    bool     // there is no checkout yet
	Start    string   // the commit at which a new branch begins
	Parts    []Part   // what is ignored in the user's folder
	tip      string   // of the user's branch; empty: there is none
	Damaged  bool     // its record cannot be read: it can be removed only
	NoLayers string   // why big folders of those are not there; empty: they are
	Pending  []string // what is not committed in the user's folder, and is not there
	Remote   string   // a remote's branch of this name, at which a new one does not begin
	// Links are what the branch has of links at its top, and below folders of agents, and what they say; Files is what
	// it has of those of Read. Both are as they are committed.
	Links map[string]string
	Files map[string][]byte
}

// foldersName is the folder of all checkouts in claudebox's own.
const foldersName = "branches"

// keyOf identifies a repository: also where it was moved, and not one that is at its path now.
func keyOf(outer string) string {
	return handover.Name(cmp.Or(string(identity.At(unix.AT_FDCWD, outer+"/objects")), outer))
}

// folderOf is the folder of a repository's branches.
func folderOf(home, outer string) string { return path.Join(home, foldersName, keyOf(outer)) }

// git is the folder of the branch's place.
func (b Branch) git() string { return b.Dir + "/git" }

// Conversations is the folder that the agent has for its conversations on this branch, which is closed.
func (b Branch) Conversations() string { return b.Dir + "/closed/home" }

// Checkout is the path of the checkout on the host, which is closed.
func (b Branch) Checkout() string { return b.Dir + "/closed/tree" }

// Gone reports whether the user has removed the branch that a session has made.
func (b Branch) Gone() bool { return !b.Fresh && b.tip == "" }

// Place is the branch's place for the hand-over.
func (b Branch) Place() handover.Place {
	p := b.Repo
	p.Folder, p.Branch, p.Start, p.Own, p.Key = b.git(), b.Name, b.Start, true, path.Base(path.Dir(b.Dir))
	p.Trees, p.Within, p.Modules = []handover.Tree{{Rel: ".", Path: b.Tree}}, nil, b.Modules
	return p
}

// Look says what a session on a branch would have. It changes nothing. It refuses a name that is none, one that the
// user has checked out, and one on which a session runs.
func Look(r Request) (b Branch, err error) {
	b = Branch{Request: r}
	op := "work on branch " + diag.Visible(r.Name)
	if r.Repo.Outer == "" {
		return b, diag.Errorf(op, "make one with `git init` and a first commit, or work without (`--no-branch`); if "+
			"there is one, `claudebox plan --no-branch` says what is wrong with it", "this project has no git repository")
	}
	if rel, in := pathname.Cut(r.Repo.Outer, r.Tree); in && rel != ".git" {
		return b, diag.Errorf(op, "start claudebox in a checkout of it: `git worktree add ../work`",
			"its git folder lies among its files, in %s", diag.Name(rel))
	}
	if why := flaw(r.Name); why != "" {
		return b, diag.Errorf(op, "use letters, digits and - _ . / as in `fix-login`",
			"a branch of this name does not cross: %s", why)
	}
	b.Dir = path.Join(folderOf(r.Home, r.Repo.Outer), handover.Name(r.Name))
	known, err := recall(b.Dir)
	if err != nil {
		return b, diag.Wrap(op, err, "`claudebox branch remove --force "+r.Name+"` takes it away; what has crossed is yours")
	}
	b.Fresh = !known.Filled
	b.Modules = known.withModules(b.Modules)
	if isHeld(b.Dir) {
		return b, diag.Errorf(op, "wait for its end, or use another name", "a session works on it")
	}
	if err := b.ask(op); err != nil {
		return b, err
	}
	for _, at := range b.With {
		if err := b.lookWith(at); err != nil {
			return b, err
		}
	}
	return b, nil
}

// flaw says why a branch of a session cannot have a name; empty: it can. Each part is a file's name, with ".lock" for a
// moment.
func flaw(name string) string {
	const longest = 240
	isLong := func(part string) bool { return len(part) > longest }
	switch {
	case strings.HasPrefix(name, "claudebox/"), strings.HasPrefix(name, "refs/"):
		return "claudebox and git use names that begin so for something else"
	case slices.ContainsFunc(strings.Split(name, "/"), isLong):
		return "it is too long"
	}
	return handover.Flaw(name)
}

// rel is the git folder of the user's checkout, relative to the repository's.
func (b Branch) rel() string {
	i := slices.IndexFunc(b.Repo.Trees, func(t handover.Tree) bool { return t.Path == b.Tree })
	return b.Repo.Trees[max(i, 0)].Rel
}

// mostPending is how many names of what is not committed are read.
const mostPending = 1000

// askScript prints where a new branch begins, the branches and what is called like this one, with their commits and
// checkouts, and what git ignores as a whole and what is not committed, each ended by a mark; then links and files of
// the branch. The status takes longest, and is asked for meanwhile.
const askScript = `export GIT_DIR=%[1]s
g -c core.excludesFile=/tmp/excludes --work-tree=%[3]s status --porcelain --ignored -z --no-renames >/tmp/status &
status=$!
[ -z %[2]s ] || g rev-parse --verify -q %[2]s'^{commit}' || echo none
mark
refs=$(g for-each-ref --format='%%(refname) %%(objectname) %%(worktreepath)' refs/heads %[4]s) || exit 1
printf '%%s\n' "$refs"
# Of a branch with two checkouts it names one: who was killed has left one of its own.
[[ $refs != *%[5]s* ]] || g worktree list --porcelain || exit 1
mark
tip=$'\n'$refs
case $tip in
  *$'\n'%[6]s' '*) tip=${tip#*$'\n'%[6]s' '} tip=${tip%%%%[ $'\n']*};;
  *) tip=$(g rev-parse --verify -q %[2]s'^{commit}');;
esac
list() { g ls-tree -z "$@" | head -c %[9]d >/tmp/list; mapfile -td '' -O ${#all[@]} all </tmp/list; }
shown() {
  list "$tip"
  for entry in "${all[@]}"; do
    [[ $entry != *$'\t'.@(claude|agents) ]] || { list -r "$tip" .claude .agents; break; }
  done
  for entry in "${all[@]}"; do [[ $entry != 120000* ]] || links+=("$entry"); done
  [ ${#links[@]} = 0 ] || printf '%%s\0' "${links[@]}"
  mark
  { for entry in "${links[@]}"; do entry=${entry%%$'\t'*}; echo "${entry##* }"; done
    for file in %[8]s; do echo "$tip:$file"; done; } | g cat-file --batch | head -c %[7]d
}
all=() links=()
[ -z "$tip" ] || shown >/tmp/shown || :
wait $status || exit 1
cat /tmp/status
mark
[ -z "$tip" ] || cat /tmp/shown
`

const (
	// mostShown is how many bytes of a branch's links and files are read.
	mostShown = 1 << 20
	// mostListed is how many bytes of the list are read in which the links are.
	mostListed = 16 << 20
)

// ask asks the user's git about the branch.
func (b *Branch) ask(op string) error {
	from := b.From
	if b.Fresh && from == "" {
		from = "HEAD"
	}
	called := diag.Quote("refs/tags/"+b.Name) + " " + diag.Quote("refs/remotes/"+b.Name) + " " +
		diag.Quote("refs/remotes/*/"+b.Name)
	var read []string
	for _, file := range b.Read {
		read = append(read, diag.Quote(file))
	}
	script := b.excludes() + fmt.Sprintf(askScript, diag.Quote(path.Join(b.Repo.Outer, b.rel())), diag.Quote(from),
		diag.Quote(b.Tree), called, diag.Quote(b.Place().Checkout()), diag.Quote("refs/heads/"+b.Name),
		mostShown, strings.Join(read, " "), mostListed)
	answer, err := b.askOnce(script)
	if err != nil {
		return diag.Wrap(op, err, "see whether `git status` works here")
	}
	parts := parts(answer)
	if len(parts) < 4 {
		return diag.Wrap(op, errors.New("git answers with what it would not say"), "see whether `git status` works here")
	}
	b.Start = strings.TrimSpace(parts[0])
	if err := b.lookAtRefs(op, parts[1]); err != nil {
		return err
	}
	if len(parts) == 5 {
		b.lookAtTree(strings.FieldsFunc(parts[3], func(r rune) bool { return r == 0 }), parts[4])
	}
	var ignored []string
	for entry := range strings.SplitSeq(parts[2], "\x00") {
		if len(entry) < 4 {
			continue
		}
		what, at := entry[:2], entry[3:]
		isTaken := b.Changes && what != "??" || slices.Contains(b.With, path.Join(b.Tree, at))
		switch {
		case what == "!!":
			ignored = append(ignored, at)
		case isTaken:
		case len(b.Pending) < mostPending:
			b.Pending = append(b.Pending, at)
		}
	}
	return b.lookIgnored(ignored)
}

// lookAtTree notes what a branch has of links and files: entries of ls-tree, and what cat-file says of each of these
// and of [Request.Read].
func (b *Branch) lookAtTree(links []string, contents string) {
	b.Links, b.Files = map[string]string{}, map[string][]byte{}
	next := func() (content string, is bool) {
		head, rest, _ := strings.Cut(contents, "\n")
		contents = rest
		kind, size := "", 0
		if n, _ := fmt.Sscanf(head, "%s %s %d", new(string), &kind, &size); n < 3 || size >= len(rest) {
			return "", false // it is missing, or cut off
		}
		content, contents = rest[:size], rest[size+1:]
		return content, kind == "blob"
	}
	for _, entry := range links {
		_, at, _ := strings.Cut(entry, "\t")
		if text, is := next(); is {
			b.Links[at] = text
		}
	}
	for _, at := range b.Read {
		if content, is := next(); is {
			b.Files[at] = []byte(content)
		}
	}
}

// askOnce asks, unless the answer is known: nothing has changed since an earlier start.
func (b *Branch) askOnce(script string) (answer []byte, err error) {
	if b.Fresh {
		return b.askStill(script)
	}
	file := b.Dir + "/asked"
	if was := find(file); was.Key != "" && b.still(was.Ignored).key(script) == was.Key {
		return []byte(was.Answer), nil
	}
	began := time.Now()
	if answer, err = b.askStill(script); err == nil && len(parts(answer)) > 2 {
		ignored := ignoredIn(answer)
		keep(file, began, b.still(ignored), script, known{Answer: string(answer), Ignored: ignored})
	}
	return answer, err
}

// parts are those of an answer to [askScript]: five, or fewer where there is no such commit.
func parts(answer []byte) []string {
	const most = 5
	return strings.SplitN(string(answer), "\x00\x01\x00", most)
}

// ignoredIn lists the folders that git ignores as a whole, as an answer says.
func ignoredIn(answer []byte) (list []string) {
	for entry := range strings.SplitSeq(parts(answer)[2], "\x00") {
		if at, is := strings.CutPrefix(entry, "!! "); is && strings.HasSuffix(at, "/") {
			list = append(list, strings.TrimSuffix(at, "/"))
		}
	}
	slices.Sort(list)
	return list
}

// still looks at the user's repository and checkout.
func (b *Branch) still(ignored []string) *still {
	s := newStill()
	s.open(b.Repo.Outer, s.takeGit)
	s.open(b.Tree, func(f *beneath.Folder) { s.takeTree(f, ignored) })
	return s
}

// longestSwitch is how long a git of the user's may be at work before its project is looked at as it is.
const longestSwitch = 5 * time.Second

// askStill asks again while a git of the user's is at work on the index. One that switches branches takes .gitignore
// away and writes another: between them nothing is ignored.
func (b *Branch) askStill(script string) (answer []byte, err error) {
	index := path.Join(b.Repo.Outer, b.rel(), "index")
	isLocked := func() bool { return cachefile.Exists(cachefile.State(index + ".lock")) }
	for end := time.Now().Add(longestSwitch); ; time.Sleep(10 * time.Millisecond) {
		before, locked := cachefile.State(index), isLocked()
		answer, err = handover.Ask(b.Repo, b.Tools, script, b.Tree, b.Tree)
		isStill := !locked && !isLocked() && cachefile.State(index) == before
		if err != nil || isStill || time.Now().After(end) {
			return answer, err
		}
	}
}

// lookAtRefs refuses a name that the user's branches, as git lists them with the checkouts, do not allow, or that git
// would take for another thing.
func (b *Branch) lookAtRefs(op, list string) error {
	own, tree, same, remote := "refs/heads/"+b.Name, "", false, ""
	for line := range strings.Lines(list) {
		word, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch {
		case word == own:
			b.tip, tree, _ = strings.Cut(rest, " ")
		case word == "worktree":
			tree = rest
		}
		switch {
		case (word == own || word == "branch" && rest == own) && tree != "" && tree != b.Place().Checkout():
			return diag.Errorf(op, "use another name, or `git switch` to another branch there",
				"it is checked out in %s", diag.Name(tree))
		case b.Fresh && (strings.HasPrefix(word, own+"/") || strings.HasPrefix(own, word+"/")):
			return diag.Errorf(op, "use another name", "git cannot have it beside your branch %s",
				strconv.Quote(strings.TrimPrefix(word, "refs/heads/")))
		case word == "refs/tags/"+b.Name || word == "refs/remotes/"+b.Name:
			same = true
		case strings.HasPrefix(word, "refs/remotes/") && strings.HasSuffix(word, "/"+b.Name):
			remote = strings.TrimPrefix(word, "refs/remotes/")
		}
	}
	elsewhere := b.tip != "" && b.tip != b.Start
	switch {
	case b.Changes && b.Fresh && (elsewhere || b.From != ""):
		return diag.Errorf(op, "leave --with-changes out, or use another name and no --from",
			"your changes go with a new branch that begins at HEAD")
	case b.From != "" && elsewhere:
		return diag.Errorf(op, "leave --from out, or use another name", "it is there: it does not begin at %s",
			strconv.Quote(b.From))
	case b.Start == "none" && b.From == "" && b.tip == "":
		return diag.Errorf(op, "make a first commit with `git commit`, or begin it with --from BRANCH",
			"HEAD has no commit to begin at")
	case b.Start == "none" && b.From != "":
		return diag.Errorf(op, "name a branch, a tag or a commit", "git knows no commit %s", strconv.Quote(b.From))
	case b.tip != "" || !b.Fresh:
	case same:
		return diag.Errorf(op, "use another name",
			"a tag, or a branch of a remote, is called so: git would take the one for the other")
	case b.From == "":
		b.Remote = remote
	}
	return nil
}
