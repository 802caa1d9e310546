package launch

import (
	"fmt"
	"slices"
	"strings"

	"claudebox/internal/plan"
)

// Tiers whose network is made outside, while bwrap waits for it.
const (
	ConnectedTier = "inet"  // by pasta
	ProxiedTier   = "allow" // nothing but a listener on its loopback
)

// OwnNetwork reports whether bwrap is started in a network namespace that
// claudebox makes and reaches into. Tier none has none of that unless ports
// are carried: bwrap makes its own.
func (l Launch) OwnNetwork() bool {
	n := l.Plan.Network
	switch l.Tier {
	case ConnectedTier, ProxiedTier:
		return true
	case "none":
		return len(n.In)+len(n.Out) > 0
	}
	return false
}

// usualProxyPort is where proxies for HTTP commonly are.
const usualProxyPort = 3128

// ProxyPort is the port of the proxy inside, in tier allow: none that is
// carried.
func ProxyPort(n plan.Network) int {
	port := usualProxyPort
	for slices.Contains(n.In, port) || slices.Contains(n.Out, port) {
		port++
	}
	return port
}

// proxyVariables tell programs of the proxy. There is no standard: curl reads
// http_proxy in lower case only, Node reads any since 22.21 and 24.5, and only when
// it is told to. ALL_PROXY is one of HTTP too: a SOCKS URL is what some programs
// crash at (httpx) and others pass by (gRPC); who needs SOCKS finds it at the
// same port.
func proxyVariables(p plan.Plan) []Variable {
	if p.Network.Tier != ProxiedTier {
		return nil
	}
	address := fmt.Sprintf("http://127.0.0.1:%d", ProxyPort(p.Network))
	var list []Variable
	add := func(name, value string) {
		entry := plan.Env{Name: name, From: plan.FromMade, Why: "network allow"}
		list = append(list, Variable{Env: entry, Value: value})
	}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		add(name, address)
		add(strings.ToLower(name), address)
	}
	const own = "localhost,127.0.0.1,::1," + Hostname
	add("NO_PROXY", own)
	add("no_proxy", own)
	add("NODE_USE_ENV_PROXY", "1")
	return list
}

// networkText says in words for the agent what it reaches.
func networkText(n plan.Network) string {
	text := map[string]string{
		"full":        "the host's own network, its local services and LAN included",
		ConnectedTier: "the internet, but no local network and no service of the host",
		ProxiedTier: "only these hosts, by the proxy that HTTP_PROXY and HTTPS_PROXY name: " + strings.Join(n.Allow, ", ") +
			fmt.Sprintf(". Other hosts and programs that pass the proxy by reach nothing. It speaks SOCKS5 too: socks5h://127.0.0.1:%d", ProxyPort(n)),
		"none": "none; only the loopback interface inside",
	}[n.Tier]
	if n.Tier == "full" {
		return text
	}
	if len(n.In) > 0 {
		text += ". The host's browser reaches servers that you start on these ports: " + portList(n.In)
	}
	if len(n.Out) > 0 {
		text += ". Services of the host answer on these ports of 127.0.0.1: " + portList(n.Out)
	}
	return text
}

func portList(list []int) string {
	return strings.Trim(strings.Join(strings.Fields(fmt.Sprint(list)), ", "), "[]")
}
