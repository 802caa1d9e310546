//go:build lab

package claude_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"claudebox/checks/kit/expect"
	"claudebox/checks/kit/must"
	"claudebox/checks/kit/script"
	"claudebox/checks/kit/trial"
	"claudebox/checks/kit/window"
)

// bundled is where the Claude Code extension of an editor has its own program.
const bundled = ".vscode/extensions/anthropic.claude-code-2.1.330-linux-x64/resources/native-binary/claude"

// bundle makes the extension's program: one that nobody may run. It leaves a mark where it is run.
func (w *world) bundle(t *testing.T, name string) string {
	t.Helper()
	name = filepath.Join(w.home, name)
	mark := "#!/bin/sh\ntouch " + w.home + "/ran\necho it ran\n"
	must.Program(t, name, mark)
	t.Cleanup(func() {
		if _, err := os.Lstat(w.home + "/ran"); err == nil {
			t.Errorf("%s was run outside", name)
		}
	})
	return name
}

// streamed are the words that the extension's SDK gives to the agent.
var streamed = []string{
	"--output-format", "stream-json", "--verbose", "--input-format", "stream-json", "--permission-prompt-tool", "stdio",
	"--setting-sources=user,project,local", "--permission-mode", "default", "--include-partial-messages",
}

// editor is an editor's extension that has started claudebox as its process wrapper: by sockets in the place of pipes,
// as Node makes them, and without a terminal.
type editor struct {
	*exec.Cmd
	input *os.File
	lines chan message
	said  chan string // what came on standard error, whole, once it has ended
	seen  []message
}

// message is a line of the agent's: of the extension's protocol, or of the Agent Client Protocol.
type message struct {
	Type, Subtype string
	Result        json.RawMessage
	SessionID     string `json:"session_id"`
	IsError       bool   `json:"is_error"`
	Response      struct {
		Subtype   string
		RequestID string `json:"request_id"`
	}

	ID     int
	Method string
	Error  json.RawMessage

	line string
}

// text is a result that is a text.
func (m message) text() (text string) {
	_ = json.Unmarshal(m.Result, &text) // empty, where it is another thing
	return text
}

// edit starts claudebox with words, in a session without a terminal.
func (w *world) edit(t *testing.T, cmd *exec.Cmd) *editor {
	t.Helper()
	e := &editor{Cmd: cmd, lines: make(chan message, 1000), said: make(chan string, 1)}
	cmd.Env = append(cmd.Env, "CLAUDE_CODE_ENTRYPOINT=claude-vscode", "CLAUDE_AGENT_SDK_VERSION=0.3.330", "ELECTRON_RUN_AS_NODE=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	pair := func() (ours, theirs *os.File) {
		fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		must.Do(t, err)
		return os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs")
	}
	var theirs [3]*os.File
	var output, complaints *os.File
	e.input, theirs[0] = pair()
	output, theirs[1] = pair()
	complaints, theirs[2] = pair()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs[0], theirs[1], theirs[2]
	must.Do(t, cmd.Start())
	for _, file := range theirs {
		file.Close()
	}
	go func() {
		defer close(e.lines)
		in := bufio.NewScanner(output)
		in.Buffer(nil, 16<<20)
		for in.Scan() {
			m := message{line: in.Text()}
			if json.Unmarshal(in.Bytes(), &m) != nil {
				m.Type = "no JSON"
			}
			e.lines <- m
		}
	}()
	go func() {
		var text strings.Builder
		for in := bufio.NewScanner(complaints); in.Scan(); {
			text.WriteString(in.Text() + "\n")
		}
		e.said <- text.String()
	}()
	t.Cleanup(func() { e.input.Close(); output.Close(); complaints.Close() })
	return e
}

// send writes one line to the agent.
func (e *editor) send(t *testing.T, format string, args ...any) {
	t.Helper()
	if _, err := fmt.Fprintf(e.input, format+"\n", args...); err != nil {
		t.Fatal(err)
	}
}

// prompt sends a prompt of the user's.
func (e *editor) prompt(t *testing.T, text string) {
	e.send(t, `{"type":"user","session_id":"","parent_tool_use_id":null,"message":{"role":"user","content":[{"type":"text","text":%q}]}}`, text)
}

// control sends a request to the agent's process, and waits for its answer.
func (e *editor) control(t *testing.T, id, request string) {
	t.Helper()
	e.send(t, `{"type":"control_request","request_id":%q,"request":%s}`, id, request)
	answer := e.await(t, func(m message) bool { return m.Type == "control_response" && m.Response.RequestID == id })
	if answer.Response.Subtype != "success" {
		t.Fatalf("%s: %s", request, answer.line)
	}
}

// await reads until a message is as wanted. The editor is asked nothing meanwhile: the agent may use all its tools.
func (e *editor) await(t *testing.T, want func(message) bool) message {
	t.Helper()
	late := time.After(patience)
	for {
		select {
		case m, more := <-e.lines:
			if !more {
				t.Fatalf("it ended: %v\n%s", e.Wait(), <-e.said)
			}
			e.seen = append(e.seen, m)
			if m.Type == "no JSON" {
				t.Fatalf("standard output has %q", m.line)
			}
			if want(m) {
				return m
			}
			if m.Type == "control_request" || m.Method == "session/request_permission" {
				t.Errorf("the editor is asked: %s", m.line)
			}
		case <-late:
			t.Fatalf("it does not come; the last was %+v", e.seen[max(0, len(e.seen)-3):])
		}
	}
}

// result waits for the end of a turn.
func (e *editor) result(t *testing.T) message {
	t.Helper()
	return e.await(t, func(m message) bool { return m.Type == "result" })
}

// leave closes the agent's input, and returns its status and what claudebox said on standard error.
func (e *editor) leave(t *testing.T) (status int, stderr string) {
	t.Helper()
	e.input.Close()
	return e.end(t)
}

// leaves is [editor.leave] where the status must be 0.
func (e *editor) leaves(t *testing.T) {
	t.Helper()
	if status, stderr := e.leave(t); status != 0 {
		t.Errorf("status %d\n%s", status, stderr)
	}
}

// end waits for the end, after which nothing may come on standard output but messages.
func (e *editor) end(t *testing.T) (status int, stderr string) {
	t.Helper()
	defer trial.Bound(t, e.Cmd)()
	_ = e.Wait() // its status says it
	for m := range e.lines {
		if e.seen = append(e.seen, m); m.Type == "no JSON" {
			t.Errorf("standard output has %q", m.line)
		}
	}
	return trial.Status(e.ProcessState), <-e.said
}

// The extension drives a session through the wrapper as it drives its own program: five tools, a turn that is cancelled
// while a tool runs, and the conversation resumed by a second process. The login stays outside.
func TestAnEditorsExtensionDrivesASession(t *testing.T) {
	w := newWorld(t)
	note := filepath.Join(w.project, "note.txt")
	a := w.openAccount(t, "", time.Hour)
	w.write(t, loginFile, a.Login(time.Now().Add(time.Hour)))
	w.model.Add(
		script.Bash("env; cat ~/.claude/.credentials.json"),
		script.Use("Write", map[string]any{"file_path": note, "content": "one\n"}).After(script.Succeeded("CLAUDEBOX=1")),
		script.Use("Read", map[string]any{"file_path": note}).After(script.Succeeded()),
		script.Use("Edit", map[string]any{"file_path": note, "old_string": "one", "new_string": "two"}).After(script.Succeeded("one")),
		script.Bash("cat note.txt").After(script.Succeeded()),
		script.Say("Five.").After(script.Succeeded("two")),
		script.Bash("touch begun; sleep 1000"),
		script.Say("After the cancel."),
		script.Say("Resumed."),
	)
	program := w.bundle(t, bundled)
	e := w.edit(t, w.command(t, append([]string{program}, streamed...)...))
	e.control(t, "begin", `{"subtype":"initialize","hooks":null}`)
	e.prompt(t, "please begin")
	first := e.result(t)
	if first.text() != "Five." || w.read(t, "project/note.txt") != "two\n" {
		t.Fatalf("%s; note.txt holds %q", first.line, w.read(t, "project/note.txt"))
	}
	e.prompt(t, "something long")
	must.Appear(t, w.project+"/begun")
	e.control(t, "cancel", `{"subtype":"interrupt"}`)
	if cancelled := e.result(t); cancelled.text() == "After the cancel." {
		t.Errorf("it was not cancelled: %s", cancelled.line)
	}
	e.prompt(t, "go on")
	if got := e.result(t); got.text() != "After the cancel." {
		t.Errorf("after the cancel: %s", got.line)
	}
	e.leaves(t)
	again := w.edit(t, w.command(t, append([]string{program, "--resume", first.SessionID}, streamed...)...))
	again.prompt(t, "and now")
	if got := again.result(t); got.text() != "Resumed." || got.IsError {
		t.Errorf("resumed: %s", got.line)
	}
	again.leaves(t)
	requests := w.model.Requests()
	if last := requests[len(requests)-1].Text(); !strings.Contains(last, "Five.") || !strings.Contains(last, "go on") {
		t.Error("the resumed conversation lacks what was said")
	}
	w.authorised(t, slices.Repeat([]int{0}, len(requests))...)
	w.nothingInside(t)
}

// An editor stops a session by SIGTERM, in the middle of a tool, and gets the status of that.
func TestAnEditorEndsASessionBySignal(t *testing.T) {
	w := newWorld(t)
	w.model.Add(script.Bash("touch begun; sleep 1000"))
	e := w.edit(t, w.command(t, append([]string{w.bundle(t, bundled)}, streamed...)...))
	e.prompt(t, "something long")
	must.Appear(t, w.project+"/begun")
	must.Do(t, e.Process.Signal(syscall.SIGTERM))
	if status, stderr := e.end(t); status != 143 {
		t.Errorf("status %d; want that of SIGTERM\n%s", status, stderr)
	}
}

// The words behind the program are the agent's, claudebox's own flags among them, and so is the status.
//
// Promise: no program of an editor's choice.
func TestAnEditorsWordsAreTheAgents(t *testing.T) {
	w := newWorld(t)
	for name, tc := range map[string]struct{ words, stdout, stderr string }{
		"a version":              {"--version", " (Claude Code)\n", ""},
		"a list that is read":    {"mcp list", "", ""},
		"a flag of claudebox's":  {"--no-report -p x", "", "unknown option '--no-report'"},
		"one that would widen":   {"--mount-rw=/ -p x", "", "unknown option '--mount-rw=/'"},
		"a command of claudebox": {"plan --no-such", "", "unknown option '--no-such'"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := w.command(t, append([]string{w.bundle(t, bundled)}, strings.Fields(tc.words)...)...)
			status, stdout, stderr := trial.Run(t, cmd)
			if (status != 0) != (tc.stderr != "") || !strings.HasSuffix(stdout, tc.stdout) || !strings.Contains(stderr, tc.stderr) {
				t.Errorf("status %d, %q\n%s", status, stdout, indent(stderr))
			}
		})
	}
}

// unasked is claudebox as an editor starts it, with a profile of the user's own, of which nobody was asked yet.
func (w *world) unasked(t *testing.T, words ...string) *exec.Cmd {
	t.Helper()
	cmd := w.command(t, words...)
	cmd.Args = append([]string{cmd.Path, "-P", "e2e"}, words...)
	return cmd
}

// Where the user would have to be asked, an editor gets one line, which says what to do. That it was started in a
// terminal does not matter: nobody looks there.
func TestAnEditorIsToldThatTheUserMustBeAsked(t *testing.T) {
	w := newWorld(t, script.Say("Now."))
	words := append([]string{w.bundle(t, bundled)}, streamed...)
	e := w.edit(t, w.unasked(t, words...))
	status, stderr := e.end(t)
	const want = "claudebox: you were not asked yet about what enters: run `claudebox --profile e2e` here once in a terminal\n"
	if status != 125 || stderr != want {
		t.Fatalf("status %d, stderr %q; want 125 and %q", status, stderr, want)
	}
	asked := window.Open(t, w.unasked(t))
	asked.Await(t, "Start?")
	asked.Press(t, "y\n")
	asked.Await(t, "bypass permissions on")
	asked.Leave(t)
	e = w.edit(t, w.unasked(t, words...))
	e.prompt(t, "begin")
	if got := e.result(t); got.text() != "Now." {
		t.Errorf("after the answer: %s", got.line)
	}
	e.leave(t)
	w.more = map[string]any{"confirm": "always"}
	e = w.edit(t, w.unasked(t, words...))
	if status, stderr := e.end(t); status != 125 || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "confirm: changed") {
		t.Errorf("a profile that always asks: status %d, stderr %q", status, stderr)
	}
}

// A project's settings may name another wrapper or program, one that an agent made: it is run nowhere outside, and one
// that is not named as the agent's is refused.
//
// Promise: no program of an editor's choice.
func TestAProgramThatAnEditorNamesIsNeverRunOutside(t *testing.T) {
	w := newWorld(t)
	for name, tc := range map[string]struct {
		words  []string // {} is the project
		status int
		says   string
	}{
		"a claude in the project":         {[]string{"{}/bin/claude", "--version"}, 0, "(Claude Code)"},
		"one by a path below the project": {[]string{"bin/claude", "--version"}, 0, "(Claude Code)"},
		"a script of Claude Code's name":  {[]string{"node", "{}/claude-code/cli.js", "--version"}, 0, "(Claude Code)"},
		"with a runtime in the project":   {[]string{"{}/bin/node", "{}/claude-code/cli.js", "--version"}, 0, "(Claude Code)"},
		"another program":                 {[]string{"{}/bin/other", "--version"}, 125, "it is not the agent of profile e2e, claude"},
		"another agent":                   {[]string{"{}/bin/codex", "--version"}, 125, "it is not the agent of profile e2e, claude"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, planted := range []string{"bin/claude", "bin/node", "bin/other", "bin/codex", "claude-code/cli.js"} {
				w.bundle(t, "project/"+planted)
			}
			for i := range tc.words {
				tc.words[i] = strings.ReplaceAll(tc.words[i], "{}", w.project)
			}
			cmd := w.command(t, tc.words...)
			cmd.Env = append(cmd.Env, "PATH="+w.project+"/bin:"+w.env["PATH"])
			status, stdout, stderr := trial.Run(t, cmd)
			if status != tc.status || !strings.Contains(stdout+stderr, tc.says) {
				t.Errorf("status %d, %q\n%s", status, stdout, indent(stderr))
			}
		})
	}
}

// What the extension would do outside at an agent's word, or tell it, is not asked of it: the user's login, a cell of a
// notebook. The agent here is a program of the attacker's making, which writes to every stream that it finds.
//
// Promise: nothing done outside by your editor.
func TestAnAgentHasTheExtensionDoNothingOutside(t *testing.T) {
	w := newWorld(t)
	hostile := `#!/bin/bash
ask() { echo '{"type":"control_request","request_id":"'"$1"'","request":'"$2"'}'; }
ask 1 '{"subtype":"oauth_token_refresh"}'
ask 2 '{"subtype":"mcp_message","server_name":"claude-vscode","message":{"id":1,"method":"tools/call","params":{"name":"executeCode"}}}'
echo '{"type":"assistant","type":"control_request","request":{"subtype":"oauth_token_refresh"}}'
echo 'no message'
for fd in /proc/[0-9]*/fd/*; do ask 3 '{"subtype":"oauth_token_refresh"}' >"$fd"; done 2>/dev/null
ask 4 '{"subtype":"can_use_tool","tool_name":"Bash"}'
cat >answers
exit 3
`
	own := w.home + "/.local/bin/claude"
	must.Do(t, os.Remove(own))
	must.Program(t, own, hostile)
	e := w.edit(t, w.command(t, streamed...))
	asked := <-e.lines // the only one
	status, stderr := e.leave(t)
	if status != 3 || len(e.seen) != 0 || !strings.Contains(asked.line, "can_use_tool") {
		t.Errorf("status %d, the extension is told %s and %+v", status, asked.line, e.seen)
	}
	expect.Contains(t, stderr, "oauth_token_refresh", "the tool executeCode", "it is no message")
	if answers := w.read(t, "project/answers"); !strings.Contains(answers, `"request_id":"1"`) || !strings.Contains(answers, `"subtype":"error"`) {
		t.Errorf("the agent is answered %q", answers)
	}
}
