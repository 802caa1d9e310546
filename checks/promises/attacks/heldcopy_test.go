//go:build lab

package attacks_test

import (
	"strings"
	"testing"
)

// heldBack makes a repository and waits until it is held back: held is the folder for what sessions hold back, session
// the name of this one in it, id and way the place of the repository, and in it a copy of its link gets one of its own.
const heldBack = `
mkdir a b c
git init -q a
for i in $(seq 600); do [ -L a/.git ] && break; sleep 0.05; done
link=$(readlink a/.git) && held=${link%%/.held/*}/.held && rest=${link#"$held"/} && session=${rest%%/*}
rest=${rest#*/} id=${rest%%/*} way=${rest#*/} way=${way%/g}
# copied N: waits until one more copy of the link has a repository of its own, so that those before it were tried.
copied() {
  mkdir "copy-$1" && cp -P a/.git "copy-$1/.git"
  for i in $(seq 600); do [ "$(readlink "copy-$1/.git")" != "$link" ] && return; sleep 0.05; done
}
`

// A link to what is held back leads on from there, by "..", to a file of the user's: its copy would be inside.
//
// Promise: no secret place.
func TestACopyOfALinkToWhatIsHeldBackReadsNoFileOfTheUsers(t *testing.T) {
	w := newWorld(t)
	w.write("project/.env", "TOKEN="+canary)
	up := strings.Repeat("../", 40)
	got := w.attack(heldBack + `
ln -s "$held/$session/$id/` + up + w.home[1:] + `/.ssh" b/.git
ln -s "$held/$session/$id/` + up + w.project[1:] + `/.env" c/.git
copied 1; copied 2
[ "$(readlink copy-2/.git)" != "$link" ] && echo COPIED
grep -rs CANARY "$held"`)
	w.wantNoCanary(got)
	if !strings.Contains(got.stdout, "COPIED") {
		t.Errorf("nothing was copied: %s", got)
	}
}

// The agent puts folders of its own in the place of the session's, with links to the user's home on the way.
//
// Promise: nothing planted for your tools, unsaid.
func TestACopyOfALinkToWhatIsHeldBackWritesNoFileOfTheUsers(t *testing.T) {
	w := newWorld(t)
	w.write(".bashrc", "of the user\n")
	got := w.attack(heldBack + `
mv -T "$held/$session" "$held/real"
mkdir -p "$held/$session/$id/$way/g"
ln -s ../.bashrc "$held/$session/$id/$way/g/l"
for n in $(seq $((id + 1)) $((id + 9))); do
  mkdir -p "$held/$session/$n/${way%/*}"; ln -s ` + w.home + ` "$held/$session/$n/$way"
done
ln -s "$held/$session/$id/$way/g" b/.git; copied 1
rm "$held/$session/$id/$way/g/l"; echo of the agent >"$held/$session/$id/$way/g/l"
ln -s "$held/$session/$id/$way/g" c/.git; copied 2
rm -rf "${held:?}/$session"; mv -T "$held/real" "$held/$session"`)
	if w.read(".bashrc") != "of the user\n" || w.exists("g") {
		t.Errorf("the agent wrote in the home: %q, %s", w.read(".bashrc"), got)
	}
}
