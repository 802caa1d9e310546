package nixdaemon

import "fmt"

const (
	clientMagic = 0x6e697863
	daemonMagic = 0x6478696f
)

// Protocol is a version of the worker protocol: major<<8 | minor.
type Protocol uint64

// What this client speaks. 1.34 is Nix 2.8; 1.38 came with 2.24, and later
// changes come as features.
const (
	Oldest Protocol = 1<<8 | 34
	Newest Protocol = 1<<8 | 38
)

// First versions of what changed the wire between Oldest and Newest.
const (
	sinceTrust    Protocol = 1<<8 | 35
	sinceCPUTimes Protocol = 1<<8 | 37
	sinceFeatures Protocol = 1<<8 | 38
)

// String renders the version as Nix writes it: "1.38".
func (p Protocol) String() string { return fmt.Sprintf("%d.%d", p>>8, p&0xff) }

// Trust is what the daemon says of the user who connected.
type Trust uint64

// A daemon below 1.35 does not say. Any word but NotTrusted has to be taken
// as the power to become root.
const (
	TrustUnknown Trust = iota
	Trusted
	NotTrusted
)

// String is the word for it.
func (t Trust) String() string {
	return [...]string{"unknown", "trusted", "not trusted"}[t]
}

// Info is what the daemon said of itself in the handshake.
type Info struct {
	Version  string   // the daemon's Nix, as "2.26.3"
	Protocol Protocol // spoken on this connection
	Trust    Trust
}

// handshake is written for one round trip before 1.38 and two from there.
func (c *Client) handshake() error {
	d := c.dec
	c.enc.uint(clientMagic)
	c.enc.uint(uint64(Newest))
	if err := c.flush(); err != nil && !isOne(err, ends) {
		return err // a daemon that is gone may have left its words
	}
	magic := d.uint()
	if isOne(d.err, ends) { // it looked at the user, and hung up: why stands in its own log only
		return caused{ErrRefused, bare(d.err)}
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
	c.info.Protocol = min(daemon, Newest)
	if c.info.Protocol >= sinceFeatures {
		c.enc.texts(nil)
	}
	c.enc.uint(0) // CPU affinity, obsolete
	c.enc.uint(0) // reserve space, obsolete
	if err := c.flush(); err != nil {
		return err
	}
	if c.info.Protocol >= sinceFeatures {
		d.texts() // with nothing announced nothing is common
	}
	c.info.Version = Plain(d.text())
	if c.info.Protocol >= sinceTrust {
		c.info.Trust = Trust(d.uint())
	}
	if c.info.Trust > NotTrusted {
		d.protocolf("trust of kind %d", uint64(c.info.Trust))
	}
	if d.err != nil {
		return d.err
	}
	refused, err := c.drain()
	if refused != nil {
		return refused
	}
	return err
}
