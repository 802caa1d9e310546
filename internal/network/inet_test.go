package network

import (
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"claudebox/internal/network/hostnet"
	"claudebox/internal/network/netfilter"
	"claudebox/internal/network/netns/nstest"
)

// connected is a network whose rules forbid nothing yet, with a program in
// pasta's place that does nothing.
func connected(t *testing.T) *Inet {
	t.Helper()
	ns, pid := nstest.Waiting(t)
	n := &Inet{sandbox: pid}
	var err error
	if n.filter, err = netfilter.Load(ns, nil); err != nil {
		t.Skipf("no rules here: %v", err)
	}
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	if n.pasta, err = startPasta(sleep, []string{"sleep", "1000"}); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestWhatCannotBeForbiddenCutsTheNetwork(t *testing.T) {
	n := connected(t)
	n.filter.Close() // the kernel takes no rule any more
	if n.extend() {
		t.Error("the session goes on as if nothing were")
	}
	var state syscall.WaitStatus
	if _, err := syscall.Wait4(n.pasta.pid, &state, 0, nil); err != nil || state.Signal() != syscall.SIGKILL {
		t.Errorf("pasta: %v, %v", state, err)
	}
	if n.why == nil || n.Close() == nil {
		t.Error("nobody is told")
	}
}

func TestWhatThisMachineIsConnectedToIsForbiddenAgain(t *testing.T) {
	n := connected(t)
	if first := n.extend(); !first || !n.extend() {
		t.Errorf("the network was cut: %v", n.why)
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
}

func TestPastaThatEndsIsExplainedByItsWords(t *testing.T) {
	for said, want := range map[string]string{
		"External interface not usable":                         "offline",
		"pasta: unrecognized option '--config-net'":             "too old",
		"Couldn't switch to pasta namespaces: Not permitted":    "AppArmor",
		"Failed to send 46 bytes to syslog\nsomething is wrong": "it ended: something is wrong",
	} {
		t.Run(want, func(t *testing.T) {
			_, pid := nstest.Waiting(t)
			n := &Inet{sandbox: pid}
			var err error
			if n.pasta, err = startPasta("/bin/sh", []string{"sh", "-c", `printf '%s\n' "$0" >&2; exit 1`, said}); err != nil {
				t.Fatal(err)
			}
			if err := n.await(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v; want %q", err, want)
			}
		})
	}
}

func TestASandboxThatEndsFirstSaysWhyItself(t *testing.T) {
	n := connected(t)
	syscall.Kill(n.sandbox, syscall.SIGKILL)
	if err := n.await(); err != ErrGone {
		t.Errorf("got %v", err)
	}
}

// What pasta says fills its file and does not stop it.
func TestPastaMaySayMoreThanIsKept(t *testing.T) {
	p, err := startPasta("/bin/sh", []string{"sh", "-c", `trap "" PIPE; i=0; while [ $i -lt 500 ]; do echo "0123456789 0123456789" >&2; i=$((i+1)); done; echo 1`})
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	if _, err := p.ready.Read(make([]byte, 1)); err != nil {
		t.Errorf("it did not come to its end: %v", err)
	}
	if n := len(p.words()); n == 0 || n > 2*mostSaid {
		t.Errorf("%d bytes are kept", n)
	}
	p.end()
}

func TestAFamilyThatTheHostLacksIsSwitchedOff(t *testing.T) {
	for name, tc := range map[string]struct {
		host        hostnet.Network
		has, hasNot []string
	}{
		"both":        {hostnet.Network{IPv4: true, IPv6: true}, []string{address4, address6}, []string{"--ipv4-only", "--ipv6-only"}},
		"IPv4 alone":  {hostnet.Network{IPv4: true}, []string{address4, "--ipv4-only"}, []string{address6}},
		"IPv6 alone":  {hostnet.Network{IPv6: true}, []string{address6, "--ipv6-only"}, []string{address4}},
		"none at all": {hostnet.Network{}, []string{address4, address6}, []string{"--ipv4-only", "--ipv6-only"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := words(7, tc.host)
			for _, word := range tc.has {
				if !slices.Contains(got, word) {
					t.Errorf("no %s in %q", word, got)
				}
			}
			for _, word := range tc.hasNot {
				if slices.Contains(got, word) {
					t.Errorf("%s is in %q", word, got)
				}
			}
		})
	}
}
