//go:build bench

package world

import (
	"fmt"
	"time"

	"github.com/vishvananda/netlink"
)

// Untap has nobody hear what comes outside: to copy it takes a part of the time
// that is measured.
func (w *World) Untap() { _ = w.tap.close() }

// Delay makes the way to the internet so long, in one direction.
func (w *World) Delay(each time.Duration) error {
	for _, ns := range []namespace{w.host, w.outside} {
		err := ns.do(func() error {
			device, err := netlink.LinkByName("eth0")
			if err != nil {
				return err
			}
			const room = 100_000 // packets on their way
			attrs := netlink.QdiscAttrs{LinkIndex: device.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT}
			return netlink.QdiscReplace(netlink.NewNetem(attrs, netlink.NetemQdiscAttrs{Latency: uint32(each.Microseconds()), Limit: room}))
		})
		if err != nil {
			return fmt.Errorf("delay packets: %w", err)
		}
	}
	return nil
}
