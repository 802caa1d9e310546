package agent

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/diag/pattern"
)

// Called reads a command line as editors, and Claude Code itself, hand it to a process wrapper: the path of the agent's
// program, or a runtime and the path of the program's script, and then the agent's words. used is how many words name
// the program; 0: they begin with another thing, such as a prompt. Whose program it is says [Is]. It is looked for and
// never opened: an agent may have made it.
func Called(words []string) (program string, used int) {
	runtimes := []string{"node", "bun"}
	switch {
	case len(words) > 1 && isFile(words[1], 0) && claudesFile.Matches(words[1]) &&
		(slices.Contains(runtimes, path.Base(words[0])) || isFile(words[0], 0o111)):
		return words[1], 2
	case len(words) > 0 && isFile(words[0], 0o111) && (isDeep(words[0]) || packages[ownName(words[0])] != ""):
		return words[0], 1
	}
	return "", 0
}

// isDeep reports whether a path is absolute and leads through a folder. One that does not can be a command of the
// agent's, such as /init, wherever a file of this name lies.
func isDeep(name string) bool { return path.IsAbs(name) && path.Dir(name) != "/" }

// isFile reports whether word is a path with a slash of a regular file that has one of the bits of its mode; 0: any.
func isFile(word string, bits os.FileMode) bool {
	info, err := os.Stat(word)
	return err == nil && strings.Contains(word, "/") && info.Mode().IsRegular() && (bits == 0 || info.Mode()&bits != 0)
}

// claudesFile are files of Claude Code's that do not bear its name: those of its own installer, and of npm.
const claudesFile pattern.Expr = `/(claude/versions/[^/]+|claude-code/cli\.js)$`

// ownName is a program's name, without what nixpkgs' wrappers and npm put around it.
func ownName(program string) string {
	name := strings.TrimSuffix(path.Base(program), ".exe")
	if inner, is := strings.CutSuffix(name, "-wrapped"); is {
		name = strings.TrimPrefix(inner, ".")
	}
	return name
}

// Is reports whether a path, or the file that its links lead to, is by its name a program of the agent called name.
func Is(program, name string) bool {
	real, _ := filepath.EvalSymlinks(program) // empty, where that fails
	return slices.ContainsFunc([]string{program, real}, func(at string) bool {
		return ownName(at) == name || name == "claude" && claudesFile.Matches(at)
	})
}
