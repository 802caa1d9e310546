package agenthome

import (
	"encoding/json"
	"path"
)

// credentialFiles are where a login can be copied from, first come first.
func credentialFiles(r Request) []string {
	return []string{
		path.Join(r.UserHome, ".claude/.credentials.json"),
		path.Join(r.Home, ".credentials.json"),
	}
}

// login is the part of Claude Code's credentials that says how old they are.
type login struct {
	OAuth struct {
		AccessToken string `json:"accessToken"`
		ExpiresAt   int64  `json:"expiresAt"` // milliseconds since 1970
	} `json:"claudeAiOauth"`
}

// makeCredentials copies the user's login into the agent's home when it is
// newer than the one there: a refresh token can be used once, so the newer
// expiry wins. Nothing is copied when an API key enters, for Claude Code warns
// about both, nor from a file of another shape. None at all is no fault: the
// user logs in inside (AUTH-02).
func makeCredentials(r Request, old []byte, sources [][]byte) ([]byte, []string, error) {
	if r.APIKey != "" {
		return nil, nil, nil
	}
	expiry, _ := readLogin(old)
	var newest []byte
	for _, src := range sources {
		if at, ok := readLogin(src); ok && at > expiry {
			newest, expiry = src, at
		}
	}
	return newest, nil, nil
}

func readLogin(src []byte) (expiresAt int64, ok bool) {
	var l login
	if json.Unmarshal(src, &l) != nil || l.OAuth.AccessToken == "" {
		return 0, false
	}
	return l.OAuth.ExpiresAt, true
}
