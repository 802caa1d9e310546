package inside

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"claudebox/internal/nix/storepath"
)

// Where a sandbox finds the files of its store.
const (
	runDir      = "/run/claudebox"
	SocketInner = runDir + "/nix-daemon" // the filter
	UpperInner  = runDir + "/nix-upper"  // the inner store's own paths, read-only
	StateInner  = "/nix/var"             // the inner store's database, logs and roots
)

// NoProfile is the target of a link in place of ~/.nix-profile. A profile
// could be made but would be of no use: it is not in PATH, and it is gone with the session.
// With this link Nix fails instead, and its error names the target.
const NoProfile = "/there-are-no-profiles-in-a-sandbox/use-nix-shell"

// nowhere is where the inner Nix is told that the lower store's files are. Nothing is there: it
// reads all files through the overlay, and asks the lower store for metadata only.
const nowhere = runDir + "/nix-lower/nix/store"

// storeURL returns the URL of the inner store, in full, so that Nix does not look for another.
func storeURL() string {
	lower := "unix://" + SocketInner + "?real=" + nowhere
	return "local-overlay://?lower-store=" + url.QueryEscape(lower) + "&upper-layer=" + UpperInner +
		"&check-mount=false"
}

// own are the settings of nix.conf(5) in every sandbox, apart from that of the registry.
const own = "warn-dirty = false\n"

// ownStore are further settings for a sandbox with a store of its own. Nix uses no build sandbox, since a
// build runs in claudebox's; hard links between two layers are not possible; and a cache that
// cannot be reached is tried once, not five times.
const ownStore = `sandbox = false
build-users-group =
auto-optimise-store = false
gc-reserved-space = 0
download-attempts = 1
`

// features are those that Nix inside has always, and those that it has where the host has them: all that Nix 2.24 knows
// and that say nothing of a daemon. Of others each command would warn.
var (
	features     = []string{"nix-command", "flakes", "local-overlay-store"}
	hostFeatures = []string{
		"ca-derivations", "dynamic-derivations", "fetch-closure", "fetch-tree", "git-hashing", "impure-derivations",
		"no-url-literals", "parse-toml-timestamps", "pipe-operators", "recursive-nix", "verified-fetches",
	}
)

// likeHost is what a sandbox takes over from a host's nix.conf besides the caches: features, and how much is built at
// once.
func likeHost(conf []byte, features []string) string {
	asked := setting(conf, "experimental-features", "")
	for _, name := range hostFeatures {
		if slices.Contains(asked, name) {
			features = append(features, name)
		}
	}
	text := "extra-experimental-features = " + strings.Join(features, " ") + "\n"
	for _, name := range []string{"max-jobs", "cores"} {
		word := strings.Join(setting(conf, name, ""), " ")
		if word == "auto" || word != "" && strings.Trim(word, "0123456789") == "" {
			text += name + " = " + word + "\n"
		}
	}
	return text
}

// Caches are the binary caches that a host uses, and the keys it trusts.
type Caches struct {
	Substituters []string
	Keys         []string
}

// What Nix uses when the configuration does not say.
const (
	officialCache = "https://cache.nixos.org/"
	officialKey   = "cache.nixos.org-1:6NCHdD59X431o0gWypbMrAURkbJ16ZPMQFGspcDShjY="
)

// CachesOf reads the caches and keys from a nix.conf.
func CachesOf(conf []byte) Caches {
	return Caches{
		Substituters: setting(conf, "substituters", officialCache),
		Keys:         setting(conf, "trusted-public-keys", officialKey),
	}
}

// setting returns a setting's words and those added with extra-; usual is its default.
func setting(conf []byte, name, usual string) []string {
	words := []string{usual}
	for line := range strings.Lines(string(conf)) {
		key, value, _ := strings.Cut(line, "=")
		switch strings.TrimSpace(key) {
		case name:
			words = strings.Fields(value)
		case "extra-" + name:
			words = append(words, strings.Fields(value)...)
		}
	}
	return words
}

// Reached returns c without the caches that a sandbox cannot reach: Nix would try
// each of them before every build.
func (c Caches) Reached(host func(name string) bool) Caches {
	c.Substituters = slices.DeleteFunc(slices.Clone(c.Substituters), func(cache string) bool {
		u, err := url.Parse(cache)
		return err != nil || u.Scheme != "https" && u.Scheme != "http" || !host(u.Hostname())
	})
	return c
}

// Conf is nix.conf(5) of a sandbox with a store of its own, without the line that
// [Source.Conf] gives; public are the host's own settings.
func Conf(c Caches, public []byte) []byte {
	return []byte("store = " + storeURL() + "\n" + likeHost(public, slices.Clone(features)) + ownStore + own +
		"substituters = " + strings.Join(c.Substituters, " ") + "\n" +
		"trusted-public-keys = " + strings.Join(c.Keys, " ") + "\n")
}

// DaemonConf is nix.conf(5) of a sandbox whose Nix asks the host's daemon;
// public are the host's own settings of caches and keys.
func DaemonConf(public []byte) []byte {
	c := CachesOf(public)
	return []byte(likeHost(public, []string{"nix-command", "flakes"}) + own +
		"substituters = " + strings.Join(c.Substituters, " ") + "\n" +
		"trusted-public-keys = " + strings.Join(c.Keys, " ") + "\n")
}

// NoRegistry is the registry of a sandbox without a store: who asks for nixpkgs is told why there is none.
func NoRegistry(why string) []byte {
	return []byte(`{"version":2,"flakes":[{"from":{"type":"indirect","id":"nixpkgs"},"to":{"type":"path","path":"` +
		Nowhere(why) + `"}}]}` + "\n")
}

// Nowhere is a path that is not there, and whose name is a sentence.
func Nowhere(why string) string {
	return "/" + strings.Join(strings.FieldsFunc(why, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	}), "-")
}

// NoConf is nix.conf(5) of a sandbox without a store. Nix can only evaluate there; when it
// needs a store its error shows why. Otherwise Nix would make a store in the home, whose
// paths differ from those of every other store.
func NoConf(why string) []byte {
	return []byte("experimental-features = nix-command flakes\n" + own + "store = unix://" + Nowhere(why) + "\n" +
		"flake-registry = /etc/nix/registry.json\n")
}

// Source is the pinned nixpkgs. Lock files made inside do not contain its path,
// which is valid on this machine only.
type Source struct {
	Path, Rev, NarHash string
	LastModified       int64
	// Nix is the store path of the Nix inside, or a folder in it.
	Nix string
}

// byHash reports whether Nix can find the source by its hash: it looks for a store
// path with that hash and the name "source".
func (s Source) byHash() bool { return s.NarHash != "" && strings.HasSuffix(s.Path, "-source") }

// Conf is the line of nix.conf(5) that says where flake inputs are looked up: from
// Nix 2.27 on only in this registry.
func (s Source) Conf() []byte {
	if !s.byHash() {
		return []byte("flake-registry =\n")
	}
	return []byte("flake-registry = /etc/nix/registry.json\n")
}

// Registry is the flake registry of a sandbox: `nixpkgs` is the plan's
// source. "__final" keeps Nix from fetching what is in the store. If its revision
// is not known, the input cannot be locked: Nix works
// with it, but writes no lock file. A source that can be found only by its path
// is listed only for a Nix that does not lock what the registry says.
func (s Source) Registry() []byte {
	type entry map[string]any
	flakes := []entry{}
	add := func(to entry) {
		flakes = append(flakes, entry{"from": entry{"type": "indirect", "id": "nixpkgs"}, "to": to})
	}
	switch {
	case s.byHash():
		to := entry{
			"type": "github", "owner": "NixOS", "repo": "nixpkgs", "narHash": s.NarHash,
			"lastModified": max(s.LastModified, 1), "__final": true,
		}
		if s.Rev != "" && s.LastModified != 0 {
			to["rev"] = s.Rev
		}
		add(to)
	case s.Path != "" && !s.locksAll():
		add(entry{"type": "path", "path": s.Path})
	}
	text, err := json.Marshal(entry{"version": 2, "flakes": flakes})
	if err != nil {
		panic("bug: a registry holds only plain values: " + err.Error())
	}
	return append(text, '\n')
}

// locksAll reports whether the Nix inside locks whatever a registry says, as Nix
// before 2.27 and its forks do. It also does when the version is not known.
func (s Source) locksAll() bool {
	var minor int
	_, err := fmt.Sscanf(s.Nix, storepath.Dir+"/%32s-nix-2.%d", new(string), &minor)
	return err != nil || minor < 27
}
