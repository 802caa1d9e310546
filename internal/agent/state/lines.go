package state

import (
	"encoding/json"
	"path"

	"claudebox/internal/linux/beneath"
)

// Lists of lines lie beside the agent's home, out of the agent's reach.
const (
	approvedName = "approved"
	refusedName  = "refused"
	linesLimit   = 1 << 20 // bytes
)

// Approved gives the lines that the user approved last here; none when there
// are none.
func (in *Instance) Approved() []string { return readLines(in.Dir, approvedName) }

// Approve keeps what the user has approved. It is written by
// [Instance.Prepare]: before that there may be no instance.
func (in *Instance) Approve(lines []string) { in.approval = lines }

// Refused are the hosts that the last session of an instance was refused; none
// where nothing is known. An agent decides what it asks for.
func Refused(dir string) (hosts []string) { return readLines(dir, refusedName) }

// KeepRefused writes them, while the instance is prepared.
func (in *Instance) KeepRefused(hosts []string) error {
	if in.open == nil {
		return nil
	}
	return in.writeLines(refusedName, hosts)
}

func readLines(dir, name string) (lines []string) {
	folder, err := beneath.Open(dir)
	if err != nil {
		return nil
	}
	defer folder.Close()
	content, err := folder.Read(name, linesLimit)
	if err != nil || json.Unmarshal(content, &lines) != nil {
		return nil
	}
	return lines
}

func (h *held) writeLines(name string, lines []string) error {
	content, err := json.Marshal(lines)
	if err == nil {
		err = h.open.Rewrite(name, append(content, '\n'), privateFile)
	}
	if err != nil {
		return h.failed("write "+path.Join(h.dir, name), err)
	}
	return nil
}
