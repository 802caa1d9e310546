package broker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
)

// A broker's process and its parent exchange JSON messages over a socket, one after
// the other.

// word is a message to the broker. One field is set.
type word struct {
	Hello *Hello     `json:"hello,omitempty"` // the first message to a process that is only a broker
	Login *loginWord `json:"login,omitempty"`
	Done  *doneWord  `json:"done,omitempty"`
}

type loginWord struct {
	Access string `json:"access"`
	Scope  string `json:"scope"`
}

// doneWord is the answer to a question of the broker.
type doneWord struct {
	ID     int    `json:"id"`
	Failed bool   `json:"failed,omitempty"`
	Why    string `json:"why,omitempty"` // of [Keeper.Judge] alone: nothing else of the parent's is for the broker
}

// event is a message from the broker.
type event struct {
	Refusal *Refusal    `json:"refusal,omitempty"`
	Used    *Use        `json:"used,omitempty"`
	Forget  bool        `json:"forget,omitempty"`
	ID      int         `json:"id,omitempty"` // set for a question: the broker waits for the doneWord with this id
	Renew   string      `json:"renew,omitempty"`
	Keep    *Grant      `json:"keep,omitempty"`
	Judge   *Connection `json:"judge,omitempty"`
}

// Line is the parent's end of the socket.
type Line struct {
	conn io.ReadWriteCloser
	room chan struct{} // for questions that are being answered

	mu  sync.Mutex
	out *json.Encoder
}

// NewLine serves a broker's messages by calls of keeper. It calls ended when
// the broker is gone.
func NewLine(conn io.ReadWriteCloser, keeper Keeper, ended func()) *Line {
	const together = 32 // an agent can have any number asked
	l := &Line{conn: conn, room: make(chan struct{}, together), out: json.NewEncoder(conn)}
	go func() {
		defer ended()
		l.serve(keeper)
	}()
	return l
}

// SetLogin gives the broker a new access token for the login, which ends its waiting if the login was pending.
func (l *Line) SetLogin(access, scope string) { l.say(word{Login: &loginWord{access, scope}}) }

// Close closes the connection, which ends the broker.
func (l *Line) Close() error { return l.conn.Close() }

func (l *Line) say(w word) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.out.Encode(w) // serve notices when the broker is gone
}

func (l *Line) serve(keeper Keeper) {
	in := json.NewDecoder(l.conn)
	for {
		var e event
		if in.Decode(&e) != nil {
			return
		}
		switch {
		case e.Refusal != nil:
			keeper.Report(*e.Refusal)
		case e.Used != nil:
			keeper.Used(*e.Used)
		case e.Forget:
			keeper.Forget()
		case e.ID != 0:
			l.begin(keeper, e)
		}
	}
}

// begin answers a question in the background. A renewal beyond the room gets no answer, and fails by its own time: to
// answer here could wait for the broker, which may be waiting for us.
func (l *Line) begin(keeper Keeper, e event) {
	if e.Renew == "" {
		go l.answer(keeper, e)
		return
	}
	select {
	case l.room <- struct{}{}:
		go func() {
			defer func() { <-l.room }()
			l.answer(keeper, e)
		}()
	default:
	}
}

func (l *Line) answer(keeper Keeper, e event) {
	err := errors.New("bug: an empty question")
	switch {
	case e.Renew != "":
		err = keeper.Renew(context.Background(), e.Renew)
	case e.Keep != nil:
		err = keeper.Keep(*e.Keep)
	case e.Judge != nil:
		err = keeper.Judge(context.Background(), *e.Judge)
	}
	done := doneWord{ID: e.ID, Failed: err != nil}
	if e.Judge != nil && err != nil {
		done.Why = err.Error()
	}
	l.say(word{Done: &done})
}

// Parent is the broker's end of the socket: a [Keeper] that passes each call on to the parent.
type Parent struct {
	in *json.Decoder

	mu      sync.Mutex
	out     *json.Encoder
	last    int
	waiting map[int]chan error
	told    map[Refusal]int // how often each refusal was reported, regardless of its path
	used    map[Use]bool    // the uses that were reported
}

// NewParent returns the broker's end of a connection to its parent.
func NewParent(conn io.ReadWriter) *Parent {
	return &Parent{
		in: json.NewDecoder(conn), out: json.NewEncoder(conn), waiting: map[int]chan error{}, told: map[Refusal]int{},
		used: map[Use]bool{},
	}
}

// Hello reads the first message.
func (p *Parent) Hello() (Hello, error) {
	var w word
	if err := p.in.Decode(&w); err != nil {
		return Hello{}, err
	}
	if w.Hello == nil {
		return Hello{}, errors.New("bug: no hello")
	}
	return *w.Hello, nil
}

// Serve receives the parent's messages for the broker b until the parent is gone, and returns the error of reading.
func (p *Parent) Serve(b interface{ SetLogin(access, scope string) }) error {
	for {
		var w word
		if err := p.in.Decode(&w); err != nil {
			return err
		}
		switch {
		case w.Login != nil:
			b.SetLogin(w.Login.Access, w.Login.Scope)
		case w.Done != nil:
			p.mu.Lock()
			if done := p.waiting[w.Done.ID]; done != nil {
				var err error
				if w.Done.Failed {
					err = errors.New(cmp.Or(w.Done.Why, "claudebox could not do it"))
				}
				done <- err
			}
			p.mu.Unlock()
		}
	}
}

func (p *Parent) ask(ctx context.Context, e event) error {
	done := make(chan error, 1)
	p.mu.Lock()
	p.last++
	e.ID = p.last
	p.waiting[e.ID] = done
	err := p.out.Encode(e)
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.waiting, e.ID)
	}()
	if err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Renew asks the parent to renew the login.
func (p *Parent) Renew(ctx context.Context, refused string) error {
	return p.ask(ctx, event{Renew: refused})
}

// Keep asks the parent to keep a login.
func (p *Parent) Keep(g Grant) error { return p.ask(context.Background(), event{Keep: &g}) }

// Judge asks the parent, which sees the processes of this machine.
func (p *Parent) Judge(ctx context.Context, c Connection) error { return p.ask(ctx, event{Judge: &c}) }

// Forget tells the parent to drop such a login.
func (p *Parent) Forget() { p.tell(event{Forget: true}) }

// MostReported is how often a kind of refusal is reported, at most.
const MostReported = 20

// Report reports a refusal to the parent, each kind at most [MostReported] times and at most 200 kinds: an
// agent can go on forever.
func (p *Parent) Report(r Refusal) {
	const kinds = 200
	kind := r
	kind.Path = ""
	p.mu.Lock()
	p.told[kind]++
	enough := p.told[kind] > MostReported || len(p.told) > kinds
	if enough && p.told[kind] == 1 {
		delete(p.told, kind)
	}
	p.mu.Unlock()
	if !enough {
		p.tell(event{Refusal: &r})
	}
}

// Used reports the first use of a secret at a host, of 200 hosts at most.
func (p *Parent) Used(u Use) {
	const most = 200
	p.mu.Lock()
	known := p.used[u] || len(p.used) >= most
	if !known {
		p.used[u] = true
	}
	p.mu.Unlock()
	if !known {
		p.tell(event{Used: &u})
	}
}

func (p *Parent) tell(e event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.out.Encode(e) // Serve notices when the parent is gone
}
