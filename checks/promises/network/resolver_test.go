//go:build lab

package network_test

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/checks/promises/network/target"
	"claudebox/checks/promises/network/world"
)

// A laptop that roams gets the resolver of where it is, and the old one is out
// of reach.
func TestNamesResolveAfterTheHostGotAnotherResolver(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	for _, c := range usual("inet") {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			u := c.user(t, w)
			file := filepath.Join(u.home, "resolv.conf")
			u.layout = world.Layout{"/etc/resolv.conf": "-> " + file}
			replace(t, file, "nameserver 203.0.113.53\n")
			const place = "/opt/probe"
			cmd := u.session(t, place+` names text:server.test
				read -r
				for _ in {1..100}; do `+place+` names text:server.test | grep router && exit; sleep 0.1; done`,
				append(u.in(t, "inet", ""), "--mount-ro", probe()+":"+place)...)
			in, err := cmd.StdinPipe()
			out, failed := cmd.StdoutPipe()
			if err = errors.Join(err, failed, cmd.Start()); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(out)
			if lines.Scan(); !strings.HasSuffix(lines.Text(), "\tpublic") {
				t.Errorf("at first: %q", lines.Text())
			}
			replace(t, file, "nameserver 192.168.77.1\n")
			io.WriteString(in, "\n")
			if lines.Scan(); !strings.HasSuffix(lines.Text(), "\trouter") {
				t.Errorf("then: %q", lines.Text())
			}
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Behind a captive portal every name leads to the portal, a host of the LAN: it is
// refused at once in each family, the user is told in one line, and when the
// portal is gone names work again.
func TestBehindACaptivePortalThatAnswersForEveryName(t *testing.T) {
	t.Parallel()
	for _, tier := range []string{"inet", "allow"} {
		t.Run(tier, func(t *testing.T) {
			t.Parallel()
			w := world.New(t)
			u := newUser(t, w)
			file := filepath.Join(u.home, "resolv.conf")
			u.layout = world.Layout{"/etc/resolv.conf": "-> " + file}
			replace(t, file, "nameserver "+target.LANPeer+"\n")
			flags := u.profile(t, "network: inet")
			if tier == "allow" {
				flags = u.allowing(t, "good.test")
			}
			const script = `for family in -4 -6; do curl -sS --max-time 20 $family http://good.test/; echo $family $?; done; echo ready; read line
				for _ in {1..100}; do curl -sS http://good.test/ && exit; sleep 0.1; done`
			cmd := u.claudebox(t, append(append([]string{"shell", "--yes"}, flags...), "--", "bash", "-c", script)...)
			talk := converse(t, cmd)
			// In tier inet there is no IPv6 address that could be tried.
			got := strings.Join(talk.wait(t, "ready"), " ")
			if got != "-4 7 -6 7" && got != "-4 7 -6 6" {
				t.Errorf("curl ends with %q", got)
			}
			replace(t, file, "nameserver 203.0.113.53\n")
			talk.say(t, "")
			if !talk.stdout.Scan() || !strings.HasPrefix(talk.stdout.Text(), "internet") {
				t.Errorf("after it: %q", talk.stdout.Text())
			}
			talk.end(t)
			if told := talk.stderr.String(); strings.Count(told, "refused: ") != 1 || !strings.Contains(told, "(private") {
				t.Errorf("the user is told %q", told)
			}
		})
	}
}

// replace is how programs write resolv.conf.
func replace(t *testing.T, file, content string) {
	t.Helper()
	must.Do(t, os.WriteFile(file+".new", []byte(content), 0o644), os.Rename(file+".new", file))
}
