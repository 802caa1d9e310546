package aftermath

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"claudebox/internal/cachefile"
	"claudebox/internal/project"
	"claudebox/internal/survey"
)

// walksFolder is where walks of large projects are kept, so that the next
// launch lists only the folders that were changed since.
const walksFolder = "walks"

// Known is what the last session's walk of a project saw; nil when nothing is
// known.
func Known(home string, s project.Scope) *survey.Survey {
	content, err := os.ReadFile(walkFile(home, s))
	if err != nil || len(content) < sha256.Size {
		return nil
	}
	sum := sha256.Sum256(content[sha256.Size:])
	if string(sum[:]) != string(content[:sha256.Size]) {
		return nil
	}
	return survey.Unpack(content[sha256.Size:])
}

// keep writes a walk down. What the session changed is told by its report: the
// next session begins with what is there now.
func keep(home string, s project.Scope, seen project.Seen) {
	if !seen.Large() || seen.Cut {
		return
	}
	content := seen.Pack()
	sum := sha256.Sum256(content)
	cachefile.WriteBelow(walkFile(home, s), append(sum[:], content...))
}

// walkFile is named after all that decides what a walk looks for.
func walkFile(home string, s project.Scope) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%q %q", cachefile.State("/proc/self/exe"), s.Path, s.Hide))
	return filepath.Join(home, walksFolder, hex.EncodeToString(sum[:8]))
}
