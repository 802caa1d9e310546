package state

import (
	"bytes"
	"encoding/json"
	"maps"
	"path"
	"slices"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/cachefile"
)

const (
	recordName  = "record"
	recordForm  = "claudebox instance 4\n" // first line of the record; the number changes with the format
	recordLimit = 1 << 20                  // bytes
)

// record caches, from earlier launches, what each file in the agent's home was made of. Without it contents are
// compared. It lies beside the agent's home, out of the agent's reach.
type record struct {
	Root  string
	Files []fileRecord
}

// fileRecord is about one file that claudebox wrote into the agent's home.
type fileRecord struct {
	Name   string        // in the agent's home
	Inputs string        // hash of what it was made of
	Output beneath.Stamp // of the file itself
	Notes  []string
	Given  string // see [agenthome.Made]
}

// file returns the record of a file; the zero value if there is none.
func (r record) file(name string) fileRecord {
	if i := slices.IndexFunc(r.Files, func(f fileRecord) bool { return f.Name == name }); i >= 0 {
		return r.Files[i]
	}
	return fileRecord{}
}

// keep adds the record of a file, in the place of an earlier one.
func (r *record) keep(f fileRecord) {
	others := slices.DeleteFunc(r.Files, func(was fileRecord) bool { return was.Name == f.Name })
	r.Files = append(others, f)
}

func readRecord(dir *beneath.Folder) record {
	content, err := dir.Read(recordName, recordLimit)
	if err != nil {
		return record{}
	}
	var r record
	body, ok := bytes.CutPrefix(content, []byte(recordForm))
	if !ok || !cachefile.Decode(body, &r) {
		return record{}
	}
	return r
}

func (r record) encode() []byte { return append([]byte(recordForm), cachefile.Encode(r)...) }

// Files that hold JSON. They lie beside the agent's home, out of the agent's reach.
const (
	approvedName = "approved"
	refusedName  = "refused"
	jsonLimit    = 1 << 20 // bytes
)

// approvals are the lines that the user approved last, by subject.
type approvals map[string][]string

// Approved returns the lines that the user approved last in this instance on a subject (a profile, say); nil: none.
func (in *Instance) Approved(of string) []string { return readAs[approvals](in.Dir, approvedName)[of] }

// Approve sets what the user has approved on a subject. [Instance.Prepare] writes it, as there may be no instance
// before.
func (in *Instance) Approve(of string, lines []string) { in.approval = approvals{of: lines} }

// keepApproval adds the new approval to the stored ones.
func (in *Instance) keepApproval() error {
	if in.approval == nil {
		return nil
	}
	all := readAs[approvals](in.Dir, approvedName)
	if all == nil {
		all = approvals{}
	}
	maps.Copy(all, in.approval)
	return in.writeJSON(approvedName, all)
}

// Refused lists the hosts that the last session of an instance was refused; nil if unknown. The agent chose the names:
// do not trust them.
func Refused(dir string) (hosts []string) { return readAs[[]string](dir, refusedName) }

// KeepRefused stores the refused hosts. It does nothing before [Instance.Prepare] and after [Instance.Close].
func (in *Instance) KeepRefused(hosts []string) error {
	if in.open == nil {
		return nil
	}
	return in.writeJSON(refusedName, hosts)
}

// readAs returns what [held.writeJSON] wrote to a file; the zero value if that cannot be read.
func readAs[T any](dir, name string) (value T) {
	var nothing T
	content, err := beneath.ReadIn(dir, name, jsonLimit)
	if err != nil || json.Unmarshal(content, &value) != nil {
		return nothing
	}
	return value
}

func (h *held) writeJSON(name string, value any) error {
	content, err := json.Marshal(value)
	if err == nil {
		err = h.open.Rewrite(name, append(content, '\n'), privateFile)
	}
	if err != nil {
		return h.failed("write "+path.Join(h.dir, name), err)
	}
	return nil
}
