package session

import (
	"slices"
	"strings"

	"claudebox/internal/agent/state"
	"claudebox/internal/network/helper"
	"claudebox/internal/network/hostpattern"
	"claudebox/internal/network/policy"
	"claudebox/internal/profile/profiledir"
	"claudebox/internal/sandbox/launch"
)

// AllowHosts prepares to add hosts to the network.allow of the profile that a launch with these options would use.
func AllowHosts(c Caller, o Options, hosts []string) (m profiledir.MoreHosts, err error) {
	asked, err := newCall(c, o, looking)
	if err != nil {
		return m, err
	}
	return asked.files().AddHosts(asked.ref(), hosts)
}

// AllowHost is the command, in backticks, that adds hosts to the list of the session's profile; empty where there is
// none, as a flag gives the tier or the plan.
func (c call) AllowHost(hosts string) string {
	switch {
	case c.options.Network != "" || c.options.Plan != "":
		return ""
	case c.options.Profile != "":
		hosts += " -P " + launch.Quote(c.options.Profile)
	}
	return "`claudebox allow-host " + hosts + "`"
}

// RefusedHosts lists the hosts that the sessions here which run could not reach because their profile does not list
// them, else those of the last session, the most frequent first.
func RefusedHosts(c Caller, o Options) (hosts []string, err error) {
	running, err := LiveSessions(c, o, "")
	for _, one := range running {
		hosts = append(hosts, one.refused()...)
	}
	if err != nil || len(hosts) > 0 {
		return hosts, err
	}
	dir, err := InstanceDir(c, o)
	if err != nil {
		return nil, err
	}
	return state.Refused(dir), nil
}

// mostKept is how many refused hosts are kept for [RefusedHosts], at most.
const mostKept = 20

// unlisted returns the hosts of a report that were refused because the profile does not list them, and that it could
// list: with their port, unless that is 443 or 80. It returns at most mostKept.
func unlisted(r helper.Report) (hosts []string) {
	for _, one := range r.Refused {
		host := listable(one)
		if host != "" && !slices.Contains(hosts, host) && len(hosts) < mostKept {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// listable returns the host of a refusal as a profile could list it; empty: it could not.
func listable(one helper.Refused) string {
	if one.Why != policy.NotListed {
		return ""
	}
	name, port, _ := strings.Cut(one.What, ":")
	host, err := hostpattern.Canonical(name)
	if err != nil || !strings.Contains(host, ".") {
		return ""
	}
	if port != "" && port != "443" && port != "80" {
		host += ":" + port
	}
	if _, err := hostpattern.Parse(host); err != nil {
		return ""
	}
	return host
}
