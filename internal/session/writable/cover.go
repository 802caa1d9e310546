package writable

import (
	"path"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/workspace/cover"
	"claudebox/internal/workspace/gitconfig"
	"claudebox/internal/workspace/project"
)

// remakes maps the mode of a mount to what makes the content that covers a new file at the mount's path; nil: the new
// file itself is mounted, read-only.
var remakes = map[project.Mode]func(file string) ([]byte, error){
	project.Hidden:   func(string) ([]byte, error) { return []byte{}, nil },
	project.Made:     sanitised,
	project.ReadOnly: nil,
}

// covers are the files of a folder that stay covered, whatever replaces them on the host.
func covers(given project.Project) (files []cover.File) {
	for _, m := range given.Mounts {
		if remake, stays := remakes[m.Mode]; stays {
			files = append(files, cover.File{Path: m.Path, Folder: m.Dir, Remake: remake})
		}
	}
	return files
}

// sanitised makes the copy of a git configuration that is seen inside.
func sanitised(file string) ([]byte, error) {
	const limit = 1 << 20
	content, err := beneath.ReadIn(path.Dir(file), path.Base(file), limit)
	return append([]byte{}, gitconfig.Sanitise(content)...), err
}
