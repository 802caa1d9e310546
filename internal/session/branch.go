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
	"claudebox/internal/session/folders"
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

// tree is what the agent works on: the project, or a checkout of a branch in its place.
type tree struct {
	project project.Project // on a branch, where the checkout lies inside: of the user's folder it gives nothing
	branch  *branch.Branch  // nil: the agent works in the user's folder
	asked   []launch.Mount  // on a branch: what hides what the profile's `hide` names
}

// treeOf finds what a session is to work on.
func treeOf(h folders.Host) (in tree, err error) {
	p, err := h.Project()
	if err != nil || !h.Options.OnBranch(h.Plan) {
		return tree{project: p}, err
	}
	tools, err := crossing.Tools(h.Tools)
	if err != nil {
		return in, err
	}
	found, err := branch.Look(branchRequest(h, p, tools))
	if err != nil {
		return in, launch.Diagnose(tools.Bwrap, h.Tools[resolve.ToolEnv], profile.TierNone, err)
	}
	for _, m := range p.Mounts {
		if m.Mode == project.Hidden && strings.HasPrefix(m.Why, launch.WhyAsked) { // also where it is committed
			hides := guarded.Mount(m, lending.EmptyFolder(h.Folders.Home), "")
			hides.IfThere = true
			in.asked = append(in.asked, hides)
		}
	}
	p.Mounts, p.StandIns, p.Notes = nil, nil, nil
	in.project, in.branch = p, &found
	return in, nil
}

// branchRequest is what decides on the checkout of a branch of a project.
func branchRequest(h folders.Host, p project.Project, tools handover.Tools) branch.Request {
	req := branch.Request{
		Home: h.Folders.Home, Tree: p.Path, Name: cmp.Or(h.Options.Branch, defaultBranch(p.Repo)), From: h.Options.From,
		Tools: tools, Hidden: p.Hidden, Ignore: gituse.Ignored(h.Facts, h.Git, p),
		Changes: h.Options.WithChanges, Read: slices.Concat(memory, configured), Modules: submodules(p),
	}
	for _, m := range slices.Concat(p.Mounts, p.Replaced) {
		if rel, in := pathname.Cut(m.Path, p.Path); in && m.Mode == project.Made {
			req.Instead = append(req.Instead, branch.Instead{Path: rel, Dir: m.Dir, Content: m.Content})
		}
	}
	for _, file := range program.DevshellFiles(p) {
		rel, below := pathname.Cut(file, p.Path)
		if below && !strings.Contains(rel, "\n") { // git reads these by lines
			req.Read = append(req.Read, rel)
		}
	}
	for _, at := range h.Options.With {
		if real, err := beneath.Canonical(h.Facts.Absolute(at)); err == nil {
			at = real
		}
		req.With = append(req.With, h.Facts.Absolute(at))
	}
	own := slices.IndexFunc(p.Places, func(p handover.Place) bool { return p.Own })
	if own >= 0 && p.Path == p.Repo.Worktree {
		req.Repo = p.Places[own]
	}
	return req
}

// branchName is the branch that the session works on; empty: none.
func (in tree) branchName() string {
	if in.branch == nil {
		return ""
	}
	return in.branch.Name
}

// part mounts the checkout's own folders, and says what the user has that is not there.
func (in tree) part(p plan.Plan, home string) (made launch.Part) {
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
	if claudesHome(p) {
		made.Mount(launch.Mount{
			Kind: plan.Bind, Source: b.Conversations(), Destination: home + "/.claude/projects", Open: true,
			Why: launch.WhyTalk,
		})
	}
	made.Set(agenthome.StatusVariable, "claudebox "+p.Profile+" · "+p.Network.Tier+" · "+b.Name,
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
	if p.Network.Tier == profile.TierFull {
		made.Note("in tier full a port is taken once on this machine, by one session; " +
			"`--network inet --publish PORT` gives each its own")
	}
	noteBegin(*b, &made)
	if names := branch.ModuleNames(b.Modules); len(names) > 0 {
		made.Note("submodules: " + diag.Some(names, 3) + ": the agent has each as a repository of its own, with your " +
			"commits; what it commits in one is on branch " + b.Name + " of yours")
	}
	if len(b.Pending) > 0 {
		made.Note(fmt.Sprintf("not committed, and not there: %s", diag.Some(b.Pending, 5)))
	}
	return made
}

// noteBegin says where the branch begins.
func noteBegin(b branch.Branch, made *launch.Part) {
	begins := "goes on where it was"
	if b.Fresh {
		begins = "a new checkout of what is committed"
	}
	made.Note(fmt.Sprintf("branch %s: %s; nothing of it is in your folder before you merge it", b.Name, begins))
	if b.Gone() {
		made.Note(fmt.Sprintf("your branch %s is not there any more, and is not made again: "+
			"what the agent commits is on claudebox/%[1]s/%[1]s", b.Name))
	}
	if b.Remote != "" {
		made.Note(b.Remote + " is there, and this branch begins at HEAD: `--from " + b.Remote + "` begins there")
	}
}

// submodules are those that the user has checked out in the project.
func submodules(in project.Project) (list []branch.Module) {
	for _, p := range in.Places {
		name, is := strings.CutPrefix(p.Outer, in.Repo.Dir+"/modules/")
		for _, t := range p.Trees {
			if rel, below := pathname.Cut(t.Path, in.Path); is && below && rel != "" {
				list = append(list, branch.Module{Path: rel, Name: name, Git: p.Outer})
			}
		}
	}
	return list
}

// claudesHome reports whether the agent is Claude Code with a home of its own, in which it keeps conversations by the
// path of the project: all branches have the same.
func claudesHome(p plan.Plan) bool { return p.Agent.Name == "claude" && p.State != "host" }

// undone is how much the user has not committed, where that is not on the branch that the session works on.
func (in tree) undone() int {
	if in.branch == nil {
		return 0
	}
	return len(in.branch.Pending)
}

// put has the checkout in the project's place, and refuses a mount by which the agent would write to the user's.
func (in tree) put(mounts []launch.Mount) error {
	if in.branch == nil {
		return nil
	}
	for i, m := range mounts {
		if m.Why == plan.Base && m.Destination == in.project.Path && m.Kind == plan.Bind {
			mounts[i].Source = in.branch.Checkout()
		}
		meets := pathname.Overlap(m.Source, in.project.Path)
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
	if !claudesHome(r.Plan) {
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
	r.held.Watch()
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
