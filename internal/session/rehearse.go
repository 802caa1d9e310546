package session

import (
	"io"
	"os"
	"strings"

	"claudebox/internal/session/brokering"
	"claudebox/internal/session/planning"
)

// rehearse takes the steps of a launch on the host, with a folder of claudebox's own that is thrown away, to find what
// would keep it from starting. It neither makes the agent's home nor touches the project. What a launch would fetch
// first is not there to take them with.
func (c *Checkup) rehearse(s *Session) {
	if len(s.Missing) > 0 || os.MkdirAll(s.Folders.Cache, 0o700) != nil { // no launch needs a cache
		return
	}
	scratch, err := os.MkdirTemp(s.Folders.Cache, "check-")
	if err != nil {
		return
	}
	defer os.RemoveAll(scratch)
	again := &Session{inputs: s.inputs, keeper: &planning.Keeper{Call: s.Call}}
	again.Purpose = planning.Purpose{Dry: true, Command: s.Purpose.Command}
	again.Caller.Stderr, again.Folders.Home = io.Discard, scratch
	before := len(c.Findings)
	if err = again.rehearse(); err != nil {
		c.judge("launch", err, "")
	}
	for i := range c.Findings[before:] {
		f := &c.Findings[before+i]
		f.Detail = strings.ReplaceAll(f.Detail, scratch, s.Folders.Home)
		f.Remedy = strings.ReplaceAll(f.Remedy, scratch, s.Folders.Home)
	}
}

// rehearse makes the launch again, and takes its steps.
func (s *Session) rehearse() (err error) {
	if s.secrets, err = brokering.Find(secretsOf(s.Host, s.project.InstanceRoot, s.etc)); err == nil {
		s.found, err = s.agentState().Look()
	}
	if err == nil {
		err = s.make()
	}
	if err != nil {
		return err
	}
	defer s.Close()
	r := newRunning(s)
	defer r.close()
	return r.rehearse()
}

// rehearse takes the steps of [running.Run] that only need a folder of claudebox's own, and opens what protects.
func (r *running) rehearse() error {
	defer r.folders.Close()
	return r.take([]func() error{
		func() error { return os.MkdirAll(r.Instance.Dir, 0o700) },
		r.openNetwork, r.handOver, r.openNix, r.startBroker,
		func() error { return r.keys.Start(r.parts.git.Keys, io.Discard) },
		func() error { return r.folders.Rehearse(r.Launch.Mounts) },
	})
}
