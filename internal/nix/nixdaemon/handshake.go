package nixdaemon

import "fmt"

const (
	clientMagic = 0x6e697863
	daemonMagic = 0x6478696f
)

// Protocol is a version of the worker protocol: major<<8 | minor.
type Protocol uint64

// The oldest and the newest version that this client speaks. 1.34 is Nix 2.8; 1.38 came
// with 2.24, and later changes are negotiated as features.
const (
	Oldest Protocol = 1<<8 | 34
	Newest Protocol = 1<<8 | 38
)

// The versions between Oldest and Newest that first changed the wire format.
const (
	sinceTrust    Protocol = 1<<8 | 35
	sinceCPUTimes Protocol = 1<<8 | 37
	sinceFeatures Protocol = 1<<8 | 38
)

// String renders the version as Nix writes it: "1.38".
func (p Protocol) String() string { return fmt.Sprintf("%d.%d", p>>8, p&0xff) }

// Trust is whether the daemon trusts the user who connected.
type Trust uint64

// A daemon below 1.35 does not say. Treat anything but NotTrusted
// as the power to become root.
const (
	TrustUnknown Trust = iota
	Trusted
	NotTrusted
)

// Info is what the daemon said about itself in the handshake.
type Info struct {
	Version  string   // the daemon's Nix, as "2.26.3"
	Protocol Protocol // in use on this connection
	Trust    Trust
}

// handshake greets the daemon and fills in s.info. It takes one round trip before 1.38, and two from 1.38 on.
func (s *stream) handshake() error {
	d := s.dec
	s.enc.uint(clientMagic)
	s.enc.uint(uint64(Newest))
	if err := s.flush(); err != nil && !isOne(err, goneErrors) {
		return err // a daemon that hung up may have sent an answer first
	}
	magic := d.uint()
	if isOne(d.err, goneErrors) { // it refused the user and hung up; the reason is only in its own log
		return caused{ErrRefused, errnoOf(d.err)}
	}
	daemon := Protocol(d.uint())
	switch {
	case d.err != nil:
		return d.err
	case magic != daemonMagic:
		return fmt.Errorf("%w: it greets with %#x", ErrProtocol, magic)
	case daemon>>8 != Newest>>8:
		return fmt.Errorf("%w: it speaks version %s", ErrProtocol, daemon)
	case daemon < Oldest:
		return fmt.Errorf("%w: it speaks version %s, %s is needed", ErrTooOld, daemon, Oldest)
	}
	s.info.Protocol = min(daemon, Newest)
	if s.info.Protocol >= sinceFeatures {
		s.enc.texts(nil)
	}
	s.enc.uint(0) // CPU affinity, obsolete
	s.enc.uint(0) // reserve space, obsolete
	if err := s.flush(); err != nil {
		return err
	}
	if s.info.Protocol >= sinceFeatures {
		d.texts() // the common features: none, since we announce none
	}
	s.info.Version = Plain(d.text())
	if s.info.Protocol >= sinceTrust {
		s.info.Trust = Trust(d.uint())
	}
	if s.info.Trust > NotTrusted {
		d.protocolf("trust of kind %d", uint64(s.info.Trust))
	}
	if d.err != nil {
		return d.err
	}
	refused, err := s.drain()
	if refused != nil {
		return refused
	}
	return err
}
