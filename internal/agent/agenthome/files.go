package agenthome

import (
	"path"
	"slices"
	"strings"

	"claudebox/internal/diag"
)

// Request says for whom and where files are made. All paths are absolute.
type Request struct {
	UserHome string   // the user's home
	Config   string   // the folder of the user's own Claude Code, by CLAUDE_CONFIG_DIR; empty: ~/.claude
	Home     string   // CLAUDEBOX_HOME
	Trusted  []string // canonical folders that the agent is told to trust
	Main     string   // the project, or its main worktree: Claude Code keeps by it what is of one project
	APIKey   string   // the ANTHROPIC_API_KEY that enters; empty: none
	Host     bool     // the agent works in the user's own state
	Status   string   // what the agent's status line says; empty: nothing
	Refusals string   // the command inside that prints how often something was refused, if it was; empty: there is none
	Servers  []string // MCP servers of the user that enter, by name
	Other    string   // the agent, if it is one of [Others]
	Theirs   string   // the folder of the user's own set-up for that
	// Runs says why a program cannot be run inside, and Sees why a file cannot be read there; empty: it can, or that is
	// not known. Before a program may stand the PATH that it is started with, see [onPath].
	Runs, Sees func(word string) (reason string)
	// Keyed says why the key in a variable does not come to an address, "VARIABLE ADDRESS"; empty: it does, or there
	// is none.
	Keyed func(word string) (reason string)
	// Reaches says why the host of an address is not reached from inside; empty: it is, or that is not known.
	Reaches func(word string) (reason string)
}

// Own returns the path of a file or folder of the user's own Claude Code.
func (r Request) Own(name string) string {
	switch {
	case r.Config != "":
		return path.Join(r.Config, name)
	case name == answersName:
		return path.Join(r.UserHome, name)
	}
	return path.Join(r.UserHome, ".claude", name)
}

// answersName is the file that lies beside ~/.claude, but in another folder of that kind.
const answersName = ".claude.json"

// Key returns a text that changes with everything that the files are made of, besides their sources and the answers of
// Runs and Sees. It holds no more of the API key than Claude Code itself keeps.
func (r Request) Key() string {
	return strings.Join(r.Trusted, "\x00") + "\x00\x00" + approvedSuffix(r.APIKey) + "\x00" + r.Status + "\x00" +
		r.Refusals + "\x00" + strings.Join(r.Servers, " ") + "\x00" + r.Theirs + "\x00" + r.Main
}

// From is what a file is made of.
type From struct {
	Old     []byte   // the present content; nil if there is none or it cannot be read
	Given   string   // [Made.Given] of the last launch; empty: there was none
	Sources [][]byte // contents of the user's files; nil: missing
}

// Made is a file of the agent's home.
type Made struct {
	Content []byte      // nil: the file is left as it is
	Given   string      // the user's part of it, or a hash of that: to tell at the next launch who changed what
	Left    []diag.Left // what of the user's does not enter
	Notes   []string    // said at every launch
	Once    []string    // what happened now; said at this launch only
	Aside   bool        // the present file is to be kept under another name
}

// File is a file of the agent's home.
type File struct {
	Name string
	// Sources are the files of the user that it is made of.
	Sources func(r Request) []string
	Make    func(r Request, f From) Made
}

// Files are those that are made in the home of every agent.
var Files = []File{
	{answersName, ofUser(answersName), makeAnswers},
	{"settings.json", ofUser("settings.json"), makeSettings},
	{"keybindings.json", ofUser("keybindings.json"), copyOf("keybindings.json")},
	{"loop.md", ofUser("loop.md"), copyOf("loop.md")},
	{"CLAUDE.md", MemoryFiles, makeMemory},
	{"history.jsonl", historyFiles, makeHistory},
}

// Files are all files that are made in the home of an agent.
func (r Request) Files() []File {
	if of, is := Others[r.Other]; is {
		return slices.Concat(Files, of.made())
	}
	return Files
}

// Folders are the folders of ~/.claude that hold the user's own additions to Claude Code. They are not copied: the
// agent reads the user's own.
var Folders = strings.Fields("agents commands hooks skills output-styles rules plugins themes workflows")

// Folder is one that the agent reads of its user's own, and does not change.
type Folder struct {
	Name string // in the agent's home, as in [File]; empty: it is read where the user has it
	Own  string // the user's
	Kind string // what lies in it
}

// OwnFolders are those of the agent's user.
func (r Request) OwnFolders() (list []Folder) {
	for _, name := range Folders {
		list = append(list, Folder{name, r.Own(name), kindIn(name)})
	}
	of := Others[r.Other]
	for _, name := range of.folders {
		list = append(list, Folder{Beside + path.Join(of.Folder, name), path.Join(r.Theirs, name), kindIn(name)})
	}
	// Other tools than agents put skills there, for all of them.
	return append(list, Folder{"", path.Join(r.UserHome, ".agents/skills"), "skill"})
}

// kindIn says what lies in a folder.
func kindIn(name string) string { return strings.ReplaceAll(strings.TrimSuffix(name, "s"), "-", " ") }

// ofUser returns a [File.Sources] that names one file of the user's own Claude Code.
func ofUser(name string) func(Request) []string {
	return func(r Request) []string { return []string{r.Own(name)} }
}

// historyFiles names the user's history if it enters, else nothing.
func historyFiles(r Request) []string {
	if !r.Host {
		return nil
	}
	return []string{HistoryFile(r)}
}

// copyOf returns a [File.Make] that takes the user's file as it is; without one what is there stays.
func copyOf(name string) func(Request, From) Made {
	return func(_ Request, f From) Made {
		content, left := withoutSecrets(name, f.Sources[0])
		if left != nil {
			content = nil
		}
		return Made{Content: content, Left: left}
	}
}
