package handover

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"claudebox/checks/kit/must"
)

// wrap has the git in the boxes of a world do first what a file `evil` in the git folder says: as if the folder had
// taken it over.
func (w *world) wrap() {
	w.Helper()
	dir := w.TempDir()
	for name, text := range map[string]string{
		"git":   "#!/bin/bash\n[ ! -e \"$C/evil\" ] || . \"$C/evil\"\nexec " + w.tools.Git + " \"$@\"\n",
		"bwrap": "#!/bin/bash\nexec " + w.tools.Bwrap + " --ro-bind " + dir + " /wrapped \"$@\"\n",
	} {
		must.Program(w, dir+"/"+name, text)
	}
	w.tools.Bwrap, w.tools.Path = dir+"/bwrap", append([]string{"/wrapped"}, w.tools.Path...)
}

// made has an agent make some repositories. A script goes on in the last one.
func (w *world) made(number int, script string) (list []Made) {
	w.Helper()
	held := w.TempDir()
	for i := range number {
		name := fmt.Sprint("r", i)
		w.user("mkdir " + name + " && cd " + name + " && git init -q -b main && echo x >f && git add f && git commit -qm one && echo y >g && git add g")
		if i == number-1 {
			w.user("cd " + name + "; " + script)
		}
		w.user("mv " + name + "/.git " + held + "/" + name)
		list = append(list, Made{Outer: w.project + "/" + name + "/.git", At: held + "/" + name, Folder: filepath.Join(held, "place-"+name)})
	}
	return list
}

// isUsers reports whether one is whole, and the user's.
func (w *world) isUsers(m Made) bool {
	w.Helper()
	got := w.user("cd " + filepath.Dir(m.Outer) + "; [ -d .git ] || exit 0; git log --format=%s; git status --porcelain; git fsck --strict")
	return got == "one\nA  g"
}

// One repository takes over the git that reads it, hangs, or has no end. The others become the user's all the same.
func TestAHostileRepositoryBesideGoodOnes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		evil  string
		good  int
		first bool // it is the first one
	}{
		"kills all":                {"echo 'kill -9 -1' >.git/evil", 19, true},
		"kills the others' git":    {`echo '(while :; do for p in /proc/[0-9]*; do case $(readlink $p/exe) in */git) kill -9 ${p#/proc/};; esac; done; done) </dev/null >/dev/null 2>&1 &' >.git/evil`, 4, true},
		"answers for the others":   {`echo '(while sleep 0.01; do for p in /proc/[0-9]*; do echo x >$p/fd/1; done; done) </dev/null >/dev/null 2>&1 &' >.git/evil`, 4, true},
		"takes the others' orders": {`echo '(while sleep 0.01; do for p in /proc/[0-9]*; do head -c 9 <$p/fd/0; done; done) </dev/null >/dev/null 2>&1 &' >.git/evil`, 4, true},
		"fills what they share":    {"echo 'head -c 1G /dev/zero >/tmp/fill' >.git/evil", 4, true},
		"stops all":                {"echo 'kill -STOP -1; kill -STOP $$' >.git/evil", 4, true},
		"has no end":               {"echo 'exec yes' >.git/evil", 4, true},
		"hangs":                    {"rm .git/index; mkfifo .git/index", 4, true},
		"is broken":                {"rm -r .git/objects/??", 4, false},
		"is none":                  {"rm -r .git; mkdir .git", 4, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.wrap()
			all := w.made(tc.good+1, tc.evil)
			if tc.first {
				all = append(all[tc.good:], all[:tc.good]...)
			}
			for i, a := range Adopt(Request{Tools: w.tools}, all) {
				if isEvil := strings.HasSuffix(all[i].At, fmt.Sprint("/r", tc.good)); isEvil && a.Err != nil {
					if _, err := os.Lstat(all[i].Outer); err == nil {
						t.Error("of the hostile one something is the user's")
					}
					if _, err := os.Lstat(all[i].At + "/HEAD"); err != nil && name != "is none" {
						t.Errorf("the hostile one is not where it was: %v", err)
					}
				} else if !isEvil && (a.Err != nil || !w.isUsers(all[i])) {
					t.Errorf("%s: %v", all[i].At, a.Err)
				}
			}
		})
	}
}

// A quarter of the time is all that one has while others wait. It has all of it then.
func TestARepositoryThatIsSlowIsAskedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.wrap()
	w.tools.Time = 20 * time.Second
	all := w.made(2, `echo '[ -e "$C/slept" ] || { touch "$C/slept"; sleep 6; }' >.git/evil`)
	for i, a := range Adopt(Request{Tools: w.tools}, all) {
		if a.Err != nil || !w.isUsers(all[i]) {
			t.Errorf("%s: %v", all[i].At, a.Err)
		}
	}
}

// An agent has git wait while it packs, as at a pipe in an object's place: each of its branches was waited for by itself.
func TestAPackThatDoesNotComeIsAwaitedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.wrap()
	w.tools.Time = 5 * time.Second
	w.begin()
	w.agent("for i in $(seq 200); do git branch b$i $(git commit-tree -m $i HEAD^{tree}); done")
	w.agent(`echo 'case " $* " in *" pack-objects "*) sleep 600;; esac' >.git/evil`)
	began := time.Now()
	w.sync()
	if took := time.Since(began); took > 100*w.tools.Time {
		t.Errorf("it took %v", took)
	}
	if got := w.user("git branch --list 'b*'"); got != "" {
		t.Errorf("there are %s", got)
	}
}

// A busy machine takes longer to make a box than it has: bwrap alone was ended then, and its child held the end for good.
func TestABoxThatIsEndedWhileItIsMadeLeavesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	all, file := w.made(1, "true"), w.TempDir()+"/children"
	slow := filepath.Dir(file) + "/bwrap"
	must.Program(t, slow, "#!/bin/bash\nsleep 600 &\necho $! >>"+file+"\nwait\n")
	w.tools.Bwrap, w.tools.Time = slow, 4*time.Second
	done := make(chan []Adopted)
	go func() { done <- Adopt(Request{Tools: w.tools}, all) }()
	select {
	case got := <-done:
		if got[0].Err == nil {
			t.Error("it became the user's")
		}
	case <-time.After(5 * time.Minute):
		t.Error("the end has no end")
	}
	if left := w.user("for p in $(cat " + file + "); do ps -o stat= -p $p | grep -v Z || :; done"); left != "" {
		t.Errorf("there are processes: %s", left)
	}
}

// git waits for who would write into a pipe, and reads a link to a device without end; no end of a session waits for
// git, and the file is named.
func TestNoGitReadsWithoutEndInARepositoryThatWasMade(t *testing.T) {
	t.Parallel()
	const pipe, link = "is a pipe, where git would wait", "is a link, which git does not make there"
	for name, evil := range map[string][2]string{
		"a pipe that is included": {`mkfifo .git/pipe; printf '[include]\n path = pipe\n' >>.git/config`, pipe},
		"a pipe as an object":     {`h=$(git rev-parse HEAD); f=.git/objects/${h:0:2}/${h:2}; rm -f $f; mkfifo $f`, pipe},
		"a pipe as alternates":    {`mkfifo .git/objects/info/alternates`, pipe},
		"a pipe as a log":         {`rm -f .git/logs/HEAD; mkdir -p .git/logs; mkfifo .git/logs/HEAD`, pipe},
		"a link as commondir":     {`ln -s /dev/urandom .git/commondir`, "commondir " + link},
		"a link as alternates":    {`ln -s /dev/zero .git/objects/info/alternates`, "objects/info/alternates " + link},
		"a link as a branch":      {`ln -s /dev/urandom .git/refs/heads/x`, "refs/heads/x " + link},
		"a link of a worktree's":  {`mkdir -p .git/worktrees/w; ln -s /dev/zero .git/worktrees/w/gitdir`, "w/gitdir " + link},
		"holes as commondir":      {`truncate -s 3G .git/commondir`, "commondir has more than 1 MiB"},
		"holes as packed-refs":    {`truncate -s 3G .git/packed-refs`, "packed-refs has more than 1024 MiB"},
		"holes as a branch":       {`truncate -s 3G .git/refs/heads/x`, "refs/heads/x has more than 1 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			all := w.made(1, evil[0])
			got := Adopt(Request{Tools: w.tools}, all)
			if err := got[0].Err; err == nil || !strings.Contains(err.Error(), evil[1]) {
				t.Errorf("got %v, want %q", err, evil[1])
			}
		})
	}
}

func TestWhyARepositoryDoesNotBecomeTheUsers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	all := w.made(2, "rm -r .git; git init -q --object-format=sha256; git add f; git commit -qm one")
	all[0].Outer = w.project + "/line\nfeed/.git"
	w.user("mkdir $'line\\nfeed'")
	for i, a := range Adopt(Request{Tools: w.tools}, all) {
		want := []string{"line feed in its path", "names of SHA-256"}[i]
		if a.Err == nil || !strings.Contains(a.Err.Error(), want) || !strings.Contains(all[i].Refusal(w.tools), want) {
			t.Errorf("%v, refused %q; want %s", a.Err, all[i].Refusal(w.tools), want)
		}
	}
}

// What did not become the user's is not judged again before it changes; the agent's git may have mended it anywhere.
func TestARepositoryThatDidNotBecomeTheUsersIsJudgedOnceUntilItChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	broken := w.made(1, "cp -r .git/objects ../objects; rm -r .git/objects/??")
	for range 2 {
		if got := Adopt(Request{Tools: w.tools}, broken); got[0].Err == nil || broken[0].Refusal(w.tools) == "" {
			t.Fatalf("%v, refused %q", got[0].Err, broken[0].Refusal(w.tools))
		}
	}
	w.user("cp -rT objects " + broken[0].At + "/objects")
	if why := broken[0].Refusal(w.tools); why != "" {
		t.Errorf("it is refused still: %s", why)
	}
	if got := Adopt(Request{Tools: w.tools}, broken); got[0].Err != nil || !w.isUsers(broken[0]) {
		t.Error(got[0].Err)
	}
}
