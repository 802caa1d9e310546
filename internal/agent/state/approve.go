package state

import (
	"encoding/json"

	"claudebox/internal/linux/beneath"
)

const (
	approvedName  = "approved"
	approvedLimit = 1 << 20 // bytes
)

// Approved gives the lines that the user approved last here; none when there
// are none.
func (in *Instance) Approved() []string {
	if !in.exists {
		return nil
	}
	dir, err := beneath.Open(in.Dir)
	if err != nil {
		return nil
	}
	defer dir.Close()
	content, err := dir.Read(approvedName, approvedLimit)
	var lines []string
	if err != nil || json.Unmarshal(content, &lines) != nil {
		return nil
	}
	return lines
}

// Approve keeps what the user has approved. It is written by
// [Instance.Prepare]: before that there may be no instance.
func (in *Instance) Approve(lines []string) { in.approval = lines }

func (in *Instance) saveApproval() error {
	if in.approval == nil {
		return nil
	}
	content, err := json.Marshal(in.approval)
	if err == nil {
		err = in.dir.Rewrite(approvedName, append(content, '\n'), privateFile)
	}
	if err != nil {
		return in.failed("keep what you approved in "+in.dir.Join(approvedName), err)
	}
	in.approval = nil
	return nil
}
