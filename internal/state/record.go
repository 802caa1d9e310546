package state

import (
	"encoding/json"

	"claudebox/internal/beneath"
)

const (
	recordName    = "instance.json"
	recordVersion = 1
	recordLimit   = 1 << 20 // bytes
)

// record is what is known about an instance from earlier launches. It lies
// beside the agent's home, out of the agent's reach. One that is lost or
// cannot be read costs a comparison of contents, nothing else.
type record struct {
	Version int             `json:"version"`
	Root    string          `json:"root"`
	Files   map[string]seen `json:"files"` // by name in the agent's home
}

// seen says that a file was right as it stood when it was made of certain
// inputs.
type seen struct {
	Inputs string        `json:"inputs"` // hash of what it was made of
	Output beneath.Stamp `json:"output"` // of the file itself
	Notes  []string      `json:"notes,omitempty"`
}

func readRecord(dir *beneath.Folder) record {
	content, err := dir.Read(recordName, recordLimit)
	if err != nil {
		return record{}
	}
	var r record
	if json.Unmarshal(content, &r) != nil || r.Version != recordVersion {
		return record{}
	}
	return r
}

func (r record) encode() []byte {
	r.Version = recordVersion
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		panic("bug: a record of strings and numbers cannot be encoded: " + err.Error())
	}
	return append(content, '\n')
}
