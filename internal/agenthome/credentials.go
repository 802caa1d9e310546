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

// login is the part of Claude Code's credentials that says how old they are,
// and whether they can be renewed.
type login struct {
	OAuth struct {
		AccessToken  string `json:"accessToken"`
		RefreshToken string `json:"refreshToken"`
		ExpiresAt    int64  `json:"expiresAt"` // milliseconds since 1970
	} `json:"claudeAiOauth"`
}

// makeCredentials lends the user's login to the agent when it is newer than
// the one there, without what renews it: a refresh token can be used once, so
// an agent that used it would log the user out. A login made inside has one
// of its own, and stays. Nothing is lent when an API key enters, for Claude
// Code warns about both, nor from a file of another shape. None at all is no
// fault: the user logs in inside (AUTH-02).
func makeCredentials(r Request, old []byte, sources [][]byte) ([]byte, []string, error) {
	own, _ := readLogin(old)
	if r.APIKey != "" || own.OAuth.RefreshToken != "" {
		return nil, nil, nil
	}
	var newest []byte
	for _, src := range sources {
		if l, ok := readLogin(src); ok && l.OAuth.ExpiresAt > own.OAuth.ExpiresAt {
			newest, own = src, l
		}
	}
	lent, err := withoutRefresh(newest)
	return lent, nil, err
}

func readLogin(src []byte) (l login, ok bool) {
	ok = json.Unmarshal(src, &l) == nil && l.OAuth.AccessToken != ""
	return l, ok
}

// withoutRefresh takes the refresh token out of credentials, and everything
// that is not the login (tokens of MCP servers).
func withoutRefresh(credentials []byte) ([]byte, error) {
	if credentials == nil {
		return nil, nil
	}
	var kept struct {
		OAuth map[string]json.RawMessage `json:"claudeAiOauth"`
	}
	if err := json.Unmarshal(credentials, &kept); err != nil {
		return nil, err
	}
	delete(kept.OAuth, "refreshToken")
	delete(kept.OAuth, "refreshTokenExpiresAt")
	return json.Marshal(kept)
}
