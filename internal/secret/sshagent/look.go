package sshagent

import (
	"bytes"
	"context"

	"claudebox/internal/linux/aside"
)

// Word is what claudebox's helper is called with, see [Look].
const Word = "claudebox-ssh-keys"

// Rules say what may be signed. Keys are public ones, as ssh sends them.
type Rules struct {
	Git   []byte `json:"git,omitempty"` // that signs for git; none: nothing is signed
	Hosts []Host `json:"hosts,omitempty"`
}

// Host is one that may be logged in to, with any key.
type Host struct {
	Name string   `json:"name"`
	Keys [][]byte `json:"keys"` // its own
}

// Use is what became of a request for a signature.
type Use struct {
	Git     bool   `json:"git,omitempty"`     // it signed for git
	Host    string `json:"host,omitempty"`    // it logged in there
	Refused string `json:"refused,omitempty"` // it did not, and why; no text of an agent's
}

// Key is a public one.
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

// Found is what there is. A key that is none says why.
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

// Look asks claudebox's helper.
func Look(ctx context.Context, program string, q Question) (found Found, err error) {
	return found, aside.Ask(ctx, program, Word, q, &found)
}
