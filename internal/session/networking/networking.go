// Package networking is the network of one session: what the plan and the flags say of it, what serves it while the
// sandbox runs, and what is told of it.
package networking

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/host"
	"claudebox/internal/network/helper"
	"claudebox/internal/network/hostpattern"
	"claudebox/internal/network/upstream"
	"claudebox/internal/plan"
	"claudebox/internal/profile"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/session/logfile"
)

// Part is what the network adds to a launch, and what [Running.Open] needs of the flags.
type Part struct {
	launch.Part
	published []helper.Published
	Log       string // the file of --network-log; empty: none
}

// Request is what the network of a session depends on.
type Request struct {
	Plan    plan.Plan
	Facts   host.Facts
	Publish []string // ports, as --publish has them
	Log     string   // the file of --network-log; empty: none
	Project string   // the project's folder, where no log may lie
}

// Of checks what the plan and the flags say of the network, and finds the ports to publish and the log file.
func Of(r Request) (made Part, err error) {
	wanted, tier := r.Plan.Network, r.Plan.Network.Tier
	if r.Log != "" && !launch.OwnNetwork(wanted) {
		return made, diag.Errorf("read --network-log", "leave it out, or use tier inet or allow",
			"there is nothing to log: the tier is %s", tier)
	}
	if tier == profile.TierFull && len(r.Publish) > 0 {
		made.Warn("--publish changes nothing in tier full: every port inside is a port of this host")
	}
	if tier == profile.TierAllow {
		if err := judgeList(r.Plan); err != nil {
			return made, err
		}
		isSet := func(name string) bool { return r.Facts.Env.Value(name, "") != "" }
		names := []string{"HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"}
		if i := slices.IndexFunc(names, isSet); i >= 0 && wanted.Via == "" {
			made.Note(names[i] + " of this host is not used: claudebox connects to the listed hosts " +
				"itself, or by the proxy that the profile names (network.via)")
		}
	}
	if made.published, err = publishedPorts(r.Plan, r.Publish); err != nil {
		return made, err
	}
	for _, port := range made.published {
		switch {
		case port.Outside == port.Inside:
		case tier == profile.TierFull:
			return made, diag.Errorf(fmt.Sprintf("publish --publish %d:%d", port.Outside, port.Inside),
				"add `--network inet`, or leave it out and use the port as it is",
				"in tier full port %d inside is this machine's port %[1]d", port.Inside)
		default:
			made.Warn(fmt.Sprintf("127.0.0.1:%d and [::1]:%[1]d lead to port %d inside", port.Outside, port.Inside))
		}
	}
	if r.Log != "" {
		made.Log, err = logfile.Path("network log", r.Facts.Absolute(r.Log), r.Project)
	}
	return made, err
}

// judgeList checks the list of hosts, and the proxy, of tier allow.
func judgeList(p plan.Plan) error {
	const op = "use tier allow"
	if len(p.Network.Allow) == 0 {
		return diag.Errorf(op, "list them in the profile: `network: {tier: allow, allow: [anthropic, github]}`",
			"profile %s lists no hosts", p.Profile)
	}
	_, err := hostpattern.ParseList(p.Network.Allow)
	if err == nil {
		_, err = upstream.Parse(p.Network.Via)
	}
	if err != nil {
		return &diag.Error{Op: op, Err: err, Remedy: "make it anew with `claudebox plan --pinned`"}
	}
	return nil
}

// Reaches reports whether a sandbox may reach a port of a host on the internet. n must have passed [judgeList].
func Reaches(n plan.Network, name string, port int) bool {
	if n.Tier == profile.TierAllow {
		allowed, _ := hostpattern.ParseList(n.Allow)
		_, found := allowed.Find(name, port)
		return found
	}
	return n.Tier != profile.TierNone
}

// publishedPorts lists the ports inside that the host reaches: those of the plan, which has those of --publish, too.
// The host's port has the same number, or the one that --publish gives it.
func publishedPorts(p plan.Plan, words []string) (list []helper.Published, err error) {
	moved, err := ParsePublish(words)
	if err != nil {
		return nil, err
	}
	for _, inside := range p.Network.In {
		if slices.Contains(p.Network.Out, inside) { // a profile that has both is refused
			return nil, diag.Errorf(fmt.Sprintf("publish port %d", inside),
				fmt.Sprintf("leave --publish out, or take %d out of `ports: {out}` in the profile", inside),
				"inside, this port leads to the host: what comes for it would be carried round and round")
		}
		port := helper.Published{Outside: uint16(inside), Inside: uint16(inside)}
		for _, m := range moved {
			if m.Inside == port.Inside {
				port = m
			}
		}
		if slices.Contains(p.Network.Out, int(port.Outside)) {
			return nil, diag.Errorf(fmt.Sprintf("publish port %d", port.Outside),
				fmt.Sprintf("leave --publish out, or take %d out of `ports: {out}` in the profile", port.Outside),
				"the agent reaches this port of the host, where a program of yours is to answer, and not the agent")
		}
		list = append(list, port)
	}
	return list, nil
}

// ParsePublish reads words of --publish, INSIDE or HOST:INSIDE.
func ParsePublish(words []string) (list []helper.Published, err error) {
	for _, word := range words {
		outside, inside, split := strings.Cut(word, ":")
		if !split {
			inside = outside
		}
		var port helper.Published
		if port.Outside, err = parsePort(outside); err == nil {
			port.Inside, err = parsePort(inside)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, port)
	}
	return list, nil
}

// parsePort reads a port of --publish.
func parsePort(word string) (uint16, error) {
	port, err := strconv.ParseUint(word, 10, 16)
	if err != nil || strconv.FormatUint(port, 10) != word || port == 0 {
		return 0, diag.Errorf("read --publish", "write a number, or two: --publish 3000, --publish 8080:3000",
			"%q is not a port; expected 1 to 65535", word)
	}
	return uint16(port), nil
}
