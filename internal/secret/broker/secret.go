package broker

import (
	"errors"
	"fmt"
	"net"
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

// Secret is something that the agent uses but never gets.
type Secret struct {
	Name  string   `json:"name"`  // as the user knows it: "GH_TOKEN"
	Value string   `json:"value"` // the real one; empty: there is none at present
	Hosts []string `json:"hosts"` // "api.github.com", "foo.example:8443": only exactly these
	Forms []Form   `json:"forms"`
	// Headers are the names of headers for the form Header.
	Headers []string `json:"headers,omitempty"`
	// Paths are the paths at its hosts to which it may be sent; none: all for reading, and [Writing].
	Paths []Path `json:"paths,omitempty"`
	// Write are paths for which it may be used to write besides those of [Writing]. At a host that is not known, none
	// means all.
	Write []Path `json:"write,omitempty"`
}

// Shortest is the least length of a secret, in bytes: answers are not searched for anything shorter.
const Shortest = 6

// CheckValue returns an error that says why text cannot be a secret, or nil.
func CheckValue(text string) error {
	const longest = 16 << 10
	switch {
	case len(text) < Shortest:
		return fmt.Errorf("it has less than %d bytes, and would not be found in an answer", Shortest)
	case len(text) > longest:
		return fmt.Errorf("it has more than %d bytes, which is too much for a header", longest)
	case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }):
		return errors.New("it has a line break, or another character that no header can carry")
	}
	return nil
}

// Target is where a connection leads, as the process that accepted it knows, not the client's data:
// a host name in lower case and without a dot at its end, and a port.
type Target struct {
	Host string
	Port int
}

// HTTPSPort is the port of a host for which none is given.
const HTTPSPort = 443

// String returns the target as it is written in [Secret]: without the port of HTTPS.
func (t Target) String() string {
	if t.Port == HTTPSPort {
		return t.Host
	}
	return t.Address()
}

// Address returns HOST:PORT.
func (t Target) Address() string { return net.JoinHostPort(t.Host, strconv.Itoa(t.Port)) }

// ParseTarget reads a host of a [Secret]. It must be a name, not an address: no certificate
// says for long to whom an address belongs.
func ParseTarget(text string) (Target, error) {
	host, digits, ported := strings.Cut(text, ":")
	target := Target{Host: host, Port: HTTPSPort}
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
