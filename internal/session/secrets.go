package session

import (
	"bytes"
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
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/secret/broker"
)

// secrets are what the agent uses and never holds. The zero value has none.
type secrets struct {
	used     bool // by a broker
	list     []namedSecret
	key      broker.Key // of the placeholders
	password string     // of the broker's proxy
	proxies  broker.Proxies
}

// findSecrets finds those that the agent is to use. In a tier without a broker there are none.
func findSecrets(g ground) (found secrets, err error) {
	if !slices.Contains(tiersWithBroker, g.plan.Network.Tier) {
		return found, nil
	}
	list, err := listSecrets(g)
	if err != nil || len(list) == 0 && g.plan.Agent.Name != "claude" {
		return found, err
	}
	found = secrets{used: true, list: list, key: placeholderKey(g), password: "PASSWORD", proxies: hostProxies(g)}
	if !g.why.Look {
		found.password = rand.Text()
	}
	for i, secret := range list {
		list[i].placeholder = found.key.Lasting(secret.Name, secret.Value)
	}
	return found, nil
}

// placeholderKey is the key of the instance, which its sessions share: what one
// of them writes into the agent's files the others read. An instance that is
// still to be made gets a new one.
func placeholderKey(g ground) broker.Key {
	dir, err := state.Dir(g.folders.Home, state.Kind(g.plan.State), g.project.Root)
	if real, missing := beneath.Canonical(dir); err == nil && missing == nil {
		if key, there := login.ReadKey(real); there {
			return key
		}
	}
	if g.why.Look {
		return make(broker.Key, len(broker.NewKey())) // it makes what is shown, and nothing that is good
	}
	return broker.NewKey()
}

// placeholder is what stands for a secret inside; empty: there is none of that name.
func (s secrets) placeholder(name string) string {
	for _, secret := range s.list {
		if secret.Name == name {
			return secret.placeholder
		}
	}
	return ""
}

// insideValue is what a variable would be inside.
func insideValue(g ground, name string) string {
	for _, e := range g.plan.Env {
		if e.Name == name && e.From != plan.FromHost {
			return e.Value
		}
	}
	for _, e := range entering(g) {
		if e.Name == name {
			return g.Facts.Env.Value(name, "")
		}
	}
	return ""
}

// hostProxies are those by which the sandbox would have left, else those of this host.
func hostProxies(g ground) broker.Proxies {
	find := func(name string) string {
		for _, name := range []string{name, strings.ToLower(name)} {
			if value := insideValue(g, name); value != "" {
				return value
			}
		}
		return g.Facts.Env.Value(name, g.Facts.Env.Value(strings.ToLower(name), ""))
	}
	return broker.Proxies{HTTPS: find("HTTPS_PROXY"), HTTP: find("HTTP_PROXY"), No: find("NO_PROXY")}
}

// Where the sandbox finds the authority of its launch alone.
const ownAuthority = "/etc/ssl/certs/claudebox.crt"

// bundleVariables name the bundle of authorities to programs that do not look
// where it is (measured, each with its program); extraVariables name one more,
// or have programs look.
var bundleVariables = []string{
	"CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "REQUESTS_CA_BUNDLE", "PIP_CERT", "CARGO_HTTP_CAINFO", "AWS_CA_BUNDLE",
	"CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", "HTTPLIB2_CA_CERTS", "DENO_CERT", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
	"HEX_CACERTS_PATH",
}

var extraVariables = map[string]string{
	"NODE_EXTRA_CA_CERTS": ownAuthority, "UV_NATIVE_TLS": "true", "DENO_TLS_CA_STORE": "system,mozilla",
}

// brokeredPart is what leads the sandbox to the broker, and what that is told.
type brokeredPart struct {
	part
	overrides map[string]launch.Override // with those of other parts
	bundle    []byte                     // see [launch.Host]
	hello     broker.Hello
}

// brokeredOf puts placeholders in the place of secrets, and leads the sandbox to
// the broker. port is that of its proxy.
func brokeredOf(g ground, overrides map[string]launch.Override, port int) (made brokeredPart, err error) {
	made.overrides = maps.Clone(overrides)
	if g.plan.Network.Tier == "none" {
		made.drop(g)
	}
	if g.secrets.used {
		made.replace(g)
		err = made.lead(g, port)
	}
	made.hint(g)
	return made, err
}

// lead says to the broker what it is to swap, and to the sandbox where it is.
func (b *brokeredPart) lead(g ground, port int) (err error) {
	b.hello = broker.Hello{Password: g.secrets.password, Proxies: g.secrets.proxies}
	config := &b.hello.Config
	config.Key = g.secrets.key
	for _, secret := range g.secrets.list {
		config.Secrets = append(config.Secrets, secret.Secret)
	}
	if g.plan.Agent.Name == "claude" {
		config.Login = &broker.Login{} // what is made inside stays outside, too
	}
	targets, err := config.Targets()
	if err != nil {
		return &diag.Error{Op: "broker the secrets", Err: err, Remedy: "write their hosts as names, in lower case"}
	}
	if !g.why.Look {
		if config.Authority, err = broker.NewAuthority(broker.Names(targets), time.Now()); err != nil {
			return &diag.Error{Op: "make the certificates of this launch", Err: err}
		}
	}
	if config.Roots, err = readBundle(g.etc.Certificates); err != nil {
		return diag.Wrap("read the certificates of this host", err, "")
	}
	b.bundle = slices.Concat(bytes.TrimRight(config.Roots, "\n"), []byte("\n"), config.Authority.Certificate)
	b.mount(launch.Mount{
		Kind: plan.File, Source: "authority", Destination: ownAuthority, Mode: "0444",
		Data: config.Authority.Certificate, Why: brokerRule,
	})
	for _, name := range bundleVariables {
		b.set(name, plan.CertificateBundle)
	}
	for name, value := range extraVariables {
		b.set(name, value)
	}
	if g.plan.Network.Tier == proxied {
		b.setProxy(port, broker.Names(targets))
	}
	return nil
}

// replace puts into the variables inside what stands there for secrets.
func (b *brokeredPart) replace(g ground) {
	for _, secret := range g.secrets.list {
		if len(secret.Hosts) == 0 {
			base := usual[secret.Name].base
			b.warn(secret.Name + " does not enter, and nothing uses it: " + base + " is no https address")
		}
		why := placeholderWhy(secret.Secret)
		b.overrides[secret.Name] = launch.Override{Value: secret.placeholder, Why: why, Public: true}
		if slices.ContainsFunc(g.plan.Secrets, func(s plan.Secret) bool { return s.Variable == secret.Name }) {
			entry := plan.Env{Name: secret.Name, From: plan.FromMade, Why: why}
			b.made = append(b.made, launch.Variable{Env: entry, Value: secret.placeholder})
		}
		if len(secret.Hosts) > 0 {
			b.outside = append(b.outside, launch.Outside{Name: secret.Name, Hosts: secret.Hosts, Why: secret.why})
		}
	}
	b.hideCopies(g)
	if l := g.Instance.Login; l.Outside || l.Made {
		b.outside = append(b.outside,
			launch.Outside{Name: broker.ClaudeLogin, Hosts: broker.ClaudeHosts, Why: "agent claude"})
	}
}

// hideCopies puts placeholders into variables that hold the same secret under
// another name, as GITHUB_TOKEN beside GH_TOKEN.
func (b *brokeredPart) hideCopies(g ground) {
	for _, e := range entering(g) {
		value := g.Facts.Env.Value(e.Name, "")
		if _, judged := b.overrides[e.Name]; judged {
			continue
		}
		for _, secret := range g.secrets.list {
			if broker.CheckValue(secret.Value) != nil || !strings.Contains(value, secret.Value) {
				continue
			}
			value = strings.ReplaceAll(value, secret.Value, secret.placeholder)
			b.overrides[e.Name] = launch.Override{Value: value, Why: placeholderWhy(secret.Secret), Public: true}
			b.note(e.Name + " holds the same secret as " + secret.Name + ", and enters with its placeholder")
		}
	}
}

// drop keeps out what would be of no use.
func (b *brokeredPart) drop(g ground) {
	for _, e := range entering(g) {
		_, known := usualOf(e)
		if (known || gitRule(g, e.Name) != "") && g.Facts.Env.Value(e.Name, "") != "" {
			b.overrides[e.Name] = launch.Override{Drop: true, Why: e.Why}
			b.note(e.Name + " does not enter: there is no network to use it")
		}
	}
}

// hint says which variables that enter as they are could stay outside.
func (b *brokeredPart) hint(g ground) {
	for _, e := range entering(g) {
		_, outside := b.overrides[e.Name]
		if hosts := known[e.Name]; hosts != "" && !outside && g.Facts.Env.Value(e.Name, "") != "" {
			b.note(e.Name + " enters as it is; `secrets: [{env: " + e.Name + ", hosts: [" + hosts + "]}]` keeps it outside")
		}
	}
	for _, named := range g.plan.Secrets {
		switch {
		case !g.secrets.used:
			b.note(named.Variable + " does not enter: in tier " + g.plan.Network.Tier + " nothing leads to a broker")
		case g.secrets.placeholder(named.Variable) == "":
			b.note(named.Variable + " is not set: there is no placeholder of it inside")
		}
	}
}

// brokerRule is the rule by which the broker's things enter.
const brokerRule = "broker"

func placeholderWhy(s broker.Secret) string {
	if len(s.Hosts) == 0 {
		return "a placeholder, for no host"
	}
	return "a placeholder, for " + strings.Join(s.Hosts, ", ")
}

func readBundle(name string) ([]byte, error) {
	if name == "" {
		return nil, nil
	}
	return os.ReadFile(name)
}

// set sets a variable by which programs find the broker.
func (b *brokeredPart) set(name, value string) {
	entry := plan.Env{Name: name, From: plan.FromMade, Why: brokerRule}
	b.made = append(b.made, launch.Variable{Env: entry, Value: value})
}

// setProxy sets the variables by which programs find the broker's proxy.
func (b *brokeredPart) setProxy(port int, names []string) {
	user := url.UserPassword(broker.ProxyUser, b.hello.Password)
	proxy := (&url.URL{Scheme: "http", User: user, Host: "127.0.0.1:" + strconv.Itoa(port)}).String()
	direct := notFor("localhost,127.0.0.1,::1,"+launch.Hostname+","+b.hello.Proxies.No, names)
	for name, value := range map[string]string{
		"HTTPS_PROXY": proxy, "HTTP_PROXY": proxy, "NO_PROXY": strings.Join(direct, ","),
	} {
		b.set(name, value)
		b.set(strings.ToLower(name), value)
	}
}

// notFor are the entries of a NO_PROXY that keep none of these names from the broker.
func notFor(list string, names []string) []string {
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

// tiersWithBroker are those whose connections can be led to it: by a proxy, or by the sandbox's own network.
var tiersWithBroker = []string{proxied, "inet", "allow"}

const proxied = "full"

// usualSecret is how an agent sends what a variable holds. base is the variable that
// names another host for it.
type usualSecret struct {
	broker.Secret
	base string
}

// usual are the variables that hold a secret of an agent's. The later ones are those
// of agents beside Claude Code, by the rule of their agent alone: under another they
// enter as they are.
var usual = map[string]usualSecret{
	apiKey: {broker.Secret{
		Hosts: broker.ClaudeHosts[:1], Forms: []broker.Form{broker.Header, broker.Bearer},
		Headers: []string{"X-Api-Key"}, Paths: broker.ClaudePaths,
	}, claudeBase},
	"ANTHROPIC_AUTH_TOKEN": {broker.Secret{
		Hosts: broker.ClaudeHosts[:1], Forms: []broker.Form{broker.Bearer}, Paths: broker.ClaudePaths,
	}, claudeBase},
	"CLAUDE_CODE_OAUTH_TOKEN": {broker.Secret{
		Hosts: broker.ClaudeHosts, Forms: []broker.Form{broker.Bearer}, Paths: broker.ClaudePaths,
	}, claudeBase},
	"CODEX_API_KEY": openAI, "OPENAI_API_KEY": openAI, "GEMINI_API_KEY": gemini, "GOOGLE_API_KEY": gemini,
}

const claudeBase = "ANTHROPIC_BASE_URL"

var (
	openAI = usualSecret{broker.Secret{
		Hosts: []string{"api.openai.com"}, Forms: []broker.Form{broker.Bearer},
	}, "OPENAI_BASE_URL"}
	gemini = usualSecret{broker.Secret{
		Hosts: []string{"aiplatform.googleapis.com", "generativelanguage.googleapis.com"},
		Forms: []broker.Form{broker.Header, broker.Bearer}, Headers: []string{"X-Goog-Api-Key"},
	}, "GOOGLE_GEMINI_BASE_URL"}
)

// usualOf is how an agent sends what a variable holds; false: it is not known, or
// enters by a rule that has it enter as it is.
func usualOf(e plan.Env) (usualSecret, bool) {
	secret, known := usual[e.Name]
	return secret, known && (secret.base == claudeBase || e.Why == plan.Base)
}

// namedSecret is a secret with the rule that names it.
type namedSecret struct {
	broker.Secret
	why         string
	placeholder string // that stands for it inside
}

// listSecrets lists the secrets that stay outside by a plan: Claude Code's own,
// those of the profile, and the tokens that git logs in with. One that this host
// does not have is left out.
func listSecrets(g ground) ([]namedSecret, error) {
	var list []namedSecret
	add := func(secret broker.Secret, why string) {
		at := slices.IndexFunc(list, func(n namedSecret) bool { return n.Name == secret.Name })
		if at < 0 {
			list = append(list, namedSecret{Secret: secret, why: why})
			return
		}
		list[at].Hosts = merged(list[at].Hosts, secret.Hosts)
		list[at].Forms = merged(list[at].Forms, secret.Forms)
	}
	for _, e := range entering(g) {
		secret, known := usualOf(e)
		if value := g.Facts.Env.Value(e.Name, ""); known && value != "" {
			secret.Name, secret.Value = e.Name, value
			add(secretFor(secret.Secret, insideValue(g, secret.base)), e.Why)
		}
	}
	for _, named := range g.plan.Secrets {
		value, err := secretValue(g.call, named)
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
		add(secret, named.Why)
	}
	for _, host := range g.plan.Git.Hosts {
		value := g.Facts.Env.Value(host.Variable, "")
		named := slices.ContainsFunc(g.plan.Secrets, func(n plan.Secret) bool { return n.Variable == host.Variable })
		hosts := []string{host.Host}
		if host.Host == "github.com" { // its tokens are for these as well
			hosts = []string{"api.github.com", "github.com", "uploads.github.com"}
		}
		if why := gitRule(g, host.Variable); value != "" && (why != "" || named) {
			forms := []broker.Form{broker.Basic, broker.Bearer}
			add(broker.Secret{Name: host.Variable, Value: value, Hosts: hosts, Forms: forms}, why)
		}
	}
	return list, nil
}

func merged[T ~string](a, b []T) []T {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b))))
}

// gitRule is the rule by which a variable enters for git alone; empty where it enters by another, too.
func gitRule(g ground, variable string) string {
	for _, e := range entering(g) {
		if e.Name == variable && strings.HasSuffix(e.Why, plan.ForGit) {
			return e.Why
		}
	}
	return ""
}

// secretValue reads a secret of the profile; empty: this host has none.
func secretValue(c call, named plan.Secret) (value string, err error) {
	from := named.Variable
	if named.File == "" {
		if value = c.Facts.Env.Value(from, ""); value == "" {
			return "", nil
		}
	} else {
		const most = 64 << 10
		from = c.absolute(named.File)
		content, err := smallfile.Read(from, most)
		if err != nil {
			return "", diag.Wrap("read the secret "+from+" ("+named.Why+")", err,
				"make it, or take the entry out of `secrets`")
		}
		value = strings.TrimSpace(string(content))
	}
	if err := broker.CheckValue(value); err != nil {
		op := "use the secret " + from + " (" + named.Why + ")"
		return "", &diag.Error{Op: op, Err: err, Remedy: "put the token there, and nothing else"}
	}
	return value, nil
}

// judgeSecretFiles refuses a secret that stays outside and whose file is visible
// inside, in the project or by a mount.
func judgeSecretFiles(g ground, mounts []launch.Mount) error {
	if !g.secrets.used {
		return nil
	}
	for _, named := range g.plan.Secrets {
		if named.File == "" {
			continue
		}
		file, missing := beneath.Canonical(g.absolute(named.File))
		if missing != nil {
			continue // it was read a moment ago
		}
		if m := visibleBy(mounts, file); m != nil {
			return diag.Errorf("keep the secret "+file+" outside ("+named.Why+")",
				"move it elsewhere, or hide it by `hide`", "the agent can read it: %s is mounted (%s)", m.Source, m.Why)
		}
	}
	return nil
}

// visibleBy is the mount by which a file of the host is visible inside; nil: it is not.
func visibleBy(mounts []launch.Mount, file string) *launch.Mount {
	for i, m := range mounts {
		rest, below := strings.CutPrefix(file+"/", strings.TrimSuffix(m.Source, "/")+"/")
		if !below || m.Kind != plan.Bind && m.Kind != plan.ROBind {
			continue
		}
		inside, top := m.Destination+"/"+rest, &mounts[i]
		for k, over := range mounts {
			if len(over.Destination) >= len(top.Destination) && strings.HasPrefix(inside, over.Destination+"/") {
				top = &mounts[k]
			}
		}
		if top == &mounts[i] {
			return top
		}
	}
	return nil
}

// secretFor makes a secret one of another host than its usual ones, where the user
// has named one. One that is reached without TLS is no host for a secret.
func secretFor(secret broker.Secret, base string) broker.Secret {
	if base == "" {
		return secret
	}
	secret.Hosts, secret.Paths = nil, nil
	gateway, err := url.Parse(base)
	if err != nil || gateway.Scheme != "https" {
		return secret
	}
	if target, err := broker.ParseTarget(strings.ToLower(gateway.Host)); err == nil {
		secret.Hosts = []string{target.String()}
	}
	return secret
}

// entering are the host's variables that a plan or the caller lets in.
func entering(g ground) []plan.Env {
	var list []plan.Env
	for _, e := range g.plan.Env {
		if e.From == plan.FromHost {
			list = append(list, e)
		}
	}
	for _, name := range extraEnv(g.Facts.Env) {
		list = append(list, plan.Env{Name: name, Why: "CLAUDEBOX_EXTRA_ENV"})
	}
	return list
}

// known are the hosts that usual tokens are for.
var known = map[string]string{
	"GH_TOKEN": "github.com, api.github.com", "GITHUB_TOKEN": "github.com, api.github.com",
	"GITLAB_TOKEN":   "gitlab.com",
	"OPENAI_API_KEY": "api.openai.com", "OPENROUTER_API_KEY": "openrouter.ai", "MISTRAL_API_KEY": "api.mistral.ai",
	"GROQ_API_KEY": "api.groq.com", "HF_TOKEN": "huggingface.co", "NPM_TOKEN": "registry.npmjs.org",
}
