//go:build lab

package sandbox_test

import (
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/expect"
)

// Files of Git LFS: the agent has the content of yours, of each commit, and what it adds crosses with the commits that
// name it, in a session in the user's folder and on a branch. What it forges does not; of what it has not committed on a
// branch claudebox makes no file of git's, and says so.
func TestTheContentOfGitLFSCrosses(t *testing.T) {
	w := newWorld(t)
	w.repository(t)
	w.write(t, ".gitconfig", identity)
	profile := w.profile(t, "packages: [git-lfs]")
	lfs := succeed(t, w.session("readlink -f $(command -v git-lfs)", "--profile", profile))
	w.link(t, strings.TrimSpace(lfs), ".local/bin/git-lfs")
	w.plain(t, `export PATH=~/.local/bin:$PATH; git lfs install >/dev/null; git lfs track '*.bin' >/dev/null; echo first >x.bin; git add .; git commit -qm first; git switch -qc other; echo theirs >x.bin; git commit -qam theirs; git switch -q main`)
	const check = `export PATH=~/.local/bin:$PATH; git status --porcelain; git lfs fsck >/dev/null; `
	succeed(t, w.session(`git status --porcelain; cat x.bin; git switch -q other; cat x.bin; git switch -qc third; echo third >z.bin; git add .; git commit -qm third
git switch -q main; echo two >x.bin; echo y >y.bin; git add .; git commit -qm two; git lfs fsck >/dev/null`, "--profile", profile))
	wantEqual(t, w.plain(t, check+`cat x.bin y.bin; git switch -q third; cat z.bin; git switch -q main`), "two\ny\nthird")
	before := w.plain(t, users)
	got := w.branchOf(t, "feat", `git lfs checkout >/dev/null 2>&1; cat x.bin y.bin; echo three >x.bin; echo n >n.bin; git add .; git commit -qm three; git lfs fsck >/dev/null
h=$(printf '%064d' 7); mkdir -p .git/lfs/objects/00/00; echo forged >.git/lfs/objects/00/00/$h; ln -s /etc/passwd .git/lfs/objects/00/00/${h/7/8}; echo up >.git/lfs/objects/up`, "--profile", profile)
	wantEqual(t, got.stdout, "two\ny\n")
	if strings.Contains(got.stderr, "were not committed") {
		t.Errorf("it says %s", got.stderr)
	}
	wantEqual(t, w.plain(t, users), before)
	wantEqual(t, w.plain(t, check+`git switch -q feat; cat x.bin n.bin; git switch -q main; find .git/lfs/objects -name "0000*" -o -name up`), "three\nn")
	got = w.branchOf(t, "feat", `rm y.bin; echo left >left.bin; echo plain >plain; echo more >n.bin`, "--profile", profile)
	expect.Contains(t, oneLine(got.stderr), "files of Git LFS are kept with the checkout, and were not committed, which takes git-lfs: left.bin, n.bin",
		"is the last commit of the branch")
	wantEqual(t, w.plain(t, check+`git ls-tree --name-only feat | tr '\n' ' '; git show feat:n.bin | head -1`), ".gitattributes README.md n.bin plain x.bin version https://git-lfs.github.com/spec/v1")
}

// Whatever the agent puts where git-lfs keeps its content, the end and the next start take no longer and say nothing of
// it; commits and good content cross all the same, and nothing else does.
func TestTheFolderOfGitLFSIsHostile(t *testing.T) {
	const plant = `put() { mkdir -p .git/lfs/objects/${1:0:2}/${1:2:2}; cd .git/lfs/objects/${1:0:2}/${1:2:2}; }; h() { printf "$1%063d" 0; }
(put $(h 0); mkfifo $(h 0)); (put $(h 1); truncate -s 1T $(h 1)); (put $(h 2); ln -s /etc/passwd $(h 2)); (put $(h 3); mkdir $(h 3)); (put $(h 4); echo x >$(h 4))
(put $(h 5); echo x >$(h 5); chmod 0 $(h 5)); (put $(h 6); python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("s")'); mkdir .git/lfs/tmp; mkfifo .git/lfs/tmp/p .git/p
sum=$(echo good | sha256sum | head -c 64); (put $sum; echo good >$sum); git commit -q --allow-empty -m two; ln -s ../../.. .git/lfs/up; echo left >left; git add left`
	for name, tc := range map[string]struct {
		on    []string
		plant string
		want  string
	}{
		"in the folder":        {nil, plant, "good\n1"},
		"on a branch":          {[]string{"--branch", "feat"}, plant, "good\n1"},
		"a link to your files": {nil, `git commit -q --allow-empty -m two; ln -s ../.. .git/lfs`, "0"},
		"a link on a branch":   {[]string{"--branch", "feat"}, `git commit -q --allow-empty -m two; mkdir .git/lfs; ln -s ../.. .git/lfs/objects`, "0"},
		"a pipe at the index":  {nil, `git commit -q --allow-empty -m two; rm .git/index; mkfifo .git/index`, "0"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.repository(t)
			w.write(t, ".gitconfig", identity)
			in := func(script string) outcome {
				words := slices.Concat([]string{"shell", "--yes"}, tc.on, []string{"--", "bash", "-euc", script})
				return run(t, w.claudebox(words...))
			}
			if got := in(tc.plant); got.status != 0 || strings.Contains(got.stderr, "pipe") || strings.Contains(got.stderr, "did not cross") {
				t.Errorf("status %d, it says %s", got.status, got.stderr)
			}
			if got := in("git log -1 --format=%s"); !strings.HasPrefix(got.stdout, "two\n") && !strings.HasPrefix(got.stdout, "what the agent left") ||
				strings.Contains(got.stderr, "there is a new one") {
				t.Errorf("the next one has %q, it says %s", got.stdout, got.stderr)
			}
			wantEqual(t, w.plain(t, `git log --all --format=%s | grep -x two >/dev/null; git status --porcelain | grep -v left || :; find .git/lfs/objects -type f -exec cat {} + 2>/dev/null || :; find .git/lfs/objects ! -type d 2>/dev/null | wc -l`), tc.want)
		})
	}
}

// The agent makes a repository of its own with the other format of references, and changes the format of the one that
// crosses: the commits are there outside, which keeps its format.
func TestTheAgentChangesTheFormatOfReferences(t *testing.T) {
	const (
		commit  = `for i in 1 2; do echo $i >>README.md; git commit -qam agent$i; done; git branch more; git tag v1; `
		migrate = `rm -rf .git/logs; git refs migrate --ref-format=reftable; git rev-parse --show-ref-format; `
	)
	for name, on := range map[string][]string{"in the folder": nil, "on a branch": {"--branch", "feat"}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.repository(t)
			w.write(t, ".gitconfig", identity)
			branch := "main"
			if on != nil {
				branch = "feat"
			}
			in := func(script, want string) outcome {
				t.Helper()
				got := run(t, w.session(script, append([]string{"--no-report"}, on...)...))
				if got.status != 0 || got.stdout != want {
					t.Errorf("%s: status %d, %q, want %q; it says %s", script, got.status, got.stdout, want, got.stderr)
				}
				return got
			}
			in(commit+migrate+`echo 3 >>README.md; git commit -qam agent3; git init -q --ref-format=reftable own; cd own; echo o >o; git add .; git commit -qm own`, "reftable\n")
			wantEqual(t, w.plain(t, "git log --format=%s "+branch+" -- | head -3; git rev-parse -q --verify more >/dev/null; git fsck --strict --no-dangling; git config extensions.refstorage || :; ls -d .git/reftable 2>/dev/null || :"), "agent3\nagent2\nagent1")
			w.plain(t, "git update-ref refs/heads/"+branch+" $(git commit-tree -p "+branch+" -m mine "+branch+"^{tree})")
			in(`git log -1 --format=%s; git commit -q --allow-empty -m four; git -C own log --format=%s 2>/dev/null || echo lost`, "mine\nown\n")
			wantEqual(t, w.plain(t, "git log --format=%s "+branch+" -- | head -2; git fsck --strict --no-dangling"), "four\nmine")
			if on == nil {
				wantEqual(t, w.plain(t, "git -C own log --format=%s; git -C own fsck --strict"), "own")
			}
		})
	}
}

// A disk becomes full before a session on a branch, while one runs, and before the next one. Each says so, nothing is
// lost, and the first session with room again has all of it, on the user's branch at the latest when it ends.
func TestABranchOnAFullDisk(t *testing.T) {
	for name, tc := range map[string]struct {
		disk string
		want []string // in turn
	}{
		"claudebox's own": {".claudebox", []string{
			"refused", "no space left", "free some space", "started", "said: one base", "started", "No space left", "free some space", "two one base",
			"refused", "no space left", "make room", "started", "what the agent left uncommitted two one base : left",
		}},
		"the project's": {"project", []string{
			"refused", "no space left", "make room", "started", "said: one base", "started", "your git does not take it", "free some space", "two one base",
			"started", "your git does not take it", "started", "what the agent left uncommitted three two one base : left",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write(t, ".gitconfig", identity)
			w.write(t, ".claudebox/.keep", "")
			script := `cd ~/project; disk=~/` + tc.disk + `; fill() { cat /dev/zero >$disk/fill 2>/dev/null; }; look() { git log --format=%s feat -- | tr '\n' ' '; git status --short | grep -v fill; git fsck --strict --no-dangling; }
cb() { timeout 100 "$CLAUDEBOX_BIN" shell --yes --branch feat --mount-ro ~/flag:/flag -- bash -uc "$1" 2>~/said; case $? in 125) echo -n 'refused ' ;; *) echo -n 'started ' ;; esac; cat ~/said; echo said:; }
git init -q -b main; seq 3000 >base; git add .; git commit -qm base; mkdir ~/flag; fill; cb true
rm $disk/fill; cb 'echo one >one; git add one; git commit -qm one'; look
(for i in $(seq 1000); do git rev-parse -q --verify ready >/dev/null && break; sleep 0.05; done; fill; touch ~/flag/full) &
cb 'echo two >two; git add two; git commit -qm two; echo left >left; git branch ready; until [ -e /flag/full ]; do sleep 0.05; done; git commit -qm three --allow-empty'
wait; look; cb true; rm $disk/fill; cb true; look; echo -n ': '; git show feat:left`
			cmd := exec.Command("bwrap", "--die-with-parent", "--unshare-user", "--dev-bind", "/", "/", "--size", "20000000", "--tmpfs", w.path(tc.disk),
				"--chdir", w.home, "--", "bash", "-uc", script)
			cmd.Env = append(w.environment(), "CLAUDEBOX_BIN="+os.Getenv("CLAUDEBOX_BIN"))
			out, err := cmd.CombinedOutput()
			rest := oneLine(string(out))
			for _, word := range tc.want {
				var is bool
				if _, rest, is = strings.Cut(rest, word); !is {
					t.Fatalf("%v: %q does not come in its turn in\n%s", err, word, out)
				}
			}
			if left := strings.TrimSpace(rest); left != "" {
				t.Errorf("more is said: %s", left)
			}
		})
	}
}

// The user's repository has its references in tables, or is of SHA-256: the agent works in worktrees beside it, one of
// which the user has made since, and makes one of its own. Each has its HEAD on both sides, and nothing is said.
func TestAWorktreeOfARepositoryIn(t *testing.T) {
	for name, format := range map[string]string{
		"reftable": "--ref-format=reftable", "SHA-256": "--object-format=sha256", "both": "--ref-format=reftable --object-format=sha256",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.repository(t)
			w.write(t, ".gitconfig", identity)
			git := path.Dir(strings.TrimSpace(succeed(t, w.session("readlink -f $(command -v git)")))) // the host's may be too old
			plain := func(script string) string { return w.plain(t, "export PATH="+git+":$PATH; "+script) }
			main := w.project
			in := func(dir, script, want string) {
				t.Helper()
				w.project = w.path(dir)
				defer func() { w.project = main }()
				if got := run(t, w.session(script)); got.status != 0 || got.stdout != want || got.stderr != "" {
					t.Errorf("%s in %s: status %d, %q, want %q; it says %s", script, dir, got.status, got.stdout, want, got.stderr)
				}
			}
			plain("rm -rf .git; git init -q -b main " + format + "; echo .claude >.git/info/exclude; git add .; git commit -qm first; git worktree add -q -b side ../side")
			in("side", "git status --short; echo y >y; git add y; git commit -qm two; git switch -qc other; git branch twin; git branch --show-current", "other\n")
			const head = "git -C ../side log --format=%s -1; git -C ../side branch --show-current; git -C ../side status --short; "
			wantEqual(t, plain(head+"git branch --show-current; git worktree add -q -b late ../late"), "two\nother\nmain")
			in("side", "git symbolic-ref HEAD refs/heads/twin", "")
			wantEqual(t, plain(head+"git -C ../side switch -q side; git -C ../side commit -qm mine --allow-empty"), "two\ntwin")
			in("side", "git log --format=%s -1; git branch --show-current", "mine\nside\n")
			in("late", "git status --short; git branch --show-current; echo z >z; git add z; git commit -qm three", "late\n")
			in("project", "git worktree add -q -b own .claude/worktrees/own; cd .claude/worktrees/own; echo o >o; git add o; git commit -qm own", "")
			wantEqual(t, plain(`for d in ../late .claude/worktrees/own; do git -C $d log --format=%s -1; git -C $d branch --show-current; git -C $d status --short; done
				git fsck --strict --no-dangling; git status --short; git worktree list | wc -l`), "three\nlate\nown\nown\n4")
		})
	}
}
