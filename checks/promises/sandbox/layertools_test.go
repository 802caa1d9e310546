//go:build lab

package sandbox_test

import (
	"os"
	"path/filepath"
	"testing"

	"claudebox/checks/kit/must"
)

// bigPackages are packages of npm's by their files; one is so large that node_modules becomes a layer.
const bigPackages = `mkdir -p package; truncate -s 21000000 package/large; echo '{"name":"big","version":"1.0.0"}' >package/package.json; echo 'module.exports = 7' >package/index.js; tar czf big.tgz package
rm -r package; mkdir package; echo '{"name":"small","version":"1.0.0","bin":{"small":"index.js"}}' >package/package.json; printf '#!/usr/bin/env node\nconsole.log("small")\n' >package/index.js; tar czf small.tgz package; rm -r package
echo '{"name":"p","version":"1.0.0","dependencies":{"big":"file:big.tgz","small":"file:small.tgz"}}' >package.json; echo node_modules/ >>.gitignore; `

// npm is a function of a shell that runs npm without a network.
const npm = `npm() { node "$NPM/bin/npm-cli.js" --offline --no-audit --no-fund --no-update-notifier --loglevel=error "$@" >/dev/null; }; `

// real is the file that a variable of the lab leads to, or one below it.
func real(t *testing.T, variable, name string) string {
	t.Helper()
	path, err := filepath.EvalSymlinks(filepath.Join(os.Getenv(variable), name))
	must.Do(t, err)
	return path
}

// withNode returns a world with node and npm, for the user and as flags for a session.
func withNode(t *testing.T) (w *world, flags []string) {
	t.Helper()
	w = onBranch(t)
	node, modules := real(t, "CLAUDEBOX_TEST_NODE", ""), real(t, "CLAUDEBOX_LAB_RELEASES", "npm")
	w.link(t, node, ".local/bin/node")
	w.link(t, modules, ".local/share/npm")
	return w, []string{"--mount-ro", node + ":/opt/node/bin/node", "--mount-ro", modules + ":/opt/npm"}
}

const (
	usersNpm  = `export PATH=~/.local/bin:$PATH NPM=$(readlink -f ~/.local/share/npm); ` + npm
	agentsNpm = `export PATH=/opt/node/bin:$PATH NPM=/opt/npm; ` + npm
	// saying prints what a command printed last, or how it failed.
	saying = `say() { local out; out=$("${@:2}" 2>&1) && echo "$1: ok" || echo "$1: $? ${out##*: }"; }; `
)

// npm works on a layer over what npm has installed outside. A folder that is a layer can be emptied, not removed.
func TestNpmOnALayer(t *testing.T) {
	w, flags := withNode(t)
	w.plain(t, usersNpm+bigPackages+`npm install; git add .; git commit -qm packages -- .gitignore package.json package-lock.json big.tgz small.tgz; ls node_modules`)
	before := w.plain(t, users)
	got := w.branchOf(t, "feat", agentsNpm+saying+`grep -c "overlay $PWD" /proc/mounts; use() { [ "$(node -p 'require("big")')" = 7 ] && ls node_modules/big | wc -l && node_modules/.bin/small; }; use
say ls npm ls; say ci npm ci; use; say uninstall npm uninstall small; ls node_modules; say install npm install ./small.tgz; use; say update npm update
say remove rm -rf node_modules; ls -A node_modules | wc -l; say again npm ci; use; say dedupe npm dedupe; say prune npm prune; git diff --name-only`, flags...)
	const use = "3\nsmall\n"
	wantEqual(t, got.stdout, "1\n"+use+"ls: ok\nci: ok\n"+use+"uninstall: ok\nbig\ninstall: ok\n"+use+
		"update: ok\nremove: 1 Device or resource busy\n0\nagain: ok\n"+use+"dedupe: ok\nprune: ok\npackage.json\n")
	wantEqual(t, w.plain(t, users), before)
	got = w.branchOf(t, "feat", agentsNpm+`node_modules/.bin/small; ls node_modules/big | wc -l; npm ls; echo whole`, flags...)
	wantEqual(t, got.stdout, "small\n3\nwhole\n")
}

// onALayer does what tools do with files that lie below a layer.
const onALayer = `import fcntl, mmap, os, sqlite3, subprocess, sys
os.chdir("build")
def do(name, call):
    try: call(); print(name + ": ok")
    except OSError as e: print(name + ": " + e.strerror)
os.makedirs("fresh/in"); open("fresh/in/f", "w").close()
do("rename of a folder made inside", lambda: os.rename("fresh", "fresh2"))
do("rename of one below", lambda: os.rename("low", "low2"))
do("mv of one below", lambda: subprocess.run(["mv", "low", "low2"], check=True))
do("rename of a file below", lambda: os.rename("m1", "n1"))
do("replace of a file below", lambda: os.rename("n1", "m2"))
do("hard link to a file below", lambda: os.link("m3", "l3"))
do("hard link into the tree", lambda: os.link("m3", "../l3"))
open("m3", "a").write("more\n")
print("the link has %r" % open("l3").read())
open("pair1", "a").write("b\n"); print("the other name of a file below has %r" % open("pair2").read())
held = open("m4"); fcntl.flock(held, fcntl.LOCK_EX); other = open("m4", "a")
try: fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB); print("lock lost")
except BlockingIOError: print("lock held over the first write")
reader = sqlite3.connect("db", timeout=120); reader.execute("select count(*) from t").fetchone()
one = sqlite3.connect("db", timeout=120)
one.execute("insert into t values (-1)"); one.commit()
print("sqlite, a reader from before:", reader.execute("select count(*) from t").fetchone()[0], one.execute("pragma journal_mode").fetchone()[0])
add = """import sqlite3
c = sqlite3.connect("db", timeout=120, isolation_level=None)
for i in range(25):
    c.execute("begin immediate"); c.execute("insert into t select max(n) + 1 from t"); c.execute("commit")
"""
print("sqlite, four at once:", [p.wait() for p in [subprocess.Popen([sys.executable, "-c", add]) for _ in range(4)]], reader.execute("select max(n) from t").fetchone()[0])
one.execute("begin exclusive")
try: sqlite3.connect("db", timeout=0).execute("begin immediate"); print("sqlite: no lock")
except sqlite3.OperationalError as e: print("sqlite:", e)
one.rollback(); print("sqlite:", one.execute("pragma wal_checkpoint(truncate)").fetchone()[0], one.execute("pragma integrity_check").fetchone()[0]); one.execute("vacuum")
`

// watching waits for what inotify tells of files below a layer, and of those made in it.
const watching = `const fs = require("fs"), got = new Set(), want = ["file", "change m9", "rename new", "rename m10", "rename m11", "all in/deep"]
process.chdir("build"); fs.mkdirSync("in")
fs.watch("m9", () => got.add("file")); fs.watch(".", (e, f) => got.add(e + " " + f)); fs.watch(".", {recursive: true}, (e, f) => got.add("all " + f))
fs.appendFileSync("m9", "x"); fs.writeFileSync("new", ""); fs.unlinkSync("m10"); fs.renameSync("new", "m11")
let n = 0; const t = setInterval(() => { fs.writeFileSync("in/deep", "" + n++); const left = want.filter(w => !got.has(w))
  if (!left.length || n > 1200) { console.log("watched:", left.join(", ") || "all"); process.exit() } }, 50)
`

// What package managers, builds, watchers, databases and git itself do on a layer works as on a plain folder, but for
// what the documentation names.
func TestRealToolsOnALayer(t *testing.T) {
	w, flags := withNode(t)
	w.plain(t, `mkdir -p build/low app/target app/.venv app/.cache; truncate -s 21000000 build/large app/target/large app/.venv/large app/.cache/large; for i in $(seq 11); do echo $i >build/m$i; done; echo low >build/low/f; echo a >build/pair1; ln build/pair1 build/pair2
printf 'build/\ntarget/\n.venv/\n.cache/\n' >>.gitignore; echo app >app/app; git add app .gitignore; git commit -qm app -- app .gitignore
python3 -c 'import sqlite3; c = sqlite3.connect("build/db"); c.execute("pragma journal_mode=wal"); c.execute("create table t(n)"); c.execute("insert into t values (0)"); c.commit()'`)
	w.write(t, "project/build/a.py", onALayer)
	w.write(t, "project/build/w.js", watching)
	before := w.plain(t, users)
	got := w.branchOf(t, "feat", `export PATH=/opt/node/bin:$PATH; `+saying+`grep -c "overlay $PWD" /proc/mounts; python3 build/a.py; node build/w.js
cd app; say venv python3 -m venv --without-pip .venv; say 'venv, cleared' python3 -m venv --without-pip --clear .venv; say 'venv, removed' rm -rf .venv; say 'venv, again' python3 -m venv --without-pip .venv; .venv/bin/python -c 'import sys; print(sys.prefix != sys.base_prefix)'
cd ..; say 'mv of what holds it' mv app app2; say 'and back' mv app2 app; say 'mv of the folder' mv build b2
echo more >>src/a; echo u >u; say stash git stash; say 'stash -u' git stash -u; git stash pop >/dev/null; git stash pop >/dev/null; git status --porcelain
say worktree git worktree add -q build/wt -b wt; git -C build/wt commit -q --allow-empty -m wt; say 'worktree, removed' git worktree remove build/wt; say gc git gc -q --prune=now; say fsck git fsck --strict --no-dangling
say switch git switch -q wt -f; say back git switch -q feat; echo end >>src/a; git commit -qam more; say rebase git rebase -q wt; say 'clean -fdX' git clean -fdXq; ls -A app/target build`, flags...)
	const want = `4
rename of a folder made inside: ok
rename of one below: Invalid cross-device link
mv of one below: ok
rename of a file below: ok
replace of a file below: ok
hard link to a file below: ok
hard link into the tree: Invalid cross-device link
the link has '3\nmore\n'
the other name of a file below has 'a\n'
lock held over the first write
sqlite, a reader from before: 2 wal
sqlite, four at once: [0, 0, 0, 0] 100
sqlite: database is locked
sqlite: 0 ok
watched: all
venv: ok
venv, cleared: ok
venv, removed: 1 Device or resource busy
venv, again: ok
True
mv of what holds it: ok
and back: ok
mv of the folder: 1 Device or resource busy
stash: ok
stash -u: ok
 M src/a
?? u
worktree: ok
worktree, removed: ok
gc: ok
fsck: ok
switch: ok
back: ok
rebase: ok
clean -fdX: 1 Device or resource busy
app/target:

build:
`
	wantEqual(t, got.stdout, want)
	wantEqual(t, w.plain(t, users), before)
}
