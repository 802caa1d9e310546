package session

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"claudebox/internal/host"
	"claudebox/internal/plan"
	"claudebox/internal/plan/resolve"
	"claudebox/internal/sandbox/launch"
)

// commonTerminal is a terminal type that every description database has and
// that terminals of today can serve.
const commonTerminal = "xterm-256color"

// overrides decides which host variables enter with another value or not at
// all, because what they name is not inside. It returns a note on each.
func overrides(p plan.Plan, env host.Environment) (map[string]launch.Override, []string) {
	changed := map[string]launch.Override{}
	var notes []string
	if name := env.Value("TERM", ""); name != "" && !knowsTerminal(p, name) {
		changed["TERM"] = launch.Override{Value: commonTerminal, Why: name + " is not known inside"}
		notes = append(notes, fmt.Sprintf("TERM is %s inside: %s has no description there", commonTerminal, name))
	}
	for _, name := range []string{"EDITOR", "VISUAL"} {
		if editor := env.Value(name, ""); editor != "" && !isInside(p, editor) {
			changed[name] = launch.Override{Drop: true}
			notes = append(notes, fmt.Sprintf("%s (%s) does not enter: that program is not inside", name, editor))
		}
	}
	return changed, notes
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

// isInside reports whether the program of a command line can be run inside.
func isInside(p plan.Plan, command string) bool {
	program, _, _ := strings.Cut(strings.TrimSpace(command), " ")
	if filepath.IsAbs(program) {
		return strings.HasPrefix(filepath.Clean(program), "/nix/store/")
	}
	return program != "" && !strings.Contains(program, "/") && slices.ContainsFunc(p.Path, func(dir string) bool {
		return unix.Access(filepath.Join(dir, program), unix.X_OK) == nil
	})
}
