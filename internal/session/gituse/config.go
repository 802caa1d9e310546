package gituse

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/host"
	"claudebox/internal/linux/smallfile"
	"claudebox/internal/session/usergit"
	"claudebox/internal/workspace/gitconfig"
	"claudebox/internal/workspace/project"
)

// Config is the user's own git configuration with all files that it includes, under whatever condition: the host's
// git may obey any of them in the project. Each file is read once, so that the identity is made from what was judged.
// A file that cannot be read is left out: git does not obey it either, or reading the identity reports it.
type Config struct {
	Files    []project.UserGit
	contents map[string][]byte
}

// ReadConfig reads the configuration.
func ReadConfig(facts host.Facts) Config {
	const mostFiles = 100
	git, files := Config{contents: map[string][]byte{}}, usergit.Files(facts.Home, facts.Env.Get)
	for i := 0; i < len(files) && i < mostFiles; i++ {
		content, err := git.read(files[i])
		if err != nil {
			continue
		}
		git.contents[files[i]] = content
		entries, _ := gitconfig.Parse(content)
		git.Files = append(git.Files, project.UserGit{Dir: filepath.Dir(files[i]), Entries: entries})
		for _, e := range entries {
			if gitconfig.IsInclude(e) {
				files = append(files, gitconfig.Path(filepath.Dir(files[i]), e.Value, facts.Home))
			}
		}
	}
	at := xdgGit(facts) // git obeys these without a setting
	git.Files = append(git.Files, project.UserGit{Dir: at, Entries: []gitconfig.Entry{
		{Section: "core", Name: "excludesfile", Value: at + "/ignore"},
		{Section: "core", Name: "attributesfile", Value: at + "/attributes"},
	}})
	return git
}

// xdgGit is the folder of the user's own files that git obeys.
func xdgGit(facts host.Facts) string {
	return filepath.Join(facts.Env.Value("XDG_CONFIG_HOME", filepath.Join(facts.Home, ".config")), "git")
}

// read reads a file of the configuration. That may include a file of the project,
// so reading neither waits for a pipe nor goes on without end.
func (u Config) read(name string) ([]byte, error) {
	const limit = 1 << 20
	if content, known := u.contents[name]; known || name == os.DevNull { // GIT_CONFIG_GLOBAL=/dev/null is a habit
		return content, nil
	}
	return smallfile.Read(name, limit)
}

// nameNoCommand are the sections of git's configuration whose values name
// repositories, and nothing that git would run or obey.
var nameNoCommand = []string{"safe", "maintenance", "scalar", "gui", "remote", "url", "branch", "http", "user"}

// Obeyed are the files of the configuration, and all paths that they name for git
// to obey or run: hooks, attributes, commands.
func (u Config) Obeyed(facts host.Facts) []string {
	list := usergit.Files(facts.Home, facts.Env.Get)
	for _, file := range u.Files {
		for _, e := range file.Entries {
			if gitconfig.IsInclude(e) {
				list = append(list, gitconfig.Path(file.Dir, e.Value, facts.Home))
			} else if !slices.Contains(nameNoCommand, e.Top()) {
				list = append(list, pathsIn(facts, e.Value)...)
			}
		}
	}
	return list
}

// pathsIn are the words of a command that are paths from the root or the home.
func pathsIn(facts host.Facts, command string) (list []string) {
	for _, word := range strings.FieldsFunc(command,
		func(r rune) bool { return strings.ContainsRune(" \t\"'`;|&()<>=!$", r) }) {
		if filepath.IsAbs(word) || strings.HasPrefix(word, "~/") {
			list = append(list, facts.Absolute(word))
		}
	}
	return list
}
