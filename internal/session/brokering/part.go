package brokering

import (
	"bytes"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"claudebox/internal/agent/state"
	"claudebox/internal/diag"
	"claudebox/internal/network/policy"
	"claudebox/internal/plan"
	"claudebox/internal/profile"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/secret/broker"
)

// ownAuthority is the file inside with the certificate authority that was made for this launch alone.
const ownAuthority = "/etc/ssl/certs/claudebox.crt"

// Part is what leads the sandbox to the broker, and what the broker is told.
type Part struct {
	launch.Part
	Overrides map[string]launch.Override // with those of other parts
	Bundle    []byte                     // see [launch.Host]
	Kept      []launch.Kept              // see [launch.Host]
	hello     broker.Hello
	used      bool   // see [Secrets]
	tier      string // of the network
}

// Part replaces secrets with placeholders, leads the sandbox to the broker, and adds to overrides, which other
// parts have begun. l is the login of the
// agent. port is that of the broker's proxy, see [Secrets.Listen].
func (s Secrets) Part(l state.Login, overrides map[string]launch.Override, port int) (made Part, err error) {
	made = Part{Overrides: overrides, used: s.Used, tier: s.Plan.Network.Tier}
	if s.Used {
		made.replace(s, l)
		err = made.lead(s, port)
	}
	made.keep(s)
	made.carryGateways(s, l)
	made.noteProviders(s)
	made.noteUnprotected(s)
	return made, err
}

// lead makes the broker's configuration, and the files and variables by which the sandbox finds the broker.
func (b *Part) lead(s Secrets, port int) (err error) {
	b.hello = s.hello
	config := &b.hello.Config
	if s.authority != nil {
		if config.Authority, err = s.authority(); err != nil {
			return &diag.Error{Op: "make the certificates of this launch", Err: err}
		}
	}
	if config.Roots, err = s.roots(); err != nil {
		return diag.Wrap("read the certificates of this host", err, "")
	}
	b.Bundle = withMore(config.Roots, config.Authority.Certificate)
	b.Mount(launch.Mount{
		Kind: plan.File, Source: "authority", Destination: ownAuthority, Mode: "0444",
		Data: slices.Concat(config.Authority.Certificate, s.Authorities), Why: brokerRule,
	})
	for _, name := range broker.BundleVariables {
		b.Set(name, plan.CertificateBundle, brokerRule)
	}
	for name, value := range broker.AuthorityVariables(ownAuthority) {
		b.Set(name, value, brokerRule)
	}
	if s.Plan.Network.Tier == profile.TierFull {
		b.setProxy(port, s.names)
	}
	return nil
}

// replace sets the variables of secrets to their placeholders, and lists the secrets as staying outside.
func (b *Part) replace(s Secrets, l state.Login) {
	for _, secret := range s.list {
		why := placeholderWhy(secret.Secret)
		b.Overrides[secret.Name] = launch.Override{Value: secret.placeholder, Why: why, Public: true}
		if isNamed(s.Plan, secret.Name) {
			b.Set(secret.Name, secret.placeholder, why)
		}
		if len(secret.Hosts) > 0 {
			b.ListOutside(secret.Name, s.shownHosts(secret.Hosts), secret.why)
		} else {
			reason := s.gateways[broker.Usual[secret.Name].Base].why
			b.LeaveRed("key", secret.Name+" does not enter, and nothing uses it: "+reason)
		}
	}
	if l.Outside || l.Made {
		b.ListOutside(broker.ClaudeLogin, broker.ClaudeHosts, "agent claude")
	}
}

// keep says which secrets no variable may have inside. Where there is no network, their own variables do not enter:
// they are of no use.
func (b *Part) keep(s Secrets) {
	entering := s.entering()
	for _, secret := range slices.Concat(s.list, s.idle()) {
		if broker.CheckValue(secret.Value) == nil {
			why := placeholderWhy(secret.Secret)
			kept := launch.Kept{Name: secret.Name, Value: secret.Value, Placeholder: secret.placeholder, Why: why}
			b.Kept = append(b.Kept, kept)
		}
		i := slices.IndexFunc(entering, func(v launch.Variable) bool { return v.Name == secret.Name })
		if _, judged := b.Overrides[secret.Name]; i >= 0 && !judged {
			b.Overrides[secret.Name] = launch.Override{Drop: true, Why: entering[i].Why}
			b.Note(secret.Name + " does not enter: there is no network to use it")
		}
	}
}

// idle lists Claude's secrets of this host, which stay outside although nothing lets them in.
func (s Secrets) idle() (list []namedSecret) {
	for _, name := range slices.Sorted(maps.Keys(broker.Usual)) {
		value := s.Facts.Env.Value(name, "")
		if value != "" && broker.Usual[name].Base == broker.ClaudeBase && s.insideValue(name) == "" {
			list = append(list, namedSecret{Secret: broker.Secret{Name: name, Value: value}})
		}
	}
	return list
}

// noteUnprotected says which variables that enter as they are could stay outside.
func (b *Part) noteUnprotected(s Secrets) {
	for _, v := range s.entering() {
		_, outside := b.Overrides[v.Name]
		if hosts := broker.HostsOf[v.Name]; hosts != "" && !outside {
			b.Note(v.Name + " enters as it is; `secrets: [{env: " + v.Name + ", hosts: [" + hosts + "]}]` keeps it outside")
		}
	}
	for _, named := range s.Plan.Secrets {
		switch {
		case !s.Used:
			b.Note(named.Variable + " does not enter: in tier " + s.Plan.Network.Tier + " nothing leads to a broker")
		case s.Placeholder(named.Variable) == "":
			b.Warn(named.Variable + " is not set: there is no placeholder of it inside")
		default:
			b.noteOwn(s.Plan.Network, named)
		}
	}
}

// noteOwn says of a secret for a service of this machine how far it gets: inside a network of its own, localhost is the
// sandbox, and few such services have TLS.
func (b *Part) noteOwn(n plan.Network, named plan.Secret) {
	const lets = "`secret: inside` at its entry lets it in as it is"
	for _, host := range named.Hosts {
		target, err := broker.ParseTarget(host)
		carried := slices.Contains(n.Out, target.Port)
		switch {
		case err != nil || !policy.IsLoopback(target.Host):
		case n.Tier == profile.TierFull:
			b.Note(named.Variable + " is sent to " + host + " by https alone; for a service without TLS " + lets)
		case carried:
			b.Warn(named.Variable + " is not sent to " + host + ", which is the sandbox's own in tier " + n.Tier +
				": " + lets)
		default:
			b.Warn(fmt.Sprintf("%s is not sent to %s, which is the sandbox's own in tier %s: %s, and `ports: {out: [%d]}` "+
				"leads there", named.Variable, host, n.Tier, lets, target.Port))
		}
	}
}

// brokerRule is shown as the rule by which the broker's variables and files enter.
const brokerRule = "broker: secrets stay outside, and are put in on the way"

// placeholderWhy is shown as the rule by which a placeholder enters.
func placeholderWhy(s broker.Secret) string {
	if len(s.Hosts) == 0 {
		return "a placeholder, for no host"
	}
	return "a placeholder, for " + strings.Join(s.Hosts, ", ")
}

// roots are the authorities by which the true servers are verified: the host's, and those that the user adds.
func (s Secrets) roots() (roots []byte, err error) {
	if s.Certificates != "" {
		roots, err = os.ReadFile(s.Certificates)
	}
	if len(s.Authorities) > 0 {
		roots = withMore(roots, s.Authorities)
	}
	return roots, err
}

// withMore is a bundle of certificates with more of them.
func withMore(bundle, more []byte) []byte {
	return slices.Concat(bytes.TrimRight(bundle, "\n"), []byte("\n"), more)
}

// setProxy sets the variables by which programs find the broker's proxy.
func (b *Part) setProxy(port int, names []string) {
	user, at := url.UserPassword(broker.ProxyUser, b.hello.Password), strconv.Itoa(port)
	if port == 0 { // it is taken when a session starts
		at = "PORT"
	}
	proxy := (&url.URL{Scheme: "http", User: user, Host: "127.0.0.1:" + at}).String()
	direct := exceptionsWithout("localhost,127.0.0.1,::1,"+launch.Hostname+","+b.hello.Proxies.No, names)
	for name, value := range map[string]string{
		"HTTPS_PROXY": proxy, "HTTP_PROXY": proxy, "NO_PROXY": strings.Join(direct, ","),
	} {
		b.Set(name, value, brokerRule)
		b.Set(strings.ToLower(name), value, brokerRule)
	}
}

// exceptionsWithout returns the entries of a NO_PROXY list, without those that would make
// programs connect to one of names past the broker.
func exceptionsWithout(list string, names []string) []string {
	return slices.DeleteFunc(strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' }),
		func(entry string) bool {
			host := strings.TrimLeft(strings.ToLower(entry), "*.")
			if _, err := netip.ParseAddr(host); err != nil {
				host, _, _ = strings.Cut(host, ":")
			}
			return slices.ContainsFunc(names, func(name string) bool {
				return host == "" || name == host || strings.HasSuffix(name, "."+host)
			})
		})
}
