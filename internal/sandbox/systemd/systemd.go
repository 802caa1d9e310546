// Package systemd puts the processes of a sandbox into a scope of the user's
// systemd (package scope). It speaks D-Bus, over the Unix socket of the user's bus only.
// systemd must do the work because an ordinary user may not write the control groups of
// a login session.
package systemd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"

	"github.com/godbus/dbus/v5"

	"claudebox/internal/sandbox/scope"
)

// ErrNone is returned if no systemd of this user can be reached.
var ErrNone = errors.New("no systemd of this user can be reached")

const (
	service = "org.freedesktop.systemd1"
	object  = "/org/freedesktop/systemd1"
	manager = service + ".Manager"
)

// Do carries out a request: it puts the processes into a new scope, and returns when they are in it. Processes that
// they start later are in it, too. Without processes it only connects to systemd. Its error wraps [ErrNone] if that
// fails.
func Do(ctx context.Context, r scope.Request) error {
	bus, err := connect(ctx, r.Socket)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNone, err)
	}
	defer bus.Close() // scopes stay until the last of their processes has ended
	if len(r.PIDs) == 0 {
		return nil
	}
	return hold(ctx, bus, r)
}

func connect(ctx context.Context, socket string) (*dbus.Conn, error) {
	if socket == "" {
		return nil, errors.New("neither DBUS_SESSION_BUS_ADDRESS nor XDG_RUNTIME_DIR leads to a bus")
	}
	var dialer net.Dialer
	wire, err := dialer.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { wire.Close() }) // the handshake does not take a context
	defer stop()
	bus, err := dbus.NewConn(wire)
	if err != nil {
		wire.Close()
		return nil, err
	}
	there := false
	err = bus.Auth([]dbus.Auth{dbus.AuthExternal(strconv.Itoa(os.Getuid()))})
	if err == nil {
		err = bus.Hello()
	}
	if err == nil {
		err = bus.BusObject().CallWithContext(ctx, "org.freedesktop.DBus.NameHasOwner", 0, service).Store(&there)
	}
	if err == nil && !there {
		err = errors.New("the bus has no " + service)
	}
	if err != nil {
		bus.Close()
		return nil, err
	}
	return bus, nil
}

// property is a property of a unit, as StartTransientUnit takes it.
type property struct {
	Name  string
	Value dbus.Variant
}

// auxiliary is an auxiliary unit, as StartTransientUnit takes it; we pass none.
type auxiliary struct {
	Name       string
	Properties []property
}

// properties returns the properties of a scope for these processes and limits.
func properties(pids []int, l scope.Limits) []property {
	ids := make([]uint32, len(pids))
	for i, pid := range pids {
		ids[i] = uint32(pid)
	}
	list := []property{
		{"Description", dbus.MakeVariant("claudebox sandbox")},
		{"CollectMode", dbus.MakeVariant("inactive-or-failed")},
		{"PIDs", dbus.MakeVariant(ids)},
	}
	add := func(name string, value uint64) {
		if value > 0 {
			list = append(list, property{name, dbus.MakeVariant(value)})
		}
	}
	const microsecondsAPercent = 10_000 // in each second
	add("MemoryMax", uint64(l.Memory))
	add("TasksMax", uint64(l.Tasks))
	add("CPUQuotaPerSecUSec", uint64(l.CPU)*microsecondsAPercent)
	return list
}

func hold(ctx context.Context, bus *dbus.Conn, r scope.Request) error {
	signals := make(chan *dbus.Signal, 64)
	bus.Signal(signals)
	if err := bus.AddMatchSignalContext(ctx, dbus.WithMatchInterface(manager),
		dbus.WithMatchMember("JobRemoved")); err != nil {
		return err
	}
	systemd := bus.Object(service, object)
	if err := systemd.CallWithContext(ctx, manager+".Subscribe", 0).Err; err != nil {
		return err
	}
	var job dbus.ObjectPath
	call := systemd.CallWithContext(ctx, manager+".StartTransientUnit", 0, r.Name, "fail", properties(r.PIDs, r.Limits),
		[]auxiliary{})
	if err := call.Store(&job); err != nil {
		return err
	}
	for {
		select {
		case s, open := <-signals:
			if !open {
				return errors.New("the bus has ended the connection")
			}
			var id uint32
			var of dbus.ObjectPath
			var unit, result string
			if s.Name != manager+".JobRemoved" || dbus.Store(s.Body, &id, &of, &unit, &result) != nil || of != job {
				continue
			}
			if result != "done" {
				return fmt.Errorf("its job ended with %q", result)
			}
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
