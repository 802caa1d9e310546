//go:build bench

package world

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"claudebox/checks/promises/network/target"
)

// Untap has nobody hear what comes outside: to copy it takes a part of the time
// that is measured.
func (w *World) Untap() { _ = w.tap.close() }

// Delay makes the way to the internet so long, in each direction: it leads over
// two tuns now, and everything is held between them.
func (w *World) Delay(each time.Duration) error {
	everywhere, err := netlink.ParseIPNet(IPv4)
	if err != nil {
		return err
	}
	near, err := slowEnd(w.host, func(device int) error {
		return netlink.RouteReplace(&netlink.Route{
			LinkIndex: device, Dst: everywhere, Scope: netlink.SCOPE_LINK,
			Src: netip.MustParseAddr(target.HostLAN).AsSlice(),
		})
	})
	if err != nil {
		return fmt.Errorf("delay packets: %w", err)
	}
	w.closers = append(w.closers, near.Close)
	far, err := slowEnd(w.outside, func(device int) error {
		to, err := netlink.ParseIPNet(target.HostLAN + "/32")
		if err != nil {
			return err
		}
		return netlink.RouteReplace(&netlink.Route{LinkIndex: device, Dst: to, Scope: netlink.SCOPE_LINK})
	})
	if err != nil {
		return fmt.Errorf("delay packets: %w", err)
	}
	w.closers = append(w.closers, far.Close)
	go hold(near, far, each)
	go hold(far, near, each)
	return nil
}

// slowEnd is a tun of a namespace, to which route leads something. Its packets
// may be as long as the kernel makes them, and have their checksums to come.
func slowEnd(ns namespace, route func(device int) error) (file *os.File, err error) {
	const name, queue = "slow0", 10_000
	err = ns.do(func() error {
		fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		request, err := unix.NewIfreq(name)
		if err != nil {
			return err
		}
		request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
		if err := errors.Join(
			unix.IoctlIfreq(fd, unix.TUNSETIFF, request),
			unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, unix.TUN_F_CSUM|unix.TUN_F_TSO4|unix.TUN_F_TSO6),
		); err != nil {
			return err
		}
		file = os.NewFile(uintptr(fd), name) // which is to be waited for, so not before it is a device
		link, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		return errors.Join(netlink.LinkSetTxQLen(link, queue), netlink.LinkSetUp(link), route(link.Attrs().Index))
	})
	return file, err
}

// hold carries packets from one end to the other, each after so long.
func hold(from, to *os.File, each time.Duration) {
	type held struct {
		packet []byte
		until  time.Time
	}
	const room = 100_000
	way := make(chan held, room)
	defer close(way)
	go func() {
		for h := range way {
			time.Sleep(time.Until(h.until))
			_, _ = to.Write(h.packet) // what the kernel does not take is lost
		}
	}()
	for buffer := make([]byte, 1<<17); ; {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		way <- held{append([]byte(nil), buffer[:n]...), time.Now().Add(each)}
	}
}
