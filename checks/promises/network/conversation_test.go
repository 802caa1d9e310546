//go:build lab

package network_test

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"claudebox/checks/kit/account"
	"claudebox/checks/kit/must"
	"claudebox/checks/kit/script"
	"claudebox/checks/kit/trial"
	"claudebox/checks/kit/window"
	"claudebox/checks/promises/network/world"
)

// pace is how long a conversation goes on, who speaks, and when its logins run out.
type pace struct {
	inside   []string // in sandboxes, as TIER-print or TIER-typed
	whole    time.Duration
	step     time.Duration // what a command of the agent's takes
	rest     string        // of a search between its rounds, as a multiple of a round
	first    time.Duration // until the first renewal
	lifetime time.Duration // of an access token; claudebox renews it ten minutes before
	refused  time.Duration // when the server takes no token any more that it gave before
	renewals int
}

var (
	// Tier full is searched by TestNoTrueTokenIsInsideAtAnyTime of checks/promises/claude.
	short = pace{
		inside: []string{"inet-print", "allow-typed"},
		whole:  25 * time.Second, step: 2 * time.Second, rest: "12",
		first: 8 * time.Second, lifetime: 8 * time.Hour, refused: 15 * time.Second, renewals: 2,
	}
	hour = pace{
		inside: []string{"full-print", "full-typed", "inet-print", "inet-typed", "allow-print", "allow-typed"},
		whole:  time.Hour, step: 20 * time.Second, rest: "12",
		first: 5 * time.Minute, lifetime: 30 * time.Minute, refused: 35 * time.Minute, renewals: 4,
	}
)

// talk is what several agents say to the model at the same time, each under a
// name of its own.
type talk struct {
	pace
	search string // command that searches a sandbox until it is stopped
	crash  string // command of a program that crashes
	begun  time.Time

	mu     sync.Mutex
	agents map[string]*speaker
}

// speaker is one of them. Its requests come one after the other.
type speaker struct {
	seen     func()        // the first half of its answer was seen
	half     chan struct{} // closed by that
	steps    atomic.Int64  // commands that have ended well
	streamed bool          // the second half came after the first was seen
	found    string        // by the search
}

func (c *talk) of(name string) *speaker {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.agents[name]
	if s == nil {
		s = &speaker{half: make(chan struct{})}
		s.seen = sync.OnceFunc(func() { close(s.half) })
		c.agents[name] = s
	}
	return s
}

var introduced = regexp.MustCompile(`I am ([a-z-]+)\.`)

// answer is the model's part: commands until the time is over, then an answer in
// two halves. What an agent is told at a terminal goes on with each line.
func (c *talk) answer(r script.Request) (script.Turn, error) {
	found := introduced.FindStringSubmatch(r.Text())
	if found == nil {
		return script.Say("ok"), nil
	}
	name := found[1]
	s := c.of(name)
	prints, outside := strings.HasSuffix(name, "-print"), name == "outside-print"
	result, ran := r.Result()
	text := result.Content.Text()
	switch {
	case ran && result.IsError:
		return script.Turn{}, fmt.Errorf("%s: a command failed: %s", name, text)
	case !ran && strings.HasSuffix(r.Prompt(), "finish"), ran && prints && !outside && c.over(s) && !strings.Contains(text, "searched "):
		return script.Bash("touch /tmp/stop; until [[ $(</tmp/found) == *searched* ]]; do sleep 0.2; done; touch /tmp/searched; cat /tmp/found"), nil
	case !ran && !outside && s.steps.Load() == 0:
		return script.Bash(c.search + c.work() + c.crash), nil
	case !ran, prints && !c.over(s):
		s.steps.Add(1)
		return script.Bash(c.work()), nil
	case strings.Contains(text, "searched "):
		s.found = text
	}
	s.steps.Add(1)
	return c.halves(name, s), nil
}

// over reports whether a speaker may come to the end: the time is over, and it has done something.
func (c *talk) over(s *speaker) bool {
	return time.Since(c.begun) > c.whole && s.steps.Load() >= fewest
}

// fewest is how many commands an agent runs, however slow the machine is.
const fewest = 3

// work uses what there is of the login.
func (c *talk) work() string {
	return fmt.Sprintf("cat ~/.claude/.credentials.json >/dev/null; env >/dev/null; sleep %d; echo worked", int(c.step.Seconds()))
}

// planted is a text that is nowhere but where it is put to be found.
const planted = "planted-to-be-found"

// searching makes the commands of a search: for what begins a true token, what is
// inside in any case, and what is put into each place that is searched.
func (c *talk) searching(canary string) {
	text := hex.EncodeToString([]byte(planted))
	c.search = "nohup " + canary + " plant /tmp/searched " + text + " >/tmp/plant 2>&1 </dev/null & until [[ -s /tmp/plant ]]; do sleep 0.1; done; " +
		"nohup " + canary + " /tmp/stop " + c.rest
	for _, text := range []string{"sk-ant-oat01-access-", "sk-ant-ort01-refresh-", "claudeAiOauth", planted} {
		c.search += " " + hex.EncodeToString([]byte(text))
	}
	c.search += " >/tmp/found 2>&1 </dev/null & "
	// It has read what there is, and would leave a core file, if one could be.
	c.crash = "; (cd /tmp; ulimit -c unlimited; bash -c 'x=$(cat ~/.claude/.credentials.json; env; " + canary + " print " + text +
		"); kill -SEGV $$') || true"
}

// kinds are the places that are searched: what is put there must be found.
var kinds = map[string]string{
	"a file": `/tmp/planted-\d+$`, "the name of a file": `the name /tmp/planted-`,
	"variables": `/proc/\d+/environ$`, "words": `/proc/\d+/cmdline$`, "maps": `/proc/\d+/maps$`,
	"a file that is open, and gone": `/proc/\d+/fd/\d+$`, "memory": `/proc/\d+/mem `,
}

// halves is an answer whose second half comes when the first was seen.
func (c *talk) halves(name string, s *speaker) script.Turn {
	turn := script.Say(half(name, 1) + "\n\n" + half(name, 2) + "\n\n")
	if !s.streamed {
		turn.Pause = func() {
			select {
			case <-s.half:
				s.streamed = true
			case <-time.After(patience):
			}
		}
	}
	return turn
}

func half(name string, number int) string {
	return fmt.Sprintf("Half %d of an answer to %s.", number, name)
}

// A print session in tier inet and an interactive one in tier allow, both in each tier in checks/long, all at once, and one
// of the user's own outside: what they use of the login is renewed twice, by one of them each time, and it is not there
// where they are.
//
// Promise: no login, no API key, no token of git's.
func TestAConversationWithTheLoginOutside(t *testing.T) {
	t.Parallel()
	speak(t, short)
}

func TestAConversationOfAnHourWithTheLoginOutside(t *testing.T) {
	if trial.Short() {
		t.Skip("an hour: run checks/long")
	}
	t.Parallel()
	speak(t, hour)
}

func speak(t *testing.T, p pace) {
	u := newUser(t, world.New(t))
	canary := filepath.Join(u.home, "tools/canary")
	must.Do(t, trial.Build(canary, "claudebox/checks/promises/claude/canary"))
	c := &talk{pace: p, agents: map[string]*speaker{}}
	c.searching(canary)
	model := script.By(c.answer)
	a := u.openAccount(t, pasted, model, p.lifetime)
	u.write(t, userLogin, a.Login(time.Now().Add(10*time.Minute+p.first)))
	c.begun = time.Now()

	var all sync.WaitGroup
	for _, name := range p.inside {
		if tier, prints := strings.CutSuffix(name, "-print"); prints {
			all.Go(func() { u.printed(t, c, name, u.talking(t, tier, name, canary, printing...)) })
		} else {
			all.Go(func() { u.typed(t, c, name, u.talking(t, strings.TrimSuffix(name, "-typed"), name, canary)) })
		}
	}
	all.Go(func() { u.printed(t, c, "outside-print", u.outside(t)) })
	time.Sleep(p.refused)
	a.Expire()
	all.Wait()
	c.judge(t)
	if err := model.Err(); err != nil {
		t.Error(err)
	}
	u.renewed(t, a, p.renewals)
	u.holdsNoToken(t)
}

// talking is Claude Code in a sandbox of its own.
func (u *user) talking(t *testing.T, tier, name, canary string, words ...string) *exec.Cmd {
	network := tier
	if tier == "allow" {
		network = "{tier: allow, allow: [anthropic]}"
	}
	u.write(t, name+".yaml", "name: test\nextends: default\nnetwork: "+network+"\nnix: {daemon: off}\n"+quiet+"\n")
	u.write(t, name+"/README.md", "# A project\n")
	log := filepath.Join(u.home, name+".log")
	flags := []string{
		"--profile", filepath.Join(u.home, name+".yaml"), "--mount-ro", filepath.Dir(canary),
		"--report-json", filepath.Join(u.home, name+".json"),
	}
	if tier != "full" {
		flags = append(flags, "--network-log", log)
	}
	own := *u
	own.project = filepath.Join(u.home, name)
	return own.claude(t, flags, append([]string{"--dangerously-skip-permissions"}, words...)...)
}

// printing makes Claude Code print each piece of an answer as it comes.
var printing = []string{"-p", "--output-format", "stream-json", "--include-partial-messages", "--verbose"}

// outside is the user's own Claude Code.
func (u *user) outside(t *testing.T) *exec.Cmd {
	u.write(t, "elsewhere/README.md", "# A project\n")
	cmd := u.world.Command(u.layout, program(t, "CLAUDEBOX_TEST_CLAUDE"), append([]string{"--dangerously-skip-permissions"}, printing...)...)
	cmd.Dir = filepath.Join(u.home, "elsewhere")
	cmd.Env = append(slices.Clone(u.env), "NODE_EXTRA_CA_CERTS="+filepath.Join(u.home, "roots.pem"),
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL=1")
	return cmd
}

// printed runs one prompt to its end.
func (u *user) printed(t *testing.T, c *talk, name string, cmd *exec.Cmd) {
	var complaints bytes.Buffer
	cmd.Stdin, cmd.Stderr = strings.NewReader("I am "+name+". Please begin."), &complaints
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Error(name, err)
		return
	}
	var last string
	for lines := bufio.NewReader(stdout); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			break
		}
		if last = line; strings.Contains(line, half(name, 1)) {
			c.of(name).seen()
		}
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(last, half(name, 2)) {
		t.Errorf("%s: %v, the last line is %s\n%s", name, err, last, complaints.String())
	}
	u.write(t, name+".stderr", complaints.String())
}

// typed types lines at a terminal until the time is over.
func (u *user) typed(t *testing.T, c *talk, name string, cmd *exec.Cmd) {
	terminal := window.Open(t, cmd)
	terminal.Await(t, window.Ready)
	for round := 1; !c.over(c.of(name)); round++ {
		terminal.Enter(t, fmt.Sprintf("I am %s. Round %d", name, round))
		terminal.Await(t, half(name, 1))
		c.of(name).seen()
		terminal.Await(t, half(name, 2))
		terminal.Enter(t, "/clear")
	}
	terminal.Enter(t, "I am "+name+". finish")
	terminal.Await(t, half(name, 2))
	terminal.Leave(t)
}

// judge wants everybody to have worked to the end, and the searches to have found
// what may be there, and nothing else.
func (c *talk) judge(t *testing.T) {
	t.Helper()
	if len(c.agents) != len(c.inside)+1 {
		t.Errorf("%d have spoken", len(c.agents))
	}
	for name, s := range c.agents {
		t.Logf("%s: %d commands; %s", name, s.steps.Load(), s.found[max(0, strings.LastIndex(s.found, "searched ")):])
		if s.steps.Load() < fewest || !s.streamed {
			t.Errorf("%s: %d commands, streamed: %t", name, s.steps.Load(), s.streamed)
		}
		if name == "outside-print" {
			continue
		}
		if strings.Contains(s.found, "FOUND 0") || strings.Contains(s.found, "FOUND 1") {
			t.Errorf("%s: a true token is inside:\n%s", name, s.found)
		}
		if strings.Contains(s.found, "in /tmp/core") {
			t.Errorf("%s: a crash left a core file:\n%s", name, s.found)
		}
		// What is there is found.
		if !strings.Contains(s.found, "FOUND 2 in ") || !strings.Contains(s.found, userLogin) {
			t.Errorf("%s: the search says:\n%s", name, s.found)
		}
		for kind, place := range kinds {
			if !regexp.MustCompile("(?m)^FOUND 3 in " + place).MatchString(s.found) {
				t.Errorf("%s: %s was not searched:\n%s", name, kind, s.found)
			}
		}
	}
}

// renewed wants the login to have been renewed just so often, and the user to
// have what came of it.
func (u *user) renewed(t *testing.T, a *account.Account, want int) {
	t.Helper()
	grants := a.Grants()
	for _, grant := range grants {
		if !grant.OK || grant.Type != "refresh_token" {
			t.Errorf("tokens were asked for as %+v", grant)
		}
	}
	if len(grants) != want {
		t.Errorf("renewed %d times; want %d", len(grants), want)
	}
	if got := u.found(t, userLogin); !strings.Contains(got, account.Access(len(grants))) {
		t.Errorf("the user's login is %s", got)
	}
}

// holdsNoToken wants no file of the home to hold a true token but the user's own:
// no log, no report, nothing that an agent keeps.
func (u *user) holdsNoToken(t *testing.T) {
	t.Helper()
	seen := 0
	err := fs.WalkDir(os.DirFS(u.home), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || name == userLogin {
			return err
		}
		content, err := os.ReadFile(filepath.Join(u.home, name))
		if seen++; bytes.Contains(content, []byte("01-access-")) || bytes.Contains(content, []byte("01-refresh-")) {
			t.Errorf("%s holds a true token", name)
		}
		return err
	})
	if err != nil || seen < 20 {
		t.Errorf("%d files were read: %v", seen, err)
	}
}
