package session

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"claudebox/internal/agent/login"
	"claudebox/internal/agent/state"
	"claudebox/internal/diag"
	"claudebox/internal/linux/aside"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/plan"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/secret/broker"
)

// secrets are what the agent uses and never holds: how the broker that swaps
// them is made, and what runs of it. The zero value has none.
type secrets struct {
	call
	used  bool // there is a broker
	hello broker.Hello
	// Of the secrets in hello, in that order.
	placeholders []string
	rules        []string
	listener     *os.File        // of its proxy; nil: not taken
	process      *broker.Process // nil: none runs
	within       *within         // the broker in the sandbox's own network; nil: none
	refused      refusals
}

// refusals are what a broker refused.
type refusals struct {
	mu   sync.Mutex
	list []refusedUse
}

// refusedUse is what the broker refused, and how often.
type refusedUse struct {
	broker.Refusal
	times int
}

// find finds those that the agent is to use by a plan. In a tier without
// a broker there are none. root is what the instance is kept for.
func (n *secrets) find(p plan.Plan, root string) error {
	if !slices.Contains(tiersWithBroker, p.Network.Tier) {
		return nil
	}
	list, err := n.listSecrets(p)
	if err != nil || len(list) == 0 && p.Agent.Name != "claude" {
		return err
	}
	n.used = true
	n.hello = broker.Hello{Password: "PASSWORD", Proxies: n.proxies(p)} // as it is shown
	if !n.why.Look {
		n.hello.Password = rand.Text()
	}
	n.hello.Config.Key = n.placeholderKey(p, root)
	for _, named := range list {
		n.use(named)
	}
	return nil
}

// placeholderKey is the key of the instance, which its sessions share: what one
// of them writes into the agent's files the others read. An instance that is
// still to be made gets a new one.
func (c call) placeholderKey(p plan.Plan, root string) broker.Key {
	dir, err := state.Dir(c.folders.Home, state.Kind(p.State), root)
	if real, missing := beneath.Canonical(dir); err == nil && missing == nil {
		if key, there := login.ReadKey(real); there {
			return key
		}
	}
	if c.why.Look {
		return make(broker.Key, len(broker.NewKey())) // it makes what is shown, and nothing that is good
	}
	return broker.NewKey()
}

// use adds a secret that a rule lets the agent use.
func (n *secrets) use(secret namedSecret) {
	n.rules = append(n.rules, secret.why)
	config := &n.hello.Config
	config.Secrets = append(config.Secrets, secret.Secret)
	n.placeholders = append(n.placeholders, config.Key.Lasting(secret.Name, secret.Value))
}

// placeholder is what stands for a secret inside; empty: there is none of that
// name.
func (n *secrets) placeholder(name string) string {
	for i, secret := range n.hello.Config.Secrets {
		if secret.Name == name {
			return n.placeholders[i]
		}
	}
	return ""
}

// insideValue is what a variable would be inside.
func (c call) insideValue(p plan.Plan, name string) string {
	for _, e := range p.Env {
		if e.Name == name && e.From != plan.FromHost {
			return e.Value
		}
	}
	for _, e := range c.entering(p) {
		if e.Name == name {
			return c.Facts.Env.Value(name, "")
		}
	}
	return ""
}

// proxies are those by which the sandbox would have left, else those of this
// host.
func (c call) proxies(p plan.Plan) broker.Proxies {
	find := func(name string) string {
		for _, name := range []string{name, strings.ToLower(name)} {
			if value := c.insideValue(p, name); value != "" {
				return value
			}
		}
		return c.Facts.Env.Value(name, c.Facts.Env.Value(strings.ToLower(name), ""))
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

// addSecrets adds the secrets, and lends them to whoever serves the sandbox's
// network, if anybody does.
func (s *Session) addSecrets(h *launch.Host, p plan.Plan) error {
	login := s.Instance.Login
	err := s.secrets.add(h, p, login.Outside || login.Made)
	if err == nil && s.secrets.used && p.Network.Tier != proxied {
		s.network.borrowed, err = s.secrets.lend(secretKeeper{&s.Instance, &s.secrets.refused})
	}
	return err
}

// add puts placeholders in the place of secrets, and leads the sandbox to the
// broker. login says that the agent's is among them.
func (n *secrets) add(h *launch.Host, p plan.Plan, login bool) error {
	if p.Network.Tier == "none" {
		n.dropSecrets(h, p)
	}
	defer n.hint(h, p)
	if !n.used {
		return nil
	}
	config := &n.hello.Config
	n.addPlaceholders(h, p)
	if login {
		h.Outside = append(h.Outside,
			launch.Outside{Name: broker.ClaudeLogin, Hosts: broker.ClaudeHosts, Why: "agent claude"})
	}
	if p.Agent.Name == "claude" {
		config.Login = &broker.Login{} // what is made inside stays outside, too
	}
	targets, err := config.Targets()
	if err != nil {
		return &diag.Error{Op: "broker the secrets", Err: err, Remedy: "write their hosts as names, in lower case"}
	}
	port := 0
	if !n.why.Look {
		if config.Authority, err = broker.NewAuthority(broker.Names(targets), time.Now()); err != nil {
			return &diag.Error{Op: "make the certificates of this launch", Err: err}
		}
	}
	if !n.why.Look && p.Network.Tier == proxied {
		if n.listener, port, err = broker.Listen(); err != nil {
			return &diag.Error{Op: "take a port for the broker", Err: err}
		}
	}
	if config.Roots, err = readBundle(h.Etc.Certificates); err != nil {
		return &diag.Error{Op: "read the certificates of this host", Err: diag.Cause(err)}
	}
	h.Bundle = slices.Concat(bytes.TrimRight(config.Roots, "\n"), []byte("\n"), config.Authority.Certificate)
	h.Mounts = append(h.Mounts, launch.Mount{
		Kind: plan.File, Source: "authority", Destination: ownAuthority, Mode: "0444",
		Data: config.Authority.Certificate, Why: brokerRule,
	})
	addVariables(h)
	if p.Network.Tier == proxied {
		n.addProxy(h, port, broker.Names(targets))
	}
	return nil
}

// addPlaceholders puts into the variables inside what stands there for secrets.
func (n *secrets) addPlaceholders(h *launch.Host, p plan.Plan) {
	for i, secret := range n.hello.Config.Secrets {
		if len(secret.Hosts) == 0 {
			h.Warnings = append(h.Warnings,
				secret.Name+" does not enter, and nothing uses it: ANTHROPIC_BASE_URL is no https address")
		}
		value, why := n.placeholders[i], placeholderWhy(secret)
		h.Overrides[secret.Name] = launch.Override{Value: value, Why: why, Public: true}
		if slices.ContainsFunc(p.Secrets, func(s plan.Secret) bool { return s.Variable == secret.Name }) {
			entry := plan.Env{Name: secret.Name, From: plan.FromMade, Why: why}
			h.Made = append(h.Made, launch.Variable{Env: entry, Value: value})
		}
		if len(secret.Hosts) > 0 {
			used := launch.Outside{Name: secret.Name, Hosts: secret.Hosts, Why: n.rules[i]}
			h.Outside = append(h.Outside, used)
		}
	}
	n.hideCopies(h, p)
}

// hideCopies puts placeholders into variables that hold the same secret under
// another name, as GITHUB_TOKEN beside GH_TOKEN.
func (n *secrets) hideCopies(h *launch.Host, p plan.Plan) {
	for _, e := range n.entering(p) {
		value := n.Facts.Env.Value(e.Name, "")
		if _, judged := h.Overrides[e.Name]; judged {
			continue
		}
		for i, secret := range n.hello.Config.Secrets {
			if broker.CheckValue(secret.Value) != nil || !strings.Contains(value, secret.Value) {
				continue
			}
			value = strings.ReplaceAll(value, secret.Value, n.placeholders[i])
			h.Overrides[e.Name] = launch.Override{Value: value, Why: placeholderWhy(secret), Public: true}
			h.Notes = append(h.Notes,
				e.Name+" holds the same secret as "+secret.Name+", and enters with its placeholder")
		}
	}
}

// lend gives the secrets to whoever serves the sandbox's network. The login
// comes later.
func (n *secrets) lend(keeper broker.Keeper) (borrowed, error) {
	config := n.hello.Config
	if config.Login != nil {
		config.Login = &broker.Login{Key: config.Key, Pending: true}
	}
	config.Roots = nil // long, so they go by a way of their own
	text, err := json.Marshal(config)
	n.within = &within{}
	return borrowed{text, n.hello.Config.Roots, func(line *os.File) { n.within.attach(line, keeper) }}, err
}

// within is the broker in the process that serves the sandbox's network, or in
// the one that came after it.
type within struct {
	mu            sync.Mutex
	line          *broker.Line
	told          bool // of the login
	access, scope string
}

func (w *within) attach(line *os.File, keeper broker.Keeper) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.line != nil {
		w.line.Close()
	}
	w.line = broker.NewLine(line, keeper, func() {})
	if w.told {
		w.line.SetLogin(w.access, w.scope)
	}
}

// SetLogin gives the login to the broker, and to the next one, too.
func (w *within) SetLogin(access, scope string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told, w.access, w.scope = true, access, scope
	if w.line != nil {
		w.line.SetLogin(access, scope)
	}
}

// dropSecrets keeps out what would be of no use.
func (c call) dropSecrets(h *launch.Host, p plan.Plan) {
	for _, e := range c.entering(p) {
		_, known := usual[e.Name]
		if (known || c.gitRule(p, e.Name) != "") && c.Facts.Env.Value(e.Name, "") != "" {
			h.Overrides[e.Name] = launch.Override{Drop: true, Why: e.Why}
			h.Notes = append(h.Notes, e.Name+" does not enter: there is no network to use it")
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

func madeForBroker(h *launch.Host, name, value string) {
	entry := plan.Env{Name: name, From: plan.FromMade, Why: brokerRule}
	h.Made = append(h.Made, launch.Variable{Env: entry, Value: value})
}

// addVariables sets the variables by which programs find the broker's authority.
func addVariables(h *launch.Host) {
	for _, name := range bundleVariables {
		madeForBroker(h, name, plan.CertificateBundle)
	}
	for name, value := range extraVariables {
		madeForBroker(h, name, value)
	}
}

// addProxy sets the variables by which programs find the broker's proxy.
func (n *secrets) addProxy(h *launch.Host, port int, names []string) {
	user := url.UserPassword(broker.ProxyUser, n.hello.Password)
	proxy := (&url.URL{Scheme: "http", User: user, Host: "127.0.0.1:" + strconv.Itoa(port)}).String()
	direct := strings.Join(notFor("localhost,127.0.0.1,::1,"+launch.Hostname+","+n.hello.Proxies.No, names),
		",")
	for name, value := range map[string]string{"HTTPS_PROXY": proxy, "HTTP_PROXY": proxy, "NO_PROXY": direct} {
		madeForBroker(h, name, value)
		madeForBroker(h, strings.ToLower(name), value)
	}
}

// notFor are the entries of a NO_PROXY that keep none of these names from the
// broker.
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

// postTokens asks the token endpoint, through claudebox's helper.
func (n *secrets) postTokens(ctx context.Context, body []byte) (status int, answer []byte, err error) {
	program, err := ownProgram(helperName)
	if err != nil {
		return 0, nil, err
	}
	var said broker.Posted
	err = aside.Ask(ctx, program, broker.PostWord, broker.Post{
		Address: login.TokenEndpoint, Agent: "claudebox/" + n.caller.Version, Body: body,
		Roots: n.hello.Config.Roots, Proxies: n.hello.Proxies,
	}, &said)
	return said.Status, said.Body, err
}

// open starts the broker.
func (n *secrets) open(keeper secretKeeper) (err error) {
	if !n.used {
		return nil
	}
	var now broker.Login
	if guard := keeper.instance.Guard(); guard != nil {
		now.Key = guard.Key()
		now.Access, now.Scope, now.Pending = guard.Current()
		n.hello.Config.Login = &now
	}
	if n.within != nil {
		return n.tellNetwork(now)
	}
	listener := n.listener
	n.listener = nil
	program, err := ownProgram(helperName)
	if err == nil {
		n.process, err = broker.Start(program, listener, n.hello, keeper)
	}
	if err != nil {
		return &diag.Error{Op: "keep your secrets outside", Err: err}
	}
	return nil
}

// tellNetwork gives the login to the broker in the sandbox's network, unless it
// is to be renewed first.
func (n *secrets) tellNetwork(now broker.Login) error {
	if now.Key != nil && !slices.Equal(now.Key, n.hello.Config.Key) {
		return diag.Errorf("keep your secrets outside", "start again",
			"another session has just made the home of this project's agent")
	}
	if !now.Pending {
		n.within.SetLogin(now.Access, now.Scope)
	}
	return nil
}

// secretKeeper works for the broker here.
type secretKeeper struct {
	instance *state.Instance
	refused  *refusals
}

var errNoLogin = errors.New("no login is kept here")

// Renew renews the login.
func (k secretKeeper) Renew(ctx context.Context, refused string) error {
	if guard := k.instance.Guard(); guard != nil {
		return guard.Renew(ctx, refused)
	}
	return errNoLogin
}

// Keep keeps a login that was made inside.
func (k secretKeeper) Keep(made broker.Grant) error {
	if guard := k.instance.Guard(); guard != nil {
		return guard.Keep(made)
	}
	return errNoLogin
}

// Forget gives such a login up.
func (k secretKeeper) Forget() {
	if guard := k.instance.Guard(); guard != nil {
		guard.Forget()
	}
}

// Report notes what was refused.
func (k secretKeeper) Report(r broker.Refusal) { k.refused.note(r) }

func (n *refusals) note(r broker.Refusal) {
	const most = 50
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range n.list {
		if same := &n.list[i]; same.Secret == r.Secret && same.Host == r.Host && same.Why == r.Why {
			same.times++
			return
		}
	}
	if len(n.list) < most {
		n.list = append(n.list, refusedUse{r, 1})
	}
}

// follow keeps the broker up to date with the login, once the sandbox runs.
func (n *secrets) follow(guard *login.Guard) {
	switch {
	case guard == nil:
	case n.process != nil:
		guard.Begin(n.process.SetLogin)
	case n.within != nil:
		guard.Begin(n.within.SetLogin)
	}
}

// end ends the broker, and says what was refused.
func (n *secrets) end() {
	n.close()
	if n.options.NoReport {
		return
	}
	n.refused.mu.Lock()
	defer n.refused.mu.Unlock()
	for _, r := range n.refused.list {
		diag.Note(n.caller.Stderr, r.String())
	}
}

// close ends what there is of a broker.
func (n *secrets) close() {
	if n.listener != nil {
		n.listener.Close()
		n.listener = nil
	}
	if n.process != nil {
		n.process.Close()
		n.process = nil
	}
}

// String says it to a person.
func (r refusedUse) String() string {
	what := "a request"
	if r.Secret != "" {
		what = "the placeholder of " + r.Secret
	}
	text := what + " was sent to " + r.Host
	if r.Path != "" {
		text += r.Path
	}
	text += ", " + r.Why + ": stopped"
	if r.times > 1 {
		text += fmt.Sprintf(" (%d times)", r.times)
	}
	return text
}
