package host

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"claudebox/internal/diag"
)

// Facts is who runs claudebox, where, and with which environment.
type Facts struct {
	Home  string // absolute and clean, as $HOME says
	Cwd   string // absolute; links not resolved
	UID   int
	GID   int
	User  string // login name, as /etc/passwd has it, else $USER
	Group string // name of GID
	Env   Environment
}

// Absolute makes a path of the command line absolute and clean. "~" and "~/" stand for the user's home; any other
// relative path starts at the current folder.
func (f Facts) Absolute(path string) string {
	switch rest, tilde := strings.CutPrefix(path, "~"); {
	case tilde && (rest == "" || rest[0] == '/'):
		return filepath.Join(f.Home, rest)
	case filepath.IsAbs(path):
		return filepath.Clean(path)
	}
	return filepath.Join(f.Cwd, path)
}

// Sides are the paths of a word HOST[:INSIDE] of the command line, made absolute. Where only the whole word is the path
// of something, it is both: that path has a colon.
func (f Facts) Sides(word string) (outside, inside string) {
	there := func(name string) bool {
		_, err := os.Lstat(f.Absolute(name))
		return err == nil
	}
	outside, inside, split := strings.Cut(word, ":")
	if !split || !there(outside) && there(word) {
		outside, inside = word, word
	}
	return f.Absolute(outside), f.Absolute(inside)
}

// Environment is a process environment, "NAME=value" each, as execve(2)
// takes it.
type Environment []string

// Get returns the value of a variable and whether it is set. The first of
// two equal names counts, as in getenv(3).
func (e Environment) Get(name string) (string, bool) {
	name += "="
	for _, entry := range e {
		if value, is := strings.CutPrefix(entry, name); is {
			return value, true
		}
	}
	return "", false
}

// Value returns the value of a variable, or fallback when it is unset or
// empty.
func (e Environment) Value(name, fallback string) string {
	if value, _ := e.Get(name); value != "" {
		return value
	}
	return fallback
}

// Detect reads the facts of this process. It fails when HOME is not an
// absolute path or the current folder is gone.
func Detect() (Facts, error) {
	env := Environment(os.Environ())
	home := env.Value("HOME", "")
	if home == "" {
		return Facts{}, diag.Errorf("read HOME", "set HOME to your home folder", "it is not set")
	}
	if !filepath.IsAbs(home) {
		return Facts{}, diag.Errorf("read HOME", "set HOME to your home folder",
			"%q is not an absolute path", home)
	}
	cwd, err := os.Getwd()
	if err != nil {
		remedy := "change to a folder that exists"
		if errors.Is(err, fs.ErrPermission) {
			remedy = "change to a folder that you may enter"
		}
		return Facts{}, &diag.Error{Op: "find the current folder", Err: err, Remedy: remedy}
	}
	f := Facts{Home: filepath.Clean(home), Cwd: cwd, UID: os.Getuid(), GID: os.Getgid(), Env: env}
	f.User = accountName("/etc/passwd", f.UID, env.Value("USER", "user"))
	f.Group = accountName("/etc/group", f.GID, f.User)
	return f, nil
}

// accountName returns the name of an id in a file like passwd(5) or group(5). Names from elsewhere (LDAP) are not
// asked for: it returns fallback then, which comes from the environment, or "user" if that is no valid name.
func accountName(file string, id int, fallback string) string {
	for line := range bytes.Lines(readSmall(file)) {
		fields := strings.SplitN(string(line), ":", 4)
		if len(fields) == 4 && strings.TrimSpace(fields[2]) == strconv.Itoa(id) && isAccountName(fields[0]) {
			return fields[0]
		}
	}
	if isAccountName(fallback) {
		return fallback
	}
	return "user"
}

// isAccountName reports whether s can be a name in the passwd file that is made for the sandbox, which must get no
// separators or control characters.
func isAccountName(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r == ':' || r == '/' || r == 0x7f
	})
}
