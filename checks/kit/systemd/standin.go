// Package systemd is a stand-in of a user's bus with systemd on it, as far as
// claudebox speaks with it: the handshake of D-Bus, Hello, NameHasOwner,
// AddMatch, Subscribe, StartTransientUnit and the signal JobRemoved. It holds no
// limits.
package systemd

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/godbus/dbus/v5"

	"claudebox/checks/kit/must"
)

// StandIn says how it behaves; the zero value does all that it is asked for.
type StandIn struct {
	Socket string // set by [Start]

	Absent bool   // the bus is there, systemd is not
	Refuse string // the error of StartTransientUnit
	Result string // of the job; empty: done; never: there is none
	Drop   string // the call at which the connection ends
	Silent string // the call that is not answered

	mu    sync.Mutex
	units map[string]map[string]any
}

// Start serves a stand-in until the test ends.
func Start(t *testing.T, s *StandIn) *StandIn {
	t.Helper()
	s.Socket = filepath.Join(t.TempDir(), "bus")
	return s.Serve(t)
}

// Serve listens on the socket.
func (s *StandIn) Serve(t *testing.T) *StandIn {
	t.Helper()
	if s.units == nil {
		s.units = map[string]map[string]any{}
	}
	l, err := net.Listen("unix", s.Socket)
	must.Do(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go s.speak(c)
		}
	}()
	return s
}

// Units are the properties of the units that were started, by their names.
func (s *StandIn) Units() map[string]map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.units
}

func (s *StandIn) speak(c net.Conn) {
	defer c.Close()
	r := bufio.NewReader(c)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		switch word, how, _ := strings.Cut(strings.Trim(line, "\x00\r\n"), " "); {
		case word == "AUTH" && strings.HasPrefix(how, "EXTERNAL"):
			fmt.Fprint(c, "OK 0123456789abcdef0123456789abcdef\r\n")
		case word == "NEGOTIATE_UNIX_FD":
			fmt.Fprint(c, "ERROR\r\n")
		case word == "BEGIN":
			s.serve(c, r)
			return
		default:
			fmt.Fprint(c, "REJECTED EXTERNAL\r\n")
		}
	}
}

func (s *StandIn) serve(c net.Conn, r *bufio.Reader) {
	for {
		call, err := dbus.DecodeMessage(r)
		if err != nil {
			return
		}
		member, _ := call.Headers[dbus.FieldMember].Value().(string)
		if member == s.Drop && s.Drop != "" {
			return
		}
		if member == s.Silent && s.Silent != "" {
			continue
		}
		for _, answer := range s.answers(member, call) {
			if answer.EncodeTo(c, binary.LittleEndian) != nil {
				return
			}
		}
	}
}

const job = dbus.ObjectPath("/org/freedesktop/systemd1/job/1")

func (s *StandIn) answers(member string, call *dbus.Message) []*dbus.Message {
	switch member {
	case "Hello":
		return []*dbus.Message{reply(call, ":1.1")}
	case "NameHasOwner":
		return []*dbus.Message{reply(call, !s.Absent)}
	case "StartTransientUnit":
		if s.Refuse != "" {
			return []*dbus.Message{refusal(call, s.Refuse)}
		}
		name := s.keep(call.Body)
		list := []*dbus.Message{reply(call, job)}
		if s.Result != "never" {
			result := s.Result
			if result == "" {
				result = "done"
			}
			list = append(list, removed(name, result))
		}
		return list
	}
	return []*dbus.Message{reply(call)}
}

// keep notes the unit of a call.
func (s *StandIn) keep(body []any) (name string) {
	name, _ = body[0].(string)
	unit := map[string]any{}
	for _, p := range body[2].([][]any) {
		unit[p[0].(string)] = p[1].(dbus.Variant).Value()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.units[name] = unit
	return name
}

// message is one of a kind.
func message(kind dbus.Type, headers map[dbus.HeaderField]dbus.Variant, body ...any) *dbus.Message {
	m := &dbus.Message{Type: kind, Headers: headers, Body: body}
	headers[dbus.FieldSender] = dbus.MakeVariant("org.freedesktop.systemd1")
	if len(body) > 0 {
		headers[dbus.FieldSignature] = dbus.MakeVariant(dbus.SignatureOf(body...))
	}
	return m
}

func reply(to *dbus.Message, body ...any) *dbus.Message {
	return message(dbus.TypeMethodReply, map[dbus.HeaderField]dbus.Variant{dbus.FieldReplySerial: dbus.MakeVariant(to.Serial())}, body...)
}

func refusal(to *dbus.Message, text string) *dbus.Message {
	return message(dbus.TypeError, map[dbus.HeaderField]dbus.Variant{
		dbus.FieldReplySerial: dbus.MakeVariant(to.Serial()), dbus.FieldErrorName: dbus.MakeVariant("org.freedesktop.DBus.Error.AccessDenied"),
	}, text)
}

func removed(unit, result string) *dbus.Message {
	return message(dbus.TypeSignal, map[dbus.HeaderField]dbus.Variant{
		dbus.FieldPath:      dbus.MakeVariant(dbus.ObjectPath("/org/freedesktop/systemd1")),
		dbus.FieldInterface: dbus.MakeVariant("org.freedesktop.systemd1.Manager"),
		dbus.FieldMember:    dbus.MakeVariant("JobRemoved"),
	}, uint32(1), job, unit, result)
}
