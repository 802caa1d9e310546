//go:build lab

package attacks_test

import (
	"os"
	"path/filepath"
	"testing"

	"claudebox/checks/kit/trial"
)

// leftovers are what an agent leaves so that the next launch finds something that
// it cannot read, hold or cover.
var leftovers = map[string]string{
	"a folder called config in what was taken out": `mkdir -p .git/modules/s/claudebox-aside/config n/.git/modules/s/claudebox-aside/config`,
	"a folder called config at the root":           `mkdir config objects refs; echo ref: refs/heads/x >HEAD`,
	"a configuration that is a pipe":               `rm n/.git/config; mkfifo n/.git/config; mkdir -p b/objects b/refs; echo ref: refs/x >b/HEAD; mkfifo b/config`,
	"a configuration that is huge":                 `truncate -s 1T n/.git/config; mkdir b; cp -r n/.git/* b`,
	"links in place of git's folders":              `mkdir m; cd m; git init -q .; mv .git g; ln -s g .git; ln -s .. g/modules; ln -s .. ../n/.git/worktrees`,
	"closed folders where the host looks":          `mkdir -p .claude/x .vscode .idea n/.git/modules/s .direnv; chmod 000 .vscode .idea n/.git/modules .direnv n/.git/info; chmod 444 .claude`,
	"the project closed":                           `chmod 000 .`,
	"closed git folders":                           `chmod 000 n/.git .git/objects .git/refs .git/info`,
	"1,500 files that look secret":                 `for i in $(seq 1500); do echo A=b >.env.$i; done`,
	"a secret at the end of a long path":           `d=$(printf 'a/%.0s' $(seq 700)); mkdir -p $d; cd $d; echo A=b >.env`,
	"secrets at the ends of 20 long paths":         `d=$(printf 'a/%.0s' $(seq 300)); for n in $(seq 20); do mkdir -p $n/$d; echo A=b >$n/$d/.env; done`,
	"40 repositories":                              `for i in $(seq 40); do mkdir -p !$i/.git/objects !$i/.git/refs; echo ref: refs/x >!$i/.git/HEAD; echo >!$i/.git/config; done`,
	"pipes and sockets in place of files":          `for f in .envrc .mcp.json .vimrc .env id_rsa .gitattributes; do mkfifo $f; done`,
	"names that no text has":                       `mkdir $'a\nb' $'\xff\xfe' $'\x1b]0;x\a'; for d in */; do echo A=b >"$d/.env"; git init -q "$d" 2>/dev/null; done`,
	"a list of worktrees with links in it":         `mkdir -p n/.git/worktrees; ln -s /etc n/.git/worktrees/e; ln -s . n/.git/worktrees/f; mkfifo n/.git/worktrees/g`,
	"the agent's own folders closed, and links":    `chmod 000 ~/.cache; ln -s / ~/x; mkfifo ~/y`,
	// More than a process may have open, with a path that is longer than one may be.
	"folders 1,200 deep":                       `p=$(printf 'ddd/%.0s' $(seq 400)); for i in $(seq 3); do mkdir -p $p && cd -P $p || break; done 2>/dev/null; git init -q . ; echo A=b >.env`,
	"a name of 255 bytes that repeats":         `n=$(printf 'n%.0s' $(seq 255)); for i in $(seq 30); do mkdir $n && cd -P $n || break; done 2>/dev/null; mkdir .git; echo A=b >.env; mkfifo .gitattributes`,
	"a file where a folder is and the reverse": `rm -rf n/.git/hooks n/.git/info n/.git/objects; touch n/.git/hooks n/.git/info n/.git/objects; mkdir n/.git/index n/.git/packed-refs`,
	"reports of a git folder without end":      `mkdir -p n/.git/logs/refs; for i in $(seq 300); do echo "clone: from https://u:p@h/$i" >n/.git/logs/refs/$i; done; cp n/.git/logs/refs/1 n/.git/logs/HEAD`,
}

func TestWhatAnAgentLeavesStopsTheNextLaunch(t *testing.T) {
	for what, script := range trial.Some(3, leftovers) {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			t.Cleanup(func() { openAll(w.home) })
			w.prepareSite(site{user: `git init -q project; git init -q project/n; cd project; git commit -qm x --allow-empty`})
			w.attack(script)
			for range 2 {
				if got := w.claudebox("shell", "--yes", "--", "true"); got.status != 0 {
					t.Errorf("it does\n%s", got)
				}
			}
			l := w.begin() // and when nobody looks after it
			l.sh("bash -c \"$(echo " + encoded(script) + " | base64 -d)\"")
			l.kill()
			if info, err := os.Stat(w.project); err == nil && info.Mode().Perm() == 0 {
				w.in("elsewhere").claudebox("shell", "--yes", "--", "true") // nobody can be in there
			}
			if got := w.claudebox("shell", "--yes", "--", "true"); got.status != 0 {
				t.Errorf("it does after a kill\n%s", got)
			}
		})
	}
}

func openAll(dir string) {
	filepath.WalkDir(dir, func(name string, e os.DirEntry, _ error) error {
		if e != nil && e.IsDir() {
			os.Chmod(name, 0o755)
		}
		return nil
	})
}
