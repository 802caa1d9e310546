// Package session prepares and runs one launch: it finds the plan, the project and the agent's state, and makes
// bwrap's arguments of them. The effects (files, processes, the Nix daemon) meet here; the decisions are made by
// the packages that it calls.
//
// [Prepare] goes from one value to the next: the call and its plan (planning), the inputs that all parts of a launch
// are made from, one part for each subject, and the launch that is bound of all parts (bind.go). What is open or
// running while the sandbox lives is in run.go.
//
// A subject is a package below this one, and takes what it reads: program, networking, nixuse, gituse, brokering (the
// secrets), lending and guarded (what of the host is mounted), asking, record.
package session

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"claudebox/internal/agent/state"
	"claudebox/internal/diag"
	"claudebox/internal/nix/nixdaemon"
	"claudebox/internal/session/agentstate"
	"claudebox/internal/session/homelinks"
	"claudebox/internal/session/lending"
	"claudebox/internal/session/planning"
	"claudebox/internal/session/reporting"
	"claudebox/internal/ui/audit"
	"claudebox/internal/workspace/aftermath"
)

// Session is one launch with what it was made from, and what is open for it.
type Session struct {
	inputs
	parts    parts
	Instance state.Instance // of the parts
	bound

	keeper   *planning.Keeper
	listener *os.File // of the broker's proxy; nil: there is none, or the broker has taken it
	report   reporting.To

	conversation string   // the last one on the branch
	ends         []string // [aftermath.Ends] before any folder was looked at
}

// Prepare makes a session: from the facts of the host through plan and
// project to the launch. With Purpose.Look it changes nothing. The caller
// closes it.
func Prepare(c planning.Caller, o planning.Options, why planning.Purpose) (*Session, error) {
	asked, err := planning.NewCall(c, o, why)
	if err != nil {
		return nil, err
	}
	if asked.Facts.UID == 0 {
		return nil, diag.Errorf("start as root", "run claudebox as the user who owns the project",
			"the agent would have root's own id, inside and outside")
	}
	s := &Session{keeper: &planning.Keeper{Call: asked}, ends: aftermath.Ends(asked.Folders.Home)}
	walks := lending.Walk(agentstate.OwnFolders(asked), lentCache(asked), asked.Build)
	home, found := homelinks.Look(asked, walks), lookAround(asked)
	planned, err := planning.Planner{Call: asked, Keeper: s.keeper}.Plan()
	if err == nil && !why.Look {
		s.report, err = reporting.Open(asked)
	}
	if err == nil {
		s.inputs, err = look(found(), planned, home(), walks)
	}
	if !why.Dry {
		s.keeper.WriteLater(s.inputs.Links.Write)
	}
	if err == nil {
		err = s.make()
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// make makes the launch of the session's inputs.
func (s *Session) make() error {
	listener, port, err := s.secrets.Listen()
	s.listener = listener
	if err == nil {
		s.parts, err = gather(&s.inputs, s.keeper, port)
	}
	if err == nil {
		s.Instance = s.parts.files.Instance
		s.bound, err = bind(&s.inputs, &s.parts)
	}
	return err
}

// Close releases all that the session holds. It may be called at any stage of [Prepare].
func (s *Session) Close() error {
	s.listener.Close() // may be nil: then Close only returns an error
	s.report.Close()
	var home error
	if s.Instance.ID != "" {
		home = s.Instance.Close()
	}
	return errors.Join(home, s.keeper.Close())
}

// Pager returns the path of claudebox's own less, which is run on the host: no plan or profile chooses it. It is empty
// if there is none.
func (s *Session) Pager() string {
	manifest, err := planning.ReadManifest(s.Caller.Manifest)
	if err != nil {
		return ""
	}
	for _, output := range manifest.Packages["less"].Outputs {
		less := filepath.Join(output, "bin/less")
		if _, err := os.Stat(less); err == nil {
			return less
		}
	}
	return ""
}

// Devshell says for people what the dev shell of a session gives, why there is none, and what Nix and the hook said.
func (s *Session) Devshell() string { return s.parts.devshell.Report(s.Plan.Devshell) }

// Program returns the path of the program called name on PATH inside; empty if there is none.
func (s *Session) Program(name string) string { return s.parts.inside.Find(name) }

// Remedy says how a program that is not on PATH inside comes there.
func (s *Session) Remedy(program string) string { return s.parts.inside.Remedy(program) }

// WhyNot says why the program that a word names cannot be run inside; empty: it can, or that is not known.
func (s *Session) WhyNot(word string) string { return s.parts.inside.Program(word) }

// Sizes asks the Nix daemon how much of the store the launch refers to. What is not there yet has no size.
func (s *Session) Sizes() (sizes audit.Sizes, err error) {
	err = planning.Interruptible(s.Heeded, func(ctx context.Context) error {
		valid, err := s.keeper.Store().Pin(ctx, s.Launch.Plan.Roots())
		if err != nil {
			return err
		}
		infos, err := s.keeper.Store().Closure(ctx, valid)
		sizes = audit.Sizes{Paths: len(infos), Total: nixdaemon.Size(infos, valid), Of: map[string]uint64{}}
		for _, pkg := range s.Launch.Plan.Pins.Packages {
			for _, output := range pkg.Outputs {
				sizes.Of[output.Path] = nixdaemon.Size(infos, []string{output.Path})
			}
		}
		return err
	})
	return sizes, err
}

// IsLogin is [agentstate.IsLogin] of the session's agent.
func (s *Session) IsLogin(real string) bool { return agentstate.IsLogin(s.Facts, s.Instance, real) }
