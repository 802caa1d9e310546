package aftermath

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"

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
	if len(content) < sha256.Size {
		return nil
	}
	sum := sha256.Sum256(content[sha256.Size:])
	if string(sum[:]) != string(content[:sha256.Size]) {
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
