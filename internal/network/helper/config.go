package helper

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"

	"claudebox/internal/linux/spawn"
	"claudebox/internal/network/policy"
)

// Config is what a helper is to do.
type Config struct {
	Tier   string   `json:"tier"`
	Allow  []Entry  `json:"allow,omitempty"`
	Except []string `json:"except,omitempty"`
	Via    string   `json:"via,omitempty"` // see package upstream
	// Broker configures the answerer, which answers in place of hosts; empty: there is none.
	Broker json.RawMessage `json:"broker,omitempty"`
	Roots  []byte          `json:"-"` // PEM: the host's certificate authorities, for Broker
}

// Entry is a line of a list of hosts.
type Entry struct {
	Pattern string `json:"pattern"`
	Private bool   `json:"private,omitempty"`
}

// file returns a file in memory with the configuration: a line of JSON, and Roots.
func (c Config) file() (*os.File, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	fd, err := spawn.InMemory(slices.Concat(text, []byte("\n"), c.Roots))
	return os.NewFile(uintptr(fd), "configuration"), err
}

func readConfig(file *os.File) (c Config, err error) {
	defer file.Close()
	text, err := io.ReadAll(file)
	if err != nil {
		return c, err
	}
	line, roots, _ := bytes.Cut(text, []byte("\n"))
	c.Roots = roots
	return c, json.Unmarshal(line, &c)
}

// Request asks for a [Report].
type Request struct {
	Last bool `json:"last,omitempty"` // the session is over
	// Open are the rules that a session gets besides those of its [Config], from now on.
	Open *Opening `json:"open,omitempty"`
}

// Opening is what the user lets a session reach while it runs: hosts in tier allow, addresses in tier inet. They are
// written as in a profile.
type Opening struct {
	Allow  []string `json:"allow,omitempty"`
	Except []string `json:"except,omitempty"`
}

// reply is the helper's answer to a network and to a [Request].
type reply struct {
	Report Report `json:"report"`
	Error  string `json:"error,omitempty"` // why the network cannot be served, or nothing was opened
}

// With returns the configuration with an opening. It returns an error if a rule of it is none for the tier.
func (c Config) With(o Opening) (Config, error) {
	if len(o.Allow) > 0 && c.Tier != policy.TierAllow || len(o.Except) > 0 && c.Tier != policy.TierInet {
		return c, fmt.Errorf("tier %s has no such rule", c.Tier)
	}
	c.Allow, c.Except = slices.Clone(c.Allow), slices.Clone(c.Except)
	for _, pattern := range o.Allow {
		if entry := (Entry{Pattern: pattern}); !slices.Contains(c.Allow, entry) {
			c.Allow = append(c.Allow, entry)
		}
	}
	for _, text := range o.Except {
		if !slices.Contains(c.Except, text) {
			c.Except = append(c.Except, text)
		}
	}
	if len(c.Allow)+len(c.Except) > mostRules {
		return c, fmt.Errorf("a session has at most %d hosts", mostRules)
	}
	_, err := c.Rules()
	return c, err
}

// mostRules bounds the rules that openings may add up to: each is compared with each name.
const mostRules = 1000

// Report has the hosts that were reached, and what was refused.
type Report struct {
	Hosts   []Host    `json:"hosts,omitempty"`    // the busiest first
	Refused []Refused `json:"refused,omitempty"`  // the most frequent first
	More    int       `json:"more,omitempty"`     // how many refusals are not listed
	LogLost string    `json:"log_lost,omitempty"` // why lines are missing in the log; empty: none are
}

// LogFull is a [Report.LogLost]: an agent can fill the log, and what it does then is not in it.
const LogFull = "it has reached 64 MiB: what came after is not in it"

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
