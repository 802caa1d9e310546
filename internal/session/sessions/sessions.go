// Package sessions finds the sessions that run, for claudebox's other commands, and changes what they may reach.
package sessions

import (
	"errors"
	"maps"
	"net"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/network/helper"
	"claudebox/internal/network/hostpattern"
	"claudebox/internal/network/policy"
	"claudebox/internal/profile"
	"claudebox/internal/profile/trust"
	"claudebox/internal/session/live"
	"claudebox/internal/session/planning"
	"claudebox/internal/workspace/project"
)

// Live is a session that runs, as a command outside sees it.
type Live struct {
	live.Info
	call planning.Call // as the session was called
}

// Of lists the sessions that run: the one called id, else those of the caller's project and profile.
func Of(c planning.Caller, o planning.Options, id string) (list []Live, err error) {
	asked, err := planning.NewCall(c, o, planning.Looking)
	if err == nil {
		list, err = here(asked, id)
	}
	return slices.DeleteFunc(list, func(l Live) bool { return id == "" && l.Profile != asked.FullRef() }), err
}

// Here lists the sessions that run: the one called id, else those of the caller's project.
func Here(c planning.Caller, id string) (list []Live, err error) {
	asked, err := planning.NewCall(c, planning.Options{}, planning.Looking)
	if err == nil {
		list, err = here(asked, id)
	}
	return list, err
}

func here(c planning.Call, id string) (list []Live, err error) {
	const op = "find the sessions that run"
	infos, silent, err := live.List(c.Folders.Home)
	if err != nil {
		return nil, &diag.Error{Op: op, Err: err, Remedy: "make that folder yours alone"}
	}
	root, err := project.GitRoot(c.Facts.Cwd, c.Facts.Home)
	if err != nil {
		return nil, &diag.Error{Op: op, Err: err}
	}
	for _, of := range slices.Sorted(maps.Keys(silent)) {
		if id == "" || id == of {
			diag.Note(c.Caller.Stderr, "session "+of+" is left out: "+silent[of].Error())
		}
	}
	here := []string{root, beneath.Real(c.Facts.Cwd)}
	for _, info := range infos {
		if info.ID == id || id == "" && slices.Contains(here, info.Project) {
			list = append(list, Live{info, like(c, info)})
		}
	}
	if id != "" && len(list) == 0 {
		return nil, diag.Errorf(op, "leave the id out for all of this project", "there is no session %s", diag.Name(id))
	}
	return list, nil
}

// like returns the call by which a session was made.
func like(c planning.Call, info live.Info) planning.Call {
	c.Facts.Cwd = info.Dir
	c.Options = planning.Options{Profile: info.Profile, Plan: info.Plan, Network: info.Network, Branch: info.Branch}
	return c
}

// String says which session it is.
func (l Live) String() string {
	text := "session " + l.ID + " (tier " + l.Tier
	if l.Branch != "" {
		text += ", branch " + diag.Name(l.Branch)
	}
	return text + ")"
}

// Open lets the session reach more hosts until it ends, in tier inet addresses of the user's own network. It returns
// an error if a new launch like it would not reach them although the user's profile listed them.
func (l Live) Open(hosts []string) error {
	if err := l.Judge(hosts); err != nil {
		return err
	}
	o := helper.Opening{Allow: hostpattern.Expand(hosts)}
	if l.Tier == profile.TierInet {
		o = helper.Opening{Except: hosts}
	}
	_, err := live.Ask(l.call.Folders.Home, l.ID, live.Question{Open: &o})
	return err
}

// Events waits for what happens after the event with number n, for some seconds. It returns [live.ErrGone] when the
// session has ended.
func (l Live) Events(n int) ([]live.Event, error) {
	a, err := live.Ask(l.call.Folders.Home, l.ID, live.Question{After: &n})
	return a.Events, err
}

// Remedies are what the user can do about a connection that was refused: the command that lets the session reach the
// host, and what lets launches after it.
func (l Live) Remedies(refused live.Event) (now, always string) {
	host := refused.Host
	if host == "" {
		if _, port, err := net.SplitHostPort(refused.What); err == nil && refused.Why == policy.ThisMachine {
			always = "ports: {out: [" + port + "]} in the profile"
		}
		return "", always
	}
	now = "claudebox allow-host --session=" + l.ID + " " + host
	if l.Tier == profile.TierAllow {
		always = strings.Trim(l.call.AllowHost(host), "`")
	}
	return now, always
}

// Refused lists the hosts that the session was refused, and that a profile could list.
func (l Live) Refused() []string {
	a, _ := live.Ask(l.call.Folders.Home, l.ID, live.Question{Refused: true})
	return a.Refused
}

// Judge returns an error if the session cannot be let reach hosts.
func (l Live) Judge(hosts []string) error {
	switch l.Tier {
	case profile.TierAllow, profile.TierInet:
	case profile.TierFull:
		return errors.New("tier full reaches what this machine reaches")
	default:
		return errors.New("tier " + l.Tier + " has no network: start another session with --network inet")
	}
	for _, text := range hosts {
		if message, remedy := profile.HostFault(l.Tier, text); message != "" {
			if l.Tier == profile.TierInet {
				message += "; tier inet reaches every host of the internet"
			}
			return errors.New(strings.TrimSuffix(message+"; "+remedy, "; "))
		}
	}
	return judgeProjectList(l.call, l.Kind)
}

// judgeProjectList returns an error if the project's own profile takes away something of the network that the user's
// grants: what the user's would list besides might not count then.
func judgeProjectList(c planning.Call, kind string) error {
	if c.Options.Plan != "" {
		return nil // it does not count
	}
	root, err := c.Facts.Cwd, error(nil)
	if kind == profile.ProjectGitRoot {
		root, err = project.GitRoot(root, c.Facts.Home)
	}
	if err != nil {
		return err
	}
	file, err := trust.Read(root)
	if file == nil || err != nil {
		return err
	}
	verdict, err := planning.TrustStore(c).Find(file.Path)
	if err != nil {
		return err
	}
	if verdict.On(*file) && !verdict.Allowed {
		return nil
	}
	base, got, err := laidOver(c, *file, verdict)
	if err != nil {
		return err
	}
	has := func(list []string) func(string) bool { return func(s string) bool { return slices.Contains(list, s) } }
	lacks := func(got, base []string) bool {
		got, base = hostpattern.Expand(got), hostpattern.Expand(base)
		return len(base) == 0 && len(got) > 0 || slices.ContainsFunc(base, not(has(got)))
	}
	if got.Tier != base.Tier || lacks(got.Allow, base.Allow) || lacks(got.Except, base.Except) {
		return errors.New(file.Name() + " of the project narrows the network, and could leave them out: " +
			"change it, or `claudebox deny` it, and start again")
	}
	return nil
}

func not(is func(string) bool) func(string) bool { return func(s string) bool { return !is(s) } }

// laidOver returns the network of the user's profile, and what a launch makes of it with the project's laid over it.
func laidOver(c planning.Call, file trust.File, verdict trust.Verdict) (base, got profile.Network, err error) {
	files := c.Files()
	under, asked, _, err := profile.LoadOver(c.Ref(), files.Shown(file.Path), file.Source, files)
	if err != nil {
		return base, got, err
	}
	under, asked = under.WithTier(c.Options.Network), asked.WithTier(c.Options.Network)
	made, _ := verdict.Decide(file, under, asked, planning.Place(c.Facts, file))
	return under.Network.Under(under.Network.Tier), made.Network.Under(made.Network.Tier), nil
}
