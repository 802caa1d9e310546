package sshagent

import (
	"bytes"
	"context"

	"claudebox/internal/linux/aside"
)

// KeysStage is the argv[0] of claudebox-helper for answering [AskKeys].
const KeysStage = "claudebox-ssh-keys"

// Rules say what may be signed. Keys are public keys in ssh's wire format.
type Rules struct {
	Git   []byte `json:"git,omitempty"` // the key that may sign git objects; nil: none may
	Hosts []Host `json:"hosts,omitempty"`
}

// Host is a server that programs in the sandbox may log in to, with any key that the sandbox's ssh agent offers.
type Host struct {
	Name string   `json:"name"`
	Keys [][]byte `json:"keys"` // host keys of that server
}

// Use reports one request for a signature: for git, for a login to Host, or Refused and why.
type Use struct {
	Git     bool   `json:"git,omitempty"`     // it signed for git
	Host    string `json:"host,omitempty"`    // it logged in there
	Refused string `json:"refused,omitempty"` // nothing was signed, and why; holds no text from the sandbox
}

// Key is a public key.
type Key struct {
	Blob        []byte // in ssh's wire format
	Line        string // as in a .pub file, without a comment
	Fingerprint string
}

// Has reports whether list has the key k.
func Has(list []Key, k Key) bool {
	for _, other := range list {
		if bytes.Equal(other.Blob, k.Blob) {
			return true
		}
	}
	return false
}

// Question asks about a user's keys and known hosts.
type Question struct {
	Agent   string   // socket of the user's ssh agent; empty: there is none
	Public  []byte   // a public key, in the format of a file; nil: not asked about
	Private []byte   // a private key, likewise
	Known   []string // paths of known_hosts files
	Hosts   []string // to look up in Known: "github.com", or with a port that is not 22
}

// Found answers a [Question].
type Found struct {
	Held            []Key // keys that the user's ssh agent holds
	Public, Private Parsed
	Hosts           []Known // in the order of [Question.Hosts]
}

// Parsed is the result of reading a key.
type Parsed struct {
	Key
	Why string // why the key could not be read; empty: it could, or was not asked about
}

// Known is the answer about one host: its keys, and the known_hosts lines with them for ssh in the sandbox. Both are
// empty if no file lists the host.
type Known struct {
	Host
	Lines string
	Why   string // why the files could not be read; empty: they were
}

// AskKeys starts claudebox's program as a stage, which answers q: the keys found, and the lines of known hosts.
func AskKeys(ctx context.Context, program string, q Question) (found Found, err error) {
	err = aside.Ask(ctx, program, KeysStage, q, &found)
	return found, err
}
