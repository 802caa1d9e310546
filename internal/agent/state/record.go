package state

import (
	"encoding/json"
	"maps"
	"path"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/identity"
)

// Files that hold JSON. They lie beside the agent's home, out of the agent's reach.
const (
	recordName   = "record"
	approvedName = "approved"
	refusedName  = "refused"
	jsonLimit    = 1 << 20 // bytes
)

// record caches, from earlier launches, what each file in the agent's home was made of. Without it contents are
// compared.
type record struct {
	Root   []byte                // a path, which JSON would change in a string if it is not UTF-8
	Folder identity.ID           `json:",omitempty"` // of the folder there, see [Moved]
	Files  map[string]fileRecord // by name in the agent's home
	Named  []string              // links in the agent's home to files, see [comparison.namedFiles]

	Commands commands
}

// commands are what the user's settings run.
type commands struct {
	Inputs string   // hash of what says so
	Files  []string // of the user's own folder that are named there
}

// fileRecord is about one file that claudebox wrote into the agent's home.
type fileRecord struct {
	Inputs string            // hash of what it was made of
	Asked  map[string]string // what was asked about what is inside, with the answers
	Output beneath.Stamp     // of the file itself
	Left   []diag.Left
	Notes  []string
	Given  string // see [agenthome.Made]
}

func readRecord(dir *beneath.Folder) record { return decoded[record](dir.Read(recordName, jsonLimit)) }

// approvals are what the user approved last, by subject, as the caller encodes it.
type approvals map[string]json.RawMessage

// Approved returns what the user approved last in this instance on a subject (a profile, say); nil: nothing.
func (in *Instance) Approved(of string) []byte {
	return decoded[approvals](beneath.ReadIn(in.Dir, approvedName, jsonLimit))[of]
}

// Approve sets what the user has approved on a subject, in JSON. [Instance.Prepare] writes it: before there may be no
// instance.
func (in *Instance) Approve(of string, json []byte) { in.approval = approvals{of: json} }

// keepApproval adds the new approval to the stored ones.
func (in *Instance) keepApproval() error {
	if in.approval == nil {
		return nil
	}
	all := decoded[approvals](in.open.Read(approvedName, jsonLimit))
	if all == nil {
		all = approvals{}
	}
	maps.Copy(all, in.approval)
	return in.writeJSON(in.open, approvedName, all)
}

// Refused lists the hosts that the last session of an instance was refused; nil if unknown. The agent chose the names:
// do not trust them.
func Refused(dir string) (hosts []string) {
	return decoded[[]string](beneath.ReadIn(dir, refusedName, jsonLimit))
}

// KeepRefused stores the refused hosts. It does nothing before [Instance.Prepare] and after [Instance.Close].
func (in *Instance) KeepRefused(hosts []string) error {
	if in.open == nil {
		return nil
	}
	return in.writeJSON(in.open, refusedName, hosts)
}

// decoded returns what [place.writeJSON] wrote, from the results of reading it; the zero value if it cannot be read.
func decoded[T any](content []byte, err error) (value T) {
	var nothing T
	if err != nil || json.Unmarshal(content, &value) != nil {
		return nothing
	}
	return value
}

func (p place) writeJSON(dir *beneath.Folder, name string, value any) error {
	content, err := json.Marshal(value)
	if err == nil {
		err = dir.Rewrite(name, append(content, '\n'), privateFile)
	}
	if err != nil {
		return p.failed("write "+path.Join(p.dir, name), err)
	}
	return nil
}
