package aftermath

import (
	"encoding/json"
	"path/filepath"

	"claudebox/internal/agent/state"
	"claudebox/internal/linux/cachefile"
	"claudebox/internal/workspace/project"
)

// Filled is what earlier launches found in the folders of a project that tools
// fill; nothing, when that is not known.
func Filled(home, dir string) (f project.Filled) {
	if json.Unmarshal(cachefile.Read(filledFile(home, dir)), &f) != nil {
		return project.Filled{}
	}
	return f
}

// keepFilled writes it down, unless it stands there.
func keepFilled(home string, p project.Project) {
	if p.Filled.State == "" || p.Filled.State == Filled(home, p.Path).State {
		return
	}
	if content, err := json.Marshal(p.Filled); err == nil {
		cachefile.WriteBelow(filledFile(home, p.Path), content)
	}
}

func filledFile(home, dir string) string {
	return filepath.Join(home, walksFolder, "filled-"+state.ID(dir))
}
