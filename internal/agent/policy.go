package agent

import (
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/smallfile"
)

// Policy is what the administrator of this machine sets for Claude Code.
type Policy struct {
	Files []string // settings, links resolved
	Text  []byte   // the machine's CLAUDE.md
}

// PolicyDir is where Claude Code looks for its policy, inside and outside.
const PolicyDir = "/etc/claude-code"

// ReadPolicy reads the policy of this machine. What is missing or unreadable stays empty.
func ReadPolicy() (p Policy) {
	const limit = 1 << 20
	p.Text, _ = smallfile.Read(PolicyDir+"/CLAUDE.md", limit)
	for _, name := range []string{"managed-settings.json", "managed-settings.d"} {
		if path, err := beneath.Canonical(PolicyDir + "/" + name); err == nil {
			p.Files = append(p.Files, path)
		}
	}
	return p
}
