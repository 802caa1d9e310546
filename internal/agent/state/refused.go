package state

import (
	"encoding/json"

	"claudebox/internal/linux/beneath"
)

const (
	refusedName  = "refused"
	refusedLimit = 64 << 10 // bytes
)

// Refused are the hosts that the last session of an instance was refused; none
// where nothing is known. The file lies beside the agent's home, out of the
// agent's reach, but an agent decides what it asks for.
func Refused(dir string) (hosts []string) {
	folder, err := beneath.Open(dir)
	if err != nil {
		return nil
	}
	defer folder.Close()
	content, err := folder.Read(refusedName, refusedLimit)
	if err != nil || json.Unmarshal(content, &hosts) != nil {
		return nil
	}
	return hosts
}

// KeepRefused writes them, while the instance is prepared.
func (in *Instance) KeepRefused(hosts []string) error {
	if in.dir == nil {
		return nil
	}
	content, err := json.Marshal(hosts)
	if err == nil {
		err = in.dir.Rewrite(refusedName, append(content, '\n'), privateFile)
	}
	if err != nil {
		return in.failed("keep what was refused in "+in.dir.Join(refusedName), err)
	}
	return nil
}
