package git

import (
	"path"
	"strings"
	"sync"

	"claudebox/internal/linux/beneath"
)

// sort is how a name in a git folder is looked at.
type sort int

const (
	unknown sort = iota
	file         // a file with a grammar
	setting      // a configuration
	leads        // a file that leads to another place
	listed       // a folder with a rule for each file in it
	state        // such a folder, which goes as a whole when one file breaks its rule
	tree         // a folder of files with any name and content
	kept         // such a folder that no session may make
	store        // the objects
	places       // a folder of git folders
	ours         // what claudebox took out
)

// rule is one line of the table. The name is a pattern of [path.Match] for a
// path below a git folder.
type rule struct {
	name string
	sort sort
	may  grammar // what a file may hold that was not there before
}

// table holds every name that git itself makes in a git folder (git 2.55 and
// before; gitrepository-layout(5), setup.c, path.c, sequencer.c, am.c,
// bisect.c). What it makes and would obey has the grammar [nothing].
var table = []rule{
	{"HEAD", file, oneLine},
	{"config", setting, nil},
	{"config.worktree", setting, nil},
	{"commondir", leads, nil},
	{"gitdir", leads, nil}, // of a linked worktree
	{"objects/info/alternates", leads, nil},

	{"hooks", listed, nil},
	{"hooks/*", file, nothing},
	{"info", listed, nil},
	{"info/exclude", file, text},
	{"info/sparse-checkout", file, text},
	{"info/refs", file, text},
	{"info/attributes", file, attributes},
	{"info/*", file, nothing}, // grafts show another history
	{"remotes", listed, nil},
	{"remotes/*", file, nothing}, // addresses of remotes, until git 3.0
	{"branches", listed, nil},
	{"branches/*", file, nothing},

	{"objects", store, nil},
	{"refs", tree, nil},
	{"logs", tree, nil},
	{"reftable", tree, nil},
	{"lost-found", tree, nil},
	{"lfs", tree, nil},
	{"rr-cache", kept, nil}, // it turns the reuse of recorded merges on
	{"modules", places, nil},
	{"worktrees", places, nil},

	{"index", file, anything},
	{"sharedindex.*", file, anything},
	{"packed-refs", file, text},
	{"shallow", file, hashes},
	{"description", file, text},
	{"locked", file, text}, // of a linked worktree
	{"gc.log", file, text},
	{"*.lock", file, nothing},
	{"gc.pid", file, nothing},
	{"ORIG_HEAD", file, hashes},
	{"FETCH_HEAD", file, text},
	{"MERGE_HEAD", file, hashes},
	{"MERGE_MODE", file, flag},
	{"MERGE_MSG", file, text},
	{"MERGE_RR", file, anything},
	{"MERGE_AUTOSTASH", file, hashes},
	{"SQUASH_MSG", file, text},
	{"COMMIT_EDITMSG", file, text},
	{"TAG_EDITMSG", file, text},
	{"NOTES_EDITMSG", file, text},
	{"EDIT_DESCRIPTION", file, text},
	{"NOTES_MERGE_REF", file, oneLine},
	{"NOTES_MERGE_PARTIAL", file, hashes},
	{"CHERRY_PICK_HEAD", file, hashes},
	{"REVERT_HEAD", file, hashes},
	{"REBASE_HEAD", file, hashes},
	{"AUTO_MERGE", file, hashes},
	{"BISECT_HEAD", file, hashes},
	{"BISECT_EXPECTED_REV", file, hashes},
	{"BISECT_ANCESTORS_OK", file, flag},
	{"BISECT_FIRST_PARENT", file, flag},
	{"BISECT_LOG", file, text},
	{"BISECT_RUN", file, text},
	{"BISECT_START", file, branch},
	{"BISECT_TERMS", file, flag},
	{"BISECT_NAMES", file, words},

	// An interrupted rebase. bash's git prompt runs what stands in msgnum, end,
	// next and last.
	{"rebase-merge", state, nil},
	{"rebase-merge/msgnum", file, number},
	{"rebase-merge/end", file, number},
	{"rebase-merge/head-name", file, branch},
	{"rebase-merge/onto", file, hashes},
	{"rebase-merge/orig-head", file, hashes},
	{"rebase-merge/stopped-sha", file, hashes},
	{"rebase-merge/amend", file, hashes},
	{"rebase-merge/squash-onto", file, hashes},
	{"rebase-merge/autostash", file, hashes},
	{"rebase-merge/git-rebase-todo", file, steps},
	{"rebase-merge/git-rebase-todo.backup", file, steps},
	{"rebase-merge/done", file, steps},
	{"rebase-merge/message", file, text},
	{"rebase-merge/message-squash", file, text},
	{"rebase-merge/message-fixup", file, text},
	{"rebase-merge/current-fixups", file, text},
	{"rebase-merge/rewritten-list", file, text},
	{"rebase-merge/rewritten-pending", file, text},
	{"rebase-merge/refs-to-delete", file, text},
	{"rebase-merge/update-refs", file, text},
	{"rebase-merge/patch", file, anything},
	{"rebase-merge/author-script", file, author},
	{"rebase-merge/strategy", file, strategy},
	{"rebase-merge/strategy_opts", file, words},
	{"rebase-merge/gpg_sign_opt", file, signing},
	{"rebase-merge/*", file, flag},

	// An interrupted `git am`, or a rebase by its means.
	{"rebase-apply", state, nil},
	{"rebase-apply/next", file, number},
	{"rebase-apply/last", file, number},
	{"rebase-apply/[0-9][0-9][0-9][0-9]*", file, anything},
	{"rebase-apply/patch", file, anything},
	{"rebase-apply/patch-merge-index", file, anything},
	{"rebase-apply/msg", file, text},
	{"rebase-apply/msg-clean", file, text},
	{"rebase-apply/final-commit", file, text},
	{"rebase-apply/info", file, text},
	{"rebase-apply/rewritten", file, text},
	{"rebase-apply/head-name", file, branch},
	{"rebase-apply/onto", file, hashes},
	{"rebase-apply/orig-head", file, hashes},
	{"rebase-apply/original-commit", file, hashes},
	{"rebase-apply/abort-safety", file, hashes},
	{"rebase-apply/autostash", file, hashes},
	{"rebase-apply/author-script", file, author},
	{"rebase-apply/strategy", file, strategy},
	{"rebase-apply/apply-opt", file, applying},
	{"rebase-apply/gpg_sign_opt", file, signing},
	{"rebase-apply/*", file, flag},

	{"sequencer", state, nil},
	{"sequencer/todo", file, steps},
	{"sequencer/opts", file, options},
	{"sequencer/head", file, hashes},
	{"sequencer/abort-safety", file, hashes},

	{Aside + "*", ours, nil},
}

// Aside is what the folders in a git folder are called, with a number where
// there are several, in which lies what was taken out of it.
const Aside = "claudebox-aside"

// byName finds the rules without a pattern at once.
var byName = sync.OnceValue(func() map[string]rule {
	m := map[string]rule{}
	for _, r := range table {
		if !strings.ContainsAny(r.name, "*[") {
			m[r.name] = r
		}
	}
	return m
})

// ruleOf finds the first rule for a name; the zero rule when git makes none of
// that name.
func ruleOf(name string) rule {
	if r, ok := byName()[name]; ok {
		return r
	}
	for _, r := range table {
		if ok, _ := path.Match(r.name, name); ok {
			return r
		}
	}
	return rule{}
}

// kind is what a name must be on the disk.
func (r rule) kind() beneath.Kind {
	switch r.sort {
	case file, setting, leads:
		return beneath.Regular
	}
	return beneath.Dir
}

// Known reports whether git makes a name in a git folder. Other tools have
// configurations of their own there.
func Known(name string) bool { return ruleOf(name).sort != unknown }
