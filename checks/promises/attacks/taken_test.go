//go:build lab

package attacks_test

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/trial"
)

// R5: the agent took all 128 inotify instances of the user in the first 100 ms, and the watch over what is covered, which
// began later, said so and let the session go on. Everything that the kernel counts per user is of this kind.

// takers are programs that take as much as they get of something, print how much, and keep it.
var takers = map[string]string{
	"inotify instances": `while True: keep.append(call("inotify_init1", 0))`,
	"inotify watches": `
fd = call("inotify_init1", 0)
for n in range(20000):
    os.mkdir("/tmp/d%d" % n); call("inotify_add_watch", fd, ("/tmp/d%d" % n).encode(), 0x100); keep.append(n)`,
	"fanotify groups": `while True: keep.append(call("fanotify_init", 0x200, 0))`,
	"processes": `
while True:
    if os.fork() == 0: time.sleep(1000)
    keep.append(1)`,
	"pages of pipes": `
for n in range(400):
    keep.append(os.pipe())
    fcntl.fcntl(keep[-1][1], 1031, 1 << 20)`,
	"locked memory": `
while True:
    keep.append(mmap.mmap(-1, 1 << 16)); call("mlock", ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(keep[-1]))), 1 << 16)`,
	"pending signals": `
while True: keep.append(call("timer_create", 1, None, ctypes.byref(ctypes.c_void_p())))`,
	"files": `
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
for n in range(100000): keep.append(os.open("/dev/null", 0))`,
}

const taker = `
import ctypes, fcntl, mmap, os, resource, sys, time
libc = ctypes.CDLL(None, use_errno=True)
keep = []
def call(name, *words):
    got = getattr(libc, name)(*words)
    if got < 0: raise OSError(ctypes.get_errno(), name)
    return got
try:
    %s
except OSError as e: pass
print(len(keep), flush=True)
time.sleep(1000)
`

// signals is held by the test whose agent has taken the signals: all sandboxes of a user share them.
var signals sync.Mutex

// take begins to take something inside, and returns how much the agent got.
func (l *live) take(what string) int {
	l.w.t.Helper()
	if what == "pending signals" {
		signals.Lock()
		l.w.t.Cleanup(signals.Unlock)
	}
	l.w.write("project/take.py", fmt.Sprintf(taker, strings.ReplaceAll(takers[what], "\n", "\n    ")))
	text := l.sh(`python3 take.py >taken 2>&1 & until [ -s taken ]; do :; done; read -r n <taken; echo $n`)
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n == 0 {
		l.w.t.Fatalf("it could not be taken: %s", text)
	}
	return n
}

// Promise: no watch that fails open.
func TestAnAgentTakesAllThatAUserHas(t *testing.T) {
	for what := range takers {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			w.write("project/.env", canary)
			w.write("project/conf/.env", canary)
			l := w.begin(w.profile("limits: {tasks: 300}")...)
			l.take(what)
			for range 3 {
				for _, name := range []string{".env", "conf/.env"} { // as an editor saves
					w.write("project/"+name+".new", canary)
					must.Do(t, os.Rename(w.path("project/"+name+".new"), w.path("project/"+name)))
					l.until("read -r a <"+name+"; echo \"[$a]\"", "[]\n")
				}
			}
			if said := l.end(); strings.Contains(said, "not covered") {
				t.Error(said)
			}
		})
	}
}

// What one sandbox takes, other programs of the user do not have: it gets a part.
func TestAnAgentTakesTheWatchesOfOtherPrograms(t *testing.T) {
	limit := func(file string) int {
		text := must.Read(t, "/proc/sys/fs/"+file)
		n, _ := strconv.Atoi(strings.TrimSpace(text))
		return n
	}
	var waiting unix.Rlimit
	must.Do(t, unix.Getrlimit(unix.RLIMIT_SIGPENDING, &waiting))
	w := newWorld(t)
	l := w.begin()
	defer l.end()
	for what, most := range map[string]int{
		"inotify instances": limit("inotify/max_user_instances") / 4, "fanotify groups": 16,
		"pending signals": int(waiting.Cur) / 2,
	} {
		if got := l.take(what); got > most {
			t.Errorf("%d %s were taken; at most %d", got, what, most)
		}
		l.sh("rm taken")
	}
}

// An agent took all signals that may wait for the user's processes: helpers of other sessions waited for good.
func TestAnAgentTakesTheSignalsOfOtherSessions(t *testing.T) {
	w := newWorld(t)
	l := w.begin()
	defer l.end()
	l.take("pending signals")
	other := w.begin(w.profile("network: {tier: allow, allow: [example.org]}")...)
	defer other.end()
	if got := other.sh("echo started"); got != "started\n" {
		t.Error(got)
	}
}

// Where nothing can be watched any more, nothing is covered again: no agent starts.
//
// Promise: no watch that fails open.
func TestALaunchWhereNothingCanBeWatched(t *testing.T) {
	w := newWorld(t)
	w.write("project/.env", canary)
	for limit, want := range map[string]string{
		"max_inotify_instances": "too many open files", "max_inotify_watches": "no space left on device",
	} {
		line := "echo 0 >/proc/sys/user/" + limit + ` && exec setpriv --ambient-caps=-all --inh-caps=-all -- "$0" shell --yes -- touch ran`
		cmd := exec.Command("unshare", "--map-current-user", "--keep-caps", "--", "sh", "-c", line, trial.Binary(t))
		cmd.Dir, cmd.Env = w.project, w.env
		status, stdout, stderr := trial.Run(t, cmd)
		got := outcome{status, stdout, stderr}
		w.wantRefused(got, "watch over what is covered")
		if !strings.Contains(stderr, want) || !strings.Contains(stderr, "max_user_instances=") || w.exists("project/ran") {
			t.Errorf("%s: %s", limit, got)
		}
	}
}

// The agent moves the folder of a covered file, so that the user's editor writes the next secret where nothing covers
// it: the session went on. (The user does it here: no agent can.)
//
// Promise: no watch that fails open.
func TestASessionWhoseCoverIsLostEnds(t *testing.T) {
	w := newWorld(t)
	w.write("project/conf/.env", canary)
	l := w.begin()
	l.sh("trap 'touch later' TERM") // who would not end had three more seconds
	must.Do(t, os.Rename(w.path("project/conf"), w.path("project/other")))
	w.folder("project/conf")
	_, _ = l.in.WriteString("while :; do sleep 0.1; done\n") // it may be dead
	if said := l.end(); !strings.Contains(said, "project/conf is not covered any more") || !strings.Contains(said, "the session ends") {
		t.Error(said)
	}
	if got := trial.Status(l.cmd.ProcessState); got != 143 {
		t.Errorf("status %d", got)
	}
	if w.exists("project/later") {
		t.Error("the agent went on without the cover")
	}
}

// R4: when memory is short the kernel ended claudebox, the largest, and nobody judged what the agent had left. The
// sandbox's processes go first, and cannot change that.
func TestAnAgentHasClaudeboxEndedForItsMemory(t *testing.T) {
	w := newWorld(t)
	got := w.attack(`cat /proc/self/oom_score_adj /proc/1/oom_score_adj
		for at in /proc/self /proc/1 /proc/$$ /proc/thread-self /proc/self/task/$$; do
			for name in oom_score_adj oom_adj; do (echo 0 >$at/$name) 2>/dev/null && echo lowered; done
		done
		python3 -c 'open("/proc/self/oom_score_adj", "w").write("0")' 2>/dev/null && echo lowered
		cat /proc/self/oom_score_adj`)
	if want := "300\n300\n300\n"; got.stdout != want || got.status == 125 {
		t.Errorf("want %q, got %s", want, got)
	}
}

// What programs do with /proc, though it is read-only.
func TestProgramsUseProcAsBefore(t *testing.T) {
	w := newWorld(t)
	for script, want := range map[string]string{
		"echo a >/dev/stdout":                      "a\n",
		"echo a | tee /dev/stderr 2>/dev/null":     "a\n",
		"echo a >/dev/fd/1":                        "a\n",
		"cat <(echo a)":                            "a\n",
		"exec 7>f; echo a >/proc/self/fd/7; cat f": "a\n",
		`python3 -c 'import ctypes; ctypes.CDLL(None).prctl(15, b"named"); print(open("/proc/self/comm").read(), end="")'`: "named\n",
		"nix eval --expr 1+1":                      "2\n",
		"ps -o pid= -p $$ | tr -d ' ' | grep -c .": "1\n",
	} {
		if got := w.attack(script); got.stdout != want {
			t.Errorf("%s: want %q, got %s", script, want, got)
		}
	}
}
