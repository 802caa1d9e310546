package session

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/host"
	"claudebox/internal/plan"
	"claudebox/internal/profile"
	"claudebox/internal/profile/profiledir"
	"claudebox/internal/profile/trust"
	"claudebox/internal/workspace/project"
)

// overlay lays the project's own profile over that of a plan, as far as it
// narrows or the user allowed it (EXT-01). Where there is none, that costs one
// system call.
func (p planner) overlay(base planned) (planned, error) {
	root, err := projectRoot(p.Facts, base.plan.Project)
	if err != nil {
		return planned{}, err
	}
	file, err := trust.Read(root)
	if err != nil || file == nil {
		return base, err
	}
	if p.options.Plan != "" {
		base.remarks = append(base.remarks, profile.ProjectFile+" does not count: --plan launches exactly its plan")
		return base, nil
	}
	verdict, err := trustStore(p.folders, p.Facts.UID).Find(file.Path)
	if err != nil {
		diag.Print(p.caller.Stderr, err)
	}
	if verdict.On(*file) && !verdict.Allowed {
		base.remarks = append(base.remarks, profile.ProjectFile+" does not count: you denied it")
		return base, nil
	}
	made, err := p.makeOver(base.plan, *file, verdict)
	made.orders = append(base.orders, made.orders...)
	return made, err
}

// makeOver makes the plan of a profile with the project's laid over it. The flags
// count first: the project is judged by what they leave of the profile.
func (p planner) makeOver(under plan.Plan, file trust.File, verdict trust.Verdict) (planned, error) {
	ref, flags, at := profileRef(p.Facts, p.options), p.options.networkFlags(), place(p.Facts, file)
	at.Mounted = mountedByFlags(p.call)
	cache := p.cache(append([]string{
		ref, fmt.Sprintf("%q %q", flags, at.Mounted), file.Path, file.SHA256(),
		fmt.Sprint(verdict.Allowed && verdict.On(file)),
	}, verdict.Widens...)...)
	var left []trust.Widening // of a plan that is kept, nothing was
	made, err := p.make(cache, func(files profiledir.Files) (profile.Profile, diag.Problems, error) {
		shown := files.Shown(file.Path)
		base, asked, warnings, err := profile.LoadOver(ref, shown, file.Source, files)
		if err != nil {
			return base, nil, err
		}
		if !sameSources(under.Sources, base.Sources) {
			return base, nil, diag.Errorf("lay "+file.Path+" over profile "+under.Profile,
				"name a profile with -P, or `claudebox deny`", "its plan was made of other files than there are now")
		}
		base, asked = base.WithTier(p.options.Network), asked.WithTier(p.options.Network)
		base, left = verdict.Decide(file, base, asked, at)
		// the others were told
		warnings = slices.DeleteFunc(warnings, func(w diag.Problem) bool { return w.File != shown })
		if len(left) > 0 {
			warnings = append(warnings, leftOut(file, verdict, left, flags))
		}
		return base, warnings, nil
	})
	if len(left) == 0 {
		made.remarks = []string{applied(file, verdict)}
	}
	return made, err
}

// sameSources reports whether a plan was made of these files of a profile.
func sameSources(planned []plan.Source, loaded []profile.Source) bool {
	return slices.EqualFunc(planned, loaded, func(p plan.Source, l profile.Source) bool {
		return p.Name == l.Name && p.SHA256 == l.SHA256
	})
}

// mostNamed is how many widenings a warning names.
const mostNamed = 5

// leftOut says what of a project's profile does not count yet.
func leftOut(file trust.File, verdict trust.Verdict, left []trust.Widening, flags []string) diag.Problem {
	var named []string
	for _, w := range left[:min(len(left), mostNamed)] {
		named = append(named, w.Short())
	}
	if more := len(left) - mostNamed; more > 0 {
		named = append(named, fmt.Sprintf("and %d more", more))
	}
	since := "you have not allowed"
	if verdict.Allowed && !verdict.On(file) {
		since = "you have not allowed since it changed"
	}
	return diag.Problem{
		Message: profile.ProjectFile + " asks for what " + since + ", and what is left out: " +
			strings.Join(named, "; "),
		Remedy: "look at it with `" + strings.Join(append([]string{"claudebox allow"}, flags...), " ") +
			"`, or refuse it with `claudebox deny`",
	}
}

// applied is what is to be said of a project's profile that counts.
func applied(file trust.File, verdict trust.Verdict) string {
	if verdict.Allowed && verdict.On(file) {
		return profile.ProjectFile + " counts, as you allowed it"
	}
	return profile.ProjectFile + " counts: it asks for no more than your profile grants"
}

// projectRoot is where a project's own profile lies. The current folder is
// not looked up by its path: somebody may have moved it.
func projectRoot(f host.Facts, kind string) (string, error) {
	if kind == string(profile.ProjectGitRoot) {
		return project.Root(f.Cwd, f.Home)
	}
	return ".", nil
}

func place(f host.Facts, file trust.File) trust.Place {
	return trust.Place{Home: f.Home, Project: filepath.Dir(file.Path)}
}

// mountedByFlags is where the flags mount something inside.
func mountedByFlags(c call) (places []string) {
	for _, word := range slices.Concat(c.options.MountRO, c.options.MountRW) {
		source, inside, split := strings.Cut(word, ":")
		if !split {
			inside = source
		}
		places = append(places, c.absolute(inside))
	}
	return places
}

func trustStore(f profiledir.Folders, uid int) trust.Store {
	return trust.Store{Dir: filepath.Join(f.Home, "trusted"), UID: uid}
}

// Asked is a project's own profile before its user.
type Asked struct {
	File   trust.File
	Widens []trust.Widening // over the profile it would be laid over
	Store  trust.Store
}

// ProjectFile finds the project's own profile for the user to judge. With
// unread its content is not looked at: what is refused may be faulty.
func ProjectFile(c Caller, o Options, unread bool) (Asked, diag.Problems, error) {
	facts, err := host.Detect()
	if err != nil {
		return Asked{}, nil, err
	}
	a := Asked{Store: trustStore(profiledir.FoldersOf(facts, c.Manifest), facts.UID)}
	files, ref := c.profiles(facts), profileRef(facts, o)
	if err := o.judgeTier(); err != nil {
		return a, nil, err
	}
	own, _, err := profile.Load(ref, files)
	if err != nil {
		return a, nil, err
	}
	root, err := projectRoot(facts, string(own.Project))
	if err != nil {
		return a, nil, err
	}
	file, err := trust.Read(root)
	if err != nil {
		return a, nil, err
	}
	if file == nil {
		return a, nil, diag.Errorf("look for "+profile.ProjectFile,
			"go to the project that has one; `man claudebox-profile` says what it may hold", "this project has none")
	}
	if a.File = *file; unread {
		return a, nil, nil
	}
	base, asked, warnings, err := profile.LoadOver(ref, files.Shown(file.Path), file.Source, files)
	if err != nil {
		return a, warnings, err
	}
	_, a.Widens = trust.Narrow(base.WithTier(o.Network), asked.WithTier(o.Network), place(facts, *file))
	return a, warnings, nil
}

// Judge keeps what the user says of it.
func (a Asked) Judge(allowed bool) error {
	v := trust.Verdict{Path: a.File.Path, SHA256: a.File.SHA256(), Allowed: allowed}
	if allowed {
		for _, w := range a.Widens {
			v.Widens = append(v.Widens, w.What)
		}
	}
	return a.Store.Keep(v)
}
