//go:build lab

package network_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"claudebox/checks/promises/network/target"
	"claudebox/checks/promises/network/world"
)

// client is a program that uses a name, with nothing set for it: where it is
// listed it works, and elsewhere it fails as where there is no such name.
type client struct {
	packages string   // of the lab
	lays     []string // mounts, FILE:PLACE with FILE below the lab's releases
	script   string   // asks good.test
	want     string   // what the script prints
	refused  string   // what it says of a name that is not listed
}

// debian has Debian's programs inside where Debian has them.
var debian = []string{"clients/usr/lib:/usr/lib", "clients/usr/lib:/lib", "clients/usr/lib64:/lib64"}

func withDebian(more ...string) []string { return append(more, debian...) }

// requestByNode asks in both of Node's ways. Node trusts certificates of its own.
const requestByNode = `NODE_EXTRA_CA_CERTS=$SSL_CERT_FILE NODE_NO_WARNINGS=1 /opt/node -e '
	const at = "https://good.test/hello"
	const got = new Promise((yes, no) => require("https").get(at, r => r.on("data", yes)).on("error", no))
	const fetched = fetch(at).then(r => r.text())
	Promise.all([got, fetched]).then(all => console.log(all.join(" ")))'`

// speakByNode has one message of a websocket come back.
const speakByNode = `NODE_EXTRA_CA_CERTS=$SSL_CERT_FILE /opt/node -e '
	const s = new WebSocket("%s://good.test%s/ws")
	s.onopen = () => s.send("hello")
	s.onmessage = m => { console.log(m.data); process.exit(0) }
	s.onerror = e => { console.error(e.message || e.error); process.exit(1) }'`

const java = "/usr/lib/jvm/java-21-openjdk-amd64/bin/keytool"

var clients = map[string]client{
	"curl, HTTP/1": {"", nil, "curl -sS --http1.1 -w ' %{http_version}' https://good.test/hello", "hello 1.1", "Could not resolve host"},
	"curl, HTTP/2": {"", nil, "curl -sS --http2 -w ' %{http_version}' https://good.test/hello", "hello 2", "Could not resolve host"},
	"git, HTTPS": {"", nil, `git clone -q https://good.test/git/repo.git /tmp/r && cat /tmp/r/file && cd /tmp/r && echo two >file &&
		git -c user.name=x -c user.email=x@x commit -qam two && git push -q && git ls-remote origin | grep -c refs/heads/main`, "one\n1\n", "Could not resolve host"},
	"git, SSH": {"", withDebian("clients/usr/bin/ssh:/opt/ssh"), `GIT_SSH_COMMAND='/opt/ssh -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=error' \
		git clone -q ssh://git@good.test/repo.git /tmp/r && cat /tmp/r/file`, "one\n", "Could not resolve hostname"},
	"nix": {
		"", nil, "set -o pipefail; nix --extra-experimental-features nix-command store info --store https://good.test/nix 2>&1 | grep 'Store URL\\|not resolve'",
		"Store URL: https://good.test/nix\n", "(?i)could not resolve host",
	},
	"Go": {
		"go", nil, "cd /tmp && GOPROXY=https://good.test/go GONOSUMDB='*' GOFLAGS=-mod=mod go list -m -versions example.org/m",
		"example.org/m v1.2.3\n", "no such host",
	},
	"Node 18": {"", []string{"node-18:/opt/node"}, requestByNode, "hello hello\n", "ENOTFOUND"},
	"Node 20": {"", []string{"node-20:/opt/node"}, requestByNode, "hello hello\n", "ENOTFOUND"},
	"Node 22": {"", []string{"node-22:/opt/node"}, requestByNode, "hello hello\n", "ENOTFOUND"},
	"npm": {
		"",
		[]string{"node-22:/opt/node", "npm:/opt/npm"},
		`cd $(mktemp -d) && NODE_EXTRA_CA_CERTS=$SSL_CERT_FILE /opt/node /opt/npm/bin/npm-cli.js \
		install --silent --no-audit --no-fund --fetch-retries=0 --registry=https://good.test/npm/ demo && cat node_modules/demo/index.js || { cat ~/.npm/_logs/*; false; }`,
		"hello\n", "ENOTFOUND",
	},
	"a websocket":              {"", []string{"node-22:/opt/node"}, fmt.Sprintf(speakByNode, "wss", ""), "hello\n", "network error"},
	"a websocket in the clear": {"", []string{"node-22:/opt/node"}, fmt.Sprintf(speakByNode, "ws", ":8081"), "hello\n", "network error"},
	"Python": {
		"python3", nil, `python3 -c 'import urllib.request; print(urllib.request.urlopen("https://good.test/hello").read().decode())'`,
		"hello\n", "Name or service not known|No address associated",
	},
	"Python requests": {
		"", withDebian("clients/usr/bin/python3.13:/opt/python3"),
		`REQUESTS_CA_BUNDLE=$SSL_CERT_FILE /opt/python3 -c 'import requests; print(requests.get("https://good.test/hello").text)'`,
		"hello\n", "NameResolutionError",
	},
	"pip": {
		"", withDebian("clients/usr/bin/python3.13:/opt/python3"),
		`/opt/python3 -m pip install --quiet --retries 0 --no-cache-dir --disable-pip-version-check --break-system-packages --cert $SSL_CERT_FILE \
		--index-url https://good.test/pypi/ --target /tmp/t demo >/tmp/log 2>&1 || { cat /tmp/log; exit 1; }; PYTHONPATH=/tmp/t /opt/python3 -c 'import demo; print(demo.says)'`,
		"hello\n", "No matching distribution|NameResolutionError",
	},
	"Java": {
		"", withDebian("clients/etc/java-21-openjdk:/etc/java-21-openjdk"),
		"set -o pipefail; " + java + ` -importcert -noprompt -alias lab -keystore /tmp/ks -storepass changeit -file $SSL_CERT_FILE 2>/dev/null
		` + java + ` -J-Djavax.net.ssl.trustStore=/tmp/ks -printcert -sslserver good.test 2>&1 | grep -Eo 'DNSName: .*|.*rror.*|.*Exception.*'`,
		"DNSName: good.test\n", "UnknownHostException|No certificate from the SSL server",
	},
}

// Every tool works without any proxy, and reaches nobody who is not listed.
// Claude Code has a test of its own.
func TestToolsWorkWithListedNames(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	root, programs := repository(t)
	bundle := site(t, w, offers(gitServer(root, programs)))
	other, _ := repository(t)
	for _, l := range w.ListenOutside(t, "22", target.Internet, target.Internet6) {
		go serveSSH(l, other)
	}
	for _, l := range w.ListenOutside(t, "8081", target.Internet, target.Internet6) {
		go http.Serve(l, http.HandlerFunc(echo))
	}
	for name, tc := range clients {
		t.Run(name, func(t *testing.T) {
			u := newUser(t, w)
			u.trusting(t, bundle)
			compat := "nix-ld"
			if slices.Contains(tc.lays, debian[0]) {
				compat = "off" // Debian's loader has its place
			}
			flags := u.allowing(t, `good.test, "good.test:22", "good.test:8081"`, "packages: ["+tc.packages+"]", "compat: "+compat)
			for _, lay := range tc.lays {
				flags = append(flags, "--mount-ro", laid(t, lay))
			}
			got := run(t, u.session(t, tc.script, flags...))
			if got.status != 0 || got.stdout != tc.want {
				t.Errorf("status %d, stdout %q, stderr %s", got.status, got.stdout, got.stderr)
			}
			unlisted := run(t, u.session(t, strings.ReplaceAll(tc.script, "good.test", "other.test"), flags...))
			told := unlisted.stdout + unlisted.stderr
			if unlisted.status == 0 || !regexp.MustCompile(tc.refused).MatchString(told) || strings.Contains(told, "timed out") {
				t.Errorf("a host that is not listed: status %d, %s; want %q", unlisted.status, told, tc.refused)
			}
		})
	}
}

// laid is a mount of one of the lab's clients, without links.
func laid(t *testing.T, lay string) string {
	t.Helper()
	file, place, _ := strings.Cut(lay, ":")
	real, err := filepath.EvalSymlinks(filepath.Join(os.Getenv("CLAUDEBOX_LAB_RELEASES"), file))
	if err != nil {
		t.Fatalf("the lab has no %s: run checks/setup and checks/test: %v", file, err)
	}
	return real + ":" + place
}

// offers is a site that has something for each client.
func offers(git http.Handler) http.Handler {
	mux := http.NewServeMux()
	says := func(path, text string) {
		mux.HandleFunc(path, func(out http.ResponseWriter, _ *http.Request) { io.WriteString(out, text) })
	}
	says("/hello", "hello")
	says("/nix/nix-cache-info", "StoreDir: /nix/store\nPriority: 41\n")
	says("/go/example.org/m/@v/list", "v1.2.3\n")
	says("/go/example.org/m/@v/v1.2.3.info", `{"Version": "v1.2.3"}`)
	says("/go/example.org/m/@v/v1.2.3.mod", "module example.org/m\n")
	says("/npm/demo.tgz", npmPackage())
	says("/npm/demo", fmt.Sprintf(`{"name": "demo", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {"name": "demo", "version": "1.0.0",
		"dist": {"tarball": "https://good.test/npm/demo.tgz", "integrity": "sha512-%s"}}}}`, digest512(npmPackage())))
	says("/pypi/demo/demo-1.0-py3-none-any.whl", wheel())
	mux.HandleFunc("/pypi/demo/", func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(out, `<a href="demo-1.0-py3-none-any.whl#sha256=%x">demo-1.0-py3-none-any.whl</a>`, sha256.Sum256([]byte(wheel())))
	})
	mux.Handle("/git/", git)
	mux.HandleFunc("/ws", echo)
	return mux
}

func digest512(text string) string {
	sum := sha512.Sum512([]byte(text))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// npmPackage is a package as npm's registry has it.
func npmPackage() string {
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	archive := tar.NewWriter(zipped)
	for _, file := range [][2]string{{"package/package.json", `{"name": "demo", "version": "1.0.0"}`}, {"package/index.js", "hello\n"}} {
		_ = archive.WriteHeader(&tar.Header{Name: file[0], Mode: 0o644, Size: int64(len(file[1]))})
		_, _ = io.WriteString(archive, file[1])
	}
	archive.Close()
	zipped.Close()
	return b.String()
}

// wheel is a package as Python's index has it.
func wheel() string {
	var b bytes.Buffer
	archive := zip.NewWriter(&b)
	for _, file := range [][2]string{
		{"demo.py", "says = 'hello'\n"},
		{"demo-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n"},
		{"demo-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: lab\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{"demo-1.0.dist-info/RECORD", "demo.py,,\ndemo-1.0.dist-info/METADATA,,\ndemo-1.0.dist-info/WHEEL,,\ndemo-1.0.dist-info/RECORD,,\n"},
	} {
		w, _ := archive.Create(file[0])
		_, _ = io.WriteString(w, file[1])
	}
	archive.Close()
	return b.String()
}

// echo sends one short message of a websocket back (RFC 6455).
func echo(out http.ResponseWriter, r *http.Request) {
	hijacker, can := out.(http.Hijacker)
	if !can {
		http.Error(out, "no websocket", http.StatusBadRequest)
		return
	}
	conn, both, err := hijacker.Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n",
		base64.StdEncoding.EncodeToString(sum[:]))
	var head [2 + 4]byte
	if _, err := io.ReadFull(both, head[:]); err != nil {
		return
	}
	message := make([]byte, head[1]&0x7f)
	if _, err := io.ReadFull(both, message); err != nil {
		return
	}
	for i := range message {
		message[i] ^= head[2+i%4]
	}
	_, _ = conn.Write(append([]byte{head[0], byte(len(message))}, message...))
	_, _ = io.Copy(io.Discard, both)
}
