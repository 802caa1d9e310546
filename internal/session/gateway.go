package session

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"claudebox/internal/agent/object"
	"claudebox/internal/diag"
	"claudebox/internal/host"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/linux/smallfile"
	"claudebox/internal/plan"
	"claudebox/internal/profile"
	"claudebox/internal/secret/broker"
	"claudebox/internal/secret/leak"
	"claudebox/internal/workspace/gitconfig"
)

// gateway is where an agent sends its requests by a variable of the user's, instead of to its maker's host. The secrets
// that the user has for it go nowhere else.
type gateway struct {
	inside string   // the variable's value inside
	hosts  []string // that its secrets are for; nil: they are of no use
	local  string   // HOST:PORT of this machine that the first of hosts stands for; empty: it is a host of its own
	why    string   // why it, or a secret for it, is of no use inside; empty: it is reached
}

// findGateways returns the gateways of the user, by variable.
func findGateways(in inputs) map[string]gateway {
	bases := []string{"ANTHROPIC_VERTEX_BASE_URL"} // no key goes with it
	for _, secret := range broker.Usual {
		bases = append(bases, secret.Base)
	}
	found := map[string]gateway{}
	for _, base := range bases {
		if set := cmp.Or(insideValue(in, base), in.Facts.Env.Value(base, "")); set != "" {
			found[base] = gatewayOf(in.plan.Network, base, set)
		}
	}
	return found
}

// gatewayOf says how the address in a variable is reached. An https address is the secrets' host. A service of this
// machine is reached by the broker, which has a name inside for it: so its secrets stay outside, too.
func gatewayOf(n plan.Network, variable, set string) gateway {
	g := gateway{inside: set}
	address, err := url.Parse(set)
	if err != nil || address.Host == "" {
		g.why = variable + " is no address"
		return g
	}
	port, _ := strconv.Atoi(cmp.Or(address.Port(), "80"))
	switch {
	case address.Scheme == "https":
		target, err := broker.ParseTarget(strings.ToLower(address.Host))
		if err != nil {
			g.why = variable + ": " + err.Error()
			return g
		}
		if g.hosts = []string{target.String()}; !reaches(n, target.Host, target.Port) {
			g.why = fmt.Sprintf("%s leads to %s, which is not on the list: `network: {allow: [%[2]s]}`", variable, target)
		}
	case address.Scheme != "http" || !isLoopback(address.Hostname()):
		g.why = variable + " is no https address; `secret: inside` at the key lets that enter as it is"
	case n.Tier != profile.TierFull && !slices.Contains(n.Out, port):
		g.why = fmt.Sprintf("%s leads to port %d of this machine, which tier %s does not reach: `ports: {out: [%[2]d]}`",
			variable, port, n.Tier)
	default:
		name := strings.ToLower(strings.Split(variable, "_")[0]) + ".gateway.claudebox.internal"
		g.hosts, g.local = []string{name}, net.JoinHostPort(address.Hostname(), strconv.Itoa(port))
		address.Scheme, address.Host = "https", name
		g.inside = address.String()
	}
	return g
}

// providerHosts are the hosts of a cloud that serves Claude, for the key in a variable.
func providerHosts(in inputs, key string) []string {
	env := in.Facts.Env
	switch key {
	case "AWS_BEARER_TOKEN_BEDROCK":
		region := strings.ToLower(cmp.Or(env.Value("AWS_REGION", ""), env.Value("AWS_DEFAULT_REGION", ""), "us-east-1"))
		return named("bedrock-runtime."+region+".amazonaws.com", "bedrock."+region+".amazonaws.com")
	case "ANTHROPIC_FOUNDRY_API_KEY":
		return named(strings.ToLower(env.Value("ANTHROPIC_FOUNDRY_RESOURCE", "")) + ".services.ai.azure.com")
	}
	return nil
}

// named are those of hosts that are names.
func named(hosts ...string) []string {
	return slices.DeleteFunc(hosts, func(name string) bool {
		_, err := broker.ParseTarget(name)
		return err != nil
	})
}

// noteProviders says which clouds Claude Code cannot be used by inside: their logins stay outside.
func (b *brokeredPart) noteProviders(in inputs) {
	env := in.Facts.Env
	isOn := func(name string) bool { return gitconfig.IsTrue(env.Value(name, "")) }
	switch {
	case in.plan.Agent.Name != "claude":
	case isOn("CLAUDE_CODE_USE_BEDROCK") && env.Value("AWS_BEARER_TOKEN_BEDROCK", "") == "" &&
		!isOn("CLAUDE_CODE_SKIP_BEDROCK_AUTH"):
		b.leaveRed("login", "Claude Code cannot log in to Bedrock inside: your AWS keys stay outside; a Bedrock API "+
			"key in AWS_BEARER_TOKEN_BEDROCK is used from there")
	case isOn("CLAUDE_CODE_USE_VERTEX") && !isOn("CLAUDE_CODE_SKIP_VERTEX_AUTH"):
		b.leaveRed("login", "Claude Code cannot log in to Vertex inside: your Google login stays outside; a gateway "+
			"in ANTHROPIC_VERTEX_BASE_URL, with CLAUDE_CODE_SKIP_VERTEX_AUTH=1, has it")
	case isOn("CLAUDE_CODE_USE_FOUNDRY") && env.Value("ANTHROPIC_FOUNDRY_API_KEY", "") == "":
		b.leaveRed("login", "Claude Code cannot log in to Foundry inside: your Azure login stays outside; a key in "+
			"ANTHROPIC_FOUNDRY_API_KEY is used from there")
	}
}

func isLoopback(name string) bool {
	ip := net.ParseIP(name)
	return name == "localhost" || ip != nil && ip.IsLoopback()
}

// carryGateways sets the variables of gateways inside, and says which are of no use.
func (b *brokeredPart) carryGateways(in inputs) {
	if in.plan.Network.Tier == profile.TierNone {
		return
	}
	for _, variable := range slices.Sorted(maps.Keys(in.gateways)) {
		g := in.gateways[variable]
		brokered := slices.ContainsFunc(in.secrets.list, func(s namedSecret) bool {
			return broker.Usual[s.Name].Base == variable
		})
		switch {
		case g.local != "" && !brokered:
			g.inside = cmp.Or(insideValue(in, variable), in.Facts.Env.Value(variable, ""))
		case g.why != "":
			b.leaveRed("gateway", g.why)
		}
		address := addressOnly(g.inside)
		if address != g.inside {
			b.leaveRed("gateway", "what is probably a secret in the address of "+variable+" stays outside: give the "+
				"gateway a key in a variable of its own")
		}
		b.set(variable, address, "your gateway")
		if l := in.Instance.Login; variable == broker.ClaudeBase && l.Outside && !brokered {
			b.leaveRed("login", "your Claude login is not sent to "+variable+
				": set ANTHROPIC_AUTH_TOKEN to what that takes")
		}
	}
}

// addressOnly is an address without user, password, and a query that has what is probably a secret.
func addressOnly(address string) string {
	address = gitconfig.StripUserinfo(address)
	bare, query, _ := strings.Cut(address, "?")
	for pair := range strings.FieldsFuncSeq(query, func(r rune) bool { return strings.ContainsRune("&;#", r) }) {
		if name, value, _ := strings.Cut(pair, "="); leak.Variable(name, value) != "" {
			return bare
		}
	}
	return address
}

// shownHosts are the hosts of a secret for people: a name that was made for a service of this machine is that service.
func (in inputs) shownHosts(hosts []string) (shown []string) {
	for _, name := range hosts {
		for _, g := range in.gateways {
			if g.local != "" && g.hosts[0] == name {
				name = g.local
			}
		}
		shown = append(shown, name)
	}
	return shown
}

// withSettings is the environment of the host, with those variables that the user's settings of Claude Code set and
// that may enter: for Claude Code they count more than the environment. left are the names of the others.
func withSettings(c call, p plan.Plan) (env host.Environment, left []string) {
	const limit = 1 << 20
	if p.Agent.Name != "claude" {
		return c.Facts.Env, nil
	}
	content, err := smallfile.Read(filepath.Join(c.configFolder(), "settings.json"), limit)
	if err != nil {
		return c.Facts.Env, nil
	}
	var entries []string
	set := object.As[map[string]string](object.Parse(content)["env"])
	for _, name := range slices.Sorted(maps.Keys(set)) {
		entries = append(entries, name+"="+set[name])
		if !entersFromSettings(p, name) {
			left = append(left, name)
		}
	}
	return withEntries(c.Facts.Env, p, entries), left
}

// withEntries is an environment with those of entries, NAME=VALUE, that enter from elsewhere than the environment.
func withEntries(env host.Environment, p plan.Plan, entries []string) host.Environment {
	env = slices.Clone(env)
	for _, entry := range entries {
		name, _, _ := strings.Cut(entry, "=")
		if entersFromSettings(p, name) {
			env = slices.DeleteFunc(env, func(old string) bool { return strings.HasPrefix(old, name+"=") })
			env = append(env, entry)
		}
	}
	return env
}

// entersFromSettings reports whether a variable enters where the user's settings of Claude Code, or a wrapper, set it:
// as it would from the environment.
func entersFromSettings(p plan.Plan, name string) bool {
	for _, secret := range broker.Usual {
		if secret.Base == name {
			return true
		}
	}
	_, known := broker.Usual[name]
	return known || slices.ContainsFunc(p.Env, func(e plan.Env) bool {
		return e.Name == name && e.From == plan.FromHost && name != "USER"
	})
}

// configFolder is the folder of the user's own Claude Code.
func (c call) configFolder() string {
	return cmp.Or(c.movedConfig(), filepath.Join(c.Facts.Home, ".claude"))
}

// judgeConfig returns an error if the project would show the folder of the user's own Claude Code, where that is not
// the usual one.
func judgeConfig(c call, project string) error {
	config, err := beneath.Canonical(c.movedConfig())
	if c.movedConfig() == "" || err != nil || !pathname.Below(config, project) && !pathname.Below(project, config) {
		return nil //nolint:nilerr // it is not there
	}
	return diag.Errorf("take "+diag.Name(project)+" as the project", "start claudebox in the folder of one project",
		"CLAUDE_CONFIG_DIR leads to %s: your own Claude Code's login, configuration and history", config)
}

// movedConfig is the folder that CLAUDE_CONFIG_DIR names; empty: it is the usual one.
func (c call) movedConfig() string {
	at := c.Facts.Env.Value("CLAUDE_CONFIG_DIR", "")
	if at = filepath.Clean(at); !filepath.IsAbs(at) || at == filepath.Join(c.Facts.Home, ".claude") {
		return ""
	}
	return at
}
