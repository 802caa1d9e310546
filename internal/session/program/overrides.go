package program

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/host"
	"claudebox/internal/plan"
	"claudebox/internal/plan/resolve"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/sandbox/view"
)

// Overrides decides which host variables enter with another value or not at all,
// because what they name is not inside.
func Overrides(p plan.Plan, env host.Environment, inside *view.View) (made launch.Part,
	overrides map[string]launch.Override,
) {
	// every description database has it, and terminals of today can serve it
	const commonTerminal = "xterm-256color"
	overrides = map[string]launch.Override{}
	if name := env.Value("TERM", ""); name != "" && !knowsTerminal(p, name) {
		overrides["TERM"] = launch.Override{Value: commonTerminal, Why: name + " is not known inside"}
		made.Note(fmt.Sprintf("TERM is %s inside: %s has no description there", commonTerminal, name))
	}
	var locales []string
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if of := env.Value(name, ""); !hasLocale(of) {
			overrides[name] = launch.Override{Value: "C.UTF-8", Why: "the locale is not inside"}
			locales = append(locales, name+"="+of)
		}
	}
	if locales != nil {
		made.Note("in place of " + strings.Join(locales, ", ") +
			" the locale is C.UTF-8 inside: that and en_US.UTF-8 are there")
	}
	if slices.Contains(editors, strings.ToLower(env.Value("TERM_PROGRAM", ""))) {
		overrides["TERM_PROGRAM"] = launch.Override{Drop: true}
	}
	for _, name := range []string{"EDITOR", "PAGER", "VISUAL"} {
		editor := env.Value(name, "")
		program, _, _ := strings.Cut(strings.TrimSpace(editor), " ")
		if reason := inside.Program(program); reason != "" {
			overrides[name] = launch.Override{Drop: true}
			made.Leave("variable", fmt.Sprintf("%s (%s) does not enter: %s", name, editor, reason))
		}
	}
	return made, overrides
}

// editors are the names of terminals in an editor, in small letters. An agent that knows one installs its extension
// there and connects to it, which cannot be from inside.
var editors = []string{"cursor", "devin", "devin-desktop", "vscode", "windsurf"}

// hasLocale reports whether a locale is inside: with any other setlocale(3) fails, and programs take text for ASCII.
func hasLocale(name string) bool {
	name = strings.ReplaceAll(strings.ToLower(name), "-", "")
	return slices.Contains([]string{"", "c", "posix", "c.utf8", "en_us.utf8"}, name)
}

// knowsTerminal looks a terminal type up where ncurses would: a folder per
// first character, or per its code (terminfo(5)).
func knowsTerminal(p plan.Plan, name string) bool {
	root := plan.ToolPath(p, resolve.ToolTerminfo)
	if root == "" {
		return true
	}
	if !filepath.IsLocal(name) || strings.Contains(name, "/") {
		return false
	}
	for _, dir := range []string{name[:1], fmt.Sprintf("%x", name[0])} {
		if _, err := os.Stat(filepath.Join(root, dir, name)); err == nil {
			return true
		}
	}
	return false
}

// pathFlags are flags of Claude Code that take a path.
var pathFlags = []string{
	"--add-dir", "--append-system-prompt-file", "--mcp-config", "--plugin-dir", "--settings", "--system-prompt-file",
}

// UnseenWords returns a note for each path among the agent's words that is not inside: what a wrapper or the profile
// puts before them, own, and the user's words, of which only those behind pathFlags are paths.
func UnseenWords(own, words []string, inside *view.View) (notes []string) {
	note := func(before, path string) {
		if path == ".." {
			path = "../" // which is no program's name
		}
		if reason := inside.File(path); reason != "" {
			notes = append(notes, before+reason)
		}
	}
	all := slices.Concat(own, words)
	for i, word := range all {
		flag, value, inline := strings.Cut(word, "=")
		takes := slices.Contains(pathFlags, flag)
		switch {
		case takes && inline:
			note(flag+" ", value)
		case i > 0 && slices.Contains(pathFlags, all[i-1]):
			note(all[i-1]+" ", word)
		case i > 0 && i < len(own) && filepath.IsAbs(word):
			note("of the agent's command, ", word)
		}
	}
	return notes
}
