package helper

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/spawn"
	"claudebox/internal/linux/within"
	"claudebox/internal/network/link"
)

// rights are the capabilities that the stage needs over the sandbox's namespaces: to configure a
// network, to make a packet socket, and to make a second network namespace.
var rights = []uintptr{unix.CAP_NET_ADMIN, unix.CAP_NET_RAW, unix.CAP_SYS_ADMIN}

// Make starts the stage in the namespaces of a sandbox's first process. It does not wait for the stage:
// [Helper.Attach] does. Until then the sandbox may set itself up, but the agent must not run.
func (h *Helper) Make(process int) error {
	text, err := json.Marshal(link.Options{
		Internet: h.config.Tier != "none", Publish: len(h.ports.inside) > 0, Listen: h.ports.out,
	})
	if err != nil {
		return err
	}
	socket := int(h.toStage.Fd())
	pid, ended, err := within.Join(process, spawn.Program{
		Path:  filepath.Join(filepath.Dir(h.program), stageProgram),
		Args:  []string{stageProgram, strconv.Itoa(socket), string(text)},
		Files: []int{socket}, Rights: rights,
	})
	h.toStage.Close()
	if err == nil {
		h.stagePID, h.stageEnded = pid, sync.OnceValue(ended)
	}
	switch {
	case errors.Is(err, within.ErrGone):
		return ErrGone
	case err != nil:
		return &diag.Error{Op: op, Err: err}
	}
	return nil
}

// stageProgram is the name of the stage's program, in the folder of the helper's.
const stageProgram = "claudebox-stage"
