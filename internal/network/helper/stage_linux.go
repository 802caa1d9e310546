package helper

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/spawn"
	"claudebox/internal/network/link"
)

// rights are what the stage needs over its namespaces: to configure a network,
// to make a packet socket, and to make a second network namespace.
var rights = []uintptr{unix.CAP_NET_ADMIN, unix.CAP_NET_RAW, unix.CAP_SYS_ADMIN}

// Around gives the program that makes the sandbox's network in namespaces of
// its own, hands its other end out, and becomes the program p.
func (h *Helper) Around(p spawn.Program) (spawn.Program, error) {
	o := link.Options{
		Internet: h.config.Tier != "none", Publish: len(h.ports.inside) > 0, Listen: h.ports.out, Rights: p.Rights,
	}
	text, err := json.Marshal(o)
	if err != nil {
		return spawn.Program{}, err
	}
	if p.Path == self {
		if p.Path, err = os.Executable(); err != nil {
			return spawn.Program{}, err
		}
	}
	words := []string{stageProgram, strconv.Itoa(len(p.Files)), string(text), p.Path}
	p.Files = append(slices.Clone(p.Files), int(h.toStage.Fd()))
	p.Args = append(words, p.Args...)
	p.Path, p.Network, p.Rights = filepath.Join(filepath.Dir(h.program), stageProgram), true, rights
	return p, nil
}

// stageProgram lies beside the helper.
const stageProgram = "claudebox-stage"

// self is another program for the stage than for this process.
const self = "/proc/self/exe"
