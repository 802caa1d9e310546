package internal

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
)

// A room is a folder below internal/ with one subject. Its packages may import
// each other and those of the rooms named.
type room struct {
	name    string
	imports []string // rooms, all of which stand above it
}

var rooms = []room{
	{"diag", nil},
	{"linux", nil},
	{"secret", []string{"diag", "linux"}},
	{"host", []string{"diag", "linux", "secret"}},
	{"nix", []string{"diag", "linux"}},
	{"network", []string{"diag", "linux"}},
	{"profile", []string{"diag", "linux", "host", "secret", "nix", "network"}},
	{"plan", []string{"diag", "linux", "secret", "nix", "network", "profile"}},
	{"sandbox", []string{"diag", "linux", "host", "secret", "network", "plan"}},
	{"agent", []string{"diag", "linux", "secret"}},
	{"workspace", []string{"diag", "linux", "secret", "agent"}},
	{"ui", []string{"diag", "linux", "host", "secret", "nix", "network", "profile", "plan", "sandbox"}},
	{"session", []string{"diag", "linux", "host", "secret", "nix", "network", "profile", "plan", "sandbox", "agent", "workspace", "ui"}},
	{"cli", []string{"diag", "linux", "host", "secret", "nix", "network", "profile", "plan", "sandbox", "agent", "ui", "session"}},
}

// modules says which packages may import code that is neither ours nor Go's.
// Everything may import golang.org/x/sys/unix.
var modules = map[string][]string{
	"nix/storepath":   {nix + "storepath", nix + "nixbase32"},
	"nix/nixdaemon":   {nix + "wire"},
	"nix/gcroot":      {nix + "nixbase32"},
	"profile/shape":   {"go.yaml.in/yaml/v3"},
	"network/hostnet": {"github.com/vishvananda/netlink", "github.com/vishvananda/netlink/nl"},
	"network/stage":   {"github.com/vishvananda/netlink", "github.com/vishvananda/netlink/nl"},
	"network/serve":   {"gvisor.dev/gvisor/pkg/log"},
	"network/dns":     {"golang.org/x/net/dns/dnsmessage", "golang.org/x/time/rate"},
	"network/stack": {
		tcpip, tcpip + "/adapters/gonet", tcpip + "/checksum", tcpip + "/header", tcpip + "/link/channel", tcpip + "/link/nested",
		tcpip + "/network/ipv4", tcpip + "/network/ipv6", tcpip + "/stack",
		tcpip + "/transport/icmp", tcpip + "/transport/tcp", tcpip + "/transport/udp",
		"gvisor.dev/gvisor/pkg/buffer", "gvisor.dev/gvisor/pkg/waiter",
	},
	"sandbox/systemd":     {"github.com/godbus/dbus/v5"},
	"sandbox/launch":      {"golang.org/x/term"},
	"agent/shellline":     {"mvdan.cc/sh/v3/syntax"},
	"secret/swap":         {"golang.org/x/net/http/httpproxy"},
	"secret/sign":         {"golang.org/x/crypto/ssh", "golang.org/x/crypto/ssh/agent", "golang.org/x/crypto/ssh/knownhosts"},
	"sandbox/seccomp/gen": {"github.com/elastic/go-seccomp-bpf/arch"},
	"cli":                 {"github.com/spf13/cobra", "github.com/spf13/pflag", "golang.org/x/term"},
}

const (
	nix   = "github.com/nix-community/go-nix/pkg/"
	sys   = "golang.org/x/sys/unix"
	tcpip = "gvisor.dev/gvisor/pkg/tcpip"
)

// pure packages are functions of values: they may not even ask the standard
// library for effects.
var pure = []string{"profile", "profile/shape", "profile/grant", "plan", "plan/diff", "ui/audit", "workspace/gitconfig", "session/usergit", "nix/storepath", "agent/agenthome", "diag/layout", "diag/spelling", "secret/leak", "ui/why", "network/policy", "network/hostpattern", "workspace/hostrun", "workspace/secretfile"}

var effects = []string{"os", "os/exec", "os/signal", "net", "net/http", "syscall", "time", sys}

func TestImportsFollowTheTable(t *testing.T) {
	for pkg, imports := range packageImports(t) {
		name, _, _ := strings.Cut(pkg, "/")
		at := slices.IndexFunc(rooms, func(r room) bool { return r.name == name })
		if at < 0 {
			t.Errorf("internal/%s is a room that is not in the table", name)
			continue
		}
		for _, imported := range imports {
			if ours, is := strings.CutPrefix(imported, "claudebox/internal/"); is {
				if other, _, _ := strings.Cut(ours, "/"); other != name && !slices.Contains(rooms[at].imports, other) {
					t.Errorf("internal/%s imports %s", pkg, imported)
				}
			} else if !isStandard(imported) && imported != sys && !slices.Contains(modules[pkg], imported) {
				t.Errorf("internal/%s imports %s", pkg, imported)
			}
			if slices.Contains(pure, pkg) && slices.Contains(effects, imported) {
				t.Errorf("internal/%s is pure and imports %s", pkg, imported)
			}
		}
	}
}

func TestNoArrowPointsBack(t *testing.T) {
	var before []string
	for _, room := range rooms {
		for _, name := range room.imports {
			if !slices.Contains(before, name) {
				t.Errorf("%s may import %s, which does not stand above it", room.name, name)
			}
		}
		before = append(before, room.name)
	}
}

// The comment of doc.go lists the same rooms, in the same order.
func TestDocListsTheRooms(t *testing.T) {
	text := must.Read(t, "doc.go")
	var listed, want []string
	for line := range strings.Lines(text) {
		if rest, is := strings.CutPrefix(line, "//\t"); is {
			listed = append(listed, strings.Fields(rest)[0])
		}
	}
	for _, room := range rooms {
		want = append(want, room.name)
	}
	if !slices.Equal(listed, want) {
		t.Errorf("doc.go lists %q, the table %q", listed, want)
	}
}

func isStandard(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	return !strings.Contains(first, ".") && first != "claudebox"
}

// packageImports reads the imports of every file that is no test.
func packageImports(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	must.Do(t, fs.WalkDir(os.DirFS("."), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Dir(name) == "." ||
			!strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.Contains(name, "testdata") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.FromSlash(name), nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			dir := path.Dir(name)
			found[dir] = append(found[dir], strings.Trim(spec.Path.Value, `"`))
		}
		return nil
	}))
	return found
}

// What few launches need, no launch links: it is in the programs of libexec.
func TestNoLaunchPaysForTheseLibraries(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "claudebox/cmd/claudebox").Output()
	must.Do(t, err)
	linked := strings.Fields(string(out))
	for _, heavy := range []string{
		"net/http", "crypto/tls", "golang.org/x/crypto/ssh", "golang.org/x/net/http/httpproxy",
		"github.com/godbus/dbus/v5", "github.com/vishvananda/netlink", "gvisor.dev/gvisor/pkg/tcpip",
	} {
		if slices.Contains(linked, heavy) {
			t.Errorf("cmd/claudebox links %s: ask for it in claudebox's helper (internal/linux/aside)", heavy)
		}
	}
}
