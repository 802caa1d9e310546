package agent

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/diag/spelling"
	"claudebox/internal/linux/pathname"
)

// Causes of an error of [Find], for errors.Is. An error with neither cause means that the program is not safe to run,
// or could not be examined.
var (
	ErrNotFound      = errors.New("not found")          // exit status 127
	ErrNotExecutable = errors.New("cannot be executed") // exit status 126
)

// Request is what the lookup depends on.
type Request struct {
	Name          string   // the agent as the profile names it: "claude"
	Command       []string // the profile's agent.command; empty: Name is looked up
	Pinned        string   // the manifest's agent; empty: none
	Node          string   // the manifest's node; empty: the host's
	PlanHasLoader bool     // the plan has a loader for prebuilt programs (compat: nix-ld)
	Inside        []string // PATH inside: store folders
	Path          string   // the caller's PATH
	Project       string   // canonical root of the project
	Home          string   // what ~ stands for in the profile's command
	UID           int      // the user that the agent runs as
	GID           int      // the primary group
	Flake         string   // claudebox's own flake, from which the remedy offers Claude Code; empty: not known
	Files         Files    // nil: the host's
}

// Program says how to run the agent inside the sandbox. Its command line is Path, Args, then the caller's arguments.
type Program struct {
	Path      string   // inside; holds no "=", which env(1) would take for a variable
	Args      []string // the interpreter's arguments and the script, then the rest of the profile's command
	Env       []string // NAME=VALUE, that a wrapper exports
	Mounts    []Mount  // sorted by destination; none for a program of the store
	Notes     []string // for the audit, one sentence each
	Store     bool     // the program is in the Nix store
	Libraries bool     // the host's library folders are mounted, so its loader serves every program inside
}

// bindFolder is the folder inside where a program is mounted if its own path holds a "=", see [Program].
const bindFolder = "/run/claudebox/agent/"

// Find looks up the agent: the path that the profile's command gives, else a program of that name in a package of the
// profile, in the manifest, or on the caller's PATH outside the project, in this order. It fails with [ErrNotFound],
// [ErrNotExecutable], or a refusal if somebody other than root and the user could have written the program, or it
// lies in the project.
func Find(r Request) (Program, error) {
	if r.Files == nil {
		r.Files = hostFiles{}
	}
	f := &finder{Request: r}
	word, rest := r.Name, []string(nil)
	if len(r.Command) > 0 {
		word, rest = r.Command[0], r.Command[1:]
	}
	name, err := f.locate(word)
	if err != nil {
		return Program{}, err
	}
	words, err := f.words(name)
	if err != nil {
		return Program{}, err
	}
	p := f.made
	p.Path, p.Args, p.Store = words[0], slices.Concat(words[1:], f.more, rest), inStore(words[len(words)-1])
	if strings.Contains(p.Path, "=") {
		p.Path = bindFolder + strings.ReplaceAll(path.Base(p.Path), "=", "_")
		p.Mounts = append(p.Mounts, Mount{Source: words[0], Destination: p.Path})
	}
	p.Mounts = outermost(p.Mounts)
	return p, nil
}

// finder examines the program and collects in made what it needs inside.
type finder struct {
	Request
	made    Program
	more    []string // words that wrappers put before the caller's
	scripts int      // scripts met so far, each the interpreter of the one before
}

func (f *finder) mount(m Mount)    { f.made.Mounts = append(f.made.Mounts, m) }
func (f *finder) note(text string) { f.made.Notes = append(f.made.Notes, text) }

// locate returns the path of the program that word, the first of a command line, stands for.
func (f *finder) locate(word string) (string, error) {
	if path.IsAbs(word) {
		return word, nil
	}
	if below, ok := strings.CutPrefix(word, "~/"); ok && f.Home != "" {
		return path.Join(f.Home, below), nil
	}
	if strings.Contains(word, "/") {
		return "", diag.Errorf("find "+word, "write the whole path, or the name alone",
			"a relative path would lead into the project, where any agent could have written it")
	}
	if name, ok := f.search(f.Inside, word); ok {
		return name, nil
	}
	if path.Base(f.Pinned) == word {
		return f.Pinned, nil
	}
	return f.onPath(word)
}

// onPath searches the caller's PATH, outside the project.
func (f *finder) onPath(word string) (string, error) {
	var outside []string
	for _, folder := range strings.Split(f.Path, ":") {
		switch {
		case !path.IsAbs(folder):
		case f.inProject(folder):
			if name, ok := f.search([]string{folder}, word); ok {
				f.note(name + " is passed over: it lies in the project")
			}
		default:
			outside = append(outside, folder)
		}
	}
	switch name, ok := f.search(outside, word); {
	case ok:
		return name, nil
	case name != "":
		return "", notExecutable(name, "chmod +x "+name, "its mode does not let user %d run it", f.UID)
	}
	return "", &diag.Error{Op: "find " + word + " on PATH", Err: ErrNotFound, Remedy: f.howToGet(word)}
}

// search returns the first file called word in folders that the user may execute, with ok true. Without one it
// returns the first that they may not execute, else "". It does not check who could have written the file. That comes
// later, so that an unsafe program is refused, not passed over for another.
func (r Request) search(folders []string, word string) (name string, ok bool) {
	for _, folder := range folders {
		at := path.Join(folder, word)
		file, err := r.follow(at)
		switch {
		case err != nil || !file.info.Mode().IsRegular():
		case r.mayExecute(file):
			return at, true
		case name == "":
			name = at
		}
	}
	return name, false
}

// packages maps the program of an agent to its package in nixpkgs.
var packages = map[string]string{
	"claude": "claude-code", "codex": "codex", "gemini": "gemini-cli", "opencode": "opencode",
}

const getClaude = "install Claude Code (npm install -g @anthropic-ai/claude-code, or Anthropic's installer), or "

// howToGet returns the remedy that says how to install the agent called word.
func (r Request) howToGet(word string) string {
	for _, known := range slices.Sorted(maps.Keys(packages)) {
		if edits := spelling.Edits(word); spelling.Distance(word, known, edits) <= edits && word != known {
			return "write `agent: " + known + "`; known are " + strings.Join(slices.Sorted(maps.Keys(packages)), ", ")
		}
	}
	switch {
	case word != "claude" && packages[word] != "":
		return "install " + word + ", add it to the profile (`packages: [" + packages[word] + "]`), " +
			"or give its path in agent: {command: [...]}"
	case word == "claude-agent-acp":
		return "npm install -g @agentclientprotocol/claude-agent-acp, or give its path in agent: {command: [...]}"
	case word != "claude":
		return "install " + word +
			", add its package to the profile's packages, or give its path in agent: {command: [...]}"
	case r.Flake != "":
		return getClaude + "`nix run " + r.Flake + "#claudebox-with-claude-code`"
	}
	return getClaude + "set programs.claudebox.agentPackage where a module installs claudebox"
}

// notExecutable is an [ErrNotExecutable] with its reason.
func notExecutable(name, remedy, format string, args ...any) error {
	return diag.Errorf("run "+name, remedy, "%w: %s", ErrNotExecutable, fmt.Sprintf(format, args...))
}

// store is where Nix keeps its packages.
const store = "/nix/store"

func inStore(name string) bool { return pathname.Below(name, store) && name != store }

func (r Request) inProject(name string) bool {
	return r.Project != "" && pathname.Below(name, r.Project)
}
