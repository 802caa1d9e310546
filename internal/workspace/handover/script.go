package handover

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"claudebox/internal/diag"
)

// The scripts run in a box, and for the user's side without one: by the same programs, in the same environment. A
// script begins with the folder of git's common things in $C.

// prelude defines g: git that obeys nothing which names a program.
const prelude = `set -f -o pipefail
g() { git -c core.hooksPath=/dev/null -c core.fsmonitor=false -c log.showSignature=false \
  -c core.untrackedCache=false -c gc.auto=0 -c maintenance.auto=false -c advice.graftFileDeprecated=false "$@"; }
mark() { printf '\0\1\0'; }
head_of() { g symbolic-ref -q HEAD || g rev-parse --verify -q HEAD || :; }
`

// inCommon has git work in the folder of the common things, in none of a checkout's.
const inCommon = "export GIT_DIR=$C\n"

// noIndex is said of a checkout that has none, hasHead of one with a HEAD, which git may be unable to read.
const noIndex, hasHead = "no-index", "has-head"

// gone is the exit code of a script that finds an inner folder which is none that claudebox has made.
const gone = 76

// sameScript is the part of a script for the inner folder that ends it if the folder is not the one that was made:
// whoever removes all that is in it removes what refers to the user's objects.
func sameScript(p Place) string {
	return fmt.Sprintf("a=; [ ! -f \"$C/objects/info/alternates\" ] || "+
		"IFS= read -r -d '' -n 4096 a <\"$C/objects/info/alternates\"\n[ \"$a\" = %s$'\\n' ] || exit %d\n",
		diag.Quote(p.Shared()+"/objects"), gone)
}

// readScript prints what [parse] reads.
func readScript(p Place, inner bool) string {
	if inner {
		return prelude + sameScript(p) + reading(p, inner)
	}
	return prelude + reading(p, inner)
}

// reading is [readScript] without its beginning.
func reading(p Place, inner bool) string {
	var b strings.Builder
	// What is under way is read before all else and after HEAD: while an operation begins or ends, one of HEAD and its
	// branch may be read as it was, the other as it is.
	fmt.Fprintf(&b, "under_way() { for f in %s; do [ ! -e \"$GIT_DIR/$f\" ] || echo $f; done; }\nbefore=()\n",
		strings.Join(underWay, " "))
	for _, t := range p.Trees {
		fmt.Fprintf(&b, "GIT_DIR=%s; before+=(\"$(under_way)\")\n", diag.Quote(p.dir(t)))
	}
	b.WriteString(`export GIT_DIR=$C
g for-each-ref --format='%(objectname) %(refname) %(symref) %(worktreepath)%00' || exit 1; mark
`)
	switch {
	case p.Branch == "":
		b.WriteString("if [ -e \"$C/logs/refs/stash\" -o -e \"$C/reftable\" ] && " +
			"g rev-parse -q --verify refs/stash >/dev/null; then g stash list --format='%H %gs' || exit 1; fi\n")
	case !inner: // of a branch with two checkouts, for-each-ref names one
		b.WriteString("g worktree list --porcelain || exit 1\n")
	}
	b.WriteString("mark\n")
	for n, t := range p.Trees {
		fmt.Fprintf(&b, "export GIT_DIR=%s\nif [ -f \"$GIT_DIR/HEAD\" ]; then head_of; mark; "+
			"g ls-files --stage -z || exit 1; mark\n", diag.Quote(p.dir(t)))
		fmt.Fprintf(&b, "echo \"${before[%d]}\"; under_way\n", n)
		fmt.Fprintf(&b, "[ -e \"$GIT_DIR/index\" ] || echo %s; echo %s; mark\n", noIndex, hasHead)
		for _, file := range stateFiles {
			fmt.Fprintf(&b, "if [ -f \"$GIT_DIR/%s\" ]; then printf =; head -c %d \"$GIT_DIR/%[1]s\"; fi; mark\n",
				file.name, mostFile)
		}
		b.WriteString("else " + strings.Repeat("mark;", 3+len(stateFiles)) + " fi\n")
	}
	return b.String()
}

// changed is the exit code of [applyScript] when a side is not as it was read, or is in use.
const changed = 75

// applyScript does changes on one side, and returns what its git reads on standard input; at the end of that it asks
// [swaps]. No text of a side stands in the script but names that [crosses] and the like have let pass, quoted.
//
// It prints HEAD and index of each checkout in which they change, for [swaps] to judge. All is prepared before anything
// changes, and index and references change in one moment: between the two a commit would take back, or take along, what
// has crossed.
// ended is where it puts what was under way and has ended.
func applyScript(p Place, c Changes, why, ended string) (script, input string) {
	var b, in strings.Builder
	b.WriteString(prelude)
	b.WriteString(`made=()
trap 'for f in "${made[@]}"; do rm -f "$f"; done' EXIT
copy() {
  i=$GIT_DIR/index; made+=("$i.claudebox"); rm -rf "$i.claudebox"
  if [ -e "$i" ]; then cp -T "$i" "$i.claudebox" || exit 1; fi; export GIT_INDEX_FILE=$i.claudebox
  head_of; mark; g ls-files --stage -z || exit 1; mark
}
`)
	for _, t := range c.Trees {
		if !t.moves() {
			continue
		}
		fmt.Fprintf(&b, "export GIT_DIR=%s; copy\n", diag.Quote(p.dir(t.Tree)))
		text := stageText(t)
		in.WriteString(text)
		fmt.Fprintf(&b, "head -c %d | g update-index -z --index-info || exit 1; unset GIT_INDEX_FILE\n", len(text))
	}
	b.WriteString("export GIT_DIR=$C\n")
	refsScript(&b, &in, c.Refs, why)
	stashScript(&b, c.Stashes, c.Dropped)
	for _, t := range c.Trees {
		fmt.Fprintf(&b, "GIT_DIR=%s\n", diag.Quote(p.dir(t.Tree)))
		treeScript(&b, t, ended)
	}
	return b.String(), in.String()
}

// treeScript changes one checkout.
func treeScript(b *strings.Builder, t TreeChange, ended string) {
	for _, name := range t.Ended {
		fmt.Fprintf(b, "mkdir -p %s && rm -rf %[1]s/%[2]s && mv -fT \"$GIT_DIR/%[2]s\" %[1]s/%[2]s || exit 1\n",
			diag.Quote(ended), name)
	}
	if t.Head != "" {
		message := "checkout: moving from " + short(t.Expect.Head) + " to " + short(t.Head)
		if ref, is := strings.CutPrefix(t.Head, "ref: "); is {
			fmt.Fprintf(b, "g symbolic-ref -m %s HEAD %s || exit 1\n", diag.Quote(message), diag.Quote(ref))
		} else {
			fmt.Fprintf(b, "g update-ref --no-deref -m %s HEAD %s || exit 1\n", diag.Quote(message), t.Head)
		}
	}
	for _, file := range stateFiles {
		text, change := t.Files[file.name]
		switch {
		case !change:
		case text == "":
			fmt.Fprintf(b, "rm -f \"$GIT_DIR/%s\"\n", file.name)
		default:
			fmt.Fprintf(b, "printf %%s %s >\"$GIT_DIR/%s.claudebox\" && mv -fT \"$GIT_DIR/%[2]s.claudebox\" "+
				"\"$GIT_DIR/%[2]s\" || exit 1\n", diag.Quote(text), file.name)
		}
	}
	for _, name := range t.Copied {
		fmt.Fprintf(b, "rm -rf \"$GIT_DIR/%s\" && cp -rT --no-dereference %s \"$GIT_DIR/%[1]s\" || exit 1\n",
			name, diag.Quote(path.Join(usersFolder, t.Rel, name)))
	}
}

// usersFolder is where a box has what the user has under way, read-only.
const usersFolder = "/run/claudebox/users"

// refsScript changes references in transactions of git's: removals first, as a name can be in the way of others. The
// second one is prepared, and waits for an answer.
func refsScript(b, in *strings.Builder, changes []RefChange, why string) {
	var removals, updates strings.Builder
	for _, c := range changes {
		switch {
		case c.New == "":
			fmt.Fprintf(&removals, "delete %s\x00%s\x00", c.Name, c.Old)
		case c.Old == anyValue:
			fmt.Fprintf(&updates, "update %s\x00%s\x00\x00", c.Name, c.New)
		case c.Old == "":
			fmt.Fprintf(&updates, "create %s\x00%s\x00", c.Name, c.New)
		default:
			fmt.Fprintf(&updates, "update %s\x00%s\x00%s\x00", c.Name, c.New, c.Old)
		}
	}
	update := "g update-ref --no-deref --create-reflog -m " + diag.Quote(why) + " --stdin -z || exit 75\n"
	if removals.Len() > 0 {
		fmt.Fprintf(b, "head -c %d | %s", removals.Len(), update)
	}
	b.WriteString(update)
	in.WriteString(removals.String() + "start\x00" + updates.String() + "prepare\x00")
}

// stashScript adds to the list of stashes, and drops others by name: what came since it was read stays. git knows a
// stash by its number alone, which changes when the user makes one meanwhile, so what it dropped is looked at. With the
// last one the whole list goes, for which it has to be the newest still.
func stashScript(b *strings.Builder, add, dropped []Stashed) {
	if len(dropped) > 0 {
		fmt.Fprintf(b, `drop() {
  local list=($(g stash list --format=%%H)) n=0 of
  while [ $n -lt ${#list[@]} ] && [ ${list[n]} != $1 ]; do n=$((n+1)); done
  if [ $n = ${#list[@]} ]; then return; fi
  if [ ${#list[@]} = 1 ]; then g update-ref -d refs/stash $1 || exit %d; return; fi
  of=$(g stash drop "stash@{$n}") && of=${of##*\(} && of=${of%%\)*} || exit 1
  if [ "$of" != $1 ]; then g stash store -q -m "$(g show -s --format=%%s "$of")" "$of"; exit %[1]d; fi
}
`, changed)
	}
	for _, s := range dropped {
		fmt.Fprintf(b, "drop %s\n", s.Object)
	}
	if len(add) > 0 {
		b.WriteString("has=$(g stash list --format=%H 2>/dev/null) || :\n")
	}
	for _, s := range slices.Backward(add) {
		const store = "case $has in *%s*) ;; *) g stash store -q -m %s %[1]s || exit 1;; esac\n"
		fmt.Fprintf(b, store, s.Object, diag.Quote(s.Message))
	}
}

func stageText(t TreeChange) string {
	var b strings.Builder
	zero := strings.Repeat("0", 40)
	if i := strings.IndexByte(string(t.Expect.Index), '\t'); i > 60 {
		zero = strings.Repeat("0", 64)
	}
	for _, e := range t.Stage {
		if len(e.objects()) > 0 && len(e.objects()[0]) == 64 {
			zero = strings.Repeat("0", 64)
		}
		fmt.Fprintf(&b, "0 %s\t%s\x00", zero, e.Path)
		for stage := range strings.Lines(e.Stages) {
			fmt.Fprintf(&b, "%s\t%s\x00", strings.TrimSuffix(stage, "\n"), e.Path)
		}
	}
	return b.String()
}
