package brokering

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"claudebox/internal/agent/login"
	"claudebox/internal/agent/state"
	"claudebox/internal/diag"
	"claudebox/internal/linux/aside"
	"claudebox/internal/linux/peer"
	"claudebox/internal/network/helper"
	"claudebox/internal/network/hostpattern"
	"claudebox/internal/profile"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/secret/broker"
	"claudebox/internal/session/live"
)

// Broker is what swaps secrets while a session runs: a process of its own in tier full, else a part of
// the network helper. The zero value has none.
type Broker struct {
	part     Part
	instance *state.Instance
	process  *broker.Process
	inHelper *inHelper
	Refused  Refusals
	events   *live.Events
}

// For makes the broker of a launch, whose agent has an instance. events gets each use and refusal. A gateway of this
// machine is told there, and in what was refused, by its own address.
func (b Part) For(instance *state.Instance, events *live.Events) *Broker {
	var words []string
	for name, address := range b.hello.Config.Gateways {
		words = append(words, name+":443", address, name, address)
	}
	if words != nil {
		events.Shown = strings.NewReplacer(words...)
	}
	return &Broker{part: b, instance: instance, events: events}
}

// Listen opens the port of the broker's proxy, in tier full. It returns nil and 0 if the launch has no such proxy.
func (s Secrets) Listen() (listener *os.File, port int, err error) {
	if !s.Used || s.Look || s.Plan.Network.Tier != profile.TierFull {
		return nil, 0, nil
	}
	if listener, port, err = broker.Listen(); err != nil {
		err = &diag.Error{Op: "take a port for the broker", Err: err}
	}
	return listener, port, err
}

// Settings returns what the network helper needs to swap secrets; empty if no helper serves the network, or no secrets
// are used. The login is not among it: [Broker.Start] gives it to the helper later.
func (b *Broker) Settings() (network helper.Settings, err error) {
	if !b.part.used || b.part.tier == profile.TierFull {
		return network, nil
	}
	config := b.part.hello.Config
	if config.Login != nil {
		config.Login = &broker.Login{Key: config.Key, Pending: true}
	}
	if b.part.tier == profile.TierAllow {
		for name := range config.Gateways {
			network.Config.Allow = append(network.Config.Allow, helper.Entry{Pattern: name})
		}
	}
	network.Config.Roots, config.Roots = config.Roots, nil // long, so they are sent separately
	network.Config.Broker, err = json.Marshal(config)
	b.inHelper = &inHelper{}
	keeper := secretKeeper{b.instance, &b.Refused, b.events}
	network.Broker = func(line *os.File) { b.inHelper.attach(line, keeper) }
	return network, err
}

var errOtherHome = errors.New("another session has just made the home of this project's agent")

// Start starts the broker's process, or gives the login to the broker in the network helper. It takes the
// listener of [Secrets.Listen]. [launch.ErrAgain] matches its error if the next try finds what another session has
// just made.
func (b *Broker) Start(listener *os.File) (err error) {
	const op = "keep your secrets outside"
	if !b.part.used {
		return nil
	}
	hello, now := b.part.hello, broker.Login{}
	if guard := b.instance.Guard(); guard != nil {
		now.Key = guard.Key()
		now.Access, now.Scope, now.Pending = guard.Current()
		hello.Config.Login = &now
	}
	if b.inHelper != nil {
		if now.Key != nil && !slices.Equal(now.Key, hello.Config.Key) {
			return diag.Wrap(op, launch.Again(errOtherHome), "start again")
		}
		if !now.Pending { // else it has to be renewed first
			b.inHelper.SetLogin(now.Access, now.Scope)
		}
		return nil
	}
	program, err := aside.Program(aside.HelperProgram)
	if err == nil {
		b.process, err = broker.Start(program, listener, hello, secretKeeper{b.instance, &b.Refused, b.events})
	}
	if err != nil {
		return &diag.Error{Op: op, Err: err}
	}
	return nil
}

// Follow keeps the broker up to date with the login, once the sandbox runs.
func (b *Broker) Follow(guard *login.Guard) {
	switch {
	case guard == nil:
	case b.process != nil:
		guard.Begin(b.process.SetLogin)
	case b.inHelper != nil:
		guard.Begin(b.inHelper.SetLogin)
	}
}

// Close ends the broker's process, if there is one.
func (b *Broker) Close() {
	if b.process != nil {
		b.process.Close()
	}
}

// AskTokens returns a function that posts to the token endpoint, through claudebox's helper.
func (s Secrets) AskTokens(version string) login.AskTokens {
	return func(ctx context.Context, body []byte) (status int, answer []byte, err error) {
		roots, err := s.roots()
		if err != nil {
			return 0, nil, err
		}
		var said broker.TokenAnswer
		err = aside.AskHelper(ctx, broker.TokensWord, broker.TokenRequest{
			Address: login.TokenEndpoint, Agent: "claudebox/" + version, Body: body,
			Roots: roots, Proxies: s.hello.Proxies,
		}, &said)
		return said.Status, said.Body, err
	}
}

// inHelper is the broker in the network helper. If that helper ends and another one is started, it is the broker in
// that one.
type inHelper struct {
	mu            sync.Mutex
	line          *broker.Line
	told          bool // SetLogin was called
	access, scope string
}

// attach uses line as the line to a broker from now on, and closes the one before.
func (w *inHelper) attach(line *os.File, keeper broker.Keeper) {
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

// SetLogin gives the login to the broker, and to each one that is attached later.
func (w *inHelper) SetLogin(access, scope string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told, w.access, w.scope = true, access, scope
	if w.line != nil {
		w.line.SetLogin(access, scope)
	}
}

// secretKeeper does for the broker what only this process can, as its [broker.Keeper].
type secretKeeper struct {
	instance *state.Instance
	*Refusals
	events *live.Events
}

// Used tells that a secret was used.
func (k secretKeeper) Used(u broker.Use) {
	k.events.Add(live.Event{Kind: live.Used, What: u.Secret, Why: u.Host})
}

// Report counts a refusal, and tells it.
func (k secretKeeper) Report(r broker.Refusal) {
	if _, err := broker.ParseTarget(r.Host); err != nil && r.Host != "" { // the agent's own words
		r.Host = hostpattern.Shown(r.Host)
	}
	r.Host = k.events.InWords(r.Host)
	k.Refusals.Report(r)
	k.events.Add(live.Event{Kind: live.Stopped, What: cmp.Or(r.Secret, "a request"), Why: r.Host + ": " + r.Why})
}

// Judge judges a connection by the processes of this machine, which the broker does not see.
func (k secretKeeper) Judge(_ context.Context, c broker.Connection) error {
	return peer.Judge(c.Local, c.Remote)
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

// Forget gives up a login that was made inside.
func (k secretKeeper) Forget() {
	if guard := k.instance.Guard(); guard != nil {
		guard.Forget()
	}
}

// Refusals are what a broker refused, and how often.
type Refusals struct {
	mu   sync.Mutex
	list []refusal // each once: the same secret, host and reason
	more int       // that are in no list
}

type refusal struct {
	broker.Refusal
	times int
	paths []string // different ones
}

// Report counts a refusal. It keeps at most 50 different ones.
func (n *Refusals) Report(r broker.Refusal) {
	const most = 50
	n.mu.Lock()
	defer n.mu.Unlock()
	same := func(o refusal) bool { return o.Secret == r.Secret && o.Host == r.Host && o.Why == r.Why }
	if i := slices.IndexFunc(n.list, same); i >= 0 {
		known := &n.list[i]
		if known.times++; len(known.paths) < broker.MostReported && !slices.Contains(known.paths, r.Path) {
			known.paths = append(known.paths, r.Path)
		}
	} else if len(n.list) < most {
		n.list = append(n.list, refusal{r, 1, []string{r.Path}})
	} else {
		n.more++
	}
}

// Count is how often something was refused.
func (n *Refusals) Count() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	total := n.more
	for _, r := range n.list {
		total += r.times
	}
	return total
}

// Told returns the lines for a person about what was refused.
func (n *Refusals) Told() (lines []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, r := range n.list {
		what := "a request"
		if r.Secret != "" {
			what = "the placeholder of " + r.Secret
		}
		text := what + " was sent to " + r.Host + diag.ASCII(r.Path) + ", " + r.Why + ": stopped"
		if r.Host == "" {
			text = r.Why
		}
		more := ""
		if r.times >= broker.MostReported {
			more = " or more"
		}
		if r.times > 1 {
			text += fmt.Sprintf(" (%d times%s", r.times, more)
			if paths := len(r.paths); paths > 1 {
				text += fmt.Sprintf(", at %d paths%s", paths, more)
			}
			text += ")"
		}
		lines = append(lines, text)
	}
	if n.more > 0 {
		lines = append(lines, fmt.Sprintf("%d requests or more were stopped besides, for other reasons", n.more))
	}
	return lines
}
