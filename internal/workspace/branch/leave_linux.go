package branch

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"claudebox/internal/diag"
	"claudebox/internal/workspace/git"
	"claudebox/internal/workspace/survey"
)

const (
	leaveTime = time.Minute
	// large is from which size on a file is not committed for the agent, in bytes.
	large = 1 << 20
	// many is how many untracked files of one folder are committed.
	many = 1000
)

// leaveScript commits what the agent has not: by an index aside, so that no hook runs, and what is under way stays. It
// prints what it did and left out: a word, a space, a name, NUL. Repositories, large files and many at once are left
// out.
const leaveScript = `cd "$GIT_WORK_TREE" || exit 1
beside=refs/heads/claudebox/%[1]s/uncommitted busy=
for s in rebase-merge rebase-apply sequencer BISECT_LOG MERGE_HEAD CHERRY_PICK_HEAD REVERT_HEAD; do
  [ ! -e "$GIT_DIR/$s" ] || busy=$s
done
tip() { printf 'tip %%s\0' "$(g rev-parse -q --verify refs/heads/%[1]s)"; }
%[4]s
refs=$(g for-each-ref --format='%%(objectname)%%(refname)' refs/heads/%[1]s "$beside") || exit 1
if [ -z "$busy" ] && [ -f "$GIT_DIR/index" ] && [[ $refs != *"$beside"* ]] &&
  g -c core.excludesFile=/tmp/excludes status --porcelain -z >/tmp/status && [ ! -s /tmp/status ]; then
  printf 'tip %%s\0' "${refs%%%%refs/heads/%[1]s*}"
  exit 0
fi
export GIT_INDEX_FILE=/tmp/index
if [ -f "$GIT_DIR/index" ]; then cp "$GIT_DIR/index" /tmp/index; else g read-tree HEAD; fi || exit 1
lfs=':(exclude,attr:filter=lfs)'
g -c core.excludesFile=/tmp/excludes ls-files -o --exclude-standard -z -- . "$lfs" >/tmp/others || exit 1
g -c core.excludesFile=/tmp/excludes ls-files -o -m --exclude-standard -z -- "${lfs/exclude,/}" |
  while IFS= read -r -d '' f; do
    if [ ! -f "$f" ]; then g update-index --force-remove -- "$f"; continue; fi
    is=$(sha256sum <"$f" | head -c 64) # git cannot compare it with what it has of it
    [[ $(g cat-file blob ":$f" 2>/dev/null | head -c 1000 | tr -d '\0') = *"sha256:$is"* ]] || printf 'lfs %%s\0' "$f"
  done
declare -A count=() told=()
while IFS= read -r -d '' f; do
  top=${f%%%%/*}
  case $f in
  */) printf 'repository %%s\0' "$f" ;;
  *) printf '%%s\0' "$f" >&3; count[$top]=$((${count[$top]-0}+1)) ;;
  esac
done </tmp/others 3>/tmp/files
[ ! -s /tmp/files ] || du -l -b -0 --files0-from=/tmp/files 2>/dev/null >/tmp/sizes
[ ! -s /tmp/sizes ] || while IFS=$'\t' read -r -d '' size f; do
  top=${f%%%%/*}
  if [ "${count[$top]-0}" -gt %[3]d ]; then
    [ "${told[$top]-}" ] || printf 'many %%s\0' "$top"; told[$top]=1
  elif [ "$size" -gt %[2]d ]; then printf 'large %%s\0' "$f"
  else printf '%%s\0' "$f" >&3; fi
done </tmp/sizes 3>/tmp/add
failed() {
  case $(</tmp/why) in *'No space left'* | *'quota exceeded'*) echo 'No space left on device' >&2; exit 1 ;; esac
  printf 'unread \0'
}
g add -u --ignore-errors -- . "$lfs" >/dev/null 2>/tmp/why || failed
[ ! -s /tmp/add ] || GIT_LITERAL_PATHSPECS=1 g add --ignore-errors --pathspec-from-file=/tmp/add \
  --pathspec-file-nul >/dev/null 2>/tmp/why || failed
t=$(g write-tree) || exit 1
h=$(g rev-parse -q --verify HEAD) || h=
clean() { if g rev-parse -q --verify "$beside" >/dev/null; then g update-ref -d "$beside"; fi; }
if [ "$h" ] && [ "$t" = "$(g rev-parse "$h^{tree}")" ]; then clean; tip; exit 0; fi
c=$(GIT_AUTHOR_NAME=agent g commit-tree ${h:+-p "$h"} -m 'what the agent left uncommitted' "$t") || exit 1
if [ "$busy" ]; then
  g update-ref -m 'claudebox: left uncommitted' "$beside" "$c" || exit 1
  printf 'beside \0'
  tip
  exit 0
fi
g update-ref -m 'claudebox: left uncommitted' HEAD "$c" && cp /tmp/index "$GIT_DIR/index.claudebox" &&
  mv -fT "$GIT_DIR/index.claudebox" "$GIT_DIR/index" || exit 1
clean
printf 'commit \0'
tip
`

// modulesLeft prints what is in submodules and nowhere else: of those from which commits cross, what is not committed.
const modulesLeft = `n=0
left() { # git folder, working tree, its path from the top, depth
  [[ -f $2/.gitmodules && $4 -lt 10 ]] || return 0
  GIT_DIR=$1 GIT_WORK_TREE=$2 GIT_INDEX_FILE=$1/index g ls-files -s -z >"/tmp/left.$4"
  while IFS=$'\t' read -r -d '' what f; do
    [[ $what = 160000\ * && -e $2/$f/.git ]] || continue
    ((n++ < 100)) || return 0
    local w=$2/$f m=$2/$f/.git
    [ -d "$m" ] || { IFS= read -r m <"$m" && m=$top/modules/${m#*/.git/modules/}; }
    s() { GIT_DIR=$m GIT_WORK_TREE=$w GIT_INDEX_FILE=$m/index g "$@"; }
    case $crossing in
    *"/$m/"*) word=uncommitted commits= ;;
    *) word=submodule commits=$(s rev-list -n 1 HEAD --branches --not --remotes 2>&1) ;;
    esac
    [ -z "$commits$(s status --porcelain --ignore-submodules=all 2>&1 | head -c 1)" ] || printf '%s %s\0' $word "$3$f"
    left "$m" "$w" "$3$f/" $(($4+1))
  done <"/tmp/left.$4"
}
top=$GIT_DIR; left "$GIT_DIR" "$PWD" "" 0
`

// leftScript is the part of a script that prints what stays in submodules.
func (b Branch) leftScript() string {
	var crossing strings.Builder
	crossing.WriteString("crossing=")
	for _, m := range b.Modules {
		crossing.WriteString("/$GIT_DIR/modules/" + diag.Quote(m.Name) + "/")
	}
	return crossing.String() + "\n" + modulesLeft
}

// said are what people are told about the words that [leaveScript] prints.
var said = map[string]string{
	"repository":  "repositories that the agent made are kept with the checkout, and do not cross: ",
	"uncommitted": "what is not committed in submodules is kept with the checkout, and does not cross: ",
	"submodule": "commits and changes in submodules that you have not checked out stay with the checkout: " +
		"push them from inside: ",
	"large":  "files above 1 MiB are kept with the checkout, and were not committed: ",
	"lfs":    "files of Git LFS are kept with the checkout, and were not committed, which takes git-lfs: ",
	"many":   "folders with more than 1,000 new files are kept with the checkout, and were not committed: ",
	"unread": "some files could not be read, and were not committed",
	"commit": "what the agent left uncommitted is the last commit of the branch",
	"beside": "what the agent left uncommitted is on claudebox/NAME/uncommitted, as git has something under way; the " +
		"next session goes on with it",
}

// takeOutPipes renames the pipes in the checkout, as at the end of a session in the user's folder: git waits where it
// opens one. It returns a line for people. Nothing may run inside.
func (h *Held) takeOutPipes() (lines []string) {
	var names []string
	pipes, _ := survey.Pipes(h.tree)
	for _, rel := range pipes {
		if !strings.HasSuffix(rel, "."+git.Aside) && h.tree.Rename(rel, rel+"."+git.Aside) == nil {
			names = append(names, diag.Name(rel))
		}
	}
	if len(names) > 0 {
		lines = append(lines, "branch "+h.Name+": pipes of the agent's have names that end with ."+git.Aside+
			" now, as whoever opens one waits: "+diag.Some(names, 3))
	}
	return lines
}

// Leave commits what the agent has not committed. It returns lines for people. Nothing may run inside any more.
func (h *Held) Leave() (lines []string, err error) {
	if !h.rests() {
		lines = h.takeOutPipes()
	}
	script := h.excludes() + fmt.Sprintf(leaveScript, diag.Quote(h.Name), large, many, h.leftScript())
	answer, err := h.leaveOnce(script)
	if err != nil {
		return lines, err
	}
	h.left = cmp.Or(h.record.Tip, h.tip, h.Start)
	of := map[string][]string{}
	for item := range strings.SplitSeq(answer, "\x00") {
		word, name, is := strings.Cut(item, " ")
		switch {
		case is && word == "tip":
			h.record.Tip = name
		case is && said[word] != "":
			of[word] = append(of[word], diag.Name(strings.TrimSuffix(name, "/")))
		}
	}
	for _, word := range []string{
		"commit", "beside", "repository", "submodule", "uncommitted", "large", "lfs", "many", "unread",
	} {
		if names := of[word]; len(names) > 0 {
			text := strings.ReplaceAll(said[word], "NAME", h.Name)
			if strings.HasSuffix(text, ": ") {
				text += diag.Some(names, 3)
			}
			lines = append(lines, "branch "+h.Name+": "+text)
		}
	}
	return lines, nil
}

// leaveOnce runs the script, unless nothing has changed since it found nothing to do.
func (h *Held) leaveOnce(script string) (string, error) {
	look := func() *still {
		s := newStill()
		s.open(h.Place().Inner(), s.takeGit)
		return s
	}
	file := h.Dir + "/left"
	if was := find(file); h.rests() && was.Key != "" && was.Key == look().key(script) {
		return was.Answer, nil
	}
	began := time.Now()
	answer, err := h.run(context.Background(), script, "", leaveTime)
	onlyTip := strings.HasPrefix(string(answer), "tip ") && strings.Count(string(answer), "\x00") == 1
	if err == nil && onlyTip {
		keep(file, began, look(), script, known{Answer: string(answer), Folders: h.walk(nil).Folders()})
	}
	return string(answer), err
}

// IsCommit reports whether a line of [Held.Leave] only says that what was left has crossed.
func IsCommit(line string) bool { return strings.HasSuffix(line, said["commit"]) }
