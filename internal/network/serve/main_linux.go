// Package serve is the process that serves a sandbox's network from outside the
// sandbox: the stack, the policy, the DNS server. It reads data of an attacker,
// so it confines itself before it reads any. The only secrets in it are those of its answerer.
package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"gvisor.dev/gvisor/pkg/log"

	"claudebox/internal/network/dns"
	"claudebox/internal/network/flow"
	"claudebox/internal/network/helper"
	"claudebox/internal/network/hostnet"
	"claudebox/internal/network/journal"
	"claudebox/internal/network/policy"
	"claudebox/internal/network/stack"
	"claudebox/internal/network/upstream"
)

// NewAnswerer makes the answerer of a sandbox from Broker and Roots of a [helper.Config] and the socket to
// claudebox. It is called before the process is confined.
type NewAnswerer func(config json.RawMessage, roots []byte, parent *os.File) (flow.Answerer, error)

// Bounds for Go's garbage collector. The memory for connections is bounded by the stack; with these bounds the
// collector frees what is left of old ones in time.
const (
	memoryLimit = 34 << 20
	gcPercent   = 50
)

// boundResources bounds memory and processors once the start is over. One processor is faster than two: threads
// that wake each other for every packet cost more than the second processor gains.
func boundResources() {
	debug.SetMemoryLimit(memoryLimit)
	debug.SetGCPercent(gcPercent)
	runtime.GOMAXPROCS(1)
}

// Main serves a sandbox's network until claudebox has ended. It returns the exit status.
func Main(make NewAnswerer) int {
	log.SetLevel(log.Warning) // a sandbox could cause any number of messages of lower levels
	if err := serve(make); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func serve(make NewAnswerer) error {
	parent, config, err := helper.Parent()
	if err != nil {
		return err
	}
	s, err := newServer(config, make)
	if err != nil {
		return parent.Refuse(err)
	}
	if err := confineSelf(); err != nil {
		return parent.Refuse(fmt.Errorf("give up its rights: %w", err))
	}
	if s.dns == nil {
		close(s.known)
	} else {
		go s.follow()
	}
	given, err := parent.ReceiveNetwork()
	if err != nil {
		return nil //nolint:nilerr // claudebox has ended before its sandbox began
	}
	if given.Log != nil {
		s.journal.LogTo(given.Log)
	}
	lost := func(error) { // the sandbox has ended, and claudebox is about to ask for the report
		s.stack.Finish()
		time.Sleep(reportTime)
		os.Exit(0)
	}
	<-s.known
	if err := s.stack.Attach(given.Interface, given.Kind, lost); err != nil {
		return parent.Refuse(err)
	}
	s.carry(given)
	boundResources()
	if err := parent.Ready(); err != nil {
		return nil //nolint:nilerr // claudebox has ended
	}
	return s.answer(parent)
}

// answer answers what claudebox asks until claudebox has ended.
func (s *server) answer(parent helper.ParentConn) error {
	for {
		asked, err := parent.ReceiveRequest()
		if err != nil {
			return nil //nolint:nilerr // claudebox has ended
		}
		if asked.Last {
			s.stack.Finish()
		}
		var fault error
		if asked.Open != nil {
			fault = s.open(*asked.Open)
		}
		if parent.SendReport(s.journal.Report(), fault) != nil {
			return nil //nolint:nilerr // as above
		}
	}
}

// open changes the rules to those with an opening.
func (s *server) open(o helper.Opening) error {
	config, err := s.config.With(o)
	if err != nil {
		return err
	}
	rules, err := config.Rules()
	if err != nil {
		return err
	}
	rules.Answers = s.answers
	s.config = config
	s.stack.SetRules(rules)
	return nil
}

// reportTime is how long claudebox may take to ask for the report after the sandbox has ended.
const reportTime = time.Second

// server serves one sandbox.
type server struct {
	config  helper.Config
	answers func(name string, port uint16) bool // see [policy.Rules]
	stack   *stack.Stack
	journal *journal.Journal
	dns     *dns.Server   // nil: the sandbox has no DNS server
	known   chan struct{} // closed when it is known what the machine is connected to
}

func newServer(c helper.Config, newAnswerer NewAnswerer) (*server, error) {
	rules, err := c.Rules()
	if err != nil {
		return nil, err
	}
	s := &server{config: c, journal: &journal.Journal{}, known: make(chan struct{})}
	var answerer flow.Answerer
	if len(c.Broker) > 0 {
		parent := os.NewFile(helper.BrokerSocket, "claudebox")
		if answerer, err = newAnswerer(c.Broker, c.Roots, parent); err != nil {
			return nil, err
		}
		s.answers = answerer.Answers
		rules.Answers = s.answers
	}
	via, err := upstream.Parse(c.Via)
	if err != nil {
		return nil, err
	}
	if rules.Tier != policy.TierNone {
		s.dns = &dns.Server{
			Knows: func(name string) bool { return s.stack.Knows(name) }, Only: rules.Tier == policy.TierAllow,
			Names:     dns.NewNames(),
			Resolvers: dns.Resolvers, Unknown: s.journal.Unknown,
		}
	}
	s.stack, err = stack.New(context.Background(), stack.Config{
		Rules: rules, FirstHost: policy.Host{Networks: everything, Unsure: true}, DNS: s.dns, Answerer: answerer,
		Journal: s.journal, Resolver: &net.Resolver{PreferGo: true}, Via: via,
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// follow tells the stack what the machine is connected to, at first and after each change. It does not return.
func (s *server) follow() {
	known := sync.OnceFunc(func() { close(s.known) })
	around := surroundings{tell: s.stack.SetHost, ask: s.nat64, cancel: func() {}}
	changed := func() {
		host, err := hostnet.Read()
		if err != nil { // nothing is known, so nothing is allowed
			host = policy.Host{Networks: everything}
		}
		around.setHost(host)
		known()
	}
	for {
		if hostnet.Watch(changed) != nil {
			around.setHost(policy.Host{Networks: everything})
			known()
			time.Sleep(watchAgain)
		}
	}
}

// everything is every address. It is refused while it is not known what the machine is connected to.
var everything = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}

// watchAgain is the pause before watching is resumed, after so many changes at once that some were lost.
const watchAgain = 100 * time.Millisecond

// nat64 asks the resolvers for the NAT64 prefixes of the machine's network (RFC 7050).
func (s *server) nat64(ctx context.Context) ([]netip.Prefix, error) {
	answers, err := s.dns.Addresses(ctx, "ipv4only.arpa.")
	return policy.Discovered(answers), err
}
