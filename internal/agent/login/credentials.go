package login

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// object is a JSON object whose keys we touch one by one; all others stay as
// they are.
type object map[string]json.RawMessage

// keyOf is the login in Claude Code's credentials; what lies beside it are
// tokens of MCP servers and the like.
const keyOf = "claudeAiOauth"

// login is what of Claude Code's credentials says who is logged in, and how
// long. It ended when it has no tokens: Claude Code empties it when it is told
// that it cannot be renewed any more.
type login struct {
	access, refresh string
	expires         int64  // of the access token, milliseconds since 1970
	ends            int64  // of the whole login, likewise; 0: not said
	account         string // whose it is, as far as the file says
	organization    string
	client          string // the client id that it was made with, where that is not the usual one
	scope           string // what it may do, with blanks between
}

// good reports whether a login can be used: it has not ended.
func (l login) good() bool { return l.access != "" }

// sum stands for a login where its tokens should not be written down. No two
// logins of one life have the same.
func (l login) sum() string {
	if !l.good() {
		return ""
	}
	sum := sha256.Sum256([]byte(l.access + "\x00" + l.refresh))
	return hex.EncodeToString(sum[:16])
}

// Faults of a file. They say nothing of its content, which is secret.
var (
	errNotJSON  = errors.New("it is no JSON object")
	errNotLogin = errors.New("its " + keyOf + " is not what Claude Code writes there")
)

// parse reads credentials. A file without a login gives none and no error.
func parse(content []byte) (l login, found bool, err error) {
	var file, oauth object
	if json.Unmarshal(content, &file) != nil || file == nil {
		return login{}, false, errNotJSON
	}
	if isNull(file[keyOf]) {
		return login{}, false, nil
	}
	if json.Unmarshal(file[keyOf], &oauth) != nil {
		return login{}, false, errNotLogin
	}
	var expires, ends float64
	for key, value := range map[string]any{
		"accessToken": &l.access, "refreshToken": &l.refresh, "expiresAt": &expires, "refreshTokenExpiresAt": &ends,
		"accountUuid": &l.account, "organizationUuid": &l.organization, "clientId": &l.client,
	} {
		if raw, ok := oauth[key]; ok && json.Unmarshal(raw, value) != nil {
			return login{}, false, errNotLogin
		}
	}
	l.expires, l.ends, l.scope = int64(expires), int64(ends), scopeOf(oauth)
	if !isToken(l.access) || !isToken(l.refresh) || !isToken(l.client) || !isDate(expires) || !isDate(ends) ||
		len(l.account)+len(l.organization)+len(l.scope) > maxToken {
		return login{}, false, errNotLogin
	}
	return l, true, nil
}

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

const (
	maxToken = 4096 // bytes; tokens of today have about a hundred
	maxDate  = 1e14 // milliseconds since 1970: the year 5138
)

// tokenChars are those of a bearer token (RFC 6750, section 2.1).
const tokenChars = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/="

// isToken reports whether a text can be a token, or none at all.
func isToken(text string) bool { return len(text) <= maxToken && strings.Trim(text, tokenChars) == "" }

func isDate(ms float64) bool { return ms >= 0 && ms <= maxDate }

// How far ahead a date may lie that comes from inside. A later one is taken
// for this: the user's Claude Code then renews sooner, which hurts nobody.
const (
	maxExpires = 48 * time.Hour
	maxEnds    = 400 * 24 * time.Hour
)

// renew puts the tokens of a login that was renewed inside into the user's
// credentials, and their dates. All else stays.
func renew(host []byte, l login, now time.Time) ([]byte, error) {
	var file, oauth object
	if json.Unmarshal(host, &file) != nil || json.Unmarshal(file[keyOf], &oauth) != nil || oauth == nil {
		return nil, errNotLogin
	}
	set := func(key string, value any) { oauth[key] = mustEncode(value) }
	set("accessToken", l.access)
	set("refreshToken", l.refresh)
	set("expiresAt", min(l.expires, now.Add(maxExpires).UnixMilli()))
	if l.ends > 0 {
		set("refreshTokenExpiresAt", min(l.ends, now.Add(maxEnds).UnixMilli()))
	}
	delete(oauth, "loginEnded") // Claude Code's mark on a login that could not be renewed
	file[keyOf] = mustEncode(oauth)
	return encode(file)
}

// encode writes JSON as Claude Code does: in one line.
func encode(value any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(value)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}

func mustEncode(value any) json.RawMessage {
	raw, err := encode(value)
	if err != nil {
		panic("bug: " + err.Error())
	}
	return raw
}
