package why

import (
	"cmp"
	"fmt"
	"path"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/plan"
	"claudebox/internal/profile"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/sandbox/view"
)

// Asked is a path that the user asked about, and what the host has there. Paths are absolute and clean.
type Asked struct {
	Path string // as it was asked for
	Real string // with links resolved, as far as it exists
	Home string // the user's, canonical
	Gone bool   // nothing is there
	File bool   // what is there is no folder
	Link string // where the link leads that is there, by its text; empty: there is none
	// Places are where secrets lie on this host.
	Places []profile.SecretPath
}

// shown is a path as the user can type it, with "~" for the home.
func (asked Asked) shown(name string) string { return profile.Tilde(asked.Home, name) }

// Path answers for a path of the host: whether its content can be seen inside,
// at its own path or at another.
func Path(l launch.Launch, asked Asked) Answer {
	a := found(l, asked)
	if a.Inside && asked.Gone {
		return Answer{
			Open: true, Says: asked.shown(asked.Path) + " is not there; what is made there is inside",
			Rule: a.Rule,
		}
	}
	if asked.Gone {
		a.Says = strings.Replace(a.Says, " is not inside", " is not there, and what is made there is not inside", 1)
		if a.Change != "" { // a launch refuses the mount of what is not there
			a.Change = "once it is there, " + a.Change
		}
	}
	return a
}

func found(l launch.Launch, asked Asked) Answer {
	if m := nearest(l.Mounts, asked.Path); m != nil && shows(l, *m, asked.Path) == asked.Real {
		return visible(*m, asked.Path, asked)
	}
	if m, inside := Showing(l.Mounts, asked.Real); m != nil {
		return visible(*m, inside, asked)
	}
	return unseen(l, asked)
}

// Showing returns a mount by which real, a path of the host without links, is seen inside,
// and the path inside; nil: there is none.
func Showing(mounts []launch.Mount, real string) (m *launch.Mount, inside string) {
	for i := range mounts {
		m := &mounts[i]
		rest, below := pathname.Cut(real, m.Source)
		if !below || m.Kind != plan.Bind && m.Kind != plan.ROBind {
			continue
		}
		inside := path.Join(m.Destination, rest)
		if nearest(mounts, inside) == m {
			return m, inside
		}
	}
	return nil, ""
}

// visible says how a path can be seen.
func visible(m launch.Mount, inside string, asked Asked) Answer {
	a := yes(asked.shown(asked.Path)+" is inside, read-only", m.Why, "")
	if m.Kind == plan.Bind {
		a.Says = asked.shown(asked.Path) + " is inside, read-write"
	}
	if inside != asked.Path {
		a.Says += ", at " + asked.shown(inside)
	}
	switch {
	case m.Kind == plan.ROBind && strings.HasPrefix(asked.Real, "/nix/store/"):
		a.Change = "`nix: {store: closure}` in the profile mounts only what the launch needs"
	case m.Why == launch.WhyTracked:
		a.Change = "`--branch NAME`: there the files are the agent's own, until you merge"
	case strings.HasPrefix(m.Why, "--mount-"):
		a.Change = "leave " + m.Why + " out"
	case strings.HasPrefix(m.Why, "profile "), profile.IsProjectRule(m.Why):
		a.Change = "change its entry in mounts there"
	}
	return a
}

// unseen says why a path cannot be seen, and what stands in its place.
func unseen(l launch.Launch, asked Asked) Answer {
	m := nearest(l.Mounts, asked.Path)
	not := asked.shown(asked.Path) + " is not inside"
	if l.Branch != "" && m != nil && m.Kind == plan.Bind && m.Destination == l.Project {
		return no(not+": there it is as branch "+l.Branch+" has it", "--branch, or `workspace: branch` in the profile",
			"commit it, or begin a branch with `--with-changes` or `--with "+asked.shown(asked.Path)+"`; "+
				"what looks secret needs `show` in the profile, too")
	}
	a := no(not, "", mountable(m, asked))
	secret, relation := profile.Exposed(asked.Places, profile.Tilde(asked.Home, asked.Real))
	if m != nil && m.Why == plan.Base && m.Kind == plan.Tmpfs && m.Destination == asked.Path &&
		relation != profile.Around {
		return no(not+": there the sandbox has an empty folder of its own, which it can write to", m.Why, "")
	}
	switch relation {
	case profile.Within:
		a.Says += fmt.Sprintf(": %s holds secrets (%s)", secret.Path, secret.What)
		place := ""
		if fault, _ := profile.DestinationFault(profile.Tilde(asked.Home, asked.Path)); fault != "" {
			place = ", sandbox: /mnt/" + path.Base(asked.Path)
		}
		a.Change = fmt.Sprintf(
			"`mounts: [{host: %s%s, mode: ro, secret: true}]` in the profile, if the agent shall read it",
			diag.Name(asked.shown(asked.Path)), place)
	case profile.Around:
		a.Says += fmt.Sprintf(": it holds %s (%s)", secret.Path, secret.What)
		a.Change = "mount the files and folders in it that are needed"
	}
	switch {
	case m != nil && m.Kind == plan.Symlink && m.Destination == asked.Path && pathname.Below(m.Source, "/nix/store"):
		return yes(asked.Path+" is inside: there it is the sandbox's own, "+m.Source, m.Why, "")
	case m != nil && m.Why == launch.WhyOwnGit:
		return no(not+": the agent has a git folder of its own there; commits, branches, tags, the index and stashes "+
			"are handed over", m.Why, "")
	case m == nil || m.Why == plan.Base && (m.Kind == plan.Tmpfs || m.Kind == plan.Dir):
	case m.Kind == plan.Tmpfs || m.Kind == plan.Dir:
		a.Rule = m.Why
	case asked.Real != asked.Path && shows(l, *m, asked.Path) == asked.Path:
		return behind(l, asked)
	default:
		a.Says, a.Rule = not+": "+instead(l, *m, asked), m.Why
		if _, below := pathname.Cut(asked.Path, l.Project); below {
			rel, _ := pathname.Cut(m.Destination, l.Project) // of a folder: all of it is covered
			a.Change = ""
			covers := m.Hides() && (m.Kind == plan.ROBind || len(m.Data) == 0) // what the host has
			if covers && !strings.HasSuffix(m.Why, launch.OtherName) {
				a.Change = fmt.Sprintf("`show: [%q]` in the profile", profile.ExactGlob(rel))
			}
		}
	}
	return a
}

// behind says why a path cannot be seen that is inside, but leads to what is not.
func behind(l launch.Launch, asked Asked) Answer {
	led := asked
	led.Path, led.Link = cmp.Or(asked.Link, asked.Real), ""
	a := found(l, led)
	a.Says = asked.shown(asked.Path) + " leads to " + led.shown(led.Path) + ", which" +
		strings.TrimPrefix(a.Says, led.shown(led.Path))
	return a
}

// mountable returns advice on how to mount the path, or "" if it cannot be mounted. m is the mount that is there now;
// nil: there is none.
func mountable(m *launch.Mount, asked Asked) string {
	if fault, _ := profile.SourceFault(asked.Real); fault != "" {
		return ""
	}
	if m != nil && m.Kind == plan.Closure {
		return "`packages` in the profile, or `nix: {store: full}`"
	}
	shown := diag.Name(asked.shown(cmp.Or(view.PythonFolder(asked.Path), asked.Path)))
	if strings.Contains(shown, ":") {
		return "an entry in the profile's mounts: in a flag a colon begins the path inside"
	}
	fault, _ := profile.DestinationFault(profile.Tilde(asked.Home, asked.Path))
	if fault != "" || m != nil && (m.Destination == asked.Path || m.Kind == plan.Bind && asked.File) {
		return "`--mount-ro " + shown + ":INSIDE` shows it at another path"
	}
	return "`--mount-ro " + shown + "`, or an entry in the profile's mounts"
}

// instead says what is at the path inside, in place of the host's file or folder.
func instead(l launch.Launch, m launch.Mount, asked Asked) string {
	if m.Hides() {
		return "it is hidden, and empty there"
	}
	switch m.Kind {
	case plan.Bind, plan.ROBind:
		return "there it is " + asked.shown(shows(l, m, asked.Path))
	case plan.Closure:
		return "the store inside is the plan's closure, and it is not in that"
	case plan.Symlink:
		return "there " + asked.shown(m.Destination) + " is the sandbox's own"
	case plan.ROData, plan.File:
		return "there it is a file of claudebox's making"
	case plan.Proc, plan.Dev:
		return "the sandbox has processes and devices of its own"
	}
	return "there is nothing of the host"
}

// shows is the path of the host that a mount shows at a path inside; empty when
// it shows none.
func shows(l launch.Launch, m launch.Mount, inside string) string {
	switch m.Kind {
	case plan.Bind, plan.ROBind:
		rest, _ := pathname.Cut(inside, m.Destination)
		return path.Join(m.Source, rest)
	case plan.Closure:
		if pathname.BelowAny(inside, l.Closure) {
			return inside
		}
	}
	return ""
}

// nearest is the mount that a path inside lies in: the last of those around it
// with the longest destination.
func nearest(list []launch.Mount, inside string) *launch.Mount {
	var found *launch.Mount
	for i := range list {
		if pathname.Below(inside, list[i].Destination) &&
			(found == nil || len(list[i].Destination) >= len(found.Destination)) {
			found = &list[i]
		}
	}
	return found
}

// Login answers for the user's Claude login at a path. outside: it is used from outside; reason is the rule for that,
// or else why it is not used. made: this project has a login that was made inside.
func Login(shown string, outside, made bool, reason string) Answer {
	switch {
	case outside && made:
		return no("the login that this project uses was made inside; yours, "+shown+", is not used, and neither is "+
			"inside", "made inside", "`/logout` inside")
	case outside:
		return no("your login "+shown+" is used from outside: a placeholder is inside, at the agent's path, swapped "+
			"on the way to Anthropic's hosts", reason, "let an ANTHROPIC_API_KEY be used instead, or log out")
	}
	return no("your login "+shown+" is not inside: "+reason, "", "")
}
