package agenthome

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
)

// MemoryName is the file below Home that stands in for the CLAUDE.md of a user who has none.
const MemoryName = "CLAUDE.md"

// MemoryFiles names the user's own CLAUDE.md and the file that stands in for it.
func MemoryFiles(r Request) []string {
	return []string{r.Own("CLAUDE.md"), path.Join(r.Home, MemoryName)}
}

// makeMemory takes the first source that exists, else [FirstMemory].
func makeMemory(_ Request, f From) Made {
	host := []byte(FirstMemory)
	for _, content := range f.Sources {
		if content != nil {
			host = content
			break
		}
	}
	host, left := withoutSecrets("CLAUDE.md", host)
	made := remember(host, "CLAUDE.md", f)
	made.Left = left
	return made
}

// remember takes the user's memory, called name. If only the file inside has changed since the last launch, that is
// kept. If the user's has changed, too, text that was added at the end inside is added to it; after any other change
// inside the user's is used, and the file inside is kept under another name.
func remember(host []byte, name string, f From) Made {
	made := Made{Content: host, Given: sign(host)}
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
			"your " + name + " has changed, and so has the one inside: yours counts, the other is kept beside it",
		}
	}
	return made
}

// sign returns the length of a text and a part of its hash, by which to recognise it.
func sign(text []byte) string {
	sum := sha256.Sum256(text)
	return fmt.Sprintf("%d %s", len(text), hex.EncodeToString(sum[:8]))
}

// behind returns what follows in text after a beginning whose [sign] is signed; ok is false if text begins otherwise.
func behind(text []byte, signed string) (rest []byte, ok bool) {
	var length int
	var sum string
	if _, err := fmt.Sscan(signed, &length, &sum); err != nil || length < 0 || length > len(text) ||
		sign(text[:length]) != signed {
		return nil, false
	}
	return text[length:], true
}

// FirstMemory is the CLAUDE.md that is made below Home for a user who has none, to change as they like.
// The sandbox itself is described in SANDBOX.md.
const FirstMemory = `# Notes for Claude

These notes reach Claude in every claudebox sandbox. Change them as you like;
claudebox made this file once and will not write to it again.

- Commit small, and say in the message why.
- Run the project's tests before you say that something works.
- A tool that is missing: ` + "`, TOOL`" + ` runs it once, ` + "`nix shell nixpkgs#TOOL`" + ` keeps it for a shell.
`
