//go:build lab && bench

package network_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"claudebox/checks/promises/network/target"
	"claudebox/checks/promises/network/world"
)

// rival is one of the ways to a network that are measured beside each other.
type rival struct {
	name string
	run  runs
}

// rivals are the host itself, the host with a relay between, claudebox by both interfaces, and pasta as it is, of each
// release that the lab has.
func rivals(t *testing.T) []rival {
	list := []rival{
		{"host", func(_ *testing.T, u *user, words ...string) *exec.Cmd { return u.plainly(probe(), words...) }},
		{"host, a plain relay between", func(_ *testing.T, u *user, words ...string) *exec.Cmd {
			return u.plainly(probe(), append([]string{"relayed"}, words[1:]...)...)
		}},
		{"inet", tier("inet")},
		{"inet, no tun", untunned("inet")},
	}
	for _, release := range releases {
		pasta := filepath.Join(os.Getenv("CLAUDEBOX_LAB_RELEASES"), release, "moved/pasta")
		if _, err := os.Stat(pasta); err != nil {
			continue
		}
		version := strings.ReplaceAll(release, "sid", "newest")
		list = append(list, rival{"pasta, " + version, func(_ *testing.T, u *user, words ...string) *exec.Cmd {
			return u.plainly(pasta, append([]string{"--config-net", "-q", "-f", "--", probe()}, words...)...)
		}})
	}
	return list
}

type runs = func(t *testing.T, u *user, words ...string) *exec.Cmd

func tier(name string) runs {
	return func(t *testing.T, u *user, words ...string) *exec.Cmd { return u.probe(t, name, words...) }
}

// untunned is a tier where there is no tun. Such a host takes a test longer to make,
// and each of its namespaces longer to copy.
func untunned(name string) runs {
	return func(t *testing.T, u *user, words ...string) *exec.Cmd {
		u.layout = withoutTun()
		defer func() { u.layout = world.Systemd }()
		return u.probe(t, name, words...)
	}
}

// plainly is a program on the host, without a sandbox.
func (u *user) plainly(program string, words ...string) *exec.Cmd {
	cmd := u.world.Command(u.layout, program, words...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = u.project, u.env, patience
	return cmd
}

// TestMeasureTheNetwork prints a table in Markdown: every row in one run, the
// rivals in turns, medians. checks/bench runs it.
func TestMeasureTheNetwork(t *testing.T) {
	near, far := world.New(t), world.New(t)
	near.Untap()
	far.Untap()
	if err := far.Delay(25 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	for _, w := range []*world.World{near, far} {
		serveTraffic(t, w)
	}
	all := rivals(t)
	withFull := append(slices.Clone(all), rival{"full", tier("full")}, rival{"full, no tun", untunned("full")})
	fmt.Print("\n| network |")
	for _, r := range withFull {
		fmt.Printf(" %s |", r.name)
	}
	fmt.Print("\n|" + strings.Repeat(" --- |", len(withFull)+1) + "\n")
	const source, sink, web = "203.0.113.10:9001", "203.0.113.10:9002", "203.0.113.10:80"
	gigabits := func(n float64) string { return fmt.Sprintf("%.2f Gbit/s", n*8/1e9) }
	row(t, "upload", newUser(t, near), all, 7, gigabits, "traffic", "up", sink)
	row(t, "download", newUser(t, near), all, 7, gigabits, "traffic", "down", source)
	row(t, "upload, 50 ms", newUser(t, far), all, 3, gigabits, "traffic", "up", sink)
	row(t, "download, 50 ms", newUser(t, far), all, 3, gigabits, "traffic", "down", source)
	row(t, "connect + GET", newUser(t, near), all, 3, func(n float64) string { return fmt.Sprintf("%.2f ms", n/1000) }, "traffic", "get", web)
	row(t, "the way to the program", newUser(t, near), withFull, 15, func(n float64) string { return fmt.Sprintf("%.1f ms", n/1e6) }, "now")
	u := newUser(t, near)
	talk := converse(t, u.probe(t, "inet", "converse"))
	talk.ask(t, "hold "+web)
	helper := helperOf(t, talk.cmd.Process.Pid)
	before := ticks(t, helper)
	time.Sleep(5 * time.Second)
	fmt.Printf("| idle for 5 s, a connection open | | %d ticks, %d KiB at most |\n", ticks(t, helper)-before, resident(t, helper))
	talk.end(t)
}

// row measures all rivals in turns.
func row(t *testing.T, name string, u *user, all []rival, rounds int, show func(float64) string, words ...string) {
	t.Helper()
	figures := make([][]float64, len(all))
	for range rounds {
		for i, r := range all {
			begin := time.Now()
			out, err := r.run(t, u, words...).Output()
			n, failed := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
			if err != nil || failed != nil {
				continue // a rival may not be able to
			}
			if words[0] == "now" {
				n -= float64(begin.UnixNano())
			}
			figures[i] = append(figures[i], n)
		}
	}
	fmt.Printf("| %s |", name)
	for _, list := range figures {
		if slices.Sort(list); len(list) == 0 {
			fmt.Print(" – |")
			continue
		}
		fmt.Printf(" %s |", show(list[len(list)/2]))
	}
	fmt.Println()
}

// ticks of processor time that a process has had.
func ticks(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')'):]))
	user, _ := strconv.Atoi(fields[12])
	system, _ := strconv.Atoi(fields[13])
	return user + system
}

// serveTraffic serves as much as anybody takes at one port of the internet, and
// takes as much as comes at another.
func serveTraffic(t *testing.T, w *world.World) {
	t.Helper()
	for port, serve := range map[string]func(net.Conn){
		"9001": func(c net.Conn) {
			for piece := make([]byte, 256<<10); ; {
				if _, err := c.Write(piece); err != nil {
					return
				}
			}
		},
		"9002": func(c net.Conn) { io.Copy(io.Discard, struct{ io.Reader }{c}) },
	} {
		for _, l := range w.ListenOutside(t, port, target.Internet) {
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					go func() { defer c.Close(); serve(c) }()
				}
			}()
		}
	}
}
