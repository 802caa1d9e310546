package aftermath

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path/filepath"

	"claudebox/internal/agent/state"
	"claudebox/internal/linux/cachefile"
	"claudebox/internal/workspace/project"
)

// walksFolder is where it is kept what was seen of large projects, so that the
// next launch looks only at what was changed since.
const walksFolder = "walks"

// Known is what was seen of a project when its last session ended; nil when
// nothing is known.
func Known(home string, s project.Scope) *project.Seen {
	content := cachefile.Read(walkFile(home, s))
	if len(content) < sha256.Size || sha256.Sum256(content[sha256.Size:]) != [sha256.Size]byte(content) {
		return nil
	}
	return project.Unpack(content[sha256.Size:])
}

// keep writes down what was seen. What the session changed is told by its report: the
// next session begins with what is there now.
func keep(home string, s project.Scope, seen project.Seen) {
	if !seen.Large() || seen.Cut {
		return
	}
	content := seen.Pack()
	sum := sha256.Sum256(content)
	cachefile.WriteBelow(walkFile(home, s), append(sum[:], content...))
}

// walkFile is named after all that decides what is looked for.
func walkFile(home string, s project.Scope) string {
	sum := sha256.Sum256([]byte(s.Walked()))
	return filepath.Join(home, walksFolder, hex.EncodeToString(sum[:8]))
}

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
