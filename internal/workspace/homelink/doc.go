// Package homelink finds the links in a user's home by which tools outside would obey, or keep secrets in, what lies
// elsewhere: `~/.zshenv`, `~/.claude/hooks`, a folder of PATH. Where such a link leads into a folder that an agent may
// change, the agent would change what the user's shell runs.
//
// It looks at links and at names only, never at what a file holds. The home is the user's; where its links lead, an
// agent may have written.
package homelink
