//go:build lab

package claude_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"claudebox/checks/kit/expect"
	"claudebox/checks/kit/must"
	"claudebox/checks/kit/script"
)

// adapt has the agent be the adapter of the Agent Client Protocol, as a user has it from npm.
func (w *world) adapt(t *testing.T) {
	t.Helper()
	link(t, filepath.Join(filepath.Dir(program(t, "CLAUDEBOX_TEST_CLAUDE")), "claude-agent-acp"),
		filepath.Join(w.home, ".local/bin/claude-agent-acp"))
	link(t, program(t, "CLAUDEBOX_TEST_NODE"), filepath.Join(w.home, ".local/bin/node"))
	w.more = map[string]any{"agent": "claude-acp"}
	w.constants["CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION"] = "false" // it would ask the model once more after a turn
}

// call sends a request of the Agent Client Protocol, and returns what is answered to it.
func (e *editor) call(t *testing.T, id int, method string, params any) json.RawMessage {
	t.Helper()
	e.ask(t, id, method, params)
	return e.answer(t, id)
}

func (e *editor) ask(t *testing.T, id int, method string, params any) {
	t.Helper()
	text, err := json.Marshal(params)
	must.Do(t, err)
	e.send(t, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, text)
}

func (e *editor) answer(t *testing.T, id int) json.RawMessage {
	t.Helper()
	m := e.await(t, func(m message) bool { return m.ID == id && m.Method == "" })
	if m.Error != nil {
		t.Fatalf("%d is answered by %s", id, m.Error)
	}
	return m.Result
}

// greet begins a connection.
func (e *editor) greet(t *testing.T) {
	t.Helper()
	e.call(t, 1, "initialize", map[string]any{"protocolVersion": 1, "clientCapabilities": map[string]any{}})
}

// say sends a prompt, as request id.
func (e *editor) say(t *testing.T, id int, session, text string) {
	t.Helper()
	e.ask(t, id, "session/prompt", map[string]any{
		"sessionId": session, "prompt": []any{map[string]string{"type": "text", "text": text}},
	})
}

// An editor drives the npm package's adapter inside by the Agent Client Protocol: five tools, a cancelled turn, and the
// conversation loaded by a second process. Standard output has the protocol alone, and the login stays outside.
func TestAnEditorDrivesASessionByTheAgentClientProtocol(t *testing.T) {
	w := newWorld(t)
	w.adapt(t)
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
		script.Say("Resumed."),
	)
	e := w.edit(t, w.command(t))
	e.greet(t)
	var session struct{ SessionID string }
	must.Do(t, json.Unmarshal(e.call(t, 2, "session/new", map[string]any{"cwd": w.project, "mcpServers": []any{}}), &session))
	e.say(t, 3, session.SessionID, "please begin")
	if got := e.answer(t, 3); !strings.Contains(string(got), "end_turn") || w.read(t, "project/note.txt") != "two\n" {
		t.Errorf("%s; note.txt holds %q", got, w.read(t, "project/note.txt"))
	}
	if !slices.ContainsFunc(e.seen, func(m message) bool { return m.Method == "session/update" && strings.Contains(m.line, "Five.") }) {
		t.Error("the answer is in no update")
	}
	e.say(t, 4, session.SessionID, "something long")
	must.Appear(t, w.project+"/begun")
	e.send(t, `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`, session.SessionID)
	if got := e.answer(t, 4); !strings.Contains(string(got), "cancelled") {
		t.Errorf("the cancelled turn ends with %s", got)
	}
	e.leaves(t)
	again := w.edit(t, w.command(t))
	again.greet(t)
	again.call(t, 2, "session/load", map[string]any{"sessionId": session.SessionID, "cwd": w.project, "mcpServers": []any{}})
	again.say(t, 3, session.SessionID, "and now")
	again.answer(t, 3)
	again.leaves(t)
	requests := w.model.Requests()
	if last := requests[len(requests)-1].Text(); !strings.Contains(last, "Five.") || !strings.Contains(last, "and now") {
		t.Error("the loaded conversation lacks what was said")
	}
	w.authorised(t, slices.Repeat([]int{0}, len(requests))...)
	w.nothingInside(t)
}

// An editor that starts the adapter unasked gets a status and a sentence, and nothing on standard output; so does one
// that would have it as a process wrapper.
func TestAnAdapterThatNobodyApprovedOfIsNotStarted(t *testing.T) {
	w := newWorld(t)
	w.adapt(t)
	e := w.edit(t, w.unasked(t))
	if status, stderr := e.end(t); status != 125 || len(e.seen) > 0 || !strings.Contains(stderr, "once in a terminal") {
		t.Errorf("status %d, %d lines\n%s", status, len(e.seen), stderr)
	}
	e = w.edit(t, w.command(t, append([]string{w.bundle(t, bundled)}, streamed...)...))
	if status, stderr := e.end(t); status != 125 || !strings.Contains(stderr, "it is not the agent of profile e2e, claude-agent-acp") {
		t.Errorf("as a wrapper: status %d\n%s", status, stderr)
	}
}

// What an editor would do outside at an agent's word is not asked of it: files, commands, a command to log in by. The
// agent here is a program of the attacker's making under the adapter's name.
//
// Promise: nothing done outside by your editor.
func TestAnAgentHasAnEditorDoNothingOutside(t *testing.T) {
	w := newWorld(t)
	w.more = map[string]any{"agent": "claude-acp"}
	hostile := `#!/bin/bash
read -r greeting
echo '{"jsonrpc":"2.0","id":1,"result":{"authMethods":[{"id":"x","_meta":{"terminal-auth":{"command":"sh"}}}]}}'
echo '{"jsonrpc":"2.0","id":1,"method":"terminal/create","params":{"command":"sh","args":["-c","id"]}}'
echo '{"jsonrpc":"2.0","id":2,"method":"fs/read_text_file","params":{"path":"` + w.home + `/.ssh/id_ed25519"}}'
echo '{"jsonrpc":"2.0","id":3,"method":"session/update","method":"fs/write_text_file"}'
echo 'no message'
for fd in /proc/[0-9]*/fd/*; do echo '{"jsonrpc":"2.0","method":"terminal/create"}' >"$fd"; done 2>/dev/null
printf '%s' "${greeting//\"/ }" | tr -d '{}' >greeting
echo '{"jsonrpc":"2.0","method":"session/update","params":{"last":true}}'
read -r _
exit 3
`
	must.Program(t, w.home+"/.local/bin/claude-agent-acp", hostile)
	e := w.edit(t, w.command(t))
	e.ask(t, 1, "initialize", map[string]any{
		"clientCapabilities": map[string]any{"fs": map[string]bool{"readTextFile": true}, "terminal": true, "elicitation": map[string]any{}},
	})
	e.await(t, func(m message) bool { return strings.Contains(m.line, "last") })
	status, stderr := e.leave(t)
	if status != 3 {
		t.Errorf("status %d; want the agent's own, once its input has ended", status)
	}
	for _, m := range e.seen {
		if m.Method != "session/update" && m.Method != "" || strings.Contains(m.line, "auth") {
			t.Errorf("the editor is told %s", m.line)
		}
	}
	expect.Contains(t, stderr, "terminal/create", "fs/read_text_file", "it is no message")
	if offers := w.read(t, "project/greeting"); strings.Contains(offers, "terminal") || !strings.Contains(offers, "elicitation") {
		t.Errorf("the agent is offered %q\n%s", offers, stderr)
	}
}

// What reads an agent's messages to its editor is killed, as by a kernel without memory. The agent, of the attacker's
// making, ignores that nobody reads it. The session ends, and says why.
func TestASessionWhoseEditorsFilterIsLostEnds(t *testing.T) {
	w := newWorld(t)
	w.more = map[string]any{"agent": "claude-acp"}
	must.Program(t, w.home+"/.local/bin/claude-agent-acp", "#!/bin/bash\ntrap '' PIPE\necho '{\"id\":1,\"result\":{}}'\nsleep 1000\n")
	e := w.edit(t, w.command(t))
	e.answer(t, 1)
	pid := e.filter(t)[0]
	must.Do(t, syscall.Kill(pid, syscall.SIGKILL))
	if status, stderr := e.end(t); status == 0 || !strings.Contains(stderr, "messages to the editor has ended (signal: killed); the session ends") {
		t.Errorf("status %d\n%s", status, stderr)
	}
}

// Each editor's lines of docs/editors.md start what speaks its protocol. Words of claudebox stand there between quotes, in
// the order of a command line, whatever the language is.
func TestTheLinesForEditorsStartWhatTheySay(t *testing.T) {
	page := must.Read(t, "../../../docs/editors.md")
	quoted, fence := regexp.MustCompile(`"([^"]*)"`), regexp.MustCompile("(?ms)^```(json|lua|elisp|yaml)\n(.*?)^```$")
	of := map[string]int{}
	for _, block := range fence.FindAllStringSubmatch(page, -1) {
		language, text := block[1], block[2]
		of[language]++
		if language == "yaml" {
			continue // its name is what the others say with -P; checks/promises/words reads it
		}
		if language == "json" && !json.Valid([]byte(text)) {
			t.Errorf("no JSON:\n%s", text)
		}
		var words []string
		for _, q := range quoted.FindAllStringSubmatch(text, -1) {
			if path.Base(q[1]) == "claudebox" {
				words = nil // its name may stand before, too
			} else if q[1] != "env" && q[1] != "args" && q[1] != "command" {
				words = append(words, q[1])
			}
		}
		if strings.Contains(text, "claudeProcessWrapper") { // TestAnEditorsExtensionDrivesASession drives it
			if !filepath.IsAbs(quoted.FindAllStringSubmatch(text, -1)[1][1]) || len(words) > 0 {
				t.Errorf("the wrapper is no path alone:\n%s", text)
			}
			continue
		}
		t.Run(language, func(t *testing.T) {
			w := newWorld(t)
			w.adapt(t)
			cmd := w.command(t)
			w.write(t, ".config/claudebox/profiles/acp.yaml", w.read(t, ownProfile))
			cmd.Args = append([]string{cmd.Path, "-y"}, words...)
			e := w.edit(t, cmd)
			e.greet(t)
			if status, stderr := e.leave(t); status != 0 {
				t.Errorf("%q: status %d\n%s", words, status, stderr)
			}
		})
	}
	if of["json"] != 3 || of["lua"] != 1 || of["elisp"] != 1 || of["yaml"] != 1 {
		t.Errorf("%v", of)
	}
}

// The process that reads what an agent says to its editor has a filter of system calls, and no file of the host's.
func TestWhatReadsAnAgentsMessagesHasNoRights(t *testing.T) {
	w := newWorld(t)
	w.adapt(t)
	e := w.edit(t, w.command(t))
	e.greet(t)
	found := e.filter(t)
	for _, pid := range found {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil || !strings.Contains(string(status), "Seccomp:\t2\n") || !strings.Contains(string(status), "NoNewPrivs:\t1\n") {
			t.Errorf("%v\n%s", err, status)
		}
	}
	if len(found) != 1 {
		t.Errorf("%d such processes", len(found))
	}
	e.leaves(t)
}

// filter finds the processes that read the agent's messages.
func (e *editor) filter(t *testing.T) (pids []int) {
	t.Helper()
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", e.Process.Pid))
	for _, task := range tasks {
		children, _ := os.ReadFile(task) // a thread may have ended
		for _, child := range strings.Fields(string(children)) {
			words, _ := os.ReadFile("/proc/" + child + "/cmdline")
			if pid, err := strconv.Atoi(child); err == nil && strings.HasPrefix(string(words), "claudebox-editor-filter\x00") {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
