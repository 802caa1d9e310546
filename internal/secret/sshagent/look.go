package sshagent

import (
	"bytes"
	"context"

	"claudebox/internal/linux/aside"
)

// Word is argv[0] of the stage that answers [Look].
const Word = "claudebox-ssh-keys"

// Rules say what may be signed. Keys are public ones, as ssh sends them.
type Rules struct {
	Git   []byte `json:"git,omitempty"` // public key that may sign git objects; nil: none may
	Hosts []Host `json:"hosts,omitempty"`
}

// Host is a server that the agent may log in to, with any key.
type Host struct {
	Name string   `json:"name"`
	Keys [][]byte `json:"keys"` // host keys of that server
}

// Use reports one request for a signature: for git, for a login to Host, or Refused and why.
type Use struct {
	Git     bool   `json:"git,omitempty"`     // it signed for git
	Host    string `json:"host,omitempty"`    // it logged in there
	Refused string `json:"refused,omitempty"` // it did not, and why; no text of an agent's
}

// Key is a public key.
type Key struct {
	Blob        []byte // as ssh sends it
	Line        string // as a file has it, without a comment
	Fingerprint string
}

// Has reports whether a key is among others.
func Has(list []Key, k Key) bool {
	for _, other := range list {
		if bytes.Equal(other.Blob, k.Blob) {
			return true
		}
	}
	return false
}

// Question asks for what there is of a user's ssh.
type Question struct {
	Agent   string   // socket of the user's agent; empty: there is none
	Public  []byte   // a public key, as a file has it; none: it is not asked for
	Private []byte   // a private one, likewise
	Known   []string // files of known hosts
	Hosts   []string // to find in them: "github.com", or with a port that is not 22
}

// Found answers a [Question].
type Found struct {
	Held            []Key // by the agent
	Public, Private Parsed
	Hosts           []Known // in the order that they were asked for
}

// Parsed is a key that was read.
type Parsed struct {
	Key
	Why string // why there is none; empty: there is
}

// Known is a host with the lines by which ssh knows it inside.
type Known struct {
	Host
	Lines string
	Why   string // why it could not be found out; empty: it was
}

// Look starts claudebox's program as a stage, which answers q: the keys found, and the lines of known hosts.
func Look(ctx context.Context, program string, q Question) (found Found, err error) {
	return found, aside.Ask(ctx, program, Word, q, &found)
}
