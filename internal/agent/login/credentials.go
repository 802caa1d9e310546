package login

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/agent/object"
	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
)

// loginKey is the key in the JSON object of Claude Code's credentials file that holds the login. Other keys hold tokens
// of MCP servers and the like.
const loginKey = "claudeAiOauth"

// login is the part of Claude Code's credentials that says who is logged in, and until when. A login without an access
// token has ended: Claude Code empties a login when it learns that the login cannot be renewed any more.
type login struct {
	access, refresh string
	expires         int64  // when the access token expires, in milliseconds since 1970; 0: not known
	ends            int64  // when the login can no longer be renewed, likewise; 0: not known
	client          string // the OAuth client id that the login was made with; empty: the usual one
	scope           string // what the login may be used for (OAuth scopes): words, with blanks between
}

// good reports whether a login can be used, as it has not ended.
func (l login) good() bool { return l.access != "" }

// same reports whether two logins have the same tokens, or have both ended.
func (l login) same(o login) bool {
	return l.access == o.access && (l.refresh == o.refresh || !l.good())
}

// Faults of a credentials file. They tell nothing of its content, which is secret.
var (
	errNotJSON  = errors.New("it is no JSON object")
	errNotLogin = errors.New("its " + loginKey + " is not what Claude Code writes there")
)

// parse reads the login in the content of a credentials file. found is false, with no error, if the file has no
// login.
func parse(content []byte) (l login, found bool, err error) {
	file := object.Parse(content)
	if file == nil {
		return login{}, false, errNotJSON
	}
	if raw := string(file[loginKey]); raw == "" || raw == "null" {
		return login{}, false, nil
	}
	oauth := object.Parse(file[loginKey])
	if oauth == nil {
		return login{}, false, errNotLogin
	}
	var expires, ends float64
	var account, organization string // only checked here: they enter the sandbox as they are, see [shownKeys]
	for key, value := range map[string]any{
		"accessToken": &l.access, "refreshToken": &l.refresh, "expiresAt": &expires, "refreshTokenExpiresAt": &ends,
		"accountUuid": &account, "organizationUuid": &organization, "clientId": &l.client,
	} {
		if raw, ok := oauth[key]; ok && json.Unmarshal(raw, value) != nil {
			return login{}, false, errNotLogin
		}
	}
	l.expires, l.ends, l.scope = int64(expires), int64(ends), strings.Join(object.As[[]string](oauth["scopes"]), " ")
	if !isToken(l.access) || !isToken(l.refresh) || !isToken(l.client) || !isDate(expires) || !isDate(ends) ||
		len(account)+len(organization)+len(l.scope) > maxToken {
		return login{}, false, errNotLogin
	}
	return l, true, nil
}

const (
	maxToken = 4096 // bytes; today's tokens have about a hundred
	maxDate  = 1e14 // milliseconds since 1970: the year 5138
)

// tokenChars are the characters of a bearer token (RFC 6750, section 2.1).
const tokenChars = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/="

// isToken reports whether text is empty or can be a token.
func isToken(text string) bool { return len(text) <= maxToken && strings.Trim(text, tokenChars) == "" }

// isDate reports whether ms, in milliseconds since 1970, can be a date in a login.
func isDate(ms float64) bool { return ms >= 0 && ms <= maxDate }

// How far in the future the dates of a renewed login may lie. A later date is replaced by the latest one allowed: the
// user's Claude Code then renews the login sooner, which hurts nobody.
const (
	maxExpires = 48 * time.Hour
	maxEnds    = 400 * 24 * time.Hour
)

// renewed returns the content of a credentials file with the tokens and dates of the renewed login l. Everything else
// stays. It fails if the content has no login.
func renewed(content []byte, l login, now time.Time) ([]byte, error) {
	file := object.Parse(content)
	oauth := object.Parse(file[loginKey])
	if oauth == nil {
		return nil, errNotLogin
	}
	oauth.Set("accessToken", l.access)
	oauth.Set("refreshToken", l.refresh)
	oauth.Set("expiresAt", min(l.expires, now.Add(maxExpires).UnixMilli()))
	if l.ends > 0 {
		oauth.Set("refreshTokenExpiresAt", min(l.ends, now.Add(maxEnds).UnixMilli()))
	}
	delete(oauth, "loginEnded") // Claude Code sets it on a login that could not be renewed
	file.Set(loginKey, oauth)
	return object.Encode(file), nil
}

// Examine reads the user's credentials file before a launch. found reports whether the file is to be used. note says
// why a file that exists is not used, or that its login has ended. Examine fails if the file's folder cannot be opened,
// or the user has no right to read the file.
func Examine(usersFile string) (found bool, note string, err error) {
	dir, err := beneath.Open(filepath.Dir(usersFile))
	if err != nil {
		return false, "", unreadable(usersFile, err)
	}
	defer dir.Close()
	switch r := (&file{dir, filepath.Base(usersFile)}).read(); {
	case errors.Is(r.fault, fs.ErrPermission):
		return false, "", unreadable(usersFile, r.fault)
	case r.fault != nil:
		return false, fmt.Sprintf("your login %s does not enter: %v", usersFile, r.fault), nil
	case !r.there:
		return false, "", nil
	case unix.Access(dir.Path(), unix.W_OK) != nil:
		return false, fmt.Sprintf(
			"your login %s does not enter: its folder cannot be written, and a renewed login could not come back",
			usersFile), nil
	case !r.good():
		return true, fmt.Sprintf("your login %s has ended: log in anew, outside or inside", usersFile), nil
	default:
		return true, "", nil
	}
}

// FileName is the name of Claude Code's credentials file, in the user's ~/.claude and
// in that of the agent's home.
const FileName = ".credentials.json"

const (
	agentHome   = ".claude" // in an instance's folder
	maxFile     = 1 << 20   // bytes
	privateFile = 0o600     // mode of files with tokens

	// patience is how long to wait for a lock on the user's file. It is longer than a write lock takes to go stale:
	// by then the lock's holder is done, or has died.
	patience = 16 * time.Second
	// patienceInside is how long to wait for the lock in the agent's home. An agent may hold that one for ever.
	patienceInside = time.Second
)

// file is a credentials file: its folder, which is open, and its name in there.
type file struct {
	dir  *beneath.Folder
	name string
}

// reading is what was read from a credentials file.
type reading struct {
	login
	there   bool  // the file has a login, which may have ended
	fault   error // why the file cannot be used, though it exists
	content []byte
}

// read reads the file. If f is nil or the file does not exist, the reading is empty, without a fault.
func (f *file) read() (r reading) {
	if f == nil {
		return r
	}
	r.content, r.fault = f.dir.Read(f.name, maxFile)
	if errors.Is(r.fault, fs.ErrNotExist) {
		r.fault = nil
		return r
	}
	if r.fault == nil {
		r.login, r.there, r.fault = parse(r.content)
	}
	return r
}

// unreadable is the error for a credentials file that err keeps from being read.
func unreadable(name string, err error) error {
	return diag.Wrap("read your login "+name, err, "make it yours again: `chown $USER "+name+" && chmod 600 "+name+"`")
}
