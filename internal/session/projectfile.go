package session

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/host"
	"claudebox/internal/plan"
	"claudebox/internal/plan/plancache"
	"claudebox/internal/profile"
	"claudebox/internal/profile/profiledir"
	"claudebox/internal/profile/trust"
	"claudebox/internal/workspace/project"
)

// withProject lays the project's own profile over that of the plan, as far as
// it narrows or the user allowed it (EXT-01). Where there is none, that costs
// one system call.
func (s *Session) withProject(p plan.Plan, o Options, why Purpose) (plan.Plan, error) {
	root, err := projectRoot(s.Facts, p.Project)
	if err != nil {
		return plan.Plan{}, err
	}
	file, err := trust.Read(root)
	if err != nil || file == nil {
		return p, err
	}
	if o.Plan != "" {
		s.tell(profile.ProjectFile + " does not count: --plan launches exactly its plan")
		return p, nil
	}
	verdict, err := trustStore(s.folders, s.Facts.UID).Find(file.Path)
	if err != nil {
		diag.Print(s.caller.Stderr, err)
	}
	if verdict.On(*file) && !verdict.Allowed {
		s.tell(profile.ProjectFile + " does not count: you denied it")
		return p, nil
	}
	return s.planOver(p, o, *file, verdict, why)
}

// planOver makes the plan of a profile with the project's laid over it. The
// flags count first: the project is judged by what they leave of the profile.
func (s *Session) planOver(p plan.Plan, o Options, file trust.File, verdict trust.Verdict, why Purpose) (plan.Plan, error) {
	ref, flags, mounted := profileRef(s.Facts, o), o.networkFlags(), s.mountedByFlags(o)
	files, seen := s.caller.profiles(s.Facts), &plancache.Witnesses{}
	files.Seen = seen.Note
	seen.Note(s.caller.Manifest)
	cache := s.planCache(append([]string{
		ref, fmt.Sprintf("%q %q", flags, mounted), file.Path, file.SHA256(), fmt.Sprint(verdict.Allowed && verdict.On(file)),
	}, verdict.Widens...)...)
	if kept, found := cache.Find(); found && s.holdRoots(cache.File(), kept.Roots) {
		s.obey(kept.Made)
		s.tellApplied(file, verdict)
		s.later(func() { cache.Renew(kept) })
		return kept.Plan, nil
	}
	base, asked, warnings, err := profile.LoadOver(ref, files.Shown(file.Path), file.Source, files)
	s.obey(*seen)
	if err != nil {
		return plan.Plan{}, err
	}
	if !sameSources(p.Sources, base.Sources) {
		return plan.Plan{}, diag.Errorf("lay "+file.Path+" over profile "+p.Profile, "name a profile with -P, or `claudebox deny`",
			"its plan was made of other files than there are now")
	}
	base, asked = base.WithTier(o.Network), asked.WithTier(o.Network)
	at := place(s.Facts, file)
	at.Mounted = mounted
	prof, left := verdict.Decide(file, base, asked, at)
	warnings = slices.DeleteFunc(warnings, func(w diag.Problem) bool { return w.File != files.Shown(file.Path) }) // the others were told
	if len(left) > 0 {
		warnings = append(warnings, leftOut(file, verdict, left, flags))
	} else {
		s.tellApplied(file, verdict)
	}
	for _, w := range warnings {
		diag.Warn(s.caller.Stderr, w)
	}
	made, paths, err := s.planOf(prof, why)
	if err == nil && !why.Look && len(warnings) == 0 {
		s.keepPlan(cache, made, paths, *seen)
	}
	return made, err
}

// sameSources tells whether a plan was made of these files of a profile.
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
		Message: profile.ProjectFile + " asks for what " + since + ", and what is left out: " + strings.Join(named, "; "),
		Remedy:  "look at it with `" + strings.Join(append([]string{"claudebox allow"}, flags...), " ") + "`, or refuse it with `claudebox deny`",
	}
}

func (s *Session) tellApplied(file trust.File, verdict trust.Verdict) {
	text := profile.ProjectFile + " counts: it asks for no more than your profile grants"
	if verdict.Allowed && verdict.On(file) {
		text = profile.ProjectFile + " counts, as you allowed it"
	}
	s.tell(text)
}

// tell adds a remark to the audit.
func (s *Session) tell(text string) { s.told = append(s.told, text) }

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
func (s *Session) mountedByFlags(o Options) (places []string) {
	for _, word := range slices.Concat(o.MountRO, o.MountRW) {
		source, inside, split := strings.Cut(word, ":")
		if !split {
			inside = source
		}
		places = append(places, s.absolute(inside))
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
		return a, nil, diag.Errorf("look for "+profile.ProjectFile, "go to the project that has one; `man claudebox-profile` says what it may hold", "this project has none")
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
