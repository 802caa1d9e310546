//go:build lab

package sandbox_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nix-community/go-nix/pkg/wire"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/trial"
	"claudebox/internal/nix/inside"
)

// filterMemory is the most that the filter may take, in KiB, what it shares with
// claudebox itself counted.
const filterMemory = 16 << 10

// raw is a client of the filter that keeps to no protocol but its own.
type raw struct{ bytes.Buffer }

func (r *raw) numbers(all ...uint64) *raw {
	for _, n := range all {
		_ = wire.WriteUint64(r, n)
	}
	return r
}

func (r *raw) texts(count int, text string) *raw {
	for range count {
		_ = wire.WriteString(r, text)
	}
	return r
}

// greeted is a client that has said all of its part of the handshake.
func greeted() *raw { return new(raw).numbers(0x6e697863, 0x126, 0, 0, 0) }

// Two hundred clients at once send what is long, half, slow or never ends, ask
// for the longest answers there are, and read none of it: the filter of a real
// session takes little memory, and answers the Nix inside after it.
func TestTheFiltersMemoryStaysSmallUnderAttack(t *testing.T) {
	h := newOwnHost(t)
	h.daemon(t, "trixie", false)
	big := h.remote(t, "nix-instantiate", "--expr", `derivation { name = "refers-to-many"; system = "x"; builder = "x";
		all = builtins.genList (n: builtins.toFile "file-${toString n}-`+strings.Repeat("long", 20)+`" "") 1000; }`)
	cmd := h.there(h.session(`nix shell nixpkgs#hello -c hello 2>/dev/null >up; while [ ! -e down ]; do sleep 0.05; done
		nix path-info ` + big + `; nix shell nixpkgs#hello -c hello 2>/dev/null`))
	done := make(chan outcome, 1)
	go func() { done <- run(t, cmd) }()
	for up := ""; up == ""; time.Sleep(10 * time.Millisecond) {
		said, _ := os.ReadFile(h.path("project/up"))
		up = string(said)
	}
	pid := filterOf(t, h.home)
	before := memory(t, pid, "VmHWM")
	h.attackFilter(t, big)
	peak := memory(t, pid, "VmHWM")
	t.Logf("the filter took %d KiB, %d KiB before; of that %d KiB are the program's", peak, before, memory(t, pid, "RssFile"))
	if peak > filterMemory {
		t.Errorf("the filter took %d KiB; want at most %d", peak, filterMemory)
	}
	h.write(t, "project/down", "")
	if got, want := <-done, big+"\nHello, world!\n"; got.stdout != want || got.status != 0 {
		t.Errorf("after all that: status %d, %q, %s; want %q", got.status, got.stdout, got.stderr, want)
	}
}

// attackFilter has 20 clients at once, or 200 in checks/long, send one of these after the other, and read
// nothing.
func (h *ownHost) attackFilter(t *testing.T, big string) {
	t.Helper()
	long := "/nix/store/" + strings.Repeat("0", 32) + "-" + strings.Repeat("x", 211)
	attacks := [][]byte{
		greeted().numbers(31, 1<<16).texts(1<<16, long).numbers(0).Bytes(),
		bytes.Repeat(new(raw).numbers(31, 256).texts(256, long).numbers(0).Bytes(), 4),
		greeted().numbers(26).texts(1, big).Bytes(),
		greeted().numbers(31, 1<<12).texts(1<<12, big).numbers(0).Bytes(),
		greeted().numbers(1, 64<<20).Bytes(),
		append(greeted().numbers(44).Bytes(), make([]byte, 4<<20)...),
		append(greeted().numbers(19).Bytes(), make([]byte, 4<<20)...),
		greeted().numbers(19, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1<<16).texts(2<<10, strings.Repeat("y", 4<<10)).Bytes(),
		greeted().numbers(6).texts(1, big).numbers(33).texts(1, big).Bytes(),
		greeted().numbers(31, 256).texts(255, long).Bytes()[:50<<10],
	}
	attacks[1] = slices.Concat(greeted().Bytes(), attacks[1])
	sockets, err := filepath.Glob(h.path(".claudebox/instances/*/nix/main/" + inside.Socket))
	if err != nil || len(sockets) != 1 {
		t.Fatalf("sockets: %q, %v", sockets, err)
	}
	folder, err := os.Open(filepath.Dir(sockets[0]))
	must.Do(t, err)
	defer folder.Close()
	for _, attack := range attacks {
		var group sync.WaitGroup
		for range trial.Count(20, 200) {
			group.Go(func() {
				conn, err := net.Dial("unix", fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), inside.Socket))
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(time.Second))
				_, _ = conn.Write(attack)
				time.Sleep(time.Second)
			})
		}
		group.Wait()
	}
}

// filterOf is the process of the filter of a world's session.
func filterOf(t *testing.T, home string) (pid string) {
	t.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*")
	must.Do(t, err)
	for _, process := range processes {
		words, _ := os.ReadFile(process + "/cmdline")
		if !bytes.HasPrefix(words, []byte(inside.Name+"\x00")) {
			continue
		}
		status, _ := os.ReadFile(process + "/status")
		_, rest, _ := strings.Cut(string(status), "\nPPid:\t")
		parent, _, _ := strings.Cut(rest, "\n")
		if environment, _ := os.ReadFile("/proc/" + parent + "/environ"); bytes.Contains(environment, []byte("HOME="+home+"\x00")) {
			pid = filepath.Base(process)
		}
	}
	if pid == "" {
		t.Fatal("the session has no filter")
	}
	return pid
}

// memory is a line of a process's status, in KiB.
func memory(t *testing.T, pid, name string) (kib int) {
	t.Helper()
	status := must.Read(t, "/proc/"+pid+"/status")
	_, rest, found := strings.Cut(status, "\n"+name+":")
	if _, err := fmt.Sscan(rest, &kib); !found || err != nil && err != io.EOF {
		t.Fatalf("%s of %s: %v", name, pid, err)
	}
	return kib
}
