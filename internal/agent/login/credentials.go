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

// keyOf is the key of the login in Claude Code's credentials. Other keys hold tokens of MCP servers and the like.
const keyOf = "claudeAiOauth"

// login is the part of Claude Code's credentials that says who is logged in, and until when. One without tokens has
// ended: Claude Code empties it when it learns that it cannot be renewed any more.
type login struct {
	access, refresh string
	expires         int64  // when the access token expires, in milliseconds since 1970; 0: not said
	ends            int64  // when the whole login ends, likewise; 0: not said
	client          string // the client id that it was made with, where that is not the usual one
	scope           string // what it may do: words, with blanks between
}

// good reports whether a login can be used: it has not ended.
func (l login) good() bool { return l.access != "" }

// is reports whether two are the same login, or have both ended.
func (l login) is(o login) bool {
	return l.access == o.access && (l.refresh == o.refresh || !l.good())
}

// Faults of a file. They say nothing of its content, which is secret.
var (
	errNotJSON  = errors.New("it is no JSON object")
	errNotLogin = errors.New("its " + keyOf + " is not what Claude Code writes there")
)

// parse reads the login in the content of a credentials file. found is false, with no error, if the file has no
// login.
func parse(content []byte) (l login, found bool, err error) {
	file := object.Parse(content)
	if file == nil {
		return login{}, false, errNotJSON
	}
	if raw := string(file[keyOf]); raw == "" || raw == "null" {
		return login{}, false, nil
	}
	oauth := object.Parse(file[keyOf])
	if oauth == nil {
		return login{}, false, errNotLogin
	}
	var expires, ends float64
	var account, organization string // only checked: they enter, see [shownKeys]
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

func isDate(ms float64) bool { return ms >= 0 && ms <= maxDate }

// Bounds of how far ahead the dates of a renewed login may lie. A later date is cut to the bound: the user's Claude
// Code then renews sooner, which hurts nobody.
const (
	maxExpires = 48 * time.Hour
	maxEnds    = 400 * 24 * time.Hour
)

// renew returns the user's credentials with the tokens and dates of a renewed login in them. All else stays. It fails
// if host holds no login.
func renew(host []byte, l login, now time.Time) ([]byte, error) {
	file := object.Parse(host)
	oauth := object.Parse(file[keyOf])
	if oauth == nil {
		return nil, errNotLogin
	}
	oauth.Set("accessToken", l.access)
	oauth.Set("refreshToken", l.refresh)
	oauth.Set("expiresAt", min(l.expires, now.Add(maxExpires).UnixMilli()))
	if l.ends > 0 {
		oauth.Set("refreshTokenExpiresAt", min(l.ends, now.Add(maxEnds).UnixMilli()))
	}
	delete(oauth, "loginEnded") // Claude Code's mark on a login that could not be renewed
	file.Set(keyOf, oauth)
	return object.Encode(file), nil
}

// Examine reads the user's credentials file before a launch. found reports whether it is to be used. note says why a
// file that exists is not used, or that its login has ended. Examine fails if the file's folder cannot be opened, or
// the file may not be read.
func Examine(host string) (found bool, note string, err error) {
	dir, err := beneath.Open(filepath.Dir(host))
	if err != nil {
		return false, "", unreadable(host, err)
	}
	defer dir.Close()
	switch r := (&file{dir, filepath.Base(host)}).read(); {
	case errors.Is(r.fault, fs.ErrPermission):
		return false, "", unreadable(host, r.fault)
	case r.fault != nil:
		return false, fmt.Sprintf("your login %s does not enter: %v", host, r.fault), nil
	case !r.there:
		return false, "", nil
	case unix.Access(dir.Path(), unix.W_OK) != nil:
		return false, fmt.Sprintf(
			"your login %s does not enter: its folder cannot be written, and a renewed login could not come back",
			host), nil
	case !r.good():
		return true, fmt.Sprintf("your login %s has ended: log in anew, outside or inside", host), nil
	default:
		return true, "", nil
	}
}

// FileName is Claude Code's file of credentials, in the user's ~/.claude and in
// the agent's.
const FileName = ".credentials.json"

const (
	agentHome   = ".claude"
	maxFile     = 1 << 20 // bytes
	privateFile = 0o600

	// Longer than a write lock takes to go stale: by then its holder is done, or has died.
	patience = 16 * time.Second
	// For the agent's own folder: an agent may hold its lock as long as it likes.
	patienceInside = time.Second
)

// file is a credentials file, named by its open folder and its name in it.
type file struct {
	dir  *beneath.Folder
	name string
}

// reading is what was read from a credentials file.
type reading struct {
	login
	there   bool  // the file has a login, which may have ended
	fault   error // why the file, which exists, cannot be used
	content []byte
}

// read reads the file. If f is nil or the file does not exist, nothing is found in it, without a fault.
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

func unreadable(name string, err error) error {
	remedy := "look at " + name + "; when it is moved away you log in anew"
	if errors.Is(err, fs.ErrPermission) {
		remedy = "make it yours again: `chown $USER " + name + " && chmod 600 " + name + "`"
	}
	return diag.Wrap("read your login "+name, err, remedy)
}
