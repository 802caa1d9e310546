package session

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"maps"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"claudebox/internal/agent/login"
	"claudebox/internal/agent/state"
	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/smallfile"
	"claudebox/internal/plan"
	"claudebox/internal/profile"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/secret/broker"
	"claudebox/internal/ui/why"
)

// secrets are what the agent uses and never holds. The zero value has none.
type secrets struct {
	used  bool          // a broker is needed
	list  []namedSecret // in every tier: none of them enters
	hello broker.Hello  // what the broker is told, but for its certificates
}

// findSecrets finds the secrets that the agent uses without having them, and in a tier without a broker, does not use.
func findSecrets(in inputs) (found secrets, err error) {
	list, err := listSecrets(in)
	if brokered := slices.Contains(tiersWithBroker, in.plan.Network.Tier); err != nil || !brokered ||
		len(list) == 0 && in.plan.Agent.Name != "claude" {
		return secrets{list: list}, err
	}
	found = secrets{used: true, list: list, hello: broker.Hello{Password: "PASSWORD", Proxies: hostProxies(in)}}
	if !in.why.Look {
		found.hello.Password = rand.Text()
	}
	config := &found.hello.Config
	config.Key = placeholderKey(in)
	for _, g := range in.gateways {
		if g.local != "" {
			if config.Gateways == nil {
				config.Gateways = map[string]string{}
			}
			config.Gateways[g.hosts[0]] = g.local
		}
	}
	if in.plan.Agent.Name == "claude" {
		config.Login = &broker.Login{} // a login that is made inside is kept outside, too
	}
	for i, secret := range list {
		list[i].placeholder = config.Key.Lasting(secret.Name, secret.Value)
		config.Secrets = append(config.Secrets, secret.Secret)
	}
	return found, nil
}

// placeholderKey returns the key of the instance, from which placeholders are made. The instance's sessions share it:
// a placeholder that one of them writes into the agent's files must be good in the others. An instance that does not
// exist yet gets a new key.
func placeholderKey(in inputs) broker.Key {
	dir, err := state.Dir(in.folders.Home, state.Kind(in.plan.State), in.project.InstanceRoot)
	if real, missing := beneath.Canonical(dir); err == nil && missing == nil {
		if key, there := login.ReadKey(real); there {
			return key
		}
	}
	if in.why.Look {
		return make(broker.Key, len(broker.NewKey())) // zeros: its placeholders are shown, and never used
	}
	return broker.NewKey()
}

// placeholder returns what stands for a secret inside; empty if there is no secret of that name.
func (s secrets) placeholder(name string) string {
	for _, secret := range s.list {
		if secret.Name == name {
			return secret.placeholder
		}
	}
	return ""
}

// insideValue returns the value that a variable would have inside; empty if it is not set.
func insideValue(in inputs, name string) string {
	for _, e := range in.plan.Env {
		if e.Name == name && e.From != plan.FromHost {
			return e.Value
		}
	}
	for _, v := range entering(in) {
		if v.Name == name {
			return v.Value
		}
	}
	return ""
}

// hostProxies returns the proxies by which the broker connects: those that the sandbox would have used, else those of
// this host.
func hostProxies(in inputs) broker.Proxies {
	find := func(name string) string {
		lower, env := strings.ToLower(name), in.Facts.Env
		return cmp.Or(insideValue(in, name), insideValue(in, lower), env.Value(name, ""), env.Value(lower, ""))
	}
	return broker.Proxies{HTTPS: find("HTTPS_PROXY"), HTTP: find("HTTP_PROXY"), No: find("NO_PROXY")}
}

// ownAuthority is the file inside with the certificate authority that was made for this launch alone.
const ownAuthority = "/etc/ssl/certs/claudebox.crt"

// brokeredPart is what leads the sandbox to the broker, and what the broker is told.
type brokeredPart struct {
	part
	overrides map[string]launch.Override // with those of other parts
	bundle    []byte                     // see [launch.Host]
	hello     broker.Hello
}

// brokeredOf replaces secrets with placeholders, leads the sandbox to the broker, and adds to overrides, which other
// parts have begun. port is that of the broker's proxy, see [listen].
func brokeredOf(in inputs, overrides map[string]launch.Override, port int) (made brokeredPart, err error) {
	made.overrides = overrides
	if in.secrets.used {
		made.replace(in)
		err = made.lead(in, port)
	}
	made.carryGateways(in)
	made.noteProviders(in)
	made.hideCopies(in)
	made.noteUnprotected(in)
	return made, err
}

// lead makes the broker's configuration, and the files and variables by which the sandbox finds the broker.
func (b *brokeredPart) lead(in inputs, port int) (err error) {
	b.hello = in.secrets.hello
	config := &b.hello.Config
	targets, err := config.Targets()
	if err != nil {
		return &diag.Error{Op: "broker the secrets", Err: err, Remedy: "write their hosts as names, in lower case"}
	}
	if !in.why.Look {
		if config.Authority, err = broker.NewAuthority(broker.Names(targets), time.Now()); err != nil {
			return &diag.Error{Op: "make the certificates of this launch", Err: err}
		}
	}
	if config.Roots, err = readBundle(in.etc.Certificates); err != nil {
		return diag.Wrap("read the certificates of this host", err, "")
	}
	b.bundle = slices.Concat(bytes.TrimRight(config.Roots, "\n"), []byte("\n"), config.Authority.Certificate)
	b.mount(launch.Mount{
		Kind: plan.File, Source: "authority", Destination: ownAuthority, Mode: "0444",
		Data: config.Authority.Certificate, Why: brokerRule,
	})
	for _, name := range broker.BundleVariables {
		b.set(name, plan.CertificateBundle, brokerRule)
	}
	for name, value := range broker.AuthorityVariables(ownAuthority) {
		b.set(name, value, brokerRule)
	}
	if in.plan.Network.Tier == profile.TierFull {
		b.setProxy(port, broker.Names(targets))
	}
	return nil
}

// replace sets the variables of secrets to their placeholders, and lists the secrets as staying outside.
func (b *brokeredPart) replace(in inputs) {
	for _, secret := range in.secrets.list {
		why := placeholderWhy(secret.Secret)
		b.overrides[secret.Name] = launch.Override{Value: secret.placeholder, Why: why, Public: true}
		if isNamed(in.plan, secret.Name) {
			b.set(secret.Name, secret.placeholder, why)
		}
		if len(secret.Hosts) > 0 {
			b.listOutside(secret.Name, in.shownHosts(secret.Hosts), secret.why)
		} else {
			reason := in.gateways[broker.Usual[secret.Name].Base].why
			b.leaveRed("key", secret.Name+" does not enter, and nothing uses it: "+reason)
		}
	}
	if l := in.Instance.Login; l.Outside || l.Made {
		b.listOutside(broker.ClaudeLogin, broker.ClaudeHosts, "agent claude")
	}
}

// hideCopies puts placeholders into variables that hold the same secret under another name, as GITHUB_TOKEN beside
// GH_TOKEN. Where there is no placeholder, it keeps out the secret itself, too: it is of no use.
func (b *brokeredPart) hideCopies(in inputs) {
	for _, v := range entering(in) {
		if _, judged := b.overrides[v.Name]; judged {
			continue
		}
		for _, secret := range slices.Concat(in.secrets.list, idle(in)) {
			copied := broker.CheckValue(secret.Value) == nil && strings.Contains(v.Value, secret.Value)
			switch {
			case v.Name == secret.Name:
				b.overrides[v.Name] = launch.Override{Drop: true, Why: v.Why}
				b.note(v.Name + " does not enter: there is no network to use it")
			case copied && secret.placeholder == "":
				b.overrides[v.Name] = launch.Override{Drop: true, Why: v.Why}
				b.note(v.Name + " does not enter: it holds the same secret as " + secret.Name)
			case copied:
				v.Value = strings.ReplaceAll(v.Value, secret.Value, secret.placeholder)
				b.overrides[v.Name] = launch.Override{Value: v.Value, Why: placeholderWhy(secret.Secret), Public: true}
				b.note(v.Name + " holds the same secret as " + secret.Name + ", and enters with its placeholder")
			}
		}
	}
}

// idle lists Claude's secrets of this host, which stay outside although nothing lets them in.
func idle(in inputs) (list []namedSecret) {
	for _, name := range slices.Sorted(maps.Keys(broker.Usual)) {
		value := in.Facts.Env.Value(name, "")
		if value != "" && broker.Usual[name].Base == broker.ClaudeBase && insideValue(in, name) == "" {
			list = append(list, namedSecret{Secret: broker.Secret{Name: name, Value: value}})
		}
	}
	return list
}

// noteUnprotected says which variables that enter as they are could stay outside.
func (b *brokeredPart) noteUnprotected(in inputs) {
	for _, v := range entering(in) {
		_, outside := b.overrides[v.Name]
		if hosts := broker.HostsOf[v.Name]; hosts != "" && !outside {
			b.note(v.Name + " enters as it is; `secrets: [{env: " + v.Name + ", hosts: [" + hosts + "]}]` keeps it outside")
		}
	}
	for _, named := range in.plan.Secrets {
		switch {
		case !in.secrets.used:
			b.note(named.Variable + " does not enter: in tier " + in.plan.Network.Tier + " nothing leads to a broker")
		case in.secrets.placeholder(named.Variable) == "":
			b.warn(named.Variable + " is not set: there is no placeholder of it inside")
		}
	}
}

// brokerRule is shown as the rule by which the broker's variables and files enter.
const brokerRule = "broker"

// placeholderWhy is shown as the rule by which a placeholder enters.
func placeholderWhy(s broker.Secret) string {
	if len(s.Hosts) == 0 {
		return "a placeholder, for no host"
	}
	return "a placeholder, for " + strings.Join(s.Hosts, ", ")
}

// readBundle reads a bundle of certificates; nil if there is none.
func readBundle(name string) ([]byte, error) {
	if name == "" {
		return nil, nil
	}
	return os.ReadFile(name)
}

// setProxy sets the variables by which programs find the broker's proxy.
func (b *brokeredPart) setProxy(port int, names []string) {
	user := url.UserPassword(broker.ProxyUser, b.hello.Password)
	proxy := (&url.URL{Scheme: "http", User: user, Host: "127.0.0.1:" + strconv.Itoa(port)}).String()
	direct := exceptionsWithout("localhost,127.0.0.1,::1,"+launch.Hostname+","+b.hello.Proxies.No, names)
	for name, value := range map[string]string{
		"HTTPS_PROXY": proxy, "HTTP_PROXY": proxy, "NO_PROXY": strings.Join(direct, ","),
	} {
		b.set(name, value, brokerRule)
		b.set(strings.ToLower(name), value, brokerRule)
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

// listSecrets lists the secrets that stay outside by a plan: Claude Code's own,
// those of the profile, and the tokens that git logs in with. A secret that this
// host does not have is left out.
func listSecrets(in inputs) ([]namedSecret, error) {
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
	for _, v := range entering(in) {
		if secret, known := usualOf(v.Env); known {
			secret.Name, secret.Value = v.Name, v.Value
			if g, set := in.gateways[secret.Base]; set {
				secret.Hosts, secret.Paths = g.hosts, nil
			} else if len(secret.Hosts) == 0 {
				secret.Hosts = providerHosts(in, v.Name)
			}
			add(secret.Secret, v.Why)
		}
	}
	for _, named := range in.plan.Secrets {
		value, err := secretValue(in.call, named)
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
	for _, host := range in.plan.Git.Hosts {
		value, hosts := in.Facts.Env.Value(host.Variable, ""), []string{host.Host}
		if host.Host == "github.com" { // its tokens are for these as well
			hosts = []string{"api.github.com", "github.com", "uploads.github.com"}
		}
		if why := gitRule(in, host.Variable); value != "" && (why != "" || isNamed(in.plan, host.Variable)) {
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
func gitRule(in inputs, variable string) string {
	for _, v := range entering(in) {
		if v.Name == variable && strings.HasSuffix(v.Why, plan.ForGit) {
			return v.Why
		}
	}
	return ""
}

// secretValue reads a secret of the profile; empty: this host has none.
func secretValue(c call, named plan.Secret) (value string, err error) {
	from := named.Variable
	value = c.Facts.Env.Value(from, "")
	if named.File != "" {
		const most = 64 << 10
		from = c.absolute(named.File)
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

// judgeSecretFiles refuses a secret that stays outside and whose file is visible
// inside, in the project or by a mount.
func judgeSecretFiles(in inputs, mounts []launch.Mount) error {
	for _, named := range in.plan.Secrets {
		if named.File == "" {
			continue
		}
		file, missing := beneath.Canonical(in.absolute(named.File))
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
func entering(in inputs) (list []launch.Variable) {
	entries := slices.DeleteFunc(slices.Clone(in.plan.Env), func(e plan.Env) bool { return e.From != plan.FromHost })
	for _, name := range extraEnv(in.Facts.Env) {
		entries = append(entries, plan.Env{Name: name, Why: extraVariable})
	}
	for _, e := range entries {
		if value := in.Facts.Env.Value(e.Name, ""); value != "" {
			list = append(list, launch.Variable{Env: e, Value: value})
		}
	}
	return list
}
