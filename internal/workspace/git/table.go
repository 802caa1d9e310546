package git

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/gitconfig"
)

// sort says how a name in a git folder is looked at.
type sort int

const (
	unknown sort = iota
	file         // a file with a grammar
	setting      // a configuration
	leads        // a file that leads to another place
	listed       // a folder with a rule for each file in it
	state        // a folder with a rule for each file in it, taken out as a whole if one of them breaks its rule
	tree         // a folder of files with any name and content
	onlyOld      // a folder like a tree, but taken out if it was made during the session
	store        // the objects
	places       // a folder of git folders
	ours         // what claudebox took out
)

// rule is one line of the table. The names, with blanks between them, are patterns
// of [path.Match] for paths below a git folder.
type rule struct {
	names string
	sort  sort
	may   grammar // what a new or changed file may hold; nil: judged otherwise, see [Judgement.entry]
	why   string  // the reason that is told when something is taken out by this rule; empty: a general one
}

// table holds every name that git itself makes in a git folder (git 2.55 and before; gitrepository-layout(5), setup.c,
// path.c, sequencer.c, am.c, bisect.c). The grammar of files that git would obey is [nothing]. The first rule that fits
// a name counts; rules without a pattern come before all others.
var table = []rule{
	{"config", setting, nil, ""},
	{"config.worktree", setting, nil, ""},
	{"commondir", leads, nil, ""},
	{"gitdir", leads, nil, ""}, // of a linked worktree
	{"objects/info/alternates", leads, nil, ""},

	{"hooks info remotes branches", listed, nil, ""},
	{"hooks/*", file, nothing, "git would run it"},
	{"info/exclude info/sparse-checkout info/refs", file, text, ""},
	{"info/attributes", file, attributes, "git would run filters, or show no change of a file"},
	{"info/*", file, nothing, ""},                      // grafts show another history
	{"remotes/* branches/*", file, nothing, elsewhere}, // addresses of remotes, until git 3.0

	{"objects", store, nil, ""},
	{"refs logs reftable lost-found lfs", tree, nil, ""},
	{"rr-cache", onlyOld, nil, "it turns the reuse of recorded merges on"},
	{"modules worktrees", places, nil, ""},

	{"index sharedindex.*", file, anything, "it is not as git writes it; `git reset` makes a new one"},
	{"MERGE_RR", file, empty, "git copies the files that it names"}, // to rr-cache, at the next commit
	{"*.lock", file, nothing, StaysLocked},
	{"gc.pid", file, nothing, ""},
	{"HEAD NOTES_MERGE_REF", file, oneLine, ""},
	{"packed-refs description gc.log FETCH_HEAD MERGE_MSG SQUASH_MSG BISECT_LOG BISECT_RUN", file, text, ""},
	{"COMMIT_EDITMSG TAG_EDITMSG NOTES_EDITMSG EDIT_DESCRIPTION locked", file, text, ""},
	{"shallow ORIG_HEAD MERGE_HEAD MERGE_AUTOSTASH NOTES_MERGE_PARTIAL CHERRY_PICK_HEAD", file, hashes, ""},
	{"REVERT_HEAD REBASE_HEAD AUTO_MERGE BISECT_HEAD BISECT_EXPECTED_REV", file, hashes, ""},
	{"MERGE_MODE BISECT_ANCESTORS_OK BISECT_FIRST_PARENT BISECT_TERMS", file, flag, ""},
	{"BISECT_START", file, branch, ""},
	{"BISECT_NAMES", file, words, ""},

	// An interrupted rebase; `git am`, or a rebase by its means; a cherry-pick.
	{"rebase-merge rebase-apply sequencer", state, nil, ""},
	// bash's git prompt runs what stands in these.
	{"rebase-merge/msgnum rebase-merge/end rebase-apply/next rebase-apply/last", file, number, ""},
	{"rebase-merge/head-name rebase-apply/head-name", file, branch, ""},
	{"rebase-merge/onto rebase-merge/orig-head rebase-merge/stopped-sha rebase-merge/amend", file, hashes, ""},
	{"rebase-merge/squash-onto rebase-merge/autostash rebase-apply/autostash", file, hashes, ""},
	{"rebase-apply/onto rebase-apply/orig-head rebase-apply/original-commit", file, hashes, ""},
	{"rebase-apply/abort-safety sequencer/abort-safety sequencer/head", file, hashes, ""},
	{"rebase-merge/git-rebase-todo rebase-merge/git-rebase-todo.backup rebase-merge/done", file, steps, ""},
	{"sequencer/todo", file, steps, ""},
	{"sequencer/opts", file, options, ""},
	{"rebase-merge/message rebase-merge/message-squash rebase-merge/message-fixup", file, text, ""},
	{"rebase-merge/current-fixups rebase-merge/rewritten-list rebase-merge/rewritten-pending", file, text, ""},
	{"rebase-merge/refs-to-delete rebase-merge/update-refs", file, text, ""},
	{"rebase-apply/msg rebase-apply/msg-clean rebase-apply/final-commit", file, text, ""},
	{"rebase-apply/info rebase-apply/rewritten", file, text, ""},
	{"rebase-merge/author-script rebase-apply/author-script", file, author, ""},
	{"rebase-merge/strategy rebase-apply/strategy", file, strategy, ""},
	{"rebase-merge/strategy_opts", file, words, ""},
	{"rebase-apply/apply-opt", file, applying, ""},
	{"rebase-merge/gpg_sign_opt rebase-apply/gpg_sign_opt", file, signing, ""},
	{"rebase-merge/patch rebase-apply/patch rebase-apply/patch-merge-index", file, anything, ""},
	{"rebase-apply/[0-9][0-9][0-9][0-9]*", file, anything, ""},
	{"rebase-merge/* rebase-apply/*", file, flag, ""},

	{Aside + "*", ours, nil, ""},
}

// Aside is the name of the folders in a git folder that hold what was taken out of it. A number follows it if there are
// several.
const Aside = "claudebox-aside"

const elsewhere = "it sends git elsewhere"

// byName returns the rules without a pattern by their names, and the others in their order.
var byName = sync.OnceValues(func() (exact map[string]rule, patterns []rule) {
	exact = map[string]rule{}
	for _, r := range table {
		for name := range strings.FieldsSeq(r.names) {
			if strings.ContainsAny(name, "*[") {
				patterns = append(patterns, rule{name, r.sort, r.may, r.why})
			} else {
				exact[name] = r
			}
		}
	}
	return exact, patterns
})

// ruleOf finds the rule for a name; the zero rule when git makes none of that name.
func ruleOf(name string) rule {
	exact, patterns := byName()
	if r, ok := exact[name]; ok {
		return r
	}
	for _, r := range patterns {
		if ok, _ := path.Match(r.names, name); ok {
			return r
		}
	}
	return rule{}
}

// kind returns what a name must be on the disk.
func (r rule) kind() beneath.Kind {
	switch r.sort {
	case file, setting, leads:
		return beneath.Regular
	}
	return beneath.Dir
}

// Known reports whether the table has a rule for a name in a git folder: git makes it, or claudebox does ([Aside]). Any
// other name is another tool's.
func Known(name string) bool { return ruleOf(name).sort != unknown }

// Held returns the names in a git folder of the user's that are made read-only for a session: files that would be taken
// out if an agent had made them, and what other tools keep there. Nobody changes these in ordinary work. Hooks,
// configurations and files that lead elsewhere are not among them: package project protects those by themselves.
func (f *Folder) Held() (held []string) {
	leftOut := []string{"hooks", "remotes", "branches"}
	asNew := Folder{Path: f.Path, Role: f.Role, Rel: f.Rel, In: f.In} // no before: entry judges all as if just made
	var j Judgement
	for _, e := range f.Entries {
		first, _, inner := strings.Cut(e.Name, "/")
		top := ruleOf(first).sort
		switch {
		case !inner && top == unknown && (e.Kind == beneath.Regular || e.Kind == beneath.Dir):
			lies := func(tree string) bool { return pathname.Below(tree, path.Join(f.Rel, e.Name)) }
			if !slices.ContainsFunc(f.apart, lies) {
				held = append(held, e.Name)
			}
		case !inner || top != listed && top != state || slices.Contains(leftOut, first),
			e.Kind == beneath.Link, strings.HasSuffix(e.Name, ".lock"):
		default:
			if _, bad := j.entry(asNew, e); bad || e.Name == "info/attributes" {
				held = append(held, e.Name)
			}
		}
	}
	return held
}

// grammar reports whether a file may have a content, whoever wrote it. All but [anything] forbid control characters
// other than white space, because some of these files are shown on the terminal.
type grammar func(content string) bool

func anything(string) bool { return true }

func nothing(string) bool { return false }

func text(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return r < ' ' && r != '\n' && r != '\t' && r != '\r' || r >= 0x7f && r < 0xa0
	})
}

func empty(s string) bool { return s == "" }

func oneLine(s string) bool { return text(s) && strings.Count(strings.TrimRight(s, "\n"), "\n") == 0 }

// matching returns a grammar for contents that a pattern matches as a whole. The pattern is compiled at the first use:
// all of them together take 3 ms, and most launches use none.
func matching(pattern string) grammar {
	compiled := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\A(?:` + pattern + `)\z`) })
	return func(s string) bool { return compiled().MatchString(s) }
}

var (
	number = matching(`[0-9]{0,9}\s*`)
	// hashes are object names, several on a line where git maps old to new.
	hashes = matching(`(?:[0-9a-f]{4,64}\s*)*`)
	// flag is for a file that counts by being there, or holds a plain word.
	flag   = matching(`(?:[A-Za-z0-9-]{0,60}\s*){0,4}`)
	branch = matching(`(?:[A-Za-z0-9._/+@=#-]{1,1000}|detached HEAD)?\s*`)
	// words are arguments without characters that are special to a shell.
	words    = matching(`[A-Za-z0-9._/=:@~^, '\n-]*`)
	author   = matching(`(?:GIT_AUTHOR_(?:NAME|EMAIL|DATE)='(?:[^'[:cntrl:]\x{80}-\x{9f}]|'\\'')*'\n?)*`)
	signing  = matching(`(?:-S[0-9A-Fa-f]*|--no-gpg-sign)?\s*`)
	strategy = matching(`(?:ort|recursive|resolve|octopus|ours|subtree)?\s*`)
	// applying are options of git-apply that choose no file.
	applying = matching(`(?: ?'?(?:-C[0-9]+|-p[0-9]+|--ignore-whitespace|--whitespace=[a-z-]+|--reject|--3way)'?)*\s*`)
)

// harmlessSteps are the commands of a list that run no program (git-rebase(1)).
var harmlessSteps = []string{
	"pick", "p", "reword", "r", "edit", "e", "squash", "s", "fixup", "f", "drop", "d", "break", "b", "label", "l",
	"reset", "t", "merge", "m", "update-ref", "u", "noop", "revert",
}

func steps(s string) bool {
	for line := range strings.Lines(s) {
		if words := strings.Fields(line); len(words) > 0 && words[0][0] != '#' &&
			!slices.Contains(harmlessSteps, words[0]) {
			return false
		}
	}
	return text(s)
}

// attributes accepts those that tools write there: Go for its cache of modules, and git-annex. By others git runs
// filters, or takes a changed file for one that is not (ident, working-tree-encoding, text).
func attributes(s string) bool {
	for line := range strings.Lines(s) {
		words := strings.Fields(line)
		for _, word := range words[min(1, len(words)):] {
			name, _, _ := strings.Cut(strings.TrimLeft(word, "-!"), "=")
			harmless := name == "export-subst" || name == "export-ignore" || strings.HasPrefix(name, "annex.")
			if !harmless || strings.HasPrefix(words[0], "[attr]") {
				return false
			}
		}
	}
	return text(s) && !strings.ContainsAny(s, "\"")
}

// options are those of an interrupted cherry-pick.
func options(s string) bool {
	entries, err := gitconfig.Parse([]byte(s))
	return err == nil && text(s) && !slices.ContainsFunc(entries, func(e gitconfig.Entry) bool {
		return e.Section != "options" || e.Name == "strategy" && !strategy(e.Value) ||
			e.Name == "gpg-sign" && !signing("-S"+e.Value)
	})
}
