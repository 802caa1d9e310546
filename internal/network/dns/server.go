package dns

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/time/rate"

	"claudebox/internal/network/hostpattern"
)

// Bounds of what a sandbox can ask for.
const (
	longest    = 4096             // bytes of a query
	together   = 64               // queries at a time
	fromOne    = 8                // of them from one socket
	perSecond  = 200              // queries that are passed on, per second
	burst      = 500              // of them in a burst
	idleTime   = 10 * time.Second // of a client that sends nothing
	answerTime = 5 * time.Second  // for one resolver by TCP, and for all by UDP
	firstWait  = 2 * time.Second  // for one resolver while there are others
)

// Server answers queries. Its methods may be called from many goroutines.
type Server struct {
	// Knows reports whether a name in its canonical form gets addresses of its
	// own.
	Knows func(name string) bool
	// Only means that no other names exist.
	Only  bool
	Names *Names
	// Resolvers are asked for the other names, one after the other.
	Resolvers func() []netip.AddrPort
	// Unknown is told which names do not exist because of Only. Most clients ask
	// twice: the second time is that for IPv6 addresses.
	Unknown func(name string, second bool)

	once  sync.Once
	slots chan struct{}
	rate  *rate.Limiter
}

func newLimiter() *rate.Limiter { return rate.NewLimiter(perSecond, burst) }

// Answer answers a query. It returns nil for one that deserves no answer.
func (s *Server) Answer(ctx context.Context, query []byte, tcp bool) []byte {
	q, err := parse(query)
	var no refusal
	switch {
	case errors.As(err, &no):
		return q.refuse(no.code)
	case err != nil:
		return nil
	}
	name, err := hostpattern.Canonical(q.name())
	if err == nil && s.Knows(name) {
		return s.own(q, name)
	}
	if s.Only {
		s.Unknown(q.name(), q.Type == dnsmessage.TypeAAAA)
		return q.refuse(dnsmessage.RCodeNameError, unlisted())
	}
	s.once.Do(func() { s.slots, s.rate = make(chan struct{}, together), newLimiter() })
	if !s.rate.Allow() {
		return q.refuse(dnsmessage.RCodeRefused)
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return nil
	}
	return s.forward(ctx, q, tcp)
}

// own answers for a name with addresses of its own. It has no other records:
// with the keys of HTTPS records a client would hide which host it means.
func (s *Server) own(q question, name string) []byte {
	v4, v6, ok := s.Names.Addresses(name)
	if !ok {
		return q.refuse(dnsmessage.RCodeServerFailure)
	}
	b := q.reply(dnsmessage.RCodeSuccess)
	err := errors.Join(b.StartQuestions(), b.Question(q.Question), b.StartAnswers())
	head := dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: 60}
	switch {
	case err != nil:
	case q.Type == dnsmessage.TypeA:
		err = b.AResource(head, dnsmessage.AResource{A: v4.As4()})
	case q.Type == dnsmessage.TypeAAAA:
		err = b.AAAAResource(head, dnsmessage.AAAAResource{AAAA: v6.As16()})
	}
	message, failed := b.Finish()
	if err != nil || failed != nil {
		return q.refuse(dnsmessage.RCodeServerFailure)
	}
	return message
}

// forward asks the machine's resolvers, one after the other, until one has answered.
func (s *Server) forward(ctx context.Context, q question, tcp bool) []byte {
	list := s.Resolvers()
	for i, to := range list {
		wait := answerTime
		if i < len(list)-1 {
			wait = firstWait
		}
		answer, err := ask(ctx, to, q, tcp, wait)
		if err != nil {
			continue
		}
		if !tcp && len(answer) > q.room {
			return q.truncate()
		}
		return answer
	}
	return q.refuse(dnsmessage.RCodeServerFailure)
}

// Addresses asks all resolvers at once for a name's IPv6 addresses. An error means
// that none has answered.
func (s *Server) Addresses(ctx context.Context, name string) ([]netip.Addr, error) {
	var mu sync.Mutex
	var all sync.WaitGroup
	var list []netip.Addr
	var err error
	answered := false
	for _, to := range s.Resolvers() {
		all.Go(func() {
			found, failed := addresses(ctx, to, name)
			mu.Lock()
			defer mu.Unlock()
			if failed != nil {
				err = failed
				return
			}
			list, answered = append(list, found...), true
		})
	}
	all.Wait()
	if !answered {
		return nil, errors.Join(errors.New("no resolver answers"), err)
	}
	return list, nil
}

// addresses asks one resolver. None is an answer, a failure of the resolver's is not.
func addresses(ctx context.Context, to netip.AddrPort, name string) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, firstWait)
	defer cancel()
	r := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, to.String())
	}}
	list, err := r.LookupNetIP(ctx, "ip6", name)
	if no := (*net.DNSError)(nil); errors.As(err, &no) && no.IsNotFound {
		return nil, nil
	}
	return list, err
}

// ask sends a question to one resolver, and returns its answer with the client's id.
func ask(ctx context.Context, to netip.AddrPort, q question, tcp bool, wait time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	network := "udp"
	if tcp {
		network = "tcp"
	}
	var id [2]byte
	rand.Read(id[:])
	query, err := q.upstream(binary.BigEndian.Uint16(id[:]))
	if err != nil {
		return nil, err
	}
	conn, err := new(net.Dialer).DialContext(ctx, network, to.String())
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	conn.SetDeadline(deadline)
	answer, err := exchange(conn, query, tcp,
		func(m []byte) bool { return q.answers(m, binary.BigEndian.Uint16(id[:])) })
	if err != nil {
		return nil, err
	}
	binary.BigEndian.PutUint16(answer, q.header.ID)
	return answer, nil
}

// exchange sends a query and waits for the matching answer.
func exchange(conn net.Conn, query []byte, tcp bool, fits func([]byte) bool) ([]byte, error) {
	if tcp {
		if err := writeMessage(conn, query); err != nil {
			return nil, err
		}
		answer, err := readMessage(conn, 1<<16-1)
		if err == nil && !fits(answer) {
			err = errNoQuery
		}
		return answer, err
	}
	if _, err := conn.Write(query); err != nil {
		return nil, err
	}
	buffer := make([]byte, longest)
	for {
		n, err := conn.Read(buffer)
		if err != nil {
			return nil, err
		}
		if fits(buffer[:n]) {
			return buffer[:n], nil
		}
	}
}

// ServePacket answers a client's datagrams until it has been silent for a while.
func (s *Server) ServePacket(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	var answering sync.WaitGroup // resolvers ask for both families from one socket
	defer answering.Wait()
	room := make(chan struct{}, fromOne)
	buffer := make([]byte, longest)
	for {
		conn.SetReadDeadline(time.Now().Add(idleTime))
		n, err := conn.Read(buffer)
		if err != nil {
			return
		}
		query := append([]byte(nil), buffer[:n]...)
		room <- struct{}{}
		answering.Go(func() {
			defer func() { <-room }()
			if answer := s.Answer(ctx, query, false); answer != nil {
				_, _ = conn.Write(answer)
			}
		})
	}
}

// ServeStream answers the queries of a client's connection one after the other.
func (s *Server) ServeStream(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	for {
		conn.SetDeadline(time.Now().Add(idleTime))
		query, err := readMessage(conn, longest)
		if err != nil {
			return
		}
		answer := s.Answer(ctx, query, true)
		conn.SetDeadline(time.Now().Add(idleTime)) // what it waited is not its time
		if answer == nil || writeMessage(conn, answer) != nil {
			return
		}
	}
}

func readMessage(r io.Reader, most int) ([]byte, error) {
	var size [2]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint16(size[:]))
	if n > most {
		return nil, errNoQuery
	}
	message := make([]byte, n)
	_, err := io.ReadFull(r, message)
	return message, err
}

func writeMessage(w io.Writer, message []byte) error {
	_, err := w.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(message))), message...))
	return err
}
