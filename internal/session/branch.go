package session

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"claudebox/internal/agent/agenthome"
	"claudebox/internal/agent/state"
	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/plan"
	"claudebox/internal/plan/resolve"
	"claudebox/internal/profile"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/session/crossing"
	"claudebox/internal/session/gituse"
	"claudebox/internal/session/guarded"
	"claudebox/internal/session/lending"
	"claudebox/internal/session/program"
	"claudebox/internal/workspace/aftermath"
	"claudebox/internal/workspace/branch"
	"claudebox/internal/workspace/handover"
	"claudebox/internal/workspace/project"
)

// agents begins the name of a branch that the user has not named.
const agents = "agent/"

// defaultBranch is the branch on which an agent works beside the one that the user is on.
func defaultBranch(r project.Repo) string {
	return agents + cmp.Or(strings.TrimPrefix(r.Branch, agents), "detached")
}

// lookAtBranch looks at the branch that the session is to work on. The project is only where its checkout lies inside
// then: nothing of the user's folder is given to the agent but what the branch says.
func lookAtBranch(in *inputs) error {
	if !in.Options.OnBranch(in.Plan) {
		return nil
	}
	if in.Options.Branch == "" {
		in.Options.Branch = defaultBranch(in.project.Repo)
	}
	tools, err := crossing.Tools(in.Tools)
	if err != nil {
		return err
	}
	req := branch.Request{
		Home: in.Folders.Home, Tree: in.project.Path, Name: in.Options.Branch, From: in.Options.From, Tools: tools,
		Hidden: in.project.Hidden, Ignore: gituse.Ignored(in.Facts, in.Git, in.project),
		Changes: in.Options.WithChanges, Read: slices.Concat(memory, configured),
		Modules: submodules(in),
	}
	for _, file := range program.DevshellFiles(in.project) {
		rel, below := pathname.Cut(file, in.project.Path)
		if below && !strings.Contains(rel, "\n") { // git reads these by lines
			req.Read = append(req.Read, rel)
		}
	}
	for _, at := range in.Options.With {
		if real, err := beneath.Canonical(in.Facts.Absolute(at)); err == nil {
			at = real
		}
		req.With = append(req.With, in.Facts.Absolute(at))
	}
	own := slices.IndexFunc(in.project.Places, func(p handover.Place) bool { return p.Own })
	if own >= 0 && in.project.Path == in.project.Repo.Worktree {
		req.Repo = in.project.Places[own]
	}
	found, err := branch.Look(req)
	if err != nil {
		return launch.Diagnose(tools.Bwrap, in.Tools[resolve.ToolEnv], profile.TierNone, err)
	}
	in.branch = &found
	for _, m := range in.project.Mounts {
		if m.Mode == project.Hidden && strings.HasPrefix(m.Why, launch.WhyAsked) { // also where it is committed
			hides := guarded.Mount(m, lending.EmptyFolder(in.Folders.Home), "")
			hides.IfThere = true
			in.asked = append(in.asked, hides)
		}
	}
	in.project.Mounts, in.project.StandIns, in.project.Notes = nil, nil, nil
	return nil
}

// branchPart mounts the checkout's own folders, and says what the user has that is not there.
func branchPart(in *inputs) (made launch.Part) {
	b := in.branch
	if b == nil {
		return made
	}
	place := b.Place()
	made.Mount(launch.Mount{
		Kind: plan.Bind, Source: place.Inner(), Destination: b.Tree + "/.git", Open: true, Why: launch.WhyOwnGit,
	})
	made.Mount(guarded.ObjectsOf(place)...)
	if _, is := place.Contents(); is && b.Fresh {
		made.Note("files of Git LFS are pointers in a new checkout: `git lfs checkout` inside fills them")
	}
	if claudesHome(in) {
		made.Mount(launch.Mount{
			Kind: plan.Bind, Source: b.Conversations(), Destination: in.Facts.Home + "/.claude/projects", Open: true,
			Why: launch.WhyTalk,
		})
	}
	made.Set(agenthome.StatusVariable, "claudebox "+in.Plan.Profile+" · "+in.Plan.Network.Tier+" · "+b.Name,
		"the status line says the branch")
	for _, l := range b.Layers() {
		made.Mount(launch.Mount{
			Kind: plan.Bind, Source: b.Tree + "/" + l.Path, Destination: b.Tree + "/" + l.Path, Layer: l.Above,
			IfThere: true, Why: launch.WhyLayer,
		})
	}
	for why, paths := range b.Left() {
		text := fmt.Sprintf("not there: %s: %s", diag.Some(paths, 3), why)
		if why == b.NoLayers {
			made.Warn(text)
		} else {
			made.Note(text)
		}
	}
	if said := b.Said(); said != "" {
		made.Note("files that git ignores: " + said)
	}
	made.Mount(in.asked...)
	if in.Plan.Network.Tier == profile.TierFull {
		made.Note("in tier full a port is taken once on this machine, by one session; " +
			"`--network inet --publish PORT` gives each its own")
	}
	begins := "goes on where it was"
	if b.Fresh {
		begins = "a new checkout of what is committed"
	}
	made.Note(fmt.Sprintf("branch %s: %s; nothing of it is in your folder before you merge it", b.Name, begins))
	if b.Remote != "" {
		made.Note(b.Remote + " is there, and this branch begins at HEAD: `--from " + b.Remote + "` begins there")
	}
	if names := branch.ModuleNames(b.Modules); len(names) > 0 {
		made.Note("submodules: " + diag.Some(names, 3) + ": the agent has each as a repository of its own, with your " +
			"commits; what it commits in one is on branch " + b.Name + " of yours")
	}
	if len(b.Pending) > 0 {
		made.Note(fmt.Sprintf("not committed, and not there: %s", diag.Some(b.Pending, 5)))
	}
	return made
}

// submodules are those that the user has checked out in the project.
func submodules(in *inputs) (list []branch.Module) {
	for _, p := range in.project.Places {
		name, is := strings.CutPrefix(p.Outer, in.project.Repo.Dir+"/modules/")
		for _, t := range p.Trees {
			if rel, below := pathname.Cut(t.Path, in.project.Path); is && below && rel != "" {
				list = append(list, branch.Module{Path: rel, Name: name, Git: p.Outer})
			}
		}
	}
	return list
}

// claudesHome reports whether the agent is Claude Code with a home of its own, in which it keeps conversations by the
// path of the project: all branches have the same.
func claudesHome(in *inputs) bool { return in.Plan.Agent.Name == "claude" && in.Plan.State != "host" }

// undone is how much the user has not committed, where that is not on the branch that the session works on.
func (in *inputs) undone() int {
	if in.branch == nil {
		return 0
	}
	return len(in.branch.Pending)
}

// putBranch has the checkout in the project's place, and refuses a mount by which the agent would write to the user's.
func putBranch(in *inputs, mounts []launch.Mount) error {
	if in.branch == nil {
		return nil
	}
	for i, m := range mounts {
		if m.Why == plan.Base && m.Destination == in.project.Path && m.Kind == plan.Bind {
			mounts[i].Source = in.branch.Checkout()
		}
		meets := pathname.Below(m.Source, in.project.Path) || pathname.Below(in.project.Path, m.Source)
		if lending.UserNamed(m) && m.Kind == plan.Bind && meets {
			return diag.Errorf("mount "+diag.Name(m.Source)+" ("+m.Why+")", "mount it read-only, or leave --branch out",
				"it is in your project, of which a session on a branch changes nothing")
		}
	}
	return nil
}

// openBranch locks the branch and opens its checkout. Nothing has started yet.
func (r *running) openBranch() (err error) {
	if r.Session.branch == nil {
		return nil
	}
	r.held, err = r.Session.branch.Open()
	if err != nil {
		return err
	}
	if err := r.held.Take(); err != nil {
		return err
	}
	r.runner.Open = r.held.OpenPath
	if !claudesHome(&r.inputs) {
		return nil
	}
	home, err := beneath.Open(filepath.Join(r.Instance.Dir, ".claude"))
	if err != nil {
		return err
	}
	defer home.Close()
	// The mount point.
	if err := home.Mkdir("projects", 0o700); !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

// fillBranch checks the branch out, once the agent's git folder is there.
func (r *running) fillBranch() error {
	if r.held == nil {
		return nil
	}
	if err := r.runner.Signals.Interruptible(r.held.Fill); err != nil {
		return err
	}
	lacks, lines, err := r.held.Lay()
	if err != nil {
		return err
	}
	for i, at := range lacks {
		lacks[i] = r.held.Tree + "/" + at
	}
	note := func(at string, folder bool) {
		if rel, below := pathname.Cut(at, r.held.Tree); below && !r.held.Has(rel, folder) {
			lacks = append(lacks, at)
		}
	}
	for _, m := range r.asked {
		note(m.Destination, m.Kind == plan.ROBind)
	}
	note(r.Launch.Dir, true)
	r.runner.Launch = r.Launch.On(lacks)
	for _, line := range lines {
		diag.Note(r.Caller.Stderr, line)
	}
	return nil
}

// beginBranch begins the review of the agent's own folders, which goes with that of the project otherwise.
func (r *running) beginBranch(agent aftermath.Agent) error {
	if r.held == nil {
		return nil
	}
	empty, err := r.inputs.Beside(r.held.Dir + "/git/tree")
	if err == nil {
		r.own, err = aftermath.Begin(r.Folders.Home, empty, agent)
	}
	return err
}

// leaveBranch commits what the agent has not.
func (r *running) leaveBranch() {
	if r.held == nil || r.began.IsZero() {
		return
	}
	lines, err := r.held.Leave()
	if err != nil {
		lines = append(lines, "branch "+r.held.Name+": what is not committed is kept with the checkout: "+
			strings.TrimSpace(err.Error()))
	}
	r.git.Lines = append(r.git.Lines, lines...)
	const clock = time.Second // the times of files may lag behind the clock by this much
	r.conversation = state.LastIn(r.held.Talk, agenthome.Conversations(r.runner.Dir), r.began.Add(-clock))
}

// LastConversation is the id of the conversation that was changed last, since a time; empty if there is none.
func (s *Session) LastConversation(since time.Time) string {
	if s.branch != nil {
		return s.conversation
	}
	return s.Instance.LastConversation(s.Launch.Dir, since)
}

// doneBranch notes that all has crossed, as far as it can.
func (r *running) doneBranch() {
	if r.held == nil || r.began.IsZero() {
		return
	}
	r.git.Lines = append(r.git.Lines, r.held.Ran()...)
	if err := r.held.Done(); err != nil {
		r.git.Lines = append(r.git.Lines, "branch "+r.held.Name+": "+err.Error())
	}
}

// closeBranch lets go of the branch.
func (r *running) closeBranch() {
	if r.held != nil {
		r.held.Close()
		r.held = nil
	}
}

// BranchDir is the folder of the branch that the session works on; empty: none.
func (s *Session) BranchDir() string {
	if s.branch == nil {
		return ""
	}
	return s.branch.Dir
}
