package branch

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/handover"
)

// Module is a submodule that the user has checked out. A new checkout has it at the branch's commit: in a repository of
// the agent's own, with all that the user's has committed. What the agent commits there crosses to the user's.
type Module = handover.Module

// ModuleNames are the paths of submodules.
func ModuleNames(list []Module) (names []string) {
	for _, m := range list {
		names = append(names, m.Path)
	}
	return names
}

// boxed is where a box has the user's git folder of a submodule.
func boxed(n int) string { return fmt.Sprintf("/run/claudebox/modules/%d", n) }

// moduleScript fills one submodule, and prints its path if that cannot be done; one that the branch does not have is
// passed over. The user's branches become those of a remote "user": the agent has none of its own yet. `git fetch` cannot
// do it: it starts a shell, and a git that goes into the user's working tree, which is not in the box.
const moduleScript = `# Path, git folder, the user's, the one that it is in, path and name there, the ways to each other.
module() {
  of=$(GIT_DIR=$4 g ls-files -s -- ":(literal)$5") && [[ $of = 160000\ * ]] || return 0
  of=${of#* }; of=${of%% *} m=$2 w=$GIT_WORK_TREE/$1
  s() { GIT_DIR=$m GIT_WORK_TREE=$w g "$@"; }
  refs="$of refs/remotes/user/HEAD
$(GIT_DIR=$3 g for-each-ref --format='%(objectname) %(refname)' refs/heads refs/remotes refs/tags)"
  rm -rf "$m"; mkdir -p "$m" "$w" && kind=$(GIT_DIR=$3 g rev-parse --show-object-format) &&
  (unset GIT_WORK_TREE; GIT_DIR=$m g init -q --template= --object-format="$kind") &&
  { [ ! -f "$3/shallow" ] || cp "$3/shallow" "$m/shallow"; } &&
  while read -r o _; do echo "$o"; done <<<"$refs" | GIT_DIR=$3 g pack-objects -q --revs --stdout |
    s index-pack --stdin >/dev/null &&
  while read -r o r; do echo "create ${r/#refs\/heads\//refs/remotes/user/} $o"; done <<<"$refs" |
    s update-ref --stdin &&
  s config core.bare false && s config core.worktree "$7" && s -c checkout.workers=0 checkout -q --detach "$of" &&
  printf 'gitdir: %s\n' "$8" >"$w/.git" || { printf '%s\0' "$1"; rm -rf "$m"; return 0; }
  url=$(GIT_DIR=$4 g config "submodule.$6.url") ||
    url=$(g config -f "${w%"$5"}.gitmodules" "submodule.$6.url") || return 0
  GIT_DIR=$4 g config "submodule.$6.url" "$url"
  s config remote.origin.url "$url"; s config remote.origin.fetch '+refs/heads/*:refs/remotes/origin/*'
}
`

// modulesScript fills the submodules of a checkout, those of others after them.
func modulesScript(list []Module) string {
	if len(list) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(moduleScript)
	order := make([]int, len(list))
	for n := range order {
		order[n] = n
	}
	slices.SortFunc(order, func(x, y int) int { return cmp.Compare(list[x].Path, list[y].Path) })
	for _, n := range order {
		m := list[n]
		in, rel, name := "", m.Path, m.Name
		for _, other := range list {
			at, below := pathname.Cut(m.Path, other.Path)
			named, is := strings.CutPrefix(m.Name, other.Name+"/modules/")
			if is && below && at != "" && len(named) < len(name) {
				in, rel, name = "/modules/"+other.Name, at, named
			}
		}
		git := path.Join(".git/modules", m.Name)
		up := func(from string) string { return strings.Repeat("../", strings.Count(from, "/")+1) }
		fmt.Fprintf(&b, "module %s \"$GIT_DIR\"/modules/%s %s \"$GIT_DIR\"%s %s %s %s %s 2>/dev/null\n",
			diag.Quote(m.Path), diag.Quote(m.Name), diag.Quote(boxed(n)), diag.Quote(in), diag.Quote(rel),
			diag.Quote(name),
			diag.Quote(up(git)+m.Path), diag.Quote(up(m.Path)+git))
	}
	return b.String()
}
