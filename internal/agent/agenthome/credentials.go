package agenthome

import "path"

// LoginFiles are where a login can be lent from, first come first.
func LoginFiles(r Request) []string {
	return []string{
		path.Join(r.UserHome, ".claude/.credentials.json"),
		path.Join(r.Home, ".credentials.json"),
	}
}
