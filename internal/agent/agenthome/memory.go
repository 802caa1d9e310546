package agenthome

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
)

// MemoryName is the stand-in for a user without a CLAUDE.md, below Home.
const MemoryName = "CLAUDE.md"

// MemoryFiles are the user's own memory, and the stand-in.
func MemoryFiles(r Request) []string {
	return []string{path.Join(r.UserHome, ".claude/CLAUDE.md"), path.Join(r.Home, MemoryName)}
}

// makeMemory gives the first that there is, with what was changed inside. What
// was added there at the end stays at the end when the user changes their own.
// Where both changed more than that the user's own counts, and what was
// written inside is kept under another name.
func makeMemory(_ Request, f From) Made {
	host := []byte(FirstMemory)
	for _, content := range f.Sources {
		if content != nil {
			host = content
			break
		}
	}
	made := Made{Content: host, Given: sign(host), Notes: leakNotes("CLAUDE.md", host)}
	if f.Old == nil || bytes.Equal(f.Old, host) {
		return made
	}
	rest, added := behind(f.Old, f.Given)
	switch {
	case f.Given == made.Given:
		made.Content = f.Old
	case added:
		made.Content = append(bytes.Clone(host), rest...)
	default:
		made.Aside = true
		made.Once = []string{
			"your CLAUDE.md has changed, and so has the one inside: yours counts, the other is kept beside it",
		}
	}
	return made
}

// sign stands for a text: its length and what it hashes to.
func sign(text []byte) string {
	sum := sha256.Sum256(text)
	return fmt.Sprintf("%d %s", len(text), hex.EncodeToString(sum[:8]))
}

// behind is what follows in a text that begins with a signed one.
func behind(text []byte, signed string) (rest []byte, is bool) {
	var length int
	var sum string
	if _, err := fmt.Sscan(signed, &length, &sum); err != nil || length < 0 || length > len(text) ||
		sign(text[:length]) != signed {
		return nil, false
	}
	return text[length:], true
}

// FirstMemory is the CLAUDE.md that a user who has none finds below Home, to
// change as they like (AWARE-01). What the sandbox is stands in SANDBOX.md.
const FirstMemory = `# Notes for Claude

These notes reach Claude in every claudebox sandbox. Change them as you like;
claudebox made this file once and will not write to it again.

- Commit small, and say in the message why.
- Run the project's tests before you say that something works.
- A tool that is missing: ` + "`, TOOL`" + ` runs it once, ` + "`nix shell nixpkgs#TOOL`" + ` keeps it for a shell.
`
