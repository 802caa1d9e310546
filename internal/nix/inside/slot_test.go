package inside_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/checks/kit/must"
	"claudebox/internal/nix/inside"
)

func open(t *testing.T, dir string) *inside.Slot {
	t.Helper()
	s, err := inside.Open(dir)
	must.Do(t, err)
	t.Cleanup(func() {
		s.Close()
		for removing := []string{dir}; len(removing) > 0; time.Sleep(time.Millisecond) { // else the test's folder is not empty
			removing, _ = filepath.Glob(filepath.Join(filepath.Dir(dir), "remove-*"))
		}
	})
	return s
}

func has(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func TestTwoSessionsNeverShareAnUpper(t *testing.T) {
	parent := filepath.Join(t.TempDir(), "nix")
	first, extra := inside.Choose(parent)
	if extra || has(parent) {
		t.Errorf("Choose gives %s, %v; want the kept one, and nothing made", first, extra)
	}
	one := open(t, first)
	if _, err := inside.Open(first); !errors.Is(err, inside.ErrBusy) {
		t.Errorf("a second session opens it: %v; want ErrBusy", err)
	}
	second, extra := inside.Choose(parent)
	if !extra || second == first {
		t.Errorf("Choose gives a second session %s, %v", second, extra)
	}
	two := open(t, second)
	must.Write(t, filepath.Join(inside.Upper(second), "built", "file"), "x")
	two.Close()
	if has(second) {
		t.Error("what the second session wrote is still there")
	}
	must.Write(t, filepath.Join(inside.Upper(first), "built", "file"), "x")
	one.Close()
	if again, extra := inside.Choose(parent); extra || again != first || !has(filepath.Join(inside.Upper(first), "built")) {
		t.Errorf("the next session has %s, %v; want what the first one wrote", again, extra)
	}
}

// A session that was killed leaves its folder, and no lock.
func TestWhatAKilledSessionLeftIsRemoved(t *testing.T) {
	parent := t.TempDir()
	left := filepath.Join(parent, "extra-killed")
	must.Write(t, filepath.Join(left, "upper", "built", "file"), "x")
	for _, dir := range []string{"upper/built", "work/work"} {
		must.Do(t, os.MkdirAll(filepath.Join(left, dir), 0o755), os.Chmod(filepath.Join(left, dir), 0))
	}
	dir, _ := inside.Choose(parent)
	open(t, dir)
	if has(left) {
		t.Error("it is still there")
	}
}

// someOfTheStore is a name in this machine's store; the tests that need one are
// the lab's as well.
func someOfTheStore(t *testing.T) string {
	t.Helper()
	entries, err := os.ReadDir("/nix/store")
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), ".") {
			return entry.Name()
		}
	}
	t.Skipf("NOT RUN: this machine has no Nix store: %v", err)
	return ""
}

// An agent may have put folders and whiteouts in place of what the plan uses.
//
// Promise: no rights through Nix.
func TestAHostileUpperChangesNothingOfTheHosts(t *testing.T) {
	name := someOfTheStore(t)
	for attack, plant := range map[string]func(upper string) error{
		"a folder that is merged": func(upper string) error {
			dir := filepath.Join(upper, name)
			return errors.Join(os.MkdirAll(dir+"/bin", 0o755), os.WriteFile(dir+"/bin/bash", nil, 0o755), os.Chmod(dir, 0o555))
		},
		"a link":       func(upper string) error { return os.Symlink("/etc", filepath.Join(upper, name)) },
		"a whiteout":   func(upper string) error { return unix.Mknod(filepath.Join(upper, name), unix.S_IFCHR, 0) },
		"closed modes": func(upper string) error { return os.Chmod(upper, 0) },
		"an opaque layer": func(upper string) error {
			return unix.Setxattr(upper, "user.overlay.opaque", []byte("y"), 0)
		},
	} {
		t.Run(attack, func(t *testing.T) {
			dir, _ := inside.Choose(filepath.Join(t.TempDir(), "nix"))
			open(t, dir).Close()
			own := filepath.Join(inside.Upper(dir), "00bgd045z0d4icpbc2yyz4gx48ak44la-own")
			must.Write(t, own, "")
			if err := plant(inside.Upper(dir)); err != nil {
				t.Skipf("NOT RUN: %v", err)
			}
			open(t, dir)
			if has(filepath.Join(inside.Upper(dir), name)) {
				t.Error("it is still in the upper layer")
			}
			if n, err := unix.Getxattr(inside.Upper(dir), "user.overlay.opaque", nil); err == nil {
				t.Errorf("the layer is still opaque (%d)", n)
			}
			if attack != "an opaque layer" && !has(own) {
				t.Error("what was built inside is gone with it")
			}
		})
	}
}

// Builds must not run on with a path that is gone.
func TestAnInnerStoreBeginsAnewWhenTheHostCollectedWhatItKnows(t *testing.T) {
	name := someOfTheStore(t)
	for text, anew := range map[string]bool{
		"/nix/store/" + name + "\n":                            false,
		"/nix/store/" + name + "\n/nix/store/":                 false, // a line that was never finished
		absent + "\n":                                          true,
		"damaged\n":                                            true,
		strings.Repeat("/nix/store/"+name+"\n", 1<<16):         true, // no further one could be asked for
		"/nix/store/" + name + strings.Repeat("x", 512) + "\n": true,
	} {
		dir, _ := inside.Choose(filepath.Join(t.TempDir(), "nix"))
		open(t, dir).Close()
		must.Write(t, filepath.Join(inside.Var(dir), "nix/db/db.sqlite"), "rows")
		must.Write(t, filepath.Join(dir, "known"), text)
		s := open(t, dir)
		if got := !has(filepath.Join(inside.Var(dir), "nix")); got != anew || anew == (len(s.Notes) == 0) {
			t.Errorf("with %.200q known: begins anew: %v, says %q; want %v", text, got, s.Notes, anew)
		}
		paths, err := known(s.Known)
		if err != nil || anew && len(paths) > 0 || !anew && len(paths) != 1 {
			t.Errorf("with %.200q known: the list is %.200q, %v", text, paths, err)
		}
	}
}

func TestSettingsTakeCachesAndKeysOverAndNothingElse(t *testing.T) {
	host := []byte("substituters = https://cache.example.org file:///srv/cache\nextra-substituters = http://10.0.0.1:5000\n" +
		"trusted-public-keys = example-1:AAAA\nextra-trusted-public-keys = two:BBBB\n")
	all := inside.CachesOf(host).Reached(func(string) bool { return true })
	conf := string(inside.Conf(all, host))
	for _, want := range []string{
		"substituters = https://cache.example.org http://10.0.0.1:5000\n", "trusted-public-keys = example-1:AAAA two:BBBB\n",
		"store = local-overlay://?lower-store=unix%3A%2F%2F%2F", "sandbox = false\n",
	} {
		if !strings.Contains(conf, want) {
			t.Errorf("%q is not in\n%s", want, conf)
		}
	}
	none := string(inside.Conf(inside.CachesOf(nil).Reached(func(string) bool { return false }), nil))
	if !strings.Contains(none, "\nsubstituters = \n") {
		t.Errorf("where no cache is reached, nix.conf is\n%s", none)
	}
	if usual := inside.CachesOf(nil); len(usual.Substituters) != 1 || len(usual.Keys) != 1 {
		t.Errorf("where nothing is said, the caches are %+v", usual)
	}
	if off := string(inside.NoConf("Nix is off here")); !strings.Contains(off, "store = unix:///Nix-is-off-here\n") {
		t.Errorf("without a store nix.conf is\n%s", off)
	}
}

// How much is built at once, and which features there are, is as on the host (N3); what only a daemon obeys is not.
func TestTheHostsJobsAndFeaturesEnter(t *testing.T) {
	const host = "experimental-features = nix-command ca-derivations cgroups\nextra-experimental-features = pipe-operators unheard-of\n" +
		"max-jobs = 1\ncores = 0\nmax-jobs = $(id)\n"
	for _, conf := range []string{string(inside.Conf(inside.Caches{}, []byte(host))), string(inside.DaemonConf([]byte(host)))} {
		for word, wanted := range map[string]bool{
			"nix-command flakes": true, "ca-derivations": true, "pipe-operators": true, "cgroups": false, "unheard-of": false,
			"cores = 0\n": true, "$(id)": false,
		} {
			if strings.Contains(conf, word) != wanted {
				t.Errorf("%s: %v in\n%s", word, !wanted, conf)
			}
		}
	}
	if conf := string(inside.Conf(inside.Caches{}, []byte("max-jobs = 1\n"))); !strings.Contains(conf, "\nmax-jobs = 1\n") {
		t.Errorf("no jobs in\n%s", conf)
	}
}

// What a lock file names must be there on other machines.
func TestTheRegistryLetsNoPathOfThisMachineIntoALockFile(t *testing.T) {
	const (
		begin   = `{"flakes":[{"from":{"id":"nixpkgs","type":"indirect"},"to":{`
		end     = `}}],"version":2}` + "\n"
		locked  = begin + `"__final":true,"lastModified":7,"narHash":"sha256-h","owner":"NixOS","repo":"nixpkgs","rev":"r","type":"github"` + end
		byHash  = begin + `"__final":true,"lastModified":1,"narHash":"sha256-h","owner":"NixOS","repo":"nixpkgs","type":"github"` + end
		byPath  = begin + `"path":"/nix/store/x-set","type":"path"` + end
		nothing = `{"flakes":[],"version":2}` + "\n"

		store = "/nix/store/00bgd045z0d4icpbc2yyz4gx48ak44la-"
	)
	for name, tc := range map[string]struct {
		source         inside.Source
		registry, conf string
	}{
		"the revision is known":     {inside.Source{"/nix/store/x-source", "r", "sha256-h", 7, ""}, locked, "/etc/nix/registry.json"},
		"it is not":                 {inside.Source{"/nix/store/x-source", "", "sha256-h", 0, ""}, byHash, "/etc/nix/registry.json"},
		"its time is not":           {inside.Source{"/nix/store/x-source", "r", "sha256-h", 0, ""}, byHash, "/etc/nix/registry.json"},
		"a path, and a Nix of 2.27": {inside.Source{"/nix/store/x-set", "r", "sha256-h", 7, store + "nix-2.27.1/bin/nix"}, byPath, ""},
		"a path, and a Nix of 2.26": {inside.Source{"/nix/store/x-set", "r", "sha256-h", 7, store + "nix-2.26.3/bin/nix"}, nothing, ""},
		"a path, and a fork of Nix": {inside.Source{"/nix/store/x-set", "", "", 0, store + "lix-2.93.3"}, nothing, ""},
		"there is no source":        {inside.Source{}, nothing, ""},
	} {
		if got := string(tc.source.Registry()); got != tc.registry {
			t.Errorf("%s: the registry is %s, want %s", name, got, tc.registry)
		}
		if got, want := string(tc.source.Conf()), strings.TrimRight("flake-registry = "+tc.conf, " ")+"\n"; got != want {
			t.Errorf("%s: inputs of flakes are looked up by %q, want %q", name, got, want)
		}
	}
}

// An agent put a pipe in the place of what Nix reads first: the host's Nix, as of `claudebox instance gc`, waited for ever.
func TestWhatIsNoDatabaseIsNotRead(t *testing.T) {
	for name, put := range map[string]func(t *testing.T, db string){
		"a database": func(t *testing.T, db string) { must.Write(t, db+"/schema", "10") },
		"a pipe":     func(t *testing.T, db string) { must.Do(t, os.MkdirAll(db, 0o755), unix.Mkfifo(db+"/schema", 0o644)) },
		"a link": func(t *testing.T, db string) {
			must.Do(t, os.MkdirAll(db, 0o755), os.Symlink("/dev/zero", db+"/schema"))
		},
		"a long one": func(t *testing.T, db string) { must.Write(t, db+"/schema", strings.Repeat("1", 1000)) },
		"elsewhere": func(t *testing.T, db string) {
			must.Do(t, os.MkdirAll(db, 0o755), os.Remove(db), os.Symlink(t.TempDir(), db))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, _ := inside.Choose(t.TempDir())
			open(t, dir).Close()
			put(t, filepath.Join(inside.Var(dir), "nix/db"))
			said := strings.Join(open(t, dir).Notes, "\n")
			if anew := strings.Contains(said, "begins anew: what lies in the place of its database is none"); anew != (name != "a database") {
				t.Errorf("it says %q", said)
			}
		})
	}
}
