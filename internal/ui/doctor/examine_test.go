package doctor

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/nix/nixdaemon"
	"claudebox/internal/sandbox/launch"
)

// expect fails unless a finding has the level, holds the words, and says what
// to do when there is something to do.
func expect(t *testing.T, f Finding, level Level, words string) {
	t.Helper()
	if f.Level != level || !strings.Contains(f.Detail, words) {
		t.Errorf("got %s, %q; want %s, %q", f.Level, f.Detail, level, words)
	}
	if needs := level == Warning || level == Failed; needs != (f.Remedy != "") {
		t.Errorf("level %s has the remedy %q", level, f.Remedy)
	}
}

func TestTheKernelIsUsedNotAsked(t *testing.T) {
	works := func() error { return nil }
	fails := func() error { return errors.New("no") }
	for name, tc := range map[string]struct {
		needed []facility
		level  Level
		words  string
		remedy string
	}{
		"one that has all will do":             {[]facility{{"a", "1.0", works}, {"b", "2.0", works}}, OK, "has a, b", ""},
		"what is missing is named":             {[]facility{{"a", "1.0", works}, {"b", "2.0", fails}}, Failed, "no b", "Linux 2.0"},
		"the newest that is missing is needed": {[]facility{{"a", "1.0", fails}, {"b", "2.0", fails}}, Failed, "no a, b", "Linux 2.0"},
	} {
		t.Run(name, func(t *testing.T) {
			f := judgeKernel("9.9", tc.needed)
			expect(t, f, tc.level, tc.words)
			if !strings.Contains(f.Remedy, tc.remedy) {
				t.Errorf("remedy %q; want %q", f.Remedy, tc.remedy)
			}
		})
	}
}

func TestTheKernelOfTheTestsHasAll(t *testing.T) {
	expect(t, kernel(examination{}), OK, "openat2")
}

func TestTypingIntoATerminalIsToldOf(t *testing.T) {
	expect(t, judgeInjection([]byte("0\n")), OK, "off")
	expect(t, judgeInjection([]byte("1\n")), Info, "refused by the sandbox")
	expect(t, judgeInjection(nil), Info, "refused by the sandbox")
}

func TestTheDaemonsTrustDecidesWhereASandboxReachesIt(t *testing.T) {
	for name, tc := range map[string]struct {
		trust  nixdaemon.Trust
		inside string
		level  Level
		words  string
	}{
		"one that does not trust is reachable": {nixdaemon.NotTrusted, "host", OK, " does not trust you"},
		"one that trusts is not":               {nixdaemon.Trusted, "host", Failed, " trusts you, and could make the agent root"},
		"one that does not say is not":         {nixdaemon.TrustUnknown, "host", Failed, " does not say"},
		"trust is no matter behind the filter": {nixdaemon.Trusted, "own", OK, "; a sandbox can ask it what the store has"},
		"nothing more is said without a plan":  {nixdaemon.Trusted, "", OK, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := judgeDaemon(nixdaemon.Info{Version: "2.26.3", Trust: tc.trust}, tc.inside)
			expect(t, f, tc.level, "Nix 2.26.3"+tc.words)
			if tc.words == "" && f.Detail != "Nix 2.26.3" {
				t.Errorf("got %q; want the version alone", f.Detail)
			}
		})
	}
}

func TestAnAbsentDaemonIsAWarning(t *testing.T) {
	findings := Examine(Machine{Socket: must.Socket(t)})
	expect(t, named(t, findings, "nix daemon"), Warning, "no Nix daemon listens")
}

func TestADaemonThatSpeaksOtherwiseIsAWarning(t *testing.T) {
	socket := must.Socket(t)
	listener, err := net.Listen("unix", socket)
	must.Do(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	findings := Examine(Machine{Socket: socket})
	expect(t, named(t, findings, "nix daemon"), Warning, "closed the connection")
}

func named(t *testing.T, findings []Finding, name string) Finding {
	t.Helper()
	i := slices.IndexFunc(findings, func(f Finding) bool { return f.Name == name })
	if i < 0 {
		t.Fatalf("%q is not among %v", name, findings)
	}
	return findings[i]
}

func TestRoomIsNeeded(t *testing.T) {
	plenty := room{bytes: 1 << 40, files: 1 << 20, counts: true}
	for name, tc := range map[string]struct {
		change func(*room)
		level  Level
		words  string
	}{
		"plenty will do":                   {func(*room) {}, OK, "1048576 MiB are left"},
		"a full disk will not":             {func(r *room) { r.bytes = 1000 }, Failed, "is full"},
		"one without files will not":       {func(r *room) { r.files = 3 }, Failed, "no more files"},
		"some do not count files":          {func(r *room) { r.files, r.counts = 0, false }, OK, "left"},
		"one that fills up soon is a pity": {func(r *room) { r.bytes = 20 << 20 }, Warning, "only 20 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			left := plenty
			tc.change(&left)
			expect(t, judgeRoom("/home/u/.claudebox", left), tc.level, tc.words)
		})
	}
}

func TestTheStateFolderMayBeMissing(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	must.Write(t, file, "")
	for path, want := range map[string]string{dir: dir, filepath.Join(dir, "a/b/c"): dir} {
		if got, err := existing(path); err != nil || got != want {
			t.Errorf("existing(%s) = %s, %v; want %s", path, got, err, want)
		}
	}
	expect(t, homes(examination{Machine: Machine{AgentHomes: file}}), Failed, "not a directory")
	expect(t, homes(examination{Machine: Machine{AgentHomes: filepath.Join(file, "below")}}), Failed, "not a directory")
}

func TestStorePathsHaveToBeThere(t *testing.T) {
	const lost = "/nix/store/00000000000000000000000000000000-lost"
	f := storePaths(examination{Machine: Machine{Paths: []string{t.TempDir(), lost + "/bin/a", lost + "/bin/b"}}})
	expect(t, f, Failed, "gone from the store: "+lost)
	if want := "`nix-store --realise " + lost + "`"; !strings.Contains(f.Remedy, want) {
		t.Errorf("remedy %q; want %s", f.Remedy, want)
	}
	expect(t, storePaths(examination{Machine: Machine{Paths: []string{t.TempDir()}, Fetched: []string{"hello"}}}), OK, "first: hello")
}

// fakeDaemon calls these paths valid.
type fakeDaemon map[string]bool

func (d fakeDaemon) QueryValidPaths(_ context.Context, paths []string) ([]string, error) {
	if d == nil {
		return nil, errors.New("no answer")
	}
	return slices.DeleteFunc(slices.Clone(paths), func(path string) bool { return !d[path] }), nil
}

func TestPathsUnknownToTheDaemonAreFound(t *testing.T) {
	const known, unknown = "/nix/store/00000000000000000000000000000000-known", "/nix/store/11111111111111111111111111111111-unknown"
	files := []string{known + "/bin/a", unknown + "/bin/a", unknown + "/bin/b", "/home/u/own"}
	if got := unknownPaths(fakeDaemon{known: true}, files); !slices.Equal(got, []string{unknown}) {
		t.Errorf("got %q; want %q", got, unknown)
	}
	if got := unknownPaths(fakeDaemon(nil), files); len(got) > 0 {
		t.Errorf("got %q from a daemon that does not answer", got)
	}
}

func TestAnOldBwrapIsAWarning(t *testing.T) {
	expect(t, judgeVersion(launch.Bwrap{Version: "0.11.2"}, "/bwrap"), Warning, "CVE-2026-87766")
	expect(t, judgeVersion(launch.Bwrap{Version: "0.12.0"}, "/bwrap"), OK, "0.12.0")
}

func program(t *testing.T, script string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "program")
	must.Program(t, file, script)
	return file
}

// A sandbox without bwrap would only repeat that there is none.
func TestWhatFollowsFromAFaultIsNotLookedAt(t *testing.T) {
	findings := Examine(Machine{Bwrap: "/absent/bwrap", Env: program(t, "#!/bin/sh\n"), Seccomp: []byte{0}})
	expect(t, named(t, findings, "bwrap"), Failed, "no such file")
	if slices.ContainsFunc(findings, func(f Finding) bool { return f.Name == "sandbox" }) {
		t.Errorf("a sandbox was tried: %v", findings)
	}
}

func TestWithoutAPlanTheMachineIsLookedAt(t *testing.T) {
	var names []string
	for _, f := range Examine(Machine{}) {
		names = append(names, f.Name)
	}
	if want := []string{"kernel", "user namespaces", "terminal input", "confirmation"}; !slices.Equal(names, want) {
		t.Errorf("got %q; want %q", names, want)
	}
}

func TestNoQuestionNeedsNoTerminal(t *testing.T) {
	expect(t, terminal(examination{}), OK, "no question")
}

// A path of which the daemon does not know is told with the command that makes it known.
func TestTheRemedyForAnUnknownPathWorks(t *testing.T) {
	const path = "/nix/store/11111111111111111111111111111111-unknown"
	daemon := fakeDaemon{}
	f := judgeUnknown(unknownPaths(daemon, []string{path}))
	if want := "make them known with `nix-store --realise " + path + "`"; f.Remedy != want {
		t.Fatalf("remedy %q; want %q", f.Remedy, want)
	}
	daemon[path] = true // as it does
	if f := judgeUnknown(unknownPaths(daemon, []string{path})); f.Level != OK {
		t.Errorf("%+v", f)
	}
}
