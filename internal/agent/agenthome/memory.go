package agenthome

import "path"

// MemoryName is the stand-in for a user without a CLAUDE.md, below Home.
const MemoryName = "CLAUDE.md"

// MemoryFiles are the user's own memory, and the stand-in.
func MemoryFiles(r Request) []string {
	return []string{path.Join(r.UserHome, ".claude/CLAUDE.md"), path.Join(r.Home, MemoryName)}
}

// makeMemory copies the first that there is. What the agent wrote to its copy
// is gone then: nothing done inside changes the user's own.
func makeMemory(_ Request, _ []byte, sources [][]byte) ([]byte, []string, error) {
	for _, content := range sources {
		if content != nil {
			return content, leakNotes("CLAUDE.md", content), nil
		}
	}
	return []byte(FirstMemory), nil, nil
}

// FirstMemory is the CLAUDE.md that a user who has none finds below Home, to
// change as he likes (AWARE-01). What the sandbox is stands in SANDBOX.md.
const FirstMemory = `# Notes for Claude

These notes reach Claude in every claudebox sandbox. Change them as you like;
claudebox made this file once and will not write to it again.

- Commit small, and say in the message why.
- Run the project's tests before you say that something works.
- A tool that is missing: ` + "`, TOOL`" + ` runs it once, ` + "`nix shell nixpkgs#TOOL`" + ` keeps it for a shell.
`
