package git

import (
	"path"
	"slices"
	"strings"
	"unicode"
)

// gits are the names that git itself makes in a git folder (git 2.55 and before; gitrepository-layout(5), setup.c,
// path.c, sequencer.c, am.c, bisect.c).
var gits = strings.Fields(`config config.worktree commondir gitdir hooks info remotes branches objects refs logs reftable lost-found lfs rr-cache
	modules worktrees index MERGE_RR gc.pid gc.log HEAD NOTES_MERGE_REF packed-refs description FETCH_HEAD MERGE_MSG
	SQUASH_MSG BISECT_LOG BISECT_RUN COMMIT_EDITMSG TAG_EDITMSG NOTES_EDITMSG EDIT_DESCRIPTION locked shallow ORIG_HEAD
	MERGE_HEAD MERGE_AUTOSTASH NOTES_MERGE_PARTIAL CHERRY_PICK_HEAD REVERT_HEAD REBASE_HEAD AUTO_MERGE BISECT_HEAD
	BISECT_EXPECTED_REV MERGE_MODE BISECT_ANCESTORS_OK BISECT_FIRST_PARENT BISECT_TERMS BISECT_START BISECT_NAMES
	rebase-merge rebase-apply sequencer`)

// listed are folders in which each file is noted.
var listed = []string{"hooks", "info", "remotes", "branches", "rebase-merge", "rebase-apply", "sequencer"}

// Aside is how a name ends that claudebox took out of git's reach, and how folders began into which it moved such
// things before 0.2.
const Aside = "claudebox-aside"

// IsDotGit reports whether a name is .git. Some folders take capitals for the same letters (casefold in ext4(5)).
func IsDotGit(name string) bool { return strings.EqualFold(name, ".git") }

// isGits reports whether git makes a name in a git folder, or claudebox did. Any other name is another tool's.
func isGits(name string) bool {
	return slices.Contains(gits, name) || strings.HasPrefix(name, sharedIndex) || strings.HasPrefix(name, Aside) ||
		path.Ext(name) == ".lock"
}

// IsStrange reports whether a sign in the name of a branch is none of letters, digits and a few more of any script. A
// prompt or an editor shows such names, and shells have run what stood in them.
func IsStrange(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) && !strings.ContainsRune("._/+@=#,-", r)
}

// sharedIndex is how the name of the file begins that an index was split from.
const sharedIndex = "sharedindex."
