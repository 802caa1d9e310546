package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"claudebox/internal/agent/login"
	"claudebox/internal/agent/state"
	"claudebox/internal/diag"
	"claudebox/internal/secret/broker"
)

// brokering is the broker that swaps secrets while a session runs: a process of
// its own, or one in the sandbox's own network. The zero value is none.
type brokering struct {
	process *broker.Process
	within  *within
	refused refusals
}

// listen takes the port of the broker's proxy, for a launch that has one.
func listen(g ground) (listener *os.File, port int, err error) {
	if !g.secrets.used || g.why.Look || g.plan.Network.Tier != proxied {
		return nil, 0, nil
	}
	if listener, port, err = broker.Listen(); err != nil {
		err = &diag.Error{Op: "take a port for the broker", Err: err}
	}
	return listener, port, err
}

// lent is what the network gets of the secrets.
type lent struct {
	config json.RawMessage // [helper.Config.Broker]
	roots  []byte          // [helper.Config.Roots]
	attach func(*os.File)  // [helper.Settings.Broker]
}

// lend gives the secrets to whoever serves the sandbox's network, if anybody does. The login comes later.
func (b *brokering) lend(s *Session) (lent, error) {
	if !s.secrets.used || s.Launch.Tier == proxied {
		return lent{}, nil
	}
	config := s.parts.brokered.hello.Config
	if config.Login != nil {
		config.Login = &broker.Login{Key: config.Key, Pending: true}
	}
	roots := config.Roots
	config.Roots = nil // long, so they go by a way of their own
	text, err := json.Marshal(config)
	b.within = &within{}
	keeper := secretKeeper{&s.Instance, &b.refused}
	return lent{text, roots, func(line *os.File) { b.within.attach(line, keeper) }}, err
}

// start starts the broker, or tells the one in the network of the login.
func (b *brokering) start(s *Session) (err error) {
	const op = "keep your secrets outside"
	if !s.secrets.used {
		return nil
	}
	hello, now := s.parts.brokered.hello, broker.Login{}
	if guard := s.Instance.Guard(); guard != nil {
		now.Key = guard.Key()
		now.Access, now.Scope, now.Pending = guard.Current()
		hello.Config.Login = &now
	}
	if b.within != nil {
		if now.Key != nil && !slices.Equal(now.Key, hello.Config.Key) {
			return diag.Errorf(op, "start again", "another session has just made the home of this project's agent")
		}
		if !now.Pending { // it is to be renewed first
			b.within.SetLogin(now.Access, now.Scope)
		}
		return nil
	}
	listener := s.listener
	s.listener = nil
	program, err := ownProgram(helperName)
	if err == nil {
		b.process, err = broker.Start(program, listener, hello, secretKeeper{&s.Instance, &b.refused})
	}
	if err != nil {
		return &diag.Error{Op: op, Err: err}
	}
	return nil
}

// follow keeps the broker up to date with the login, once the sandbox runs.
func (b *brokering) follow(guard *login.Guard) {
	switch {
	case guard == nil:
	case b.process != nil:
		guard.Begin(b.process.SetLogin)
	case b.within != nil:
		guard.Begin(b.within.SetLogin)
	}
}

func (b *brokering) close() {
	if b.process != nil {
		b.process.Close()
		b.process = nil
	}
}

// postTokens asks the token endpoint, through claudebox's helper.
func postTokens(g ground) login.Post {
	return func(ctx context.Context, body []byte) (status int, answer []byte, err error) {
		roots, err := readBundle(g.etc.Certificates)
		if err != nil {
			return 0, nil, err
		}
		var said broker.Posted
		err = askHelper(ctx, broker.PostWord, broker.Post{
			Address: login.TokenEndpoint, Agent: "claudebox/" + g.caller.Version, Body: body,
			Roots: roots, Proxies: g.secrets.proxies,
		}, &said)
		return said.Status, said.Body, err
	}
}

// within is the broker in the process that serves the sandbox's network, or in the one that came after it.
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

// refusals are what a broker refused, and how often.
type refusals struct {
	mu    sync.Mutex
	list  []broker.Refusal // each once: the same secret, host and reason
	times []int
}

func (n *refusals) note(r broker.Refusal) {
	const most = 50
	n.mu.Lock()
	defer n.mu.Unlock()
	same := func(o broker.Refusal) bool { return o.Secret == r.Secret && o.Host == r.Host && o.Why == r.Why }
	if i := slices.IndexFunc(n.list, same); i >= 0 {
		n.times[i]++
	} else if len(n.list) < most {
		n.list, n.times = append(n.list, r), append(n.times, 1)
	}
}

// told are the lines for a person about what was refused.
func (n *refusals) told() (lines []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, r := range n.list {
		what := "a request"
		if r.Secret != "" {
			what = "the placeholder of " + r.Secret
		}
		text := what + " was sent to " + r.Host + r.Path + ", " + r.Why + ": stopped"
		if n.times[i] > 1 {
			text += fmt.Sprintf(" (%d times)", n.times[i])
		}
		lines = append(lines, text)
	}
	return lines
}
