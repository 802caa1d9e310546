package helper

import (
	"encoding/json"

	"claudebox/internal/network/link"
	"claudebox/internal/network/policy"
)

// Config is the first message to a helper.
type Config struct {
	Tier   string   `json:"tier"`
	Allow  []Entry  `json:"allow,omitempty"`
	Except []string `json:"except,omitempty"`
	Via    string   `json:"via,omitempty"` // see package upstream
	// Generation is how many helpers the session had before this one. Addresses that stand for names depend on it,
	// so that an address that a program remembers never stands for another name.
	Generation int `json:"generation"`
	// Broker configures the answerer, which answers in place of hosts; empty: there is none.
	Broker json.RawMessage `json:"broker,omitempty"`
	Roots  []byte          `json:"-"` // PEM: the host's certificate authorities, for Broker
}

// Entry is a line of a list of hosts.
type Entry struct {
	Pattern string `json:"pattern"`
	Private bool   `json:"private,omitempty"`
}

// attach is the message with the descriptors of a network. Their order is: the interface's other end, the
// listeners inside, the sockets for [::1] inside, the listeners of the host, the log.
type attach struct {
	Kind     link.Kind `json:"kind"`
	Out      []uint16  `json:"out,omitempty"` // ports of the host, one for each listener inside
	Sockets6 int       `json:"sockets6,omitempty"`
	In       []uint16  `json:"in,omitempty"` // ports inside, one for each listener of the host
	Log      bool      `json:"log,omitempty"`
}

// answer is the helper's answer to [attach].
type answer struct {
	Error string `json:"error,omitempty"`
}

// Report has the hosts that were reached, and what was refused.
type Report struct {
	Hosts   []Host    `json:"hosts,omitempty"`    // the busiest first
	Refused []Refused `json:"refused,omitempty"`  // the most frequent first
	More    int       `json:"more,omitempty"`     // how many refusals are not listed
	LogLost string    `json:"log_lost,omitempty"` // why lines are missing in the log; empty: none are
}

// Host is a host that was reached.
type Host struct {
	Name     string `json:"name"` // the host's name, or its address
	Port     uint16 `json:"port"`
	Count    int    `json:"connections"`
	Sent     int64  `json:"sent"` // bytes
	Received int64  `json:"received"`
}

// Refused is something that was refused, and how often.
type Refused struct {
	What  string `json:"what"` // a host or an address with its port, as the sandbox wrote it
	Why   string `json:"why"`
	Count int    `json:"count"`
}

// Rules returns the policy's rules, without an answerer.
func (c Config) Rules() (policy.Rules, error) {
	r := policy.Rules{Tier: c.Tier}
	for _, e := range c.Allow {
		entry, err := policy.ParseEntry(e.Pattern, e.Private)
		if err != nil {
			return policy.Rules{}, err
		}
		r.Allow = append(r.Allow, entry)
	}
	for _, text := range c.Except {
		e, err := policy.ParseException(text)
		if err != nil {
			return policy.Rules{}, err
		}
		r.Except = append(r.Except, e)
	}
	return r, nil
}
