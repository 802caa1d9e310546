package session

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/agent/editor"
	"claudebox/internal/diag"
	"claudebox/internal/linux/proctree"
	"claudebox/internal/linux/within"
	"claudebox/internal/profile"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/sandbox/modes"
	"claudebox/internal/sandbox/streams"
	"claudebox/internal/session/asking"
	"claudebox/internal/session/brokering"
	"claudebox/internal/session/gituse"
	"claudebox/internal/session/guarded"
	"claudebox/internal/session/lending"
	"claudebox/internal/session/live"
	"claudebox/internal/session/logfile"
	"claudebox/internal/session/networking"
	"claudebox/internal/session/nixuse"
	"claudebox/internal/session/record"
	"claudebox/internal/workspace/aftermath"
	"claudebox/internal/workspace/branch"
	"claudebox/internal/workspace/cover"
	"claudebox/internal/workspace/guard"
	"claudebox/internal/workspace/handover"
	"claudebox/internal/workspace/homelink"
	"claudebox/internal/workspace/project"
)

// running is a session while it runs: what is open and at work.
type running struct {
	*Session
	runner  launch.Runner
	network networking.Running
	broker  *brokering.Broker
	keys    gituse.Agent
	nix     nixuse.Store
	holds   []*project.Hold        // the stand-ins, see [running.hold]
	after   []*aftermath.Session   // of the folders that the agent may change
	reports []aftermath.Report     // about those folders, once they are settled
	watches []*cover.Watch         // of the covered files in those folders
	guards  []*guard.Guard         // of the folders that the agent may change
	lost    uncovered              // files whose covers were lost
	again   func() []homelink.Link // waits for the links of the home that were made meanwhile; nil: nobody looks
	began   time.Time
	process int               // process 1 inside
	git     *handover.Session // between the user's git folders and the agent's
	live    live.Server       // answers claudebox's commands
	events  *live.Events      // what happens, for them
	record  *record.Recorder  // of that, for --record
	opened  opened
	replies *asking.Server
	held    *branch.Held       // the branch that the agent works on; nil: it works in the user's folder
	own     *aftermath.Session // of the agent's own folders, if it works on a branch

	overlaps []bool   // whether other sessions lived in the given folders
	gitLines []string // what did not cross between git folders, for people
}

// newRunning begins a session, or a rehearsal of one. From here on signals are claudebox's.
func newRunning(s *Session) *running {
	events := &live.Events{}
	return &running{
		Session: s, runner: launch.Runner{Signals: launch.Listen(s.Heeded)},
		events: events, broker: s.parts.brokered.For(&s.Instance, events), keys: gituse.Agent{Events: events},
	}
}

// Run sets up what the launch needs on the host, runs it, reports, and undoes the setup, also after an error. Its error
// is a [launch.ExitError] when the agent's status is not 0.
func (s *Session) Run() (err error) {
	// Before this line a signal ends claudebox at once: nothing exists yet
	// that would have to be undone.
	r := newRunning(s)
	defer r.close()
	for _, step := range []func() error{
		r.openRecord, r.openNetwork, s.Instance.Prepare, r.listen, r.answerInside, r.openBranch, r.handOver,
		r.fillBranch, r.openNix, r.startBroker,
		func() error { return r.keys.Start(s.parts.git.Keys, s.Caller.Stderr) }, r.hold,
	} {
		if err := r.runner.Signals.Interrupted(); err != nil {
			return err
		}
		if err := step(); err != nil {
			return err
		}
	}
	giveBack, err := streams.Take()
	if err != nil {
		return err
	}
	defer func() {
		if lost := giveBack(); err == nil {
			err = lost
		} else if lost != nil {
			diag.Print(s.Caller.Stderr, lost) // the agent's status stays claudebox's
		}
	}()
	if spoken := r.program().Protocol(); spoken != "" {
		leave, err := editor.Between(spoken, r.runner.Signals.End)
		if err != nil {
			return err
		}
		defer leave()
	}
	defer func() { r.settle(); r.announce(); r.endRecord() }()
	err = r.launch()
	r.settle() // it may not have been started
	r.end()
	return err
}

// close lets go of what is open, and waits for the processes that are to end by themselves.
func (r *running) close() {
	r.replies.Close()
	r.events.End()
	r.live.Close()
	r.nix.Close()
	for _, hold := range r.holds {
		hold.Release()
	}
	r.network.Close()
	r.network.Reap()
	r.broker.Close()
	r.keys.Close()
	r.closeBranch()
	_ = r.Instance.Close()     // if end was not called: no signal ends us while a home is removed
	r.runner.Signals.Release() // the user may still be asked something
}

// openRecord opens the file of --record. It refuses that file, and the one of --network-log, in what the agent may
// write to.
func (r *running) openRecord() (err error) {
	file := func(option string) string {
		if option == "" {
			return ""
		}
		return r.Facts.Absolute(option)
	}
	if err := cmp.Or(logfile.Judge("network log", file(r.Options.NetworkLog), r.Launch.Mounts),
		logfile.Judge("record", file(r.Options.Record), r.Launch.Mounts)); err != nil {
		return err
	}
	r.record, err = record.Open(file(r.Options.Record), r.project.Path, r.Launch)
	return err
}

// endRecord ends the record.
func (r *running) endRecord() {
	if err := r.record.End(r.events, r.reports); err != nil {
		diag.Print(r.Caller.Stderr, err)
	}
}

// openNetwork starts what serves the sandbox's network, with the broker in it.
func (r *running) openNetwork() error {
	secrets, err := r.broker.Settings()
	if err == nil {
		r.runner.Network, err = r.network.Open(r.Launch, r.parts.network, secrets)
	}
	return err
}

// startBroker starts what swaps the secrets.
func (r *running) startBroker() error {
	listener := r.listener
	r.listener = nil // it is the broker's
	return r.broker.Start(listener)
}

// openNix opens the sandbox's own Nix store, if it has one.
func (r *running) openNix() (err error) {
	if r.parts.nix.Store != "" {
		r.Launch, err = r.nix.Open(r.Launch, r.parts.nix.Store, r.keeper.Store(), r.Caller.Stderr,
			func(line string) { r.lost.say(r.Caller.Stderr, line) })
	}
	return err
}

// hold makes the stand-ins: files and folders that are absent in the given folders and that mounts have to lie on.
// It also makes the empty folder that is mounted over hidden ones.
func (r *running) hold() error {
	for _, folder := range r.given {
		hold, err := folder.Hold()
		if err != nil {
			return err
		}
		r.holds = append(r.holds, hold)
		held := r.kept().Held(folder.Project)
		if err := os.MkdirAll(held, 0o700); err != nil {
			return diag.Wrap("make "+held, err, "make its folder writable for you")
		}
	}
	empty := lending.EmptyFolder(r.Folders.Home)
	if slices.ContainsFunc(r.Launch.Mounts, func(m launch.Mount) bool { return m.Source == empty }) {
		if err := os.Mkdir(empty, 0o555); err != nil && !errors.Is(err, fs.ErrExist) {
			return diag.Wrap("make "+empty, err, "make its folder writable for you")
		}
	}
	return nil
}

// launch runs bwrap, and watches over the covers meanwhile. All that protects is open before the agent may run: it may
// take all that the kernel gives a user, and nothing that protects is opened after it.
func (r *running) launch() error {
	var faults bytes.Buffer
	given, lent := modes.Note(r.Launch), r.noteLent()
	r.runner.Launch, r.runner.Limit = r.Launch, r.setLimits
	r.runner.Before, r.runner.Laid = r.begin, r.lookAgain
	defer r.closeWatches() // a launch that fails has not ended
	r.runner.Started = func(bwrap int) {
		r.began = time.Now()
		r.broker.Follow(r.Instance.Guard())
		r.nix.Begin(bwrap, r.Caller.Stderr)
		for _, session := range r.after {
			session.Follow()
		}
		for _, guarding := range r.guards {
			guarding.Serve()
		}
		r.git.Follow()
		r.keeper.WriteNow()
	}
	r.runner.Ended = func() { // nothing is printed here, see [launch.Runner]
		r.closeWatches()
		r.lookAgainAtHome()
		modes.Mend(given, &faults)
		r.settle()
		r.tellLent(lent)
	}
	err := r.runner.Run()
	r.lost.saying.Wait()
	_, _ = faults.WriteTo(r.Caller.Stderr)
	for _, line := range r.lost.rest() {
		diag.Note(r.Caller.Stderr, line)
	}
	return err
}

// begin records what is in the given folders, to compare with at the end of the session, and begins to watch over what
// is covered there.
func (r *running) begin() error {
	agent := aftermath.Agent{Instance: r.Instance.Dir, Conversations: r.Instance.Conversations()}
	if err := r.beginBranch(agent); err != nil {
		return err
	}
	if r.own != nil {
		agent = aftermath.Agent{}
	}
	for _, folder := range r.given {
		session := rand.Text()[:16]
		agent.Held = filepath.Join(r.kept().Held(folder.Project), session)
		begun, err := aftermath.Begin(r.Folders.Home, folder.Project, agent)
		if err != nil {
			return err
		}
		r.after = append(r.after, begun)
		agent = aftermath.Agent{} // the first folder's record has the agent's own files; once is enough
		if err := r.beginGuard(folder, session); err != nil {
			return err
		}
	}
	return r.watchCovers()
}

// beginGuard opens what holds back what the agent makes in a folder.
func (r *running) beginGuard(folder guarded.Folder, session string) error {
	guarding, err := r.guardFolder(folder, session)
	switch {
	case errors.Is(err, guard.ErrApart):
		r.lost.say(r.Caller.Stderr, "what your tools obey unasked is not held back in "+diag.Name(folder.Path)+": "+
			"it is on another file system than "+diag.Name(r.Folders.Home))
	case err != nil:
		return unwatched(folder.Path, err)
	default:
		r.guards = append(r.guards, guarding)
	}
	return nil
}

// watchCovers begins to watch over the covers in the given folders.
func (r *running) watchCovers() error {
	for _, folder := range r.given {
		if folder.IsMoved() {
			continue
		}
		watch, err := cover.Open(folder.Path, covers(folder.Project), r.tellUncovered)
		if err != nil {
			return unwatched(folder.Path, err)
		}
		r.watches = append(r.watches, watch)
	}
	return nil
}

// unwatched is the error of a launch whose covers cannot be watched over.
func unwatched(folder string, err error) error {
	remedy := "start again: another program works there"
	if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENOSPC) {
		remedy = "end programs that watch files (editors, other sessions), or raise the limits: `sudo sysctl " +
			"fs.inotify.max_user_instances=1024 fs.inotify.max_user_watches=524288`, and keep them in /etc/sysctl.d"
	}
	return &diag.Error{Op: "watch over what is covered in " + folder, Err: err, Remedy: remedy}
}

func (r *running) closeWatches() {
	for _, watch := range r.watches {
		watch.Close()
	}
	for _, guarding := range r.guards {
		for _, rel := range guarding.Close() {
			at := filepath.Join(guarding.Path, rel)
			for _, session := range r.after {
				session.AddUsers(at)
			}
			r.gitLines = append(r.gitLines, "git, "+diag.Name(strings.TrimSuffix(at, "/.git"))+": it is yours, made "+
				"while the session ran; the agent saw its files alone, and has it whole in the next session")
		}
	}
	r.watches, r.guards = nil, nil
}

// lookAgain refuses a secret that came into a folder while the sandbox was set
// up, where another session lived meanwhile; and a cover that is not there. It
// begins to tell of what is lost.
func (r *running) lookAgain(bwrap int) error {
	if r.process = proctree.Init(bwrap); r.process == 0 {
		return within.ErrGone
	}
	r.record.Begin(r.process, r.events, func() { r.noteNetwork(r.networkReport()) })
	for i, folder := range r.given {
		if !r.after[i].Overlaps() {
			continue
		}
		if rel := folder.Appeared(); rel != "" {
			return diag.Errorf("hide "+diag.Name(folder.Path+"/"+rel), "start again",
				"it came there while the sandbox was set up: another session, or a program of yours, works there")
		}
	}
	for _, watch := range r.watches {
		if err := watch.Begin(bwrap); errors.Is(err, within.ErrGone) {
			return err
		} else if err != nil {
			return diag.Wrap("cover a file", err, "start again: another session, or a program of yours, works there")
		}
	}
	return nil
}

// settle judges what the session left in the folders that the agent may change. A second call does nothing.
func (r *running) settle() {
	r.adoptRepositories()
	if r.git != nil {
		r.bringSubmodules()
	}
	for _, session := range r.after {
		r.overlaps = append(r.overlaps, session.Overlaps())
		r.reports = append(r.reports, session.End())
	}
	r.after = nil
	for _, folder := range r.given {
		guarded.RemoveHeld(r.kept().Held(folder.Project))
	}
	onBranch := r.own != nil
	if onBranch {
		r.reports = append(r.reports, r.own.End())
		r.own = nil
		r.leaveBranch()
	}
	r.endGit()
	if onBranch {
		r.doneBranch()
	}
}

// end stops the network, the broker and the ssh agent, and prints what each did. It releases the agent's home, where
// nobody writes any more, and prints what became of the login. It only prints its errors: the agent's status stays
// claudebox's, whatever fails.
func (r *running) end() {
	stderr := r.Caller.Stderr
	tell := func(lines []string) {
		for _, line := range lines {
			if !r.Options.NoReport {
				diag.Note(stderr, line)
			}
		}
	}
	r.network.Close()
	r.noteNetwork(r.network.Summary.Report)
	if r.network.EndedEarly != nil {
		const remedy = "start again: the agent went on without a network"
		diag.Print(stderr, &diag.Error{Op: "keep the sandbox's network", Err: r.network.EndedEarly, Remedy: remedy})
	}
	if lost := r.network.Summary.LogLost; lost != "" {
		const remedy = "write it to a disk with room; this session's log is not complete"
		diag.Print(stderr, &diag.Error{
			Op: "write the network log " + r.parts.network.Log, Err: errors.New(lost), Remedy: remedy,
		})
	}
	tell(networking.Lines(r.network.Summary, r.AllowHost("--refused")))
	if r.network.Helper != nil && r.Launch.Tier == string(profile.TierAllow) { // for `claudebox allow-host --refused`
		if err := r.Instance.KeepRefused(networking.Unlisted(r.network.Summary.Report)); err != nil {
			diag.Print(stderr, err)
		}
	}
	r.broker.Close()
	tell(r.broker.Refused.Told())
	r.keys.Close()
	tell(r.keys.Told())
	if err := r.Instance.Close(); err != nil {
		diag.Print(stderr, err)
	}
	tell(r.Instance.Ended)
	tell(r.gitLines)
	tell(r.madeLinks())
}
