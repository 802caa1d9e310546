package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// own measures what the user's own set-up of Claude Code adds to a start: skills, hooks and MCP servers, beside a home
// that has none.
func (w *world) own(out io.Writer, rounds int) error {
	var ways []way
	for _, n := range []int{1, 0} {
		home := filepath.Join(w.home, fmt.Sprint("own-", n))
		if err := makeHome(home, 200*n, 50*n, 30*n); err != nil {
			return err
		}
		start := w.startOf(home)
		if _, err := once(start, whole); err != nil { // makes the instance
			return err
		}
		ways = append(ways, start)
	}
	time.Sleep(settled)
	for _, part := range []struct {
		what string
		by   clock
	}{{"a start, until the agent runs,", toAgent}, {"a start and end", whole}} {
		times, err := takeTurnsBy(part.by, rounds, ways...)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "| %s with 200 skills, 50 hooks, 30 MCP servers | %s | without %s | %+.1f ms |\n", part.what, times[0], times[1],
			float64(times[0]-times[1])/float64(time.Millisecond))
	}
	return nil
}

// startOf is a start of the agent of a home, in a project there.
func (w *world) startOf(home string) way {
	return func() (*exec.Cmd, error) {
		cmd := exec.Command(w.home+"/bin/claudebox", "--yes", "--no-report")
		cmd.Dir = filepath.Join(home, "project")
		cmd.Env = append(os.Environ(), "HOME="+home, "PATH="+home+"/.local/bin:"+os.Getenv("PATH"))
		return cmd, nil
	}
}

// makeHome makes a home whose Claude Code says the time, and ends.
func makeHome(home string, skills, hooks, servers int) error {
	files := map[string]string{"project/README.md": "A project\n"}
	for n := range skills {
		files[fmt.Sprintf(".claude/skills/s%d/SKILL.md", n)] = fmt.Sprintf("---\nname: s%d\ndescription: one of many\n---\nDo it.\n", n)
		files[fmt.Sprintf(".claude/skills/s%d/run.sh", n)] = "#!/bin/sh\necho done\n"
	}
	type words map[string]any
	var matchers []words
	for n := range hooks {
		name := fmt.Sprintf(".claude/hooks/h%d.sh", n)
		files[name] = "#!/bin/sh\nexit 0\n"
		matchers = append(matchers, words{"matcher": fmt.Sprint("Tool", n), "hooks": []words{
			{"type": "command", "command": "~/" + name},
		}})
	}
	mcp := words{}
	for n := range servers {
		mcp[fmt.Sprint("m", n)] = words{"command": "sh", "args": []string{"-c", "cat"}}
	}
	settings, err := json.Marshal(words{"hooks": words{"PreToolUse": matchers}})
	if err != nil {
		return err
	}
	state, err := json.Marshal(words{"mcpServers": mcp})
	if err != nil {
		return err
	}
	files[".claude/settings.json"], files[".claude.json"] = string(settings), string(state)
	for name, content := range files {
		file := filepath.Join(home, name)
		err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(content), 0o700))
		if err != nil {
			return err
		}
	}
	at := filepath.Join(home, ".local/bin/claude")
	return errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, []byte("#!/bin/sh\ndate +%s%N\n"), 0o700))
}
