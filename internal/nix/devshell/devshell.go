// Package devshell gives an agent the environment of the project's dev shell, as `nix develop`
// does.
//
// The project's flake is the project's code, so nothing of it is evaluated, built or run
// outside. [Main] does that inside the sandbox, in a process that then becomes the agent: the
// sandbox's own Nix evaluates, within the network tier, and what it needs goes into the
// sandbox's own store. Nothing here has more rights than the agent, and nothing of it has to be
// trusted.
//
// The environment is kept below [Folder], which the agent can write, and is used again while what
// it was made of is the same (key.go). It decides only what runs inside. Outside, [Look] reads
// of it a few names and numbers to show them.
package devshell

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"time"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
)

// Program is the file in libexec that runs [Main].
const Program = "claudebox-devshell"

// Where a sandbox has the program and its request.
const (
	ProgramInner = "/run/claudebox/devshell"
	RequestInner = "/run/claudebox/devshell.json"
)

// Programs is a folder at the end of PATH, with the agent in it.
const Programs = "/run/claudebox/bin"

// Folder is where dev shells are kept, below the state folder of the Nix inside: when that
// begins anew, so does this.
const Folder = "claudebox-devshell"

// Variable has inside, in a few words, what the dev shell gives or why there is none.
const Variable = "CLAUDEBOX_DEVSHELL"

// Rules is a folder in memory where Claude Code looks for rules, beside the notes on the sandbox: what there is of the
// dev shell is written there. RulesSize is its size in bytes.
const (
	Rules     = "/etc/claude-code/.claude/rules"
	RulesSize = 1 << 20
)

// Auto is the value of [Request.Flake] for what the project itself names.
const Auto = "auto"

// Request says which dev shell, and how.
type Request struct {
	Flake    string   `json:"flake,omitempty"` // a flake reference, or [Auto]; empty: File
	File     string   `json:"file,omitempty"`  // a Nix file, relative to the project
	Project  string   `json:"project"`
	Dir      string   `json:"dir"` // the current folder, in the project
	System   string   `json:"system"`
	Nix      string   `json:"nix"`  // path of nix
	Bash     string   `json:"bash"` // path of bash
	Env      string   `json:"env"`  // path of coreutils' env
	State    string   `json:"state"`
	Hook     bool     `json:"hook,omitempty"` // run the shellHook
	Require  bool     `json:"require,omitempty"`
	Wait     int      `json:"wait"` // seconds that an evaluation may take
	Vars     []string `json:"vars,omitempty"`
	Refused  []string `json:"refused"` // patterns of variables that do not enter, beside those of [refused]
	Watch    []string `json:"watch,omitempty"`
	Packages int      `json:"packages"` // how many folders of PATH are before those of the dev shell
	Network  string   `json:"network"`  // the tier: what failed in one may work in another
	Refresh  bool     `json:"refresh,omitempty"`
	Typed    bool     `json:"typed,omitempty"` // the program is a bash in which somebody types
}

// Record is what is kept of a dev shell, beside the environment itself.
type Record struct {
	Key       string    `json:"key"`
	Shown     string    `json:"shown"`  // the reference, for people
	Rule      string    `json:"rule"`   // what named it
	Files     []string  `json:"files"`  // of the project, that the evaluation read
	Failed    string    `json:"failed"` // why there is no environment; empty: there is one
	Quiet     bool      `json:"quiet"`  // Failed is nothing that a person has to be told
	Made      time.Time `json:"made"`
	Programs  []string  `json:"programs"`
	Variables []string  `json:"variables"`
	Left      []string  `json:"left"` // variables of the dev shell that do not enter
	Hook      string    `json:"hook"` // what is wrong with the hook; empty: nothing
}

// mostRecord bounds the file of a record, in bytes.
const mostRecord = 1 << 20

const recordName = "record.json"

// FolderOf is the folder of a dev shell, below the state folder of the Nix inside. what is all that tells it from
// others: worktrees and branches of a repository share one state.
func FolderOf(what ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(what, "\x00")))
	return path.Join(Folder, hex.EncodeToString(sum[:8]))
}

// Look reads the record of a dev shell outside. state is the state folder of the Nix inside.
// The agent could have written it: all that it returns is text for people, made visible. It is
// false if there is none.
func Look(state, folder string) (r Record, known bool) {
	text, err := beneath.ReadIn(state, folder+"/"+recordName, mostRecord)
	if err != nil || json.Unmarshal(text, &r) != nil {
		return Record{}, false
	}
	for _, list := range []*[]string{&r.Programs, &r.Variables, &r.Left, &r.Files} {
		for i, name := range *list {
			(*list)[i] = diag.Name(name)
		}
	}
	for _, text := range []*string{&r.Shown, &r.Rule, &r.Failed, &r.Hook} {
		*text = diag.Visible(*text)
	}
	return r, true
}

// Summary says in a few words what a dev shell gives: ".#default: 14 programs, 9 variables".
func (r Record) Summary() string {
	return fmt.Sprintf("%s: %d programs, %d variables", r.Shown, len(r.Programs), len(r.Variables))
}

// Brief is a line for the question: what the dev shell gave at last, or why there was none.
func (r Record) Brief() string {
	switch {
	case r.Quiet:
		return ""
	case r.Failed != "":
		return r.Shown + " failed at last: " + r.Failed
	}
	return r.Summary()
}

// Report says for people what the dev shell gave, why, and how old that is.
func (r Record) Report(now time.Time) string {
	var b strings.Builder
	line := func(label, text string) {
		if text != "" {
			fmt.Fprintf(&b, "%-10s %s\n", label, text)
		}
	}
	age := now.Sub(r.Made).Round(time.Second).String() + " ago"
	if r.Failed != "" {
		line("dev shell", strings.TrimSpace("none: "+r.Shown+" "+r.Failed))
		line("tried", age)
	} else {
		line("dev shell", r.Summary())
		line("made", age)
	}
	line("named by", r.Rule)
	line("programs", strings.Join(r.Programs, " "))
	line("variables", strings.Join(r.Variables, " "))
	line("left out", strings.Join(r.Left, " "))
	line("depends on", strings.Join(r.Files, " "))
	if r.Hook != "" {
		line("its hook", r.Hook)
	}
	return b.String()
}

// Log reads outside what Nix and the hook said at last, for people.
func Log(state, folder string) string {
	var b strings.Builder
	for _, name := range []string{logName, hookLogName} {
		text, err := beneath.ReadIn(state, folder+"/"+name, 2*mostLog)
		if err != nil || len(text) == 0 {
			continue
		}
		b.WriteString(map[string]string{logName: "\nNix said:\n", hookLogName: "\nthe hook said:\n"}[name])
		lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
		for _, line := range lines[max(0, len(lines)-shownLines):] {
			b.WriteString("  " + diag.Visible(line) + "\n")
		}
	}
	return b.String()
}

// shownLines is how many lines of a log are shown.
const shownLines = 100
