//go:build lab

package network_test

import (
	"bufio"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"claudebox/checks/kit/must"
	"claudebox/checks/promises/network/target"
	"claudebox/checks/promises/network/world"
)

// What listens inside is nobody's outside: not the LAN's, not the host's.
func TestNobodyReachesWhatListensInside(t *testing.T) {
	t.Parallel()
	for _, tier := range tiers {
		for _, c := range usual(tier) {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				w := world.New(t)
				talk := converse(t, c.user(t, w).probe(t, tier, "listen"))
				talk.wait(t, "listening")
				reached := reachable(w)
				switch {
				case tier == "full" && !slices.Contains(reached, "outside tcp "+target.HostLAN):
					t.Errorf("in tier full only %q is reached: the test sees nothing", reached)
				case tier != "full" && len(reached) > 0:
					t.Errorf("reached %q", reached)
				}
				talk.end(t)
			})
		}
	}
}

// reachable lists from where, how and at which address of the host somebody
// answers at the port that the probe listens on.
func reachable(w *world.World) []string {
	var mu sync.Mutex
	var found []string
	var all sync.WaitGroup
	for _, t := range target.On(target.Host) {
		if t.Addr.IsLinkLocalUnicast() {
			continue
		}
		for _, network := range []string{"tcp", "udp"} {
			for place, dial := range map[string]func(string, string, uint16) (string, error){"host": w.DialFromHost, "outside": w.DialFromOutside} {
				if place == "outside" && t.Addr.IsLoopback() {
					continue
				}
				all.Go(func() {
					if answer, err := dial(network, t.Addr.String(), target.ListenPort); err == nil && strings.HasPrefix(answer, "inside") {
						mu.Lock()
						defer mu.Unlock()
						found = append(found, place+" "+network+" "+t.Addr.String())
					}
				})
			}
		}
	}
	all.Wait()
	slices.Sort(found)
	return found
}

// conversation is with a program that answers line by line.
type conversation struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Scanner
	stderr *strings.Builder
	hang   *time.Timer
}

func converse(t *testing.T, cmd *exec.Cmd) *conversation {
	t.Helper()
	c := &conversation{cmd: cmd, stderr: &strings.Builder{}}
	cmd.Stderr = c.stderr
	stdout, err := cmd.StdoutPipe()
	must.Do(t, err)
	if c.stdin, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	c.stdout = bufio.NewScanner(stdout)
	must.Do(t, cmd.Start())
	c.hang = time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return c
}

// wait reads to a line, and returns those before it.
func (c *conversation) wait(t *testing.T, last string) []string {
	t.Helper()
	var before []string
	for c.stdout.Scan() {
		c.hang.Reset(patience)
		if c.stdout.Text() == last {
			return before
		}
		before = append(before, c.stdout.Text())
	}
	t.Fatalf("it ended before it said %q: %q, %s", last, before, c.stderr)
	return nil
}

func (c *conversation) say(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(c.stdin, line+"\n"); err != nil {
		t.Fatal(err)
	}
}

// end closes the program's input, which ends it.
func (c *conversation) end(t *testing.T) {
	t.Helper()
	c.stdin.Close()
	if err := c.cmd.Wait(); err != nil {
		t.Errorf("%v, %s", err, c.stderr)
	}
	c.hang.Stop()
}
