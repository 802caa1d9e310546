// Package serve is the process that serves a sandbox's network, outside of the
// sandbox: the stack, the policy, the names. It reads what an attacker has
// written, so it is confined before the first of that, and has nothing that
// could be stolen.
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

// NewTerminator makes what answers in the place of hosts, from what the Config
// says of it and with a socket to claudebox. It is called before the process is
// confined.
type NewTerminator func(config json.RawMessage, roots []byte, parent *os.File) (flow.Terminator, error)

// Memory of the process. What it holds for connections is bounded by the stack;
// this has the collector run in time.
const (
	memoryLimit = 38 << 20
	gcPercent   = 50
)

// boundResources is for the time after the start. One processor is enough for
// what the kernel does for its callers' time, and threads that wake each other
// for every packet cost more than a second one gains.
func boundResources() {
	debug.SetMemoryLimit(memoryLimit)
	debug.SetGCPercent(gcPercent)
	runtime.GOMAXPROCS(1)
}

// Main serves until claudebox has ended. It returns the exit status.
func Main(make NewTerminator) int {
	log.SetLevel(log.Warning) // a sandbox can have it say the rest as often as it likes
	if err := serve(make); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func serve(make NewTerminator) error {
	parent, err := helper.Parent()
	if err != nil {
		return err
	}
	config, err := parent.Config()
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
	given, err := parent.Attached()
	if err != nil {
		return nil //nolint:nilerr // claudebox has ended before its sandbox began
	}
	if given.Log != nil {
		s.journal.LogTo(given.Log)
	}
	gone := func(error) { // the sandbox has ended, and claudebox is about to ask for the report
		s.stack.Finish()
		time.Sleep(askedTime)
		os.Exit(0)
	}
	<-s.known
	if err := s.stack.Attach(given.Interface, given.Kind, gone); err != nil {
		return parent.Refuse(err)
	}
	if err := s.carry(given); err != nil {
		return parent.Refuse(err)
	}
	go s.stack.Sweep()
	boundResources()
	if err := parent.Ready(); err != nil {
		return nil //nolint:nilerr // claudebox has ended
	}
	for parent.Asked() == nil { // which it is when the session is over
		s.stack.Finish()
		if parent.Tell(s.journal.Report()) != nil {
			break
		}
	}
	return nil
}

// askedTime is for claudebox to ask for the last report.
const askedTime = time.Second

// server is what serves one sandbox.
type server struct {
	stack   *stack.Stack
	journal *journal.Journal
	dns     *dns.Server
	known   chan struct{} // closed when it is known what the machine is connected to
}

func newServer(c helper.Config, newTerminator NewTerminator) (*server, error) {
	rules, err := c.Rules()
	if err != nil {
		return nil, err
	}
	s := &server{journal: &journal.Journal{}, known: make(chan struct{})}
	var terminator flow.Terminator
	if len(c.Broker) > 0 {
		parent := os.NewFile(helper.BrokerSocket, "claudebox")
		if terminator, err = newTerminator(c.Broker, c.Roots, parent); err != nil {
			return nil, err
		}
		rules.Terminates = terminator.Terminates
	}
	via, err := upstream.Parse(c.Via)
	if err != nil {
		return nil, err
	}
	if rules.Tier != policy.TierNone {
		s.dns = &dns.Server{
			Knows: rules.Knows, Only: rules.Tier == policy.TierAllow, Names: dns.NewNames(c.Generation),
			Resolvers: dns.NewResolvers(dns.ResolvConf).Now, Unknown: s.journal.Unknown,
		}
	}
	s.stack, err = stack.New(context.Background(), stack.Config{
		Rules: rules, Host: policy.Host{Networks: everything, Unsure: true}, DNS: s.dns, Terminator: terminator,
		Journal: s.journal, Resolver: &net.Resolver{PreferGo: true}, Via: via,
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// follow tells the stack what the machine comes to be connected to.
func (s *server) follow() {
	known := sync.OnceFunc(func() { close(s.known) })
	around := surroundings{moved: s.stack.Moved, ask: s.nat64, cancel: func() {}}
	changed := func() {
		host, err := hostnet.Read()
		if err != nil { // nothing is known, so nothing is let through
			host = policy.Host{Networks: everything}
		}
		around.changed(host)
		known()
	}
	for {
		if hostnet.Watch(nil, changed) != nil {
			around.changed(policy.Host{Networks: everything})
			known()
			time.Sleep(watchAgain)
		}
	}
}

// everything is refused while it is not known what the machine is connected to.
var everything = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}

// watchAgain is the pause before changes are listened for again, after so many
// at once that some were lost.
const watchAgain = 100 * time.Millisecond

// nat64 asks for the prefixes behind which the machine's network has IPv4
// addresses (RFC 7050).
func (s *server) nat64(ctx context.Context) ([]netip.Prefix, error) {
	answers, err := s.dns.Addresses(ctx, "ipv4only.arpa.")
	return policy.Discovered(answers), err
}
