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

	"claudebox/checks/network/world"
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

// replace is how programs write resolv.conf.
func replace(t *testing.T, file, content string) {
	t.Helper()
	if err := errors.Join(os.WriteFile(file+".new", []byte(content), 0o644), os.Rename(file+".new", file)); err != nil {
		t.Fatal(err)
	}
}
