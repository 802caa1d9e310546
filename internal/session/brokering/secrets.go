// Package brokering keeps the user's secrets outside: it finds them, puts placeholders in their places, and runs the
// broker that swaps these while the sandbox runs.
package brokering

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"claudebox/internal/agent/login"
	"claudebox/internal/agent/state"
	"claudebox/internal/diag"
	"claudebox/internal/host"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/smallfile"
	"claudebox/internal/plan"
	"claudebox/internal/profile"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/secret/broker"
	"claudebox/internal/ui/why"
)

// Request is what decides on the secrets of a launch.
type Request struct {
	Plan         plan.Plan
	Facts        host.Facts
	Extra        []string // variables that the caller lets in besides the plan's
	ExtraWhy     string   // the rule by which
	Home         string   // claudebox's own folder
	InstanceRoot string   // see [project.Project]
	Certificates string   // bundle of this host; empty: it has none
	Authorities  []byte   // certificates that count beside it
	Look         bool     // nothing is made
}

// Secrets are what the agent uses and never holds.
type Secrets struct {
	Request
	Used     bool               // a broker is needed
	gateways map[string]gateway // by variable
	list     []namedSecret      // in every tier: none of them enters
	hello    broker.Hello       // what the broker is told, but for its certificates
	names    []string           // of the hosts whose connections the broker gets
	// authority waits for the certificates of this launch, which are made beside all else; nil: nothing is made.
	authority func() (broker.Authority, error)
}

// Find finds the secrets that the agent uses without having them, and in a tier without a broker, does not use.
func Find(r Request) (found Secrets, err error) {
	found = Secrets{Request: r}
	found.findGateways()
	found.list, err = found.listed()
	if brokered := slices.Contains(tiersWithBroker, r.Plan.Network.Tier); err != nil || !brokered ||
		len(found.list) == 0 && r.Plan.Agent.Name != "claude" {
		return found, err
	}
	found.Used, found.hello = true, broker.Hello{Password: "PASSWORD", Proxies: found.hostProxies()}
	if !r.Look {
		found.hello.Password = rand.Text()
	}
	config := &found.hello.Config
	config.Key = placeholderKey(r)
	for _, g := range found.gateways {
		if g.local != "" {
			if config.Gateways == nil {
				config.Gateways = map[string]string{}
			}
			config.Gateways[g.hosts[0]] = g.local
		}
	}
	if r.Plan.Agent.Name == "claude" {
		config.Login = &broker.Login{} // a login that is made inside is kept outside, too
	}
	for i, secret := range found.list {
		found.list[i].placeholder = config.Key.Lasting(secret.Name, secret.Value)
		config.Secrets = append(config.Secrets, secret.Secret)
	}
	targets, err := config.Targets()
	if err != nil {
		return found, fmt.Errorf("bug: a secret's host: %w", err) // the profile was checked
	}
	names := broker.Names(targets)
	found.names = names
	if !r.Look {
		found.authority = sync.OnceValues(func() (broker.Authority, error) {
			return broker.NewAuthority(names, time.Now())
		})
		go found.authority()
	}
	return found, nil
}

// Key is the key from which the placeholders are made; nil: there are none.
func (s Secrets) Key() broker.Key { return s.hello.Config.Key }

// Gateways are the variables that lead the agent to a gateway of the user's.
func (s Secrets) Gateways() []string { return slices.Sorted(maps.Keys(s.gateways)) }

// placeholderKey returns the key of the instance, from which placeholders are made. The instance's sessions share it:
// a placeholder that one of them writes into the agent's files must be good in the others. An instance that does not
// exist yet gets a new key.
func placeholderKey(r Request) broker.Key {
	dir, err := state.Dir(r.Home, state.Kind(r.Plan.State), r.InstanceRoot)
	if real, missing := beneath.Canonical(dir); err == nil && missing == nil {
		if key, there := login.ReadKey(real); there {
			return key
		}
	}
	if r.Look {
		return make(broker.Key, len(broker.NewKey())) // zeros: its placeholders are shown, and never used
	}
	return broker.NewKey()
}

// Placeholder returns what stands for a secret inside; empty if there is no secret of that name.
func (s Secrets) Placeholder(name string) string {
	for _, secret := range s.list {
		if secret.Name == name {
			return secret.placeholder
		}
	}
	return ""
}

// insideValue returns the value that a variable would have inside; empty if it is not set.
func (s Secrets) insideValue(name string) string {
	enters := slices.Contains(s.Extra, name)
	for _, e := range s.Plan.Env {
		if e.Name == name && e.From != plan.FromHost {
			return e.Value
		}
		enters = enters || e.Name == name
	}
	if !enters {
		return ""
	}
	return s.Facts.Env.Value(name, "")
}

// hostProxies returns the proxies by which the broker connects: those that the sandbox would have used, else those of
// this host.
func (s Secrets) hostProxies() broker.Proxies {
	find := func(name string) string {
		lower, env := strings.ToLower(name), s.Facts.Env
		return cmp.Or(s.insideValue(name), s.insideValue(lower), env.Value(name, ""), env.Value(lower, ""))
	}
	return broker.Proxies{HTTPS: find("HTTPS_PROXY"), HTTP: find("HTTP_PROXY"), No: find("NO_PROXY")}
}

// tiersWithBroker are the tiers whose connections can be led to the broker: by a proxy, or by the sandbox's own
// network.
var tiersWithBroker = []string{profile.TierFull, profile.TierInet, profile.TierAllow}

// usualOf returns how an agent sends the secret in a variable; false if that is not known, or if the variable enters
// by a rule that lets it in as it is (`secret: inside`).
func usualOf(e plan.Env) (broker.UsualSecret, bool) {
	secret, known := broker.Usual[e.Name]
	return secret, known && !e.Inside && (secret.Base == broker.ClaudeBase || e.Why == plan.Base)
}

// namedSecret is a secret with the rule that names it.
type namedSecret struct {
	broker.Secret
	why         string
	placeholder string // stands for the secret inside
}

// listed lists the secrets that stay outside by a plan: Claude Code's own,
// those of the profile, and the tokens that git logs in with. A secret that this
// host does not have is left out.
func (s Secrets) listed() ([]namedSecret, error) {
	var list []namedSecret
	add := func(secret broker.Secret, why string) {
		at := slices.IndexFunc(list, func(n namedSecret) bool { return n.Name == secret.Name })
		if at < 0 {
			list = append(list, namedSecret{Secret: secret, why: why})
			return
		}
		list[at].Hosts = merged(list[at].Hosts, secret.Hosts)
		list[at].Forms = merged(list[at].Forms, secret.Forms)
		list[at].Write = append(list[at].Write, secret.Write...)
	}
	for _, v := range s.entering() {
		if secret, known := usualOf(v.Env); known {
			secret.Name, secret.Value = v.Name, v.Value
			if g, set := s.gateways[secret.Base]; set {
				secret.Hosts, secret.Paths = g.hosts, nil
			} else if len(secret.Hosts) == 0 {
				secret.Hosts = s.providerHosts(v.Name)
			}
			add(secret.Secret, v.Why)
		}
	}
	for _, named := range s.Plan.Secrets {
		value, err := secretValue(s.Facts, named)
		if err != nil {
			return nil, err
		}
		if value == "" {
			continue
		}
		secret := broker.Secret{Name: named.Variable, Value: value, Hosts: named.Hosts}
		for _, form := range named.As {
			secret.Forms = append(secret.Forms, broker.Form(form))
		}
		if named.Header != "" {
			secret.Forms, secret.Headers = append(secret.Forms, broker.Header), []string{named.Header}
		}
		for _, place := range named.Write {
			secret.Write = append(secret.Write, broker.ParsePath(place))
		}
		add(secret, named.Why)
	}
	for _, host := range s.Plan.Git.Hosts {
		value, hosts := s.Facts.Env.Value(host.Variable, ""), []string{host.Host}
		if host.Host == "github.com" { // its tokens are for these as well
			hosts = []string{"api.github.com", "github.com", "uploads.github.com"}
		}
		if why := s.gitRule(host.Variable); value != "" && (why != "" || isNamed(s.Plan, host.Variable)) {
			forms := []broker.Form{broker.Basic, broker.Bearer}
			add(broker.Secret{Name: host.Variable, Value: value, Hosts: hosts, Forms: forms}, why)
		}
	}
	return list, nil
}

// isNamed reports whether a plan names the secret of a variable.
func isNamed(p plan.Plan, variable string) bool {
	return slices.ContainsFunc(p.Secrets, func(s plan.Secret) bool { return s.Variable == variable })
}

// merged returns the elements of both lists, sorted, each once.
func merged[T ~string](a, b []T) []T {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b))))
}

// gitRule returns the rule by which a variable enters for git alone; empty if it does not enter, or by another rule.
func (s Secrets) gitRule(variable string) string {
	for _, v := range s.entering() {
		if v.Name == variable && strings.HasSuffix(v.Why, plan.ForGit) {
			return v.Why
		}
	}
	return ""
}

// secretValue reads a secret of the profile; empty: this host has none.
func secretValue(facts host.Facts, named plan.Secret) (value string, err error) {
	from := named.Variable
	value = facts.Env.Value(from, "")
	if named.File != "" {
		const most = 64 << 10
		from = facts.Absolute(named.File)
		content, err := smallfile.Read(from, most)
		if err != nil {
			return "", diag.Wrap("read the secret "+from+" ("+named.Why+")", err,
				"make it, or take the entry out of `secrets`")
		}
		value = strings.TrimSpace(string(content))
	} else if value == "" {
		return "", nil
	}
	if err := broker.CheckValue(value); err != nil {
		op := "use the secret " + from + " (" + named.Why + ")"
		return "", &diag.Error{Op: op, Err: err, Remedy: "put the token there, and nothing else"}
	}
	return value, nil
}

// JudgeFiles refuses a secret that stays outside and whose file is visible
// inside, in the project or by a mount.
func (s Secrets) JudgeFiles(mounts []launch.Mount) error {
	for _, named := range s.Plan.Secrets {
		if named.File == "" {
			continue
		}
		file, missing := beneath.Canonical(s.Facts.Absolute(named.File))
		if missing != nil {
			continue // it has gone since it was read
		}
		if m, _ := why.Showing(mounts, file); m != nil {
			return diag.Errorf("keep the secret "+file+" outside ("+named.Why+")",
				"move it elsewhere, or hide it by `hide`", "the agent can read it: %s is mounted (%s)", m.Source, m.Why)
		}
	}
	return nil
}

// entering lists the host's variables that a plan or the caller lets in, as far as they are set.
func (s Secrets) entering() (list []launch.Variable) {
	entries := slices.DeleteFunc(slices.Clone(s.Plan.Env), func(e plan.Env) bool { return e.From != plan.FromHost })
	for _, name := range s.Extra {
		entries = append(entries, plan.Env{Name: name, Why: s.ExtraWhy})
	}
	for _, e := range entries {
		if value := s.Facts.Env.Value(e.Name, ""); value != "" {
			list = append(list, launch.Variable{Env: e, Value: value})
		}
	}
	return list
}
