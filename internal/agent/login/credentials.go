package login

import (
	"crypto/sha256"
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
	return fmt.Sprintf("%x", sha256.Sum256([]byte(l.access+"\x00"+l.refresh)))[:32]
}

// Faults of a file. They say nothing of its content, which is secret.
var (
	errNotJSON  = errors.New("it is no JSON object")
	errNotLogin = errors.New("its " + keyOf + " is not what Claude Code writes there")
)

// parse reads credentials. A file without a login gives none and no error.
func parse(content []byte) (l login, found bool, err error) {
	var file, oauth object.Object
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
	var account, organization string // they enter, see [shownKeys]
	for key, value := range map[string]any{
		"accessToken": &l.access, "refreshToken": &l.refresh, "expiresAt": &expires, "refreshTokenExpiresAt": &ends,
		"accountUuid": &account, "organizationUuid": &organization, "clientId": &l.client,
	} {
		if raw, ok := oauth[key]; ok && json.Unmarshal(raw, value) != nil {
			return login{}, false, errNotLogin
		}
	}
	var scopes []string
	_ = json.Unmarshal(oauth["scopes"], &scopes) // of another shape: none
	l.expires, l.ends, l.scope = int64(expires), int64(ends), strings.Join(scopes, " ")
	if !isToken(l.access) || !isToken(l.refresh) || !isToken(l.client) || !isDate(expires) || !isDate(ends) ||
		len(account)+len(organization)+len(l.scope) > maxToken {
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

// How far ahead a date may lie that comes with a renewed login. A later one is
// taken for this: the user's Claude Code then renews sooner, which hurts nobody.
const (
	maxExpires = 48 * time.Hour
	maxEnds    = 400 * 24 * time.Hour
)

// renew puts the tokens of a renewed login into the user's credentials, and
// their dates. All else stays.
func renew(host []byte, l login, now time.Time) ([]byte, error) {
	var file, oauth object.Object
	if json.Unmarshal(host, &file) != nil || json.Unmarshal(file[keyOf], &oauth) != nil || oauth == nil {
		return nil, errNotLogin
	}
	set := func(key string, value any) { oauth[key] = object.Encode(value) }
	set("accessToken", l.access)
	set("refreshToken", l.refresh)
	set("expiresAt", min(l.expires, now.Add(maxExpires).UnixMilli()))
	if l.ends > 0 {
		set("refreshTokenExpiresAt", min(l.ends, now.Add(maxEnds).UnixMilli()))
	}
	delete(oauth, "loginEnded") // Claude Code's mark on a login that could not be renewed
	file[keyOf] = object.Encode(oauth)
	return object.Encode(file), nil
}

// Examine looks at a user's file before a launch. It reports whether it is to be
// used; a note says why nothing enters of a file that is there.
func Examine(host string) (found bool, note string, err error) {
	dir, err := beneath.Open(filepath.Dir(host))
	if err != nil {
		return false, "", unreadable(host, err)
	}
	defer dir.Close()
	switch r := read(dir, filepath.Base(host)); {
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

	// A writer dies or is done before its lock goes stale.
	patience = 16 * time.Second
	// An agent may hold the lock of its own folder as long as it likes.
	patienceInside = time.Second
)

// reading is what was found of one file.
type reading struct {
	login
	there   bool  // it has a login, if one that has ended
	fault   error // it is there and cannot be used
	content []byte
}

// read reads a file.
func read(dir *beneath.Folder, name string) (r reading) {
	r.content, r.fault = dir.Read(name, maxFile)
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
