package handover

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"

	"claudebox/internal/workspace/git"
)

// Side is what one of the two repositories holds, as far as it can cross.
type Side struct {
	Refs  map[string]string // name → object; symbolic ones are left out
	Odd   []string          // names of references that do not cross, as they stand
	Stash []Stashed         // the newest first
	Trees map[string]State  // by [Tree.Rel]
	// Taken are the branches that are checked out anywhere, with the working trees.
	Taken map[string]string `json:"-"`
}

// Stashed is one entry of the list of stashes.
type Stashed struct{ Object, Message string }

// State is what belongs to one checkout.
type State struct {
	Head     string            // "ref: refs/heads/…", or an object; empty: git finds none
	HasHead  bool              `json:"-"`          // the file is there: with no Head the checkout is new, or broken
	Index    Index             `json:",omitempty"` // sorted by path
	NoIndex  bool              `json:"-"`          // the file is not there
	UnderWay []string          // of [underWay]
	Files    map[string]string // of [stateFiles], by name
}

// Index is what `git ls-files --stage -z` prints. Bits, extensions and times of an index are no part of it, so
// nothing in an index can lie.
type Index string

// Entry is a path of an index with all its stages.
type Entry struct{ Path, Stages string } // a stage: "100644 <object> 0\n"

const (
	// mostRefs is how many references a side may have.
	mostRefs = 100_000
	// mostAnswer is how long an answer may be, in bytes.
	mostAnswer = 256 << 20
	// mostFaults is how much of what git says of a fault is kept, in bytes.
	mostFaults = 4 << 10
	// mostFile is how much of a state file is read, in bytes.
	mostFile = 64 << 10
	// mostStashes is how many stashes cross.
	mostStashes = 1000
)

// underWay are the names by which git has an operation under way that goes on where it was begun.
var underWay = []string{"rebase-merge", "rebase-apply", "sequencer", "BISECT_LOG"}

// stateFiles are small files that cross with an index, and whether they hold objects only.
var stateFiles = []struct {
	name    string
	objects bool
}{
	{"MERGE_HEAD", true},
	{"CHERRY_PICK_HEAD", true},
	{"REVERT_HEAD", true},
	{"MERGE_MODE", false},
	{"MERGE_MSG", false},
	{"SQUASH_MSG", false},
}

// stateNames are the names of [stateFiles].
func stateNames() (names []string) {
	for _, file := range stateFiles {
		names = append(names, file.name)
	}
	return names
}

// isObject reports whether a text is the name of an object, of SHA-1 or SHA-256.
func isObject(text string) bool {
	if len(text) != 40 && len(text) != 64 {
		return false
	}
	return strings.Trim(text, "0123456789abcdef") == ""
}

// crosses reports whether a reference may cross.
func crosses(name string) bool { return flaw(name) == "" }

// flaw says what keeps a reference from crossing; empty: nothing.
func flaw(name string) string {
	kind, rest, _ := strings.Cut(strings.TrimPrefix(name, "refs/"), "/")
	parts := strings.Split(rest, "/")
	switch {
	case !strings.HasPrefix(name, "refs/") || !slices.Contains([]string{"heads", "tags", "remotes", "notes"}, kind),
		strings.HasPrefix(name, "refs/remotes/"+theirs):
		return "it is none of a branch, tag or note"
	case len(name) > 1000:
		return "it is too long"
	case strings.Contains(rest, ".."):
		return `git takes ".." for a range of commits`
	case slices.Contains(parts, ""):
		return "it, or a part between its slashes, is empty"
	case slices.ContainsFunc(parts, func(p string) bool { return p[0] == '-' || p[0] == '.' }):
		return `a part of it begins with "-" or "."`
	case slices.ContainsFunc(parts, func(p string) bool {
		return strings.HasSuffix(p, ".lock") || strings.HasSuffix(p, ".")
	}):
		return `a part of it ends with "." or ".lock"`
	case strings.ContainsFunc(rest, git.IsStrange):
		return fmt.Sprintf("a prompt or a shell could obey %.1q in it", rest[strings.IndexFunc(rest, git.IsStrange):])
	case isTaken(rest):
		return "git could take it for something else, as for a commit"
	}
	return ""
}

// isTaken reports whether git or a person takes a name for something else: a part of an object's name, or what git
// keeps beside HEAD.
func isTaken(name string) bool {
	const shortest = 4 // of an abbreviated object name
	return slices.Contains([]string{"HEAD", "@", "stash"}, name) ||
		strings.HasSuffix(name, "_HEAD") && !strings.Contains(name, "/") ||
		len(name) >= shortest && strings.Trim(name, "0123456789abcdef") == ""
}

// separator stands between the parts of an answer; no text of git's has it.
const separator = "\x00\x01\x00"

// endOfRef ends what is said of a reference: the path of a checkout may have line feeds.
const endOfRef = "\x00\n"

// errOdd is returned for an answer that git would not give.
var errOdd = errors.New("its git folder does not answer as git does")

// parse reads the answer of the script [readScript] for these checkouts.
func parse(answer []byte, trees []Tree) (side Side, err error) {
	parts := strings.Split(string(answer), separator)
	each := 3 + len(stateFiles)
	if len(parts) != 2+each*len(trees)+1 || parts[len(parts)-1] != "" {
		return side, errOdd
	}
	side.Trees = map[string]State{}
	if err = side.parseRefs(parts[0]); err != nil {
		return side, err
	}
	side.parseStash(parts[1]) // one of the two is there
	side.parseTaken(parts[1])
	for n, t := range trees {
		of := parts[2+n*each:][:each]
		state := State{Files: map[string]string{}}
		if state.Head, err = parseHead(of[0]); err != nil {
			return side, fmt.Errorf("%s: %w", t.Rel, err)
		}
		if state.Index = Index(of[1]); !state.Index.valid() {
			return side, fmt.Errorf("the index of %s: %w", t.Rel, errOdd)
		}
		for name := range strings.FieldsSeq(of[2]) {
			state.NoIndex, state.HasHead = state.NoIndex || name == noIndex, state.HasHead || name == hasHead
			if slices.Contains(underWay, name) && !slices.Contains(state.UnderWay, name) {
				state.UnderWay = append(state.UnderWay, name)
			}
		}
		for i, file := range stateFiles {
			text, there := strings.CutPrefix(of[3+i], "=")
			switch {
			case !there:
			case file.objects && !areObjects(text):
				return side, fmt.Errorf("%s: %w", file.name, errOdd)
			default:
				state.Files[file.name] = printable(text)
			}
		}
		side.Trees[t.Rel] = state
	}
	return side, nil
}

func (s *Side) parseRefs(text string) error {
	s.Refs, s.Taken = map[string]string{}, map[string]string{}
	for text != "" {
		var ref string
		ref, text, _ = strings.Cut(text, endOfRef)
		object, rest, _ := strings.Cut(ref, " ")
		name, rest, _ := strings.Cut(rest, " ")
		symbolic, tree, _ := strings.Cut(rest, " ")
		switch {
		case symbolic != "" || name == "refs/stash": // the list of stashes crosses as such
		case !isObject(object) || name == "":
			return fmt.Errorf("its references: %w", errOdd)
		case !crosses(name):
			s.Odd = append(s.Odd, name)
		default:
			s.Refs[name] = object
			if tree != "" {
				s.Taken[name] = tree
			}
		}
		if len(s.Refs) > mostRefs {
			return fmt.Errorf("it has more than %d branches and tags", mostRefs)
		}
	}
	return nil
}

// parseTaken reads what `git worktree list --porcelain` prints: a checkout of the user's counts before those of sessions
// on a branch.
func (s *Side) parseTaken(text string) {
	tree := ""
	for line := range strings.Lines(text) {
		word, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch {
		case word == "worktree":
			tree = rest
		case word == "branch" && !strings.HasPrefix(tree, checkouts):
			s.Taken[rest] = tree
		}
	}
}

func (s *Side) parseStash(text string) {
	for line := range strings.Lines(text) {
		object, message, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if isObject(object) && len(s.Stash) < mostStashes {
			message = strings.ReplaceAll(printable(message), "\n", "?")
			s.Stash = append(s.Stash, Stashed{object, message[:min(len(message), 200)]})
		}
	}
}

func parseHead(text string) (string, error) {
	text = strings.TrimSuffix(text, "\n")
	switch {
	case text == "" || isObject(text):
		return text, nil
	case strings.HasPrefix(text, "refs/heads/") && crosses(text):
		return "ref: " + text, nil
	case strings.HasPrefix(text, "refs/"):
		return "", fmt.Errorf("HEAD is %.100q, which is no branch", text)
	}
	return "", fmt.Errorf("HEAD: %w", errOdd)
}

func areObjects(text string) bool {
	for line := range strings.Lines(text) {
		if !isObject(strings.TrimSuffix(line, "\n")) {
			return false
		}
	}
	return true
}

// printable replaces control characters, but for line feeds and tabs, by "?".
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}

// valid reports whether an index is what git prints, with paths that git takes: relative ones, and none in a git
// folder. git refuses the others as well.
func (i Index) valid() bool {
	if i == "" {
		return true
	}
	if i[len(i)-1] != 0 {
		return false
	}
	for rest := string(i); rest != ""; {
		var line string
		line, rest, _ = strings.Cut(rest, "\x00")
		stage, at, _ := strings.Cut(line, "\t")
		mode, of, _ := strings.Cut(stage, " ")
		object, number, _ := strings.Cut(of, " ")
		if !slices.Contains([]string{"100644", "100755", "120000", gitlink}, mode) || !isObject(object) ||
			len(number) != 1 || number[0] < '0' || number[0] > '3' || at == "" || path.Clean("/"+at) != "/"+at ||
			hasDotGit(at) {
			return false
		}
	}
	return true
}

// gitlink is the mode of an entry that is a repository of its own.
const gitlink = "160000"

// hasDotGit reports whether a part of a path is .git, on a file system that folds case, passes over what is not seen,
// or has short names, too.
func hasDotGit(at string) bool {
	unseen := func(r rune) rune {
		if unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}
	for part := range strings.SplitSeq(strings.Map(unseen, at), "/") {
		name, _, _ := strings.Cut(part, ":")
		name = strings.TrimRight(name, " .")
		if git.IsDotGit(name) || strings.EqualFold(name, "git~1") {
			return true
		}
	}
	return false
}

// entries lists the paths of an index, in git's order.
func (i Index) entries() (list []Entry) {
	list = make([]Entry, 0, strings.Count(string(i), "\x00"))
	for rest := string(i); rest != ""; {
		var line string
		line, rest, _ = strings.Cut(rest, "\x00")
		stage, at, _ := strings.Cut(line, "\t")
		if n := len(list); n > 0 && list[n-1].Path == at {
			list[n-1].Stages += stage + "\n"
		} else {
			list = append(list, Entry{at, stage + "\n"})
		}
	}
	return list
}

// at returns the stages of paths, as far as the index has them.
func (i Index) at(paths []Entry) map[string]string {
	stages := make(map[string]string, len(paths))
	for _, e := range paths {
		stages[e.Path] = ""
	}
	for _, e := range i.entries() {
		if _, is := stages[e.Path]; is {
			stages[e.Path] = e.Stages
		}
	}
	return stages
}

// with returns the index with some paths changed; no stages: without the path.
func (i Index) with(changes []Entry) Index {
	if len(changes) == 0 {
		return i
	}
	all := map[string]string{}
	for _, e := range i.entries() {
		all[e.Path] = e.Stages
	}
	for _, e := range changes {
		all[e.Path] = e.Stages
	}
	var b bytes.Buffer
	for _, at := range slices.Sorted(maps.Keys(all)) {
		for stage := range strings.Lines(all[at]) {
			b.WriteString(strings.TrimSuffix(stage, "\n") + "\t" + at + "\x00")
		}
	}
	return Index(b.String())
}

// isLink reports whether an entry is a repository of its own, in any stage.
func (e Entry) isLink() bool { return strings.Contains("\n"+e.Stages, "\n"+gitlink) }

// objects lists the objects of an entry.
func (e Entry) objects() (list []string) {
	for stage := range strings.Lines(e.Stages) {
		if f := strings.Fields(stage); len(f) == 3 && f[0] != gitlink {
			list = append(list, f[1])
		}
	}
	return list
}

// commit returns the object that HEAD of a checkout names; empty: none yet.
func (s Side) commit(rel string) string {
	head := s.Trees[rel].Head
	if ref, is := strings.CutPrefix(head, "ref: "); is {
		return s.Refs[ref]
	}
	return head
}
