package agent

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/linux/pathname"
)

// Causes of an error of [Find], for errors.Is. An error with neither is a
// refusal: the program was found, and is not safe to run.
var (
	ErrNotFound      = errors.New("not found")          // exit status 127
	ErrNotExecutable = errors.New("cannot be executed") // exit status 126
)

// Request is what the lookup depends on.
type Request struct {
	Name    string   // the agent as the profile names it: "claude"
	Command []string // the profile's agent.command; empty: Name is looked up
	Pinned  string   // the manifest's agent; empty: none
	Node    string   // the manifest's node; empty: the host's
	Loader  bool     // the plan has a loader for prebuilt programs (compat: nix-ld)
	Inside  []string // PATH inside: store folders
	Path    string   // the caller's PATH
	Project string   // canonical root of the project
	Home    string   // what ~ stands for in the profile's command
	UID     int      // the user that the agent runs as
	GID     int      // the primary group
	Flake   string   // claudebox's own, which has an agent for who has none; empty: not known
	Files   Files    // nil: the host's
}

// Program is how to run the agent inside. The words of its process are Path,
// Args, then the caller's.
type Program struct {
	Path      string   // inside; holds no "=", which env(1) would take for a variable
	Args      []string // script and words of its interpreter, then the rest of the profile's command
	Mounts    []Mount  // sorted by destination; none for a program of the store
	Notes     []string // for the audit, one sentence each
	Store     bool     // the program is in the Nix store
	Libraries bool     // the host's library folders are mounted, so its loader serves every program inside
}

// bindFolder is where a program lies whose own path env(1) would misread.
const bindFolder = "/run/claudebox/agent/"

// Find looks the agent up: the profile's command, else a program of that name
// in a package of the profile, in the manifest, on the caller's PATH outside
// the project, in this order. It fails with [ErrNotFound],
// [ErrNotExecutable], or a refusal when others than root and the user could
// have written the program or the project holds it.
func Find(r Request) (Program, error) {
	if r.Files == nil {
		r.Files = hostFiles{}
	}
	r.Files = lstatCache{r.Files, map[string]look{}}
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
	return f.program(words, rest), nil
}

// Displaces reports whether a mount or link of the plan at destination has no
// place beside the program's mounts: the plan's loader, when the folders that
// hold the host's are mounted.
func (p Program) Displaces(destination string) bool {
	return slices.ContainsFunc(p.Mounts, func(m Mount) bool { return pathname.Below(destination, m.Destination) })
}

// finder gathers what the program needs while it is read.
type finder struct {
	Request
	mounts    []Mount
	notes     []string
	libraries bool
	scripts   int  // scripts that led to one another so far
	alone     bool // what is read now is an interpreter
}

// program puts together what was found.
func (f *finder) program(words, rest []string) Program {
	p := Program{
		Path: words[0], Args: slices.Concat(words[1:], rest), Notes: f.notes, Libraries: f.libraries,
		Store: inStore(words[len(words)-1]),
	}
	if strings.Contains(p.Path, "=") {
		p.Path = bindFolder + strings.ReplaceAll(path.Base(p.Path), "=", "_")
		f.mounts = append(f.mounts, readOnly(words[0], p.Path, "the agent, whose name env would take for a variable"))
	}
	// What lies in another mount is left out: bwrap could make no mount point there.
	slices.SortStableFunc(f.mounts, func(a, b Mount) int { return strings.Compare(a.Destination, b.Destination) })
	for _, m := range f.mounts {
		if !p.Displaces(m.Destination) {
			p.Mounts = append(p.Mounts, m)
		}
	}
	return p
}

// locate turns a word of a command line into the path of a file.
func (f *finder) locate(word string) (string, error) {
	if path.IsAbs(word) {
		return word, nil
	}
	if below, ok := strings.CutPrefix(word, "~/"); ok && f.Home != "" {
		return path.Join(f.Home, below), nil
	}
	if strings.Contains(word, "/") {
		return "", diag.Errorf("find "+word, "give the whole path of the agent",
			"a relative path would lead into the project, where any agent could have written it")
	}
	if name := f.search(f.Inside, word); name != "" {
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
			if f.search([]string{folder}, word) != "" {
				f.notes = append(f.notes, path.Join(folder, word)+" is passed over: it lies in the project")
			}
		default:
			outside = append(outside, folder)
		}
	}
	if name := f.search(outside, word); name != "" {
		return name, nil
	}
	if name := f.first(outside, word, func(found) bool { return true }); name != "" {
		return "", notExecutable(name, "chmod +x "+name, "its mode does not let user %d run it", f.UID)
	}
	return "", &diag.Error{Op: "find " + word + " on PATH", Err: ErrNotFound, Remedy: f.howToGet(word)}
}

// search finds the first file in folders that the user may execute.
func (f *finder) search(folders []string, word string) string {
	return f.first(folders, word, f.mayExecute)
}

// first finds the first regular file of that name that suits. Who may have
// written it is looked at later: a program that is not safe is refused, not
// passed over for another.
func (f *finder) first(folders []string, word string, suits func(found) bool) string {
	for _, folder := range folders {
		name := path.Join(folder, word)
		if file, err := f.follow(name); err == nil && file.info.Mode().IsRegular() && suits(file) {
			return name
		}
	}
	return ""
}

// packages are the agents of nixpkgs, by their programs.
var packages = map[string]string{"codex": "codex", "gemini": "gemini-cli", "opencode": "opencode"}

// howToGet says how an agent is got.
func (f *finder) howToGet(word string) string {
	switch {
	case packages[word] != "":
		return "install " + word + ", add it to the profile (`packages: [" + packages[word] + "]`), " +
			"or give its path in agent: {command: [...]}"
	case word != "claude":
		return "install " + word +
			", add its package to the profile's packages, or give its path in agent: {command: [...]}"
	case f.Flake != "":
		return "nix run " + f.Flake + "#claudebox-with-claude-code"
	}
	return "install Claude Code (npm install -g @anthropic-ai/claude-code, or Anthropic's installer), " +
		"or set programs.claudebox.agentPackage where a module installs claudebox"
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
