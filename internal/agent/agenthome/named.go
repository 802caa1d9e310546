package agenthome

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	"claudebox/internal/agent/object"
	"claudebox/internal/agent/shellline"
)

// Named lists the files of the user's own folder of Claude Code that its settings name: words of the commands of hooks
// and of the status line. They are relative to that folder, sorted, without those in [Folders].
func (r Request) Named(settings []byte) (files []string) {
	for _, of := range Commands(settings) {
		for _, word := range shellline.Words(of.Line) {
			if rel, is := r.inOwn(word); is {
				files = append(files, rel)
			}
		}
	}
	slices.Sort(files)
	return slices.Compact(files)
}

// Command is a command line that Claude Code runs by its settings, that of an MCP or language server a program alone;
// or an address that it asks.
type Command struct {
	Kind, Of, Line string
	Path           string   // that it is started with; empty: that of Claude Code
	Args           []string // that it is given as they are
	Address        string
}

// commandOf is what a hook, a status line or a server has Claude Code run or ask.
func commandOf(kind, of string, o object.Object) Command {
	line := cmp.Or(object.As[string](o["command"]), object.As[string](o["headersHelper"]))
	return Command{
		kind, of, line, object.As[map[string]string](o["env"])["PATH"], object.As[[]string](o["args"]),
		object.As[string](o["url"]),
	}
}

// CannotRun says why a command cannot do inside what it does outside, as [Request.Missing].
func (r Request) CannotRun(c Command) string {
	reason := ""
	if c.Path != "" {
		reason = ask(r.Runs, onPath(c.Path, c.Line))
	} else {
		reason = r.Missing(c.Line)
	}
	if reason == "" && c.Address != "" {
		reason = ask(r.Reaches, c.Address)
	}
	return cmp.Or(reason, r.unseen(c.Args))
}

// onPath names a program for [Request.Runs] that is started with a PATH of its own: Claude Code looks for an MCP server
// by the one that its `env` sets.
func onPath(path, program string) string {
	if path == "" {
		return program
	}
	return "PATH=" + path + "\x00" + program
}

// Commands lists what hooks, the status line, and MCP and language servers of a file of settings run or ask: one of
// Claude Code's, of a plugin's, or .mcp.json.
func Commands(settings []byte) (list []Command) {
	o := object.Parse(settings)
	add := func(kind, of string, from object.Object) {
		if c := commandOf(kind, of, from); c.Line+c.Address != "" {
			list = append(list, c)
		}
	}
	add("status line", "status line", object.Parse(o["statusLine"]))
	hooks := object.As[map[string][]object.Object](o["hooks"])
	for _, event := range slices.Sorted(maps.Keys(hooks)) {
		for _, matcher := range hooks[event] {
			for _, hook := range object.As[[]object.Object](matcher["hooks"]) {
				add("hook", "hook of "+event, hook)
			}
		}
	}
	for _, of := range [...]struct{ key, kind string }{
		{"mcpServers", "MCP server"}, {"lspServers", "language server"},
	} {
		servers := object.As[map[string]object.Object](o[of.key])
		for _, name := range slices.Sorted(maps.Keys(servers)) {
			add(of.kind, of.kind+" "+name, servers[name])
		}
	}
	return list
}

// inOwn returns the path of a file relative to the user's own folder of Claude Code, if a word names one there that
// does not lie in one of [Folders].
func (r Request) inOwn(word string) (rel string, is bool) {
	for _, begin := range []string{"~/", "$HOME/", "${HOME}/"} {
		if rest, found := strings.CutPrefix(word, begin); found {
			word = path.Join(r.UserHome, rest)
		}
	}
	for _, own := range []string{r.Own("."), path.Join(r.UserHome, ".claude")} {
		if rest, below := strings.CutPrefix(path.Clean(word), own+"/"); below {
			first, _, _ := strings.Cut(rest, "/")
			return rest, !slices.Contains(Folders, first)
		}
	}
	return "", false
}

// MostImports bounds how many files a memory may import, and DeepestImport how deep: Claude Code follows five.
const (
	MostImports   = 50
	DeepestImport = 5
)

// Imports lists what a memory file imports, as it is written: "@docs/rules.md", "@~/notes.md". What stands in code is
// no import.
func Imports(memory []byte) (list []string) {
	fenced := false
	for line := range strings.Lines(string(memory)) {
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~") {
			fenced = !fenced
			continue
		}
		if fenced {
			continue
		}
		for i, part := range strings.Split(line, "`") {
			if i%2 == 1 { // between backquotes
				continue
			}
			for _, word := range strings.Fields(part) {
				name, is := strings.CutPrefix(word, "@")
				name = strings.TrimRight(name, ".,;:!?)")
				if is && isPath(name) && !slices.Contains(list, name) {
					list = append(list, name)
				}
			}
		}
	}
	return list
}

// isPath reports whether a word behind an @ is the path of a file, and not somebody's name or a package.
func isPath(name string) bool {
	return name != "" && !strings.Contains(name, "@") &&
		(strings.HasPrefix(name, "~/") || strings.HasPrefix(name, "/") || strings.HasPrefix(name, ".") ||
			strings.Contains(path.Base(name), ".") || strings.Contains(name, "/"))
}
