package planning

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/diag/layout"
	"claudebox/internal/host"
	"claudebox/internal/plan"
	"claudebox/internal/profile"
	"claudebox/internal/profile/grant"
	"claudebox/internal/profile/profiledir"
	"claudebox/internal/profile/trust"
	"claudebox/internal/workspace/project"
)

// overlay lays the project's own profile over that of the plan: what narrows the sandbox always counts, the rest only
// as far as the user allowed it. In a project without one this costs one system call.
func (p Planner) overlay(base Planned) (Planned, error) {
	file, err := projectFile(p.Facts, base.Plan.Project)
	if err != nil || file == nil {
		return base, err
	}
	if p.Options.Plan != "" {
		base.Remarks = append(base.Remarks, file.Name()+" does not count: --plan launches exactly its plan")
		return base, nil
	}
	verdict, err := TrustStore(p.Call).Find(file.Path)
	if err != nil {
		diag.Print(p.Caller.Stderr, err)
	}
	if verdict.On(*file) && !verdict.Allowed {
		base.Remarks = append(base.Remarks, file.Name()+" does not count: you denied it")
		return base, nil
	}
	made, err := p.makeOver(base.Plan, *file, verdict)
	made.OwnFiles = append(base.OwnFiles, made.OwnFiles...)
	return made, err
}

// makeOver makes the plan of the user's profile with the project's laid over it. The flags are applied first: the
// project's profile is compared with what they leave of the user's.
func (p Planner) makeOver(under plan.Plan, file trust.File, verdict trust.Verdict) (Planned, error) {
	ref, at := p.Ref(), Place(p.Facts, file)
	for _, word := range slices.Concat(p.Options.MountRO, p.Options.MountRW) {
		_, inside := p.Facts.Sides(word)
		at.Mounted = append(at.Mounted, inside)
	}
	var flags []string // that change what the project's profile is judged by
	if p.Options.Network != "" {
		flags = []string{"--network " + p.Options.Network}
	}
	cache := p.cache(ref, fmt.Sprintf("%q %q", flags, at.Mounted), file.Path, file.SHA256(),
		fmt.Sprint(verdict.Allowed && verdict.On(file)), fmt.Sprintf("%q %q", verdict.Changes, verdict.Widens))
	var left []grant.Change // what was not allowed: nothing, if the plan comes from the cache
	made, err := p.make(cache, func(files profiledir.Files) (profile.Profile, diag.Problems, error) {
		shown := files.Shown(file.Path)
		base, asked, warnings, err := profile.LoadOver(ref, shown, file.Source, files)
		if err != nil {
			return base, nil, err
		}
		same := func(p plan.Source, l profile.Source) bool { return p.Name == l.Name && p.SHA256 == l.SHA256 }
		if !slices.EqualFunc(under.Sources, base.Sources, same) {
			return base, nil, diag.Errorf("lay "+file.Path+" over profile "+under.Profile,
				"name a profile with -P, or `claudebox deny`", "its plan was made of other files than there are now")
		}
		base, asked = base.WithTier(p.Options.Network), asked.WithTier(p.Options.Network)
		base, left = verdict.Decide(file, base, asked, at)
		// the warnings on other files were printed before
		warnings = slices.DeleteFunc(warnings, func(w diag.Problem) bool { return w.File != shown })
		if len(left) > 0 {
			warnings = append(warnings, leftOut(file, verdict, left, flags))
		}
		return base, warnings, nil
	})
	if len(left) == 0 {
		counts := " counts: it asks for no more than your profile grants"
		if verdict.Allowed && verdict.On(file) {
			counts = " counts, as you allowed it"
		}
		made.Remarks = []string{file.Name() + counts}
	}
	return made, err
}

// mostNamed is how many widenings a warning names, and mostShown how many characters of each.
const mostNamed, mostShown = 5, 120

// leftOut is the warning that lists what a project's profile asks for and does not get yet.
func leftOut(file trust.File, verdict trust.Verdict, left []grant.Change, flags []string) diag.Problem {
	var named []string
	for _, w := range left[:min(len(left), mostNamed)] {
		named = append(named, layout.Shorten(w.String(), mostShown))
	}
	if more := len(left) - mostNamed; more > 0 {
		named = append(named, fmt.Sprintf("and %d more", more))
	}
	since := "you have not allowed"
	if verdict.Allowed && !verdict.On(file) {
		since = "you have not allowed since it changed"
	}
	return diag.Problem{
		Message: file.Name() + " asks for what " + since + ", and what is left out: " +
			strings.Join(named, "; "),
		Remedy: "look at it with `" + strings.Join(append([]string{"claudebox allow"}, flags...), " ") +
			"`, or refuse it with `claudebox deny`",
	}
}

// projectFile reads the project's own profile; nil, nil: it has none. The current folder is opened as ".", not by its
// path: somebody may have moved it.
func projectFile(f host.Facts, kind string) (file *trust.File, err error) {
	root := "."
	if kind == profile.ProjectGitRoot {
		root, err = project.GitRoot(f.Cwd, f.Home)
	}
	if err != nil {
		return nil, err
	}
	return trust.Read(root)
}

// Place returns the folders that paths in a project's profile are relative to.
func Place(f host.Facts, file trust.File) grant.Place {
	return grant.Place{Home: f.Home, Project: file.Root}
}

// TrustStore returns where the user's verdicts on projects' profiles are kept.
func TrustStore(c Call) trust.Store {
	return trust.Store{Dir: filepath.Join(c.Folders.Home, "trusted"), UID: c.Facts.UID}
}

// Asked is a project's own profile that its user is asked to judge.
type Asked struct {
	File   trust.File
	Widens []grant.Change // over the profile it would be laid over
	Store  trust.Store
}

// ProjectFile finds the project's own profile for the user to judge. With
// unread its content is not parsed: a file that is denied may be faulty.
func ProjectFile(c Caller, o Options, unread bool) (Asked, diag.Problems, error) {
	call, own, err := LookUpProfile(c, o)
	if err != nil {
		return Asked{}, nil, err
	}
	a, files := Asked{Store: TrustStore(call)}, call.Files()
	file, err := projectFile(call.Facts, own.Project)
	if err != nil {
		return a, nil, err
	}
	if file == nil {
		return a, nil, diag.Errorf("look for "+profile.ProjectFile,
			"go to the project that has one; `man claudebox-profile` says what it may hold", "this project has none")
	}
	a.File = *file
	if unread {
		return a, nil, nil
	}
	base, asked, warnings, err := profile.LoadOver(call.Ref(), files.Shown(file.Path), file.Source, files)
	if err != nil {
		return a, warnings, err
	}
	_, a.Widens = grant.Narrow(base.WithTier(o.Network), asked.WithTier(o.Network), Place(call.Facts, *file))
	return a, warnings, nil
}

// Denied reports whether the user denied exactly this file before.
func (a Asked) Denied() bool {
	verdict, err := a.Store.Find(a.File.Path)
	return err == nil && verdict.On(a.File) && !verdict.Allowed
}

// KeepVerdict stores the user's verdict on the file. To allow it allows exactly what Widens lists.
func (a Asked) KeepVerdict(allowed bool) error {
	v := trust.Verdict{Path: a.File.Path, SHA256: a.File.SHA256(), Allowed: allowed}
	if allowed {
		v.Changes = a.Widens
	}
	return a.Store.Keep(v)
}
