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
)

// mayImport says, for each package, which others and which modules it may
// import beside the standard library.
var mayImport = map[string][]string{
	"alone":          {},
	"stack":          {},
	"diag":           {},
	"storepath":      {"diag", nix + "storepath", nix + "nixbase32"},
	"pathname":       {},
	"smallfile":      {sys},
	"cachefile":      {"smallfile", sys},
	"beneath":        {"smallfile", sys},
	"layout":         {},
	"leak/gen":       {},
	"leak":           {},
	"forbidden":      {},
	"hostpattern":    {},
	"host":           {"diag", "beneath", "smallfile"},
	"profile/shape":  {"diag"},
	"profile/syntax": {"diag", "profile/shape", "gopkg.in/yaml.v3"},
	"profile":        {"diag", "hostpattern", "leak", "profile/shape", "storepath"},
	"nixdaemon":      {"diag", "storepath", nix + "wire", nix + "derivation", sys},
	"nixeval":        {"diag", "storepath"},
	"gcroot":         {nix + "nixbase32", sys},
	"resolve":        {"cachefile", "diag", "profile", "storepath", "nixdaemon", "nixeval", sys},
	"plan":           {"diag", "hostpattern", "leak", "profile", "resolve"},
	"plan/diff":      {"plan", "storepath"},
	"gitconfig":      {"diag"},
	"gitdir":         {"beneath", "gitconfig", sys},
	"gitindex":       {},
	"gitdefuse":      {"beneath", "gitconfig"},
	"survey":         {"beneath", "packed", sys},
	"hostrun":        {},
	"secretfile":     {"leak"},
	"lent":           {"beneath", "gitconfig", "secretfile", "survey"},
	"placeholder":    {"diag", "beneath", sys},
	"project":        {"pathname", "diag", "beneath", "gitconfig", "gitdefuse", "gitdir", "gitindex", "hostrun", "packed", "placeholder", "secretfile", "survey", sys},
	"spawn/nofile":   {},
	"timerslack":     {sys},
	"selfpipe":       {sys},
	"spawn/vfork":    {sys},
	"within":         {"spawn/vfork", sys},
	"proctree":       {},
	"cover":          {"proctree", "within", sys},
	"aftermath":      {"pathname", "diag", "beneath", "cachefile", "gitdefuse", "hostrun", "layout", "packed", "project", "secretfile", "state", "survey", sys},
	"agenthome":      {"leak"},
	"login":          {"diag", "beneath", sys},
	"state":          {"diag", "beneath", "agenthome", "login", "packed", sys},
	"agent":          {"diag", sys},
	"seccomp/gen":    {"github.com/elastic/go-seccomp-bpf", "github.com/elastic/go-seccomp-bpf/arch", "golang.org/x/net/bpf", sys},
	"seccomp":        {},
	"netns":          {"diag", "spawn/vfork", sys},
	"netns/nstest":   {"netns"},
	"relay":          {sys},
	"ports":          {"diag", "netns", "relay"},
	"proxy":          {"forbidden", "hostnet", "hostpattern", "relay"},
	"netlink":        {sys},
	"hostnet":        {"diag", "netlink", sys},
	"netfilter":      {"diag", "netlink", "netns", sys},
	"network":        {"diag", "forbidden", "hostnet", "netfilter", "netns", sys},
	"spawn":          {"spawn/nofile", "spawn/vfork", "timerslack", sys},
	"storetree":      {"spawn", sys},
	"launch":         {"storetree", "diag", "host", "leak", "netns", "plan", "network", "proctree", "selfpipe", "spawn", "within", sys, "golang.org/x/term"},
	"audit":          {"diag", "layout", "plan", "plan/diff", "launch"},
	"why":            {"forbidden", "hostpattern", "launch", "layout", "leak", "plan", "profile"},
	"doctor":         {"diag", "layout", "host", "launch", "netfilter", "network", "nixdaemon", "plan", sys},
	"packed":         {},
	"profiledir":     {"diag", "host", "profile", "profile/shape", "smallfile", "storepath", sys},
	"plancache":      {"cachefile", "packed", "plan", "profiledir", "storepath", sys},
	"instances":      {"diag", "beneath", "state", sys},
	"trust":          {"pathname", "diag", "beneath", "hostpattern", "layout", "leak", "profile", sys},
	"session": {
		"pathname", "audit", "gcroot", "diag", "storepath", "cachefile", "host", "profile", "profile/shape", "profiledir", "nixdaemon", "nixeval", "resolve", "placeholder", "plan", "plancache",
		"aftermath", "beneath", "cover", "gitconfig", "project", "smallfile", "state", "agent", "seccomp", "hostpattern", "netns", "network", "ports", "proxy", "launch", "leak", "lent", "doctor", "trust", sys,
	},
	"manual":     {"profile/shape", "github.com/spf13/cobra", "github.com/spf13/pflag"},
	"manual/gen": {"cli", "manual", "plan", "profile"},
	"start":      {"storetree", "timerslack", "diag", "host", "profile/shape", "agent", "launch", "audit", "session", sys, "golang.org/x/term"},
	"cli": {
		"diag", "host", "hostnet", "instances", "layout", "profile", "profile/shape", "profile/syntax", "profiledir", "resolve", "plan", "plan/diff", "launch", "audit", "doctor", "session", "start", "state", "why",
		sys, "github.com/spf13/cobra", "github.com/spf13/pflag",
	},
}

const (
	nix = "github.com/nix-community/go-nix/pkg/"
	sys = "golang.org/x/sys/unix"
)

// pure packages are functions of values: they may not even ask the standard
// library for effects.
var pure = []string{"profile", "profile/shape", "profile/syntax", "plan", "plan/diff", "audit", "gitconfig", "storepath", "agenthome", "gitindex", "layout", "manual", "leak", "why", "forbidden", "hostpattern", "hostrun", "secretfile"}

var effects = []string{"os", "os/exec", "os/signal", "net", "net/http", "syscall", "time", sys}

func TestImportsFollowTheTable(t *testing.T) {
	for pkg, imports := range packageImports(t) {
		allowed, known := mayImport[pkg]
		if !known {
			t.Errorf("package internal/%s is not in the table", pkg)
			continue
		}
		for _, name := range imports {
			if !isStandard(name) && !slices.Contains(allowed, strings.TrimPrefix(name, "claudebox/internal/")) {
				t.Errorf("internal/%s imports %s", pkg, name)
			}
			if slices.Contains(pure, pkg) && slices.Contains(effects, name) {
				t.Errorf("internal/%s is pure and imports %s", pkg, name)
			}
		}
	}
}

// Each launch pays for what its program links.
func TestTheSmallProgramLinksNeitherYAMLNorCommands(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "../cmd/claudebox").Output()
	if err != nil {
		t.Fatal(err)
	}
	linked := strings.Fields(string(out))
	if !slices.Contains(linked, "claudebox/internal/session") {
		t.Error("go list says nothing of what it links")
	}
	for _, name := range []string{"gopkg.in/yaml.v3", "github.com/spf13/cobra", "github.com/spf13/pflag", "text/template", "debug/elf", "claudebox/internal/cli"} {
		if slices.Contains(linked, name) {
			t.Errorf("cmd/claudebox links %s", name)
		}
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
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, entry fs.DirEntry, err error) error {
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
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
