package session

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/linux/smallfile"
	"claudebox/internal/session/usergit"
	"claudebox/internal/workspace/gitconfig"
	"claudebox/internal/workspace/project"
)

// userGit is the user's own git configuration. Each of its files is read once in
// a session: for the identity, and for each folder in which git obeys it.
type userGit struct {
	call
	files map[string]gitFile
}

type gitFile struct {
	content []byte
	err     error
}

// read reads a file of the configuration, which may include one of the project:
// it neither waits for a pipe nor reads without end.
func (g userGit) read(name string) ([]byte, error) {
	const limit = 1 << 20
	if name == os.DevNull { // GIT_CONFIG_GLOBAL=/dev/null is a habit
		return nil, nil
	}
	file, known := g.files[name]
	if !known {
		file.content, file.err = smallfile.Read(name, limit)
		g.files[name] = file
	}
	return file.content, file.err
}

// mostUserGit bounds how many files the user's git configuration may be of.
const mostUserGit = 100

// all is the configuration with all that it includes, under whatever condition:
// the host's git may obey any of it in the project. What cannot be read is nothing
// to git either, or said when the identity is read.
func (g userGit) all() []project.UserGit {
	var list []project.UserGit
	files := usergit.Files(g.Facts.Home, g.Facts.Env.Get)
	for i := 0; i < len(files) && i < mostUserGit; i++ {
		content, err := g.read(files[i])
		if err != nil {
			continue
		}
		entries, _ := gitconfig.Parse(content)
		list = append(list, project.UserGit{Dir: filepath.Dir(files[i]), Entries: entries})
		for _, e := range entries {
			if gitconfig.IsInclude(e) {
				files = append(files, gitconfig.Path(filepath.Dir(files[i]), e.Value, g.Facts.Home))
			}
		}
	}
	return list
}

// nameNoCommand are the sections of git's configuration whose values name
// repositories, and nothing that git would run or obey.
var nameNoCommand = []string{"safe", "maintenance", "scalar", "gui", "remote", "url", "branch", "http", "user"}

// obeys are the files of the configuration, and all paths that they name for git
// to obey or run: hooks, attributes, commands.
func (g userGit) obeys() []string {
	list := usergit.Files(g.Facts.Home, g.Facts.Env.Get)
	for _, file := range g.all() {
		for _, e := range file.Entries {
			if gitconfig.IsInclude(e) {
				list = append(list, gitconfig.Path(file.Dir, e.Value, g.Facts.Home))
			} else if !slices.Contains(nameNoCommand, e.Top()) {
				list = append(list, g.pathsIn(e.Value)...)
			}
		}
	}
	return list
}

// pathsIn are the words of a command that are paths from the root or the home.
func (c call) pathsIn(command string) (list []string) {
	for _, word := range strings.FieldsFunc(command,
		func(r rune) bool { return strings.ContainsRune(" \t\"'`;|&()<>=!$", r) }) {
		if filepath.IsAbs(word) || strings.HasPrefix(word, "~/") {
			list = append(list, c.absolute(word))
		}
	}
	return list
}

// repoOf is what conditional includes of the user's git configuration may ask
// about a project. shown is the folder as the caller came to it, with
// links not resolved.
func repoOf(p project.Project, shown string) usergit.Repo {
	r := usergit.Repo{Branch: p.Repo.Branch, Remotes: p.Repo.Remotes}
	if p.Repo.Dir == "" {
		return r
	}
	r.Dirs = []string{p.Repo.Dir}
	below := strings.TrimPrefix(p.Dir, p.Repo.Worktree)
	if came, ok := strings.CutSuffix(shown, below); ok && p.Repo.Dir == p.Repo.Worktree+"/.git" {
		r.Dirs = append(r.Dirs, came+"/.git")
	}
	return r
}

// safeDirectories are the folders that git inside may trust (GIT-02): the
// project, the worktree it lies in, and the repository's common folder.
func safeDirectories(p project.Project) []string {
	dirs := []string{p.Path}
	for _, dir := range []string{p.Repo.Worktree, p.Repo.Common} {
		if dir != "" && dir != p.Path {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}
