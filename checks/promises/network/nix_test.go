//go:build lab

package network_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/nix-community/go-nix/pkg/nixbase32"
	"github.com/nix-community/go-nix/pkg/wire"

	"claudebox/checks/promises/network/target"
	"claudebox/checks/promises/network/world"
)

// binaryCache is a cache of Nix with a path that is signed, and one by a key that
// nobody trusts.
type binaryCache struct {
	key    string // that is trusted
	signed string // paths of store files
	forged string
	files  map[string][]byte
}

func newCache(t *testing.T) *binaryCache {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	_, other, err2 := ed25519.GenerateKey(nil)
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	c := &binaryCache{
		key:   "test-1:" + base64.StdEncoding.EncodeToString(public),
		files: map[string][]byte{"nix-cache-info": []byte("StoreDir: /nix/store\nPriority: 41\n")},
	}
	c.signed = c.add("signed", "from the cache\n", private)
	c.forged = c.add("forged", "from somebody else\n", other)
	return c
}

// add makes a file of the store, as a build would.
func (c *binaryCache) add(name, content string, key ed25519.PrivateKey) string {
	var nar bytes.Buffer
	for _, word := range []string{"nix-archive-1", "(", "type", "regular", "contents", content, ")"} {
		_ = wire.WriteString(&nar, word)
	}
	sum := sha256.Sum256(nar.Bytes())
	hash, base := "sha256:"+nixbase32.EncodeToString(sum[:]), nixbase32.EncodeToString(sum[:20])
	path := "/nix/store/" + base + "-" + name
	signature := ed25519.Sign(key, fmt.Appendf(nil, "1;%s;%s;%d;", path, hash, nar.Len()))
	c.files[base+".narinfo"] = fmt.Appendf(nil, "StorePath: %s\nURL: %s.nar\nCompression: none\nNarHash: %s\nNarSize: %d\nReferences: \nSig: test-1:%s\n",
		path, base, hash, nar.Len(), base64.StdEncoding.EncodeToString(signature))
	c.files[base+".nar"] = nar.Bytes()
	return path
}

func (c *binaryCache) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	file, found := c.files[strings.TrimPrefix(r.URL.Path, "/")]
	if !found {
		http.NotFound(out, r)
		return
	}
	_, _ = out.Write(file)
}

// nixFetches tries what Nix inside fetches: from the caches of the host, and by
// builds whose output is known. Each way that fails says so by one line of the
// reason.
const nixFetches = `
	fetch() { nix build --no-link --print-out-paths --impure --expr "import <nix/fetchurl.nix> { url = \"$1\"; sha256 = \"$(printf fetched | sha256sum | cut -d' ' -f1)\"; }" 2>err; }
	try() { if got=$("$@"); then cat $got; echo; else grep -c "$reason" err; fi; }
	reason="error: unable to download"
	try fetch https://good.test/file; try fetch http://192.168.77.2/lan
	reason="^error: build of .* failed"
	realise() { nix-store --realise $1 2>err; }
	try realise SIGNED; try realise FORGED`

// Nix inside fetches what the tier lets through, by the caches and the keys of
// the host; a signature is checked inside.
func TestNixFetchesWhatTheTierAllows(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	cache := newCache(t)
	mux := http.NewServeMux()
	for _, name := range []string{"/file", "/lan"} {
		mux.HandleFunc(name, func(out http.ResponseWriter, _ *http.Request) { io.WriteString(out, "fetched") })
	}
	mux.Handle("/cache/", http.StripPrefix("/cache/", cache))
	bundle := site(t, w, mux)
	for _, l := range w.ListenOutside(t, "81", target.LANPeer) {
		go http.Serve(l, mux)
	}
	const fetched, fails, substituted = "fetched\n", "1\n", "from the cache\n\n"
	for tier, want := range map[string]string{
		"full":  fetched + fetched + substituted + fails,
		"inet":  fetched + fails + substituted + fails,
		"allow": fetched + fails + substituted + fails,
		"none":  fails + fails + fails + fails,
	} {
		t.Run(tier, func(t *testing.T) {
			u := newUser(t, w)
			u.trusting(t, bundle)
			u.layout = world.Layout{"/etc/nix/nix.conf": "substituters = https://good.test/cache https://elsewhere.test\ntrusted-public-keys = " + cache.key + "\n"}
			for name, content := range world.Systemd {
				u.layout[name] = content
			}
			flags := u.profile(t, "network: "+tier)
			if tier == "allow" {
				flags = u.allowing(t, "good.test")
			}
			script := strings.NewReplacer("SIGNED", cache.signed, "FORGED", cache.forged, "192.168.77.2/", "192.168.77.2:81/").Replace(nixFetches)
			got := run(t, u.session(t, script, flags...))
			if got.status != 0 || got.stdout != want {
				t.Errorf("status %d, stdout %q, want %q; stderr %s", got.status, got.stdout, want, got.stderr)
			}
		})
	}
}
