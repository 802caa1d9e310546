//go:build lab

// These tests run against a real daemon, as an untrusted user. They leave no
// root behind, add paths of their own only, and delete no others.

package nixdaemon_test

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"claudebox/checks/kit/must"
	"claudebox/internal/nix/nixdaemon"
)

// unique is a text that no earlier run has used.
func unique(t testing.TB) string { return fmt.Sprintf("%s-%d", t.Name(), time.Now().UnixNano()) }

// addPath puts a new file into the store.
func addPath(t testing.TB, l lab) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "added")
	must.Write(t, file, unique(t))
	return l.must(t, "nix-store", "--add", file)
}

// instantiate writes a new derivation whose builder is a shell script.
func instantiate(t testing.TB, l lab, script string, more ...string) string {
	t.Helper()
	expr := fmt.Sprintf(`derivation ({ name = "lab"; system = builtins.currentSystem; builder = "/bin/sh";
		outputs = [ "out" "dev" ]; unique = %q; args = [ "-c" %q ]; } // { %s })`, unique(t), script, strings.Join(more, " "))
	return l.must(t, "nix-instantiate", "--read-write-mode", "-E", expr)
}

const invalid = "/nix/store/00000000000000000000000000000000-claudebox-never-was"

func TestLabHandshake(t *testing.T) { onEach(t, labHandshake) }

func labHandshake(t *testing.T, l lab) {
	c := l.client(t, nixdaemon.Options{})
	info := c.Info()
	t.Logf("daemon %s, protocol %s, trust %d", info.Version, info.Protocol, info.Trust)
	if info.Version == "" || info.Protocol < nixdaemon.Oldest || info.Protocol > nixdaemon.Newest {
		t.Errorf("Info() = %+v", info)
	}
	if info.Protocol >= 0x123 && info.Trust == nixdaemon.TrustUnknown {
		t.Errorf("a daemon of %s does not say whom it trusts", info.Protocol)
	}
}

func TestLabQueries(t *testing.T) { onEach(t, labQueries) }

func labQueries(t *testing.T, l lab) {
	c, ctx := l.client(t, nixdaemon.Options{}), t.Context()
	path := addPath(t, l)
	valid, err := c.QueryValidPaths(ctx, []string{invalid, path})
	if err != nil || !slices.Equal(valid, []string{path}) {
		t.Errorf("QueryValidPaths = %q, %v; want the added path", valid, err)
	}
	for p, want := range map[string]bool{path: true, invalid: false} {
		if got, err := c.IsValidPath(ctx, p); err != nil || got != want {
			t.Errorf("IsValidPath(%s) = %t, %v; want %t", p, got, err, want)
		}
	}
	infos, err := c.QueryPathInfos(ctx, []string{path, invalid})
	if err != nil || infos[1] != nil || infos[0].NARSize == 0 || len(infos[0].NARHash) != 64 || infos[0].CA == "" {
		t.Errorf("QueryPathInfos = %+v, %v; want one of a content-addressed path", infos, err)
	}
	if age := time.Since(infos[0].Registered); age < -time.Minute || age > time.Hour {
		t.Errorf("it was registered %s ago", age)
	}
	if err := c.Alive(); err != nil {
		t.Error(err)
	}
}

// build has a derivation of two outputs built, dev referring to out, and gives their paths.
func build(t testing.TB, l lab, c *nixdaemon.Client) map[string]string {
	t.Helper()
	drv := instantiate(t, l, "echo out >$out; echo $out >$dev")
	results, err := c.BuildPaths(t.Context(), []string{drv + "!dev,out"})
	if err != nil || results[0].Err() != nil {
		t.Fatal(err, results)
	}
	return l.outputs(t, drv)
}

// outputs are the paths of a derivation's two, by name.
func (l lab) outputs(t testing.TB, drv string) map[string]string {
	t.Helper()
	outputs := map[string]string{}
	for _, name := range []string{"out", "dev"} {
		outputs[name] = l.must(t, "nix-store", "-q", "--binding", name, drv)
	}
	return outputs
}

func TestLabBuild(t *testing.T) { onEach(t, labBuild) }

func labBuild(t *testing.T, l lab) {
	var lines []string
	c := l.client(t, nixdaemon.Options{Log: func(e nixdaemon.Event) {
		if r, ok := e.(nixdaemon.Result); ok && r.Type == nixdaemon.BuildLogLine {
			lines = append(lines, r.Fields[0].Text)
		}
	}})
	drv := instantiate(t, l, "echo hello from the builder; echo out >$out; echo $out >$dev")
	target := drv + "!dev,out"
	missing, err := c.QueryMissing(t.Context(), []string{target})
	if err != nil || !slices.Equal(missing.WillBuild, []string{drv}) {
		t.Errorf("QueryMissing = %+v, %v; want it to be built", missing, err)
	}
	for _, want := range []nixdaemon.Status{nixdaemon.Built, nixdaemon.AlreadyValid} {
		results, err := c.BuildPaths(t.Context(), []string{target})
		if err != nil || results[0].Status != want {
			t.Fatalf("BuildPaths = %+v, %v; want status %d", results, err, want)
		}
	}
	for _, path := range l.outputs(t, drv) {
		if valid, err := c.IsValidPath(t.Context(), path); err != nil || !valid {
			t.Errorf("%s is valid: %v, %v; want it to be built", path, valid, err)
		}
	}
	if !slices.Contains(lines, "hello from the builder") {
		t.Errorf("the log holds %q; want the builder's line", lines)
	}
}

// The closure is what Nix's own program says it is.
func TestLabClosure(t *testing.T) { onEach(t, labClosure) }

func labClosure(t *testing.T, l lab) {
	c := l.client(t, nixdaemon.Options{})
	outputs := build(t, l, c)
	infos, err := c.Closure(t.Context(), []string{outputs["dev"]})
	must.Do(t, err)
	got := slices.Sorted(maps.Keys(infos))
	want := strings.Fields(l.must(t, "nix-store", "-q", "--requisites", outputs["dev"]))
	slices.Sort(want)
	if len(got) != 2 || !slices.Equal(got, want) {
		t.Errorf("Closure = %q; nix-store says %q", got, want)
	}
	referrers, err := c.QueryReferrers(t.Context(), outputs["out"])
	if err != nil || !slices.Equal(referrers, []string{outputs["dev"]}) {
		t.Errorf("QueryReferrers = %q, %v; want dev", referrers, err)
	}
}

func TestLabFailuresSayWhy(t *testing.T) { onEach(t, labFailuresSayWhy) }

func labFailuresSayWhy(t *testing.T, l lab) {
	s := &nixdaemon.Client{Socket: l.socket}
	defer s.Close()
	fails := instantiate(t, l, "echo the builder gives up; exit 3")
	depends := instantiate(t, l, "echo never", `src = "${`+importDrv(fails)+`}";`)
	foreign := instantiate(t, l, "echo never", `system = "riscv64-linux";`)
	missing := "/nix/store/00000000000000000000000000000000-never-was.drv"
	works := instantiate(t, l, "echo >$out; echo >$dev")
	targets := []string{invalid, fails + "!out", depends + "!out", foreign + "!out", missing + "!out", works + "!*"}
	failed, err := s.Realise(t.Context(), targets)
	must.Do(t, err)
	for i, target := range targets {
		why := failed[target]
		t.Logf("%s: %v", target, why)
		if (why == nil) != (i == len(targets)-1) {
			t.Errorf("%s fails with %v", target, why)
		}
	}
	if why := failed[fails+"!out"]; !strings.Contains(why.Error(), "the builder gives up") && !strings.Contains(why.Error(), "exit code 3") {
		t.Errorf("the failed build says %q; want the builder's status", why)
	}
	if err := s.Alive(); err != nil {
		t.Errorf("the connection is lost after failures: %v", err)
	}
}

// importDrv is a Nix expression for the output of a derivation that exists.
func importDrv(drv string) string { return "import " + drv }

// An error that a daemon meets while it reads the request ends the
// connection. Our own checks are passed by here.
func TestLabAnErrorInTheRequestEndsTheConnection(t *testing.T) {
	onEach(t, labAnErrorInTheRequestEndsTheConnection)
}

func labAnErrorInTheRequestEndsTheConnection(t *testing.T, l lab) {
	c := l.client(t, nixdaemon.Options{})
	err := nixdaemon.SendUnchecked(t.Context(), c, "/etc/passwd")
	var refused *nixdaemon.DaemonError
	if !errors.As(err, &refused) {
		t.Fatalf("IsValidPath(/etc/passwd) = %v; want the daemon's error", err)
	}
	if _, err := c.IsValidPath(t.Context(), invalid); !errors.Is(err, nixdaemon.ErrBroken) {
		t.Errorf("the next operation = %v; want %v", err, nixdaemon.ErrBroken)
	}
}
