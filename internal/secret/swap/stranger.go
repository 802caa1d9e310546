package swap

import (
	"context"
	"net"
	"net/netip"

	"claudebox/internal/linux/peer"
	"claudebox/internal/secret/broker"
)

// Judge says why nothing may be sent on a connection that may end on this machine; see package peer.
type Judge func(context.Context, broker.Connection) error

// judgedBy is a keeper as a Judge, which reports what it refuses.
func judgedBy(keeper broker.Keeper) Judge {
	return func(ctx context.Context, c broker.Connection) error {
		err := keeper.Judge(ctx, c)
		if err != nil {
			keeper.Report(broker.Refusal{Host: c.Remote.String(), Why: err.Error()})
		}
		return err
	}
}

// byPeer is a Judge for a process that sees the others itself.
func byPeer(_ context.Context, c broker.Connection) error { return peer.Judge(c.Local, c.Remote) }

// strangerError says that nothing was sent on a connection, and why.
type strangerError struct{ error }

// before returns a connection when nothing speaks against sending on it; else it closes it.
func (j Judge) before(ctx context.Context, c net.Conn) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ends := broker.Connection{Local: addressOf(c.LocalAddr()), Remote: addressOf(c.RemoteAddr())}
	if err := j(ctx, ends); err != nil {
		c.Close()
		return nil, strangerError{err}
	}
	return c, nil
}

func addressOf(a net.Addr) netip.AddrPort {
	address := a.(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(address.Addr().Unmap(), address.Port())
}
