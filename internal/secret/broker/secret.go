package broker

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// Form is a place in a request where a placeholder is swapped.
type Form string

const (
	Bearer Form = "bearer" // Authorization: Bearer PLACEHOLDER, or token PLACEHOLDER
	Basic  Form = "basic"  // Authorization: Basic, as the password
	Header Form = "header" // a header of its own, named by the secret
)

// Secret is something that the agent uses and never holds.
type Secret struct {
	Name  string   `json:"name"`  // as its owner knows it, as "GH_TOKEN"
	Value string   `json:"value"` // the true one; empty: there is none at present
	Hosts []string `json:"hosts"` // "api.github.com", "foo.example:8443": exactly these
	Forms []Form   `json:"forms"`
	// Headers are those of the form Header.
	Headers []string `json:"headers,omitempty"`
	// Paths are where at its hosts it may be sent; none: everywhere but where
	// [givesSecrets] says so.
	Paths []Path `json:"paths,omitempty"`
}

// CheckValue says what is wrong with a text that is to be a secret.
func CheckValue(text string) error {
	const longest = 16 << 10
	switch {
	case len(text) < shortest:
		return fmt.Errorf("it has less than %d bytes, and would not be found in an answer", shortest)
	case len(text) > longest:
		return fmt.Errorf("it has more than %d bytes, which is too much for a header", longest)
	case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }):
		return errors.New("it has a line break, or another character that no header can carry")
	}
	return nil
}

// Path is one place at a host.
type Path struct {
	Methods []string `json:"methods,omitempty"` // none: any
	Path    string   `json:"path"`              // ending in "/": all below it, too
}

func (p Path) admits(method, path string) bool {
	if len(p.Methods) > 0 && !slices.Contains(p.Methods, method) {
		return false
	}
	below := strings.HasSuffix(p.Path, "/")
	return path == p.Path || below && (strings.HasPrefix(path, p.Path) || path == strings.TrimSuffix(p.Path, "/"))
}

// Target is the other end of a connection, as it is known from outside of it:
// a name in lower case and without a dot at its end, and a port.
type Target struct {
	Host string
	Port int
}

const httpsPort = 443

func (t Target) String() string {
	if t.Port == httpsPort {
		return t.Host
	}
	return net.JoinHostPort(t.Host, strconv.Itoa(t.Port))
}

// ParseTarget reads a host of a [Secret]. It has to be a name: what an address
// belongs to, no certificate says for long.
func ParseTarget(text string) (Target, error) {
	host, digits, ported := strings.Cut(text, ":")
	target := Target{Host: host, Port: httpsPort}
	if ported {
		port, err := strconv.Atoi(digits)
		if err != nil || strconv.Itoa(port) != digits || port < 1 || port > 65535 {
			return Target{}, fmt.Errorf("%q is not a port; expected 1 to 65535", digits)
		}
		target.Port = port
	}
	return target, checkName(host)
}

var errNotName = errors.New("not a host name in lower case")

func checkName(host string) error {
	const longest = 253 // RFC 1035, 2.3.4
	labels := strings.Split(host, ".")
	if len(host) > longest || strings.Trim(labels[len(labels)-1], "0123456789") == "" {
		return fmt.Errorf("%q is %w", host, errNotName)
	}
	for _, label := range labels {
		const allowed = "abcdefghijklmnopqrstuvwxyz0123456789-_"
		if label == "" || len(label) > 63 || label[0] == '-' || strings.Trim(label, allowed) != "" {
			return fmt.Errorf("%q is %w", host, errNotName)
		}
	}
	return nil
}

// isFor reports whether the secret is for a host and port.
func (s Secret) isFor(t Target) bool { return slices.Contains(s.Hosts, t.String()) }

// mayGo reports whether the secret may be sent with a request. A path that can
// be read in two ways is no path of any list.
func (s Secret) mayGo(t Target, method, escapedPath string) bool {
	switch {
	case !s.isFor(t) || givesSecrets(t, method, escapedPath):
		return false
	case len(s.Paths) == 0:
		return true
	case !isPlain(escapedPath):
		return false
	}
	return slices.ContainsFunc(s.Paths, func(p Path) bool { return p.admits(method, escapedPath) })
}

// isPlain reports whether a path is written in the one way that has no other
// reading: nothing encoded, no empty or dotted parts, no parameters.
func isPlain(escapedPath string) bool {
	if !strings.HasPrefix(escapedPath, "/") || strings.ContainsAny(escapedPath, "%;\\") {
		return false
	}
	for part := range strings.SplitSeq(strings.TrimSuffix(escapedPath[1:], "/"), "/") {
		if part == "." || part == ".." || part == "" && escapedPath != "/" {
			return false
		}
	}
	return true
}
