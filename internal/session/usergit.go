package session

import (
	"path/filepath"

	"claudebox/internal/workspace/gitconfig"
	"claudebox/internal/workspace/project"
)

// mostUserGit bounds how many files the user's git configuration may be of.
const mostUserGit = 100

// userGit reads the user's own git configuration with all that it includes,
// under whatever condition: the host's git may obey any of it in the project.
// What cannot be read is nothing to git either, or said when the identity is
// read.
func (s *Session) userGit() []project.UserGit {
	var list []project.UserGit
	files := gitconfig.Files(s.Facts.Home, s.Facts.Env.Get)
	for i := 0; i < len(files) && i < mostUserGit; i++ {
		content, err := s.gitFiles.read(files[i])
		if err != nil {
			continue
		}
		entries, _ := gitconfig.Parse(content)
		list = append(list, project.UserGit{Dir: filepath.Dir(files[i]), Entries: entries})
		for _, e := range entries {
			if gitconfig.IsInclude(e) {
				files = append(files, gitconfig.Path(filepath.Dir(files[i]), e.Value, s.Facts.Home))
			}
		}
	}
	return list
}
