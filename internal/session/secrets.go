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

// findSecrets finds those that the agent is to use by a plan. In a tier without
// a broker there are none.
func (s *Session) findSecrets(p plan.Plan, why Purpose) error {
	if !slices.Contains(tiersWithBroker, p.Network.Tier) {
		return nil
	}
	list, err := s.listSecrets(p)
	if err != nil || len(list) == 0 && p.Agent.Name != "claude" {
		return err
	}
	s.secrets.used = true
	s.secrets.hello = broker.Hello{Password: "PASSWORD", Proxies: s.proxies(p)} // as it is shown
	if !why.Look {
		s.secrets.hello.Password = rand.Text()
	}
	s.secrets.hello.Config.Key = s.placeholderKey(p, why)
	for _, named := range list {
		s.secrets.add(named.Secret, named.why)
	}
	return nil
}

// placeholderKey is the key of the instance, which its sessions share: what one
// of them writes into the agent's files the others read. An instance that is
// still to be made gets a new one.
func (s *Session) placeholderKey(p plan.Plan, why Purpose) broker.Key {
	dir, err := state.Dir(s.folders.Home, state.Kind(p.State), s.project.Root)
	if real, missing := beneath.Canonical(dir); err == nil && missing == nil {
		if key, there := login.ReadKey(real); there {
			return key
		}
	}
	if why.Look {
		return make(broker.Key, len(broker.NewKey())) // it makes what is shown, and nothing that is good
	}
	return broker.NewKey()
}

// add adds a secret that a rule lets the agent use.
func (n *secrets) add(secret broker.Secret, rule string) {
	n.rules = append(n.rules, rule)
	config := &n.hello.Config
	config.Secrets = append(config.Secrets, secret)
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

// addSecrets puts placeholders in the place of secrets, and leads the sandbox to
// the broker.
func (s *Session) addSecrets(h *launch.Host, p plan.Plan, _ Options, why Purpose) error {
	if p.Network.Tier == "none" {
		s.dropSecrets(h, p)
	}
	defer s.hintSecrets(h, p)
	if !s.secrets.used {
		return nil
	}
	config := &s.secrets.hello.Config
	s.addPlaceholders(h, p)
	if l := s.Instance.Login; l.Outside || l.Made {
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
	if !why.Look {
		if config.Authority, err = broker.NewAuthority(broker.Names(targets), time.Now()); err != nil {
			return &diag.Error{Op: "make the certificates of this launch", Err: err}
		}
	}
	if !why.Look && p.Network.Tier == proxied {
		if s.secrets.listener, port, err = broker.Listen(); err != nil {
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
		s.addProxy(h, port, broker.Names(targets))
		return nil
	}
	return s.lendToNetwork()
}

// addPlaceholders puts into the variables inside what stands there for secrets.
func (s *Session) addPlaceholders(h *launch.Host, p plan.Plan) {
	for i, secret := range s.secrets.hello.Config.Secrets {
		if len(secret.Hosts) == 0 {
			h.Warnings = append(h.Warnings,
				secret.Name+" does not enter, and nothing uses it: ANTHROPIC_BASE_URL is no https address")
		}
		value, why := s.secrets.placeholders[i], placeholderWhy(secret)
		h.Overrides[secret.Name] = launch.Override{Value: value, Why: why, Public: true}
		if slices.ContainsFunc(p.Secrets, func(n plan.Secret) bool { return n.Variable == secret.Name }) {
			entry := plan.Env{Name: secret.Name, From: plan.FromMade, Why: why}
			h.Made = append(h.Made, launch.Variable{Env: entry, Value: value})
		}
		if len(secret.Hosts) > 0 {
			used := launch.Outside{Name: secret.Name, Hosts: secret.Hosts, Why: s.secrets.rules[i]}
			h.Outside = append(h.Outside, used)
		}
	}
	s.hideCopies(h, p)
}

// hideCopies puts placeholders into variables that hold the same secret under
// another name, as GITHUB_TOKEN beside GH_TOKEN.
func (s *Session) hideCopies(h *launch.Host, p plan.Plan) {
	for _, e := range s.entering(p) {
		value := s.Facts.Env.Value(e.Name, "")
		if _, judged := h.Overrides[e.Name]; judged {
			continue
		}
		for i, secret := range s.secrets.hello.Config.Secrets {
			if broker.CheckValue(secret.Value) != nil || !strings.Contains(value, secret.Value) {
				continue
			}
			value = strings.ReplaceAll(value, secret.Value, s.secrets.placeholders[i])
			h.Overrides[e.Name] = launch.Override{Value: value, Why: placeholderWhy(secret), Public: true}
			h.Notes = append(h.Notes,
				e.Name+" holds the same secret as "+secret.Name+", and enters with its placeholder")
		}
	}
}

// lendToNetwork gives the secrets to whoever serves the sandbox's network. The
// login comes later.
func (s *Session) lendToNetwork() error {
	config := s.secrets.hello.Config
	if config.Login != nil {
		config.Login = &broker.Login{Key: config.Key, Pending: true}
	}
	config.Roots = nil // long, so they go by a way of their own
	text, err := json.Marshal(config)
	if err != nil {
		return err
	}
	s.secrets.within = &within{}
	s.network.broker, s.network.roots = text, s.secrets.hello.Config.Roots
	s.network.brokered = func(line *os.File) { s.secrets.within.attach(line, secretKeeper{s}) }
	return nil
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
func (s *Session) addProxy(h *launch.Host, port int, names []string) {
	user := url.UserPassword(broker.ProxyUser, s.secrets.hello.Password)
	proxy := (&url.URL{Scheme: "http", User: user, Host: "127.0.0.1:" + strconv.Itoa(port)}).String()
	direct := strings.Join(notFor("localhost,127.0.0.1,::1,"+launch.Hostname+","+s.secrets.hello.Proxies.No, names),
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
func (s *Session) postTokens(ctx context.Context, body []byte) (status int, answer []byte, err error) {
	program, err := ownProgram(helperName)
	if err != nil {
		return 0, nil, err
	}
	var said broker.Posted
	err = aside.Ask(ctx, program, broker.PostWord, broker.Post{
		Address: login.TokenEndpoint, Agent: "claudebox/" + s.caller.Version, Body: body,
		Roots: s.secrets.hello.Config.Roots, Proxies: s.secrets.hello.Proxies,
	}, &said)
	return said.Status, said.Body, err
}

// openSecrets starts the broker.
func (s *Session) openSecrets() (err error) {
	if !s.secrets.used {
		return nil
	}
	var now broker.Login
	if guard := s.Instance.Guard(); guard != nil {
		now.Key = guard.Key()
		now.Access, now.Scope, now.Pending = guard.Current()
		s.secrets.hello.Config.Login = &now
	}
	if s.secrets.within != nil {
		return s.tellNetwork(now)
	}
	listener := s.secrets.listener
	s.secrets.listener = nil
	program, err := ownProgram(helperName)
	if err == nil {
		s.secrets.process, err = broker.Start(program, listener, s.secrets.hello, secretKeeper{s})
	}
	if err != nil {
		return &diag.Error{Op: "keep your secrets outside", Err: err}
	}
	return nil
}

// tellNetwork gives the login to the broker in the sandbox's network, unless it
// is to be renewed first.
func (s *Session) tellNetwork(now broker.Login) error {
	if now.Key != nil && !slices.Equal(now.Key, s.secrets.hello.Config.Key) {
		return diag.Errorf("keep your secrets outside", "start again",
			"another session has just made the home of this project's agent")
	}
	if !now.Pending {
		s.secrets.within.SetLogin(now.Access, now.Scope)
	}
	return nil
}

// secretKeeper works for the broker here.
type secretKeeper struct{ *Session }

var errNoLogin = errors.New("no login is kept here")

// Renew renews the login.
func (k secretKeeper) Renew(ctx context.Context, refused string) error {
	if guard := k.Instance.Guard(); guard != nil {
		return guard.Renew(ctx, refused)
	}
	return errNoLogin
}

// Keep keeps a login that was made inside.
func (k secretKeeper) Keep(made broker.Grant) error {
	if guard := k.Instance.Guard(); guard != nil {
		return guard.Keep(made)
	}
	return errNoLogin
}

// Forget gives such a login up.
func (k secretKeeper) Forget() {
	if guard := k.Instance.Guard(); guard != nil {
		guard.Forget()
	}
}

// Report notes what was refused.
func (k secretKeeper) Report(r broker.Refusal) { k.secrets.refused.note(r) }

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

// followSecrets keeps the broker up to date with the login, once the sandbox runs.
func (s *Session) followSecrets() {
	switch guard := s.Instance.Guard(); {
	case guard == nil:
	case s.secrets.process != nil:
		guard.Begin(s.secrets.process.SetLogin)
	case s.secrets.within != nil:
		guard.Begin(s.secrets.within.SetLogin)
	}
}

// endSecrets ends the broker, and says what was refused.
func (s *Session) endSecrets() {
	s.secrets.close()
	if s.report.silent {
		return
	}
	s.secrets.refused.mu.Lock()
	defer s.secrets.refused.mu.Unlock()
	for _, r := range s.secrets.refused.list {
		diag.Note(s.caller.Stderr, r.String())
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
