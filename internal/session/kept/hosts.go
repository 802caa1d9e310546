package kept

import (
	"claudebox/internal/agent/state"
	"claudebox/internal/profile/profiledir"
	"claudebox/internal/session/planning"
	"claudebox/internal/session/sessions"
)

// AllowHosts prepares to add hosts to the network.allow of the profile that a launch with these options would use.
func AllowHosts(c planning.Caller, o planning.Options, hosts []string) (m profiledir.MoreHosts, err error) {
	asked, err := planning.NewCall(c, o, planning.Looking)
	if err != nil {
		return m, err
	}
	return asked.Files().AddHosts(asked.Ref(), hosts)
}

// RefusedHosts lists the hosts that the sessions here which run could not reach because their profile does not list
// them, else those of the last session, the most frequent first.
func RefusedHosts(c planning.Caller, o planning.Options) (hosts []string, err error) {
	running, err := sessions.Of(c, o, "")
	for _, one := range running {
		hosts = append(hosts, one.Refused()...)
	}
	if err != nil || len(hosts) > 0 {
		return hosts, err
	}
	dir, err := Folder(c, o)
	if err != nil {
		return nil, err
	}
	return state.Refused(dir), nil
}
