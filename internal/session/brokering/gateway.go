package brokering

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"claudebox/internal/agent/state"
	"claudebox/internal/network/policy"
	"claudebox/internal/plan"
	"claudebox/internal/profile"
	"claudebox/internal/secret/broker"
	"claudebox/internal/secret/leak"
	"claudebox/internal/session/networking"
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

// findGateways finds the gateways of the user.
func (s *Secrets) findGateways() {
	bases := []string{"ANTHROPIC_VERTEX_BASE_URL"} // no key goes with it
	for _, secret := range broker.Usual {
		bases = append(bases, secret.Base)
	}
	s.gateways = map[string]gateway{}
	for _, base := range bases {
		if set := cmp.Or(s.insideValue(base), s.Facts.Env.Value(base, "")); set != "" {
			s.gateways[base] = gatewayOf(s.Plan.Network, base, set)
		}
	}
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
		if g.hosts = []string{target.String()}; !networking.Reaches(n, target.Host, target.Port) {
			g.why = fmt.Sprintf("%s leads to %s, which is not on the list: `network: {allow: [%[2]s]}`", variable, target)
		}
	case address.Scheme != "http" || !policy.IsLoopback(address.Hostname()):
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
func (s Secrets) providerHosts(key string) []string {
	env := s.Facts.Env
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
func (b *Part) noteProviders(s Secrets) {
	env := s.Facts.Env
	isOn := func(name string) bool { return gitconfig.IsTrue(env.Value(name, "")) }
	switch {
	case s.Plan.Agent.Name != "claude":
	case isOn("CLAUDE_CODE_USE_BEDROCK") && env.Value("AWS_BEARER_TOKEN_BEDROCK", "") == "" &&
		!isOn("CLAUDE_CODE_SKIP_BEDROCK_AUTH"):
		b.LeaveRed("login", "Claude Code cannot log in to Bedrock inside: your AWS keys stay outside; a Bedrock API "+
			"key in AWS_BEARER_TOKEN_BEDROCK is used from there")
	case isOn("CLAUDE_CODE_USE_VERTEX") && !isOn("CLAUDE_CODE_SKIP_VERTEX_AUTH"):
		b.LeaveRed("login", "Claude Code cannot log in to Vertex inside: your Google login stays outside; a gateway "+
			"in ANTHROPIC_VERTEX_BASE_URL, with CLAUDE_CODE_SKIP_VERTEX_AUTH=1, has it")
	case isOn("CLAUDE_CODE_USE_FOUNDRY") && env.Value("ANTHROPIC_FOUNDRY_API_KEY", "") == "":
		b.LeaveRed("login", "Claude Code cannot log in to Foundry inside: your Azure login stays outside; a key in "+
			"ANTHROPIC_FOUNDRY_API_KEY is used from there")
	}
}

// Unreached says that the agent cannot reach what answers it, whatever it says itself; empty: it can, or that is not
// known.
func (s Secrets) Unreached() string {
	const api = 443
	isOn := func(name string) bool { return gitconfig.IsTrue(s.Facts.Env.Value(name, "")) }
	elsewhere := s.gateways[broker.ClaudeBase].inside != "" || isOn("CLAUDE_CODE_USE_BEDROCK") ||
		isOn("CLAUDE_CODE_USE_VERTEX") || isOn("CLAUDE_CODE_USE_FOUNDRY")
	switch n, agent, host := s.Plan.Network, s.Plan.Agent, broker.ClaudeHosts[0]; {
	case len(agent.Command) > 0 && !profile.IsAdapter(agent.Command): // it may be any program
	case n.Tier == profile.TierNone:
		return "there is no network (tier none): " + agent.Name + " reaches no model, and your login or key is not used"
	case agent.Name == "claude" && !elsewhere && !networking.Reaches(n, host, api):
		return agent.Name + " reaches no model: " + host + " is not listed; `anthropic` in the profile's network.allow lists it"
	}
	return ""
}

// carryGateways sets the variables of gateways inside, and says which are of no use.
func (b *Part) carryGateways(s Secrets, l state.Login) {
	if s.Plan.Network.Tier == profile.TierNone {
		return
	}
	for _, variable := range s.Gateways() {
		g := s.gateways[variable]
		brokered := slices.ContainsFunc(s.list, func(one namedSecret) bool {
			return broker.Usual[one.Name].Base == variable
		})
		switch {
		case g.local != "" && !brokered:
			g.inside = cmp.Or(s.insideValue(variable), s.Facts.Env.Value(variable, ""))
		case g.why != "" && !(brokered && len(g.hosts) == 0): // else it is told of the key
			b.LeaveRed("gateway", g.why)
		}
		address := addressOnly(g.inside)
		if address != g.inside {
			b.LeaveRed("gateway", "what is probably a secret in the address of "+variable+" stays outside: give the "+
				"gateway a key in a variable of its own")
		}
		if what := b.secretIn(address); what != "" {
			b.LeaveRed("gateway", variable+" does not enter: there is what is probably "+what+
				" in its address: give the gateway a key in a variable of its own")
			continue
		}
		b.Set(variable, address, "your gateway")
		if variable == broker.ClaudeBase && l.Outside && !brokered {
			b.LeaveRed("login", "your Claude login is not sent to "+variable+
				": set ANTHROPIC_AUTH_TOKEN to what that takes")
		}
	}
}

// secretIn says what secret is in an address that gets no placeholder there; empty: none.
func (b *Part) secretIn(address string) string {
	for _, secret := range b.Kept {
		address = strings.ReplaceAll(address, secret.Value, "")
	}
	plain, err := url.PathUnescape(address)
	for _, secret := range b.Kept {
		if err == nil && strings.Contains(plain, secret.Value) {
			return "the secret of " + secret.Name
		}
	}
	return leak.Token(address)
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

// NotSent says why the key in a variable does not come to an address, "VARIABLE ADDRESS"; empty: it does, or there is
// none.
func (s Secrets) NotSent(word string) string {
	variable, text, _ := strings.Cut(word, " ")
	address, err := url.Parse(text)
	if err != nil || s.Facts.Env.Value(variable, "") == "" {
		return ""
	}
	at := slices.IndexFunc(s.list, func(one namedSecret) bool { return one.Name == variable })
	isSecure := address.Scheme == "https"
	if at < 0 && s.insideValue(variable) != "" ||
		at >= 0 && isSecure && slices.Contains(s.list[at].Hosts, strings.ToLower(address.Host)) {
		return ""
	}
	if _, err := broker.ParseTarget(address.Hostname()); err != nil || !isSecure {
		return fmt.Sprintf("%s is not inside; `extra_env_passthrough: [%[1]s]` lets it in as it is", variable)
	}
	return fmt.Sprintf("%s is not sent to %s; `secrets: [{env: %[1]s, hosts: [%[2]s]}]` does that", variable,
		address.Host)
}

// shownHosts are the hosts of a secret for people: a name that was made for a service of this machine is that service.
func (s Secrets) shownHosts(hosts []string) (shown []string) {
	for _, name := range hosts {
		for _, g := range s.gateways {
			if g.local != "" && g.hosts[0] == name {
				name = g.local
			}
		}
		shown = append(shown, name)
	}
	return shown
}
