package launch

import (
	"fmt"
	"strings"

	"claudebox/internal/plan"
)

// Tiers in which claudebox makes the sandbox's network, see package network.
const (
	InternetTier = "inet"  // the internet
	ListedTier   = "allow" // the hosts of a list
)

// OwnNetwork reports whether the sandbox has a network that claudebox makes and
// serves. In tier none that is so only if ports are carried; else bwrap makes the
// namespace, with nothing but the loopback interface.
func (l Launch) OwnNetwork() bool { return OwnNetwork(l.Plan.Network) }

// OwnNetwork is [Launch.OwnNetwork] for a plan's network.
func OwnNetwork(n plan.Network) bool {
	switch n.Tier {
	case InternetTier, ListedTier:
		return true
	case "none":
		return len(n.In)+len(n.Out) > 0
	}
	return false
}

// networkText describes for the agent what it can reach.
func networkText(n plan.Network) string {
	text := map[string]string{
		"full":       "the host's own network, its local services and LAN included",
		InternetTier: "the internet, but no local network and no service of the host",
		ListedTier: "only these hosts, by their names: " + strings.Join(n.Allow, ", ") +
			". Other names do not exist, and addresses are not reached. No proxy is needed",
		"none": "none; only the loopback interface inside",
	}[n.Tier]
	if n.Tier == "full" {
		return text
	}
	if len(n.Except) > 0 {
		text += ". Of the user's own network you reach " + strings.Join(n.Except, ", ")
	}
	if len(n.In) > 0 {
		text += ". The host's browser reaches servers that you start on these ports, on any address: " + portList(n.In)
	}
	if len(n.Out) > 0 {
		text += ". Services of the host answer on these ports of 127.0.0.1: " + portList(n.Out)
	}
	return text
}

func portList(list []int) string {
	return strings.Trim(strings.Join(strings.Fields(fmt.Sprint(list)), ", "), "[]")
}
