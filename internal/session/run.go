package session

import (
	"bytes"
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"claudebox/internal/agent/editor"
	"claudebox/internal/diag"
	"claudebox/internal/linux/peer"
	"claudebox/internal/linux/proctree"
	"claudebox/internal/linux/within"
	"claudebox/internal/network/helper"
	"claudebox/internal/plan"
	"claudebox/internal/profile"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/sandbox/modes"
	"claudebox/internal/sandbox/streams"
	"claudebox/internal/session/alarm"
	"claudebox/internal/session/asking"
	"claudebox/internal/session/brokering"
	"claudebox/internal/session/crossing"
	"claudebox/internal/session/gituse"
	"claudebox/internal/session/homelinks"
	"claudebox/internal/session/lending"
	"claudebox/internal/session/limits"
	"claudebox/internal/session/live"
	"claudebox/internal/session/logfile"
	"claudebox/internal/session/networking"
	"claudebox/internal/session/nixuse"
	"claudebox/internal/session/record"
	"claudebox/internal/session/writable"
	"claudebox/internal/workspace/aftermath"
	"claudebox/internal/workspace/branch"
	"claudebox/internal/workspace/handover"
)

// running is a session while it runs: what is open and at work.
type running struct {
	*Session
	runner  launch.Runner // of the launch, on a branch as its checkout has it
	network networking.Running
	broker  *brokering.Broker
	keys    gituse.Agent
	nix     nixuse.Store
	alarm   *alarm.Alarm
	git     *crossing.Git
	folders writable.Folders
	held    *branch.Held       // the branch that the agent works on; nil: it works in the user's folder
	own     *aftermath.Session // of the agent's own folders, if it works on a branch
	live    live.Server        // answers claudebox's commands
	events  *live.Events       // what happens, for them
	record  *record.Recorder
	replies *asking.Server  // to questions from inside
	links   homelinks.Later // of the home, made meanwhile
	began   time.Time
	ran     bool               // the agent did
	reports []aftermath.Report // on the folders, once they are settled
}

// newRunning begins a session, or a rehearsal of one. From here on signals are claudebox's.
func newRunning(s *Session) *running {
	r := &running{
		Session: s, runner: launch.Runner{Launch: s.Launch, Signals: launch.Listen(s.Heeded)}, events: &live.Events{},
	}
	r.alarm = &alarm.Alarm{
		To: s.Caller.Stderr, End: r.runner.Signals.End, Strict: s.Launch.Plan.Protect.Mode == "strict",
	}
	r.network.Events = r.events
	r.broker, r.keys = s.parts.brokered.For(&s.Instance, r.events), gituse.Agent{Events: r.events}
	r.folders = writable.Folders{
		List: s.given, Kept: keptBy(s.Host, s.found), Template: s.parts.git.Template, Alarm: r.alarm, Events: r.events,
	}
	return r
}

// Run sets up what the launch needs on the host, runs it, reports, and undoes the setup, also after an error. Its error
// is a [launch.ExitError] when the agent's status is not 0.
func (s *Session) Run() error {
	// Before this line a signal ends claudebox at once: nothing exists yet
	// that would have to be undone.
	err := newRunning(s).run()
	aftermath.Await(err, func(why string) { diag.Note(s.Caller.Stderr, why) })
	return err
}

// run is [Session.Run].
func (r *running) run() (err error) {
	defer r.close()
	if err := r.take([]func() error{
		peer.Mark, r.openRecord, r.openNetwork, r.Instance.Prepare, r.openNix, r.listen, r.answerInside, r.openBranch,
		r.handOver, r.fillBranch, r.startBroker,
		func() error { return r.keys.Start(r.parts.git.Keys, r.Caller.Stderr) }, r.hold,
	}); err != nil {
		return err
	}
	r.runner.Piped, r.runner.Background = streams.IsPiped(), streams.IsBackground()
	giveBack, err := streams.Take(r.runner.Background)
	if err != nil {
		return err
	}
	defer func() {
		if lost := giveBack(); err == nil {
			err = lost
		} else if lost != nil {
			diag.Print(r.Caller.Stderr, lost) // the agent's status stays claudebox's
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

// take takes steps on the way to a launch, until the user interrupts it.
func (r *running) take(steps []func() error) error {
	for _, step := range steps {
		if err := r.runner.Signals.Interrupted(); err != nil {
			return err
		}
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// close lets go of what is open, and waits for the processes that are to end by themselves.
func (r *running) close() {
	r.replies.Close()
	r.events.End()
	r.live.Close()
	r.nix.Close()
	r.folders.Release()
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

// announce prints what the session left, and writes --report-json.
func (r *running) announce() {
	var network *helper.Summary
	if r.network.Helper != nil {
		network = &r.network.Summary
	}
	r.report.Tell(r.reports, network)
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
func (r *running) openNix() error {
	if r.parts.nix.Store == "" {
		return nil
	}
	return r.nix.Open(r.Launch, r.parts.nix.Store, r.keeper.Store(), r.Caller.Stderr, r.alarm.Say)
}

// handOver makes the agent's own git folders, as the user's are now. Nothing has started yet.
func (r *running) handOver() error {
	for _, s := range r.submodules() {
		if err := os.MkdirAll(s.Own, 0o700); err != nil {
			return diag.Wrap("make "+s.Own, err, "make "+filepath.Dir(s.Own)+" writable for you")
		}
	}
	request, err := crossing.Request(r.Tools, projectsOf(r.given)...)
	if err != nil {
		return err
	}
	var own *handover.Place
	if r.Session.branch != nil {
		place := r.Session.branch.Place()
		own = &place
	}
	for _, m := range r.Launch.Mounts {
		if m.Kind == plan.Bind {
			request.Lasts = append(request.Lasts, m.Destination)
		}
	}
	request.Places = crossing.Places(own, r.given, keptBy(r.Host, r.found), r.Launch.Mounts)
	r.git, err = crossing.Begin(request, r.events)
	r.folders.Git = r.git
	return err
}

// submodules are those that are not checked out.
func (r *running) submodules() []writable.Submodule {
	return writable.Submodules(r.Launch.Mounts, r.Instance.Dir)
}

// hold makes what mounts have to lie on: the stand-ins, and the empty folder that is mounted over hidden ones.
func (r *running) hold() error {
	if err := r.folders.Hold(); err != nil {
		return err
	}
	empty := lending.EmptyFolder(r.Folders.Home)
	if slices.ContainsFunc(r.runner.Mounts, func(m launch.Mount) bool { return m.Source == empty }) {
		if err := os.Mkdir(empty, 0o555); err != nil && !errors.Is(err, fs.ErrExist) {
			return diag.Wrap("make "+empty, err, "make "+filepath.Dir(empty)+" writable for you")
		}
	}
	return nil
}

// launch runs bwrap, and watches over the covers meanwhile. All that protects is open before the agent may run: it may
// take all that the kernel gives a user, and nothing that protects is opened after it.
func (r *running) launch() error {
	var faults bytes.Buffer
	given, lent := modes.Note(r.runner.Launch), lending.Given(r.runner.Mounts, projectsOf(r.given))
	r.runner.Limit = func(pids []int) error { return limits.Set(r.Launch.Plan.Limits, r.Facts.Env, pids) }
	r.runner.Before, r.runner.Laid = r.begin, r.lookAgain
	defer r.folders.Close() // a launch that fails has not ended
	r.runner.Started = func(bwrap int) {
		r.began = time.Now()
		r.broker.Follow(r.Instance.Guard())
		r.nix.Begin(bwrap, r.Caller.Stderr)
		r.folders.Follow()
		r.git.Follow()
		r.keeper.WriteNow()
		time.AfterFunc(time.Second, shrink)
	}
	r.runner.Ended = func(ran bool) { // nothing is printed here, see [launch.Runner]
		debug.SetGCPercent(Brief)
		r.ran = ran
		r.folders.Close()
		r.links = homelinks.Again(r.Links, r.began)
		modes.Mend(given, &faults)
		r.settle()
		if len(r.reports) > 0 {
			r.reports[0].Changes = append(r.reports[0].Changes, lent.Changes(r.Facts.Home)...)
		}
	}
	err := r.runner.Run()
	rest := r.alarm.Rest()
	_, _ = faults.WriteTo(r.Caller.Stderr)
	for _, line := range rest {
		diag.Note(r.Caller.Stderr, line)
	}
	return err
}

// Brief is the percentage of garbage, see [debug.SetGCPercent], while a start or an end is under way: a collection in
// it would cost a tenth of it, for memory that is given back a second later.
const Brief = 800

// shrink gives back what the start has used, once the agent works.
func shrink() {
	debug.SetGCPercent(100)
	debug.FreeOSMemory()
}

// begin records what is in the folders that the agent may change, and begins to watch over what is covered there.
func (r *running) begin() error {
	agent := aftermath.Agent{Instance: r.Instance.Dir, Conversations: r.Instance.Conversations(), Ends: r.ends}
	if err := r.beginBranch(agent); err != nil {
		return err
	}
	if r.own != nil {
		agent = aftermath.Agent{Ends: r.ends}
	}
	return r.folders.Begin(agent, r.runner.Mounts)
}

// lookAgain looks once more at what is protected, with the sandbox set up and nothing of the agent's running.
func (r *running) lookAgain(bwrap int) error {
	if r.folders.Process = proctree.Init(bwrap); r.folders.Process == 0 {
		return within.ErrGone
	}
	r.record.Begin(r.folders.Process, r.events, r.network.Note)
	if err := homelinks.LookAgain(r.Links, r.project, r.runner.Mounts); err != nil {
		return err
	}
	return r.folders.LookAgain(bwrap)
}

// settle judges what the session left in the folders that the agent may change. A second call does nothing.
func (r *running) settle() {
	over := r.folders.BeginEnd()
	defer over()
	reports, alone := r.folders.Settle(r.submodules())
	r.reports = append(r.reports, reports...)
	onBranch := r.own != nil
	if onBranch {
		r.reports = append(r.reports, r.own.End())
		r.own = nil
		r.leaveBranch()
	}
	if r.ran {
		r.git.End(alone)
	} else {
		r.git.Cancel()
	}
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
	r.network.End(stderr)
	tell(networking.Lines(r.network.Summary, r.AllowHost("--refused")))
	if r.network.Helper != nil && r.Launch.Tier == string(profile.TierAllow) { // for `claudebox allow-host --refused`
		if err := r.Instance.KeepRefused(r.network.Unlisted()); err != nil {
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
	tell(r.git.Lines)
	tell(r.links.Lines(r.given))
}
