package host

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
)

func TestGetTakesTheFirstOfTwoEqualNames(t *testing.T) {
	env := Environment{"A=1", "AB=2", "A=3", "EMPTY=", "novalue"}
	for name, want := range map[string]string{"A": "1", "AB": "2", "EMPTY": ""} {
		if got, ok := env.Get(name); !ok || got != want {
			t.Errorf("Get(%s) = %q, %v; want %q", name, got, ok, want)
		}
	}
	if _, ok := env.Get("B"); ok {
		t.Error("B is set")
	}
	if got := env.Value("EMPTY", "fallback"); got != "fallback" {
		t.Errorf("an empty variable counts as unset, got %q", got)
	}
}

func TestAccountNamesKeepTheMadePasswdWhole(t *testing.T) {
	passwd := filepath.Join(t.TempDir(), "passwd")
	content := "root:x:0:0::/root:/bin/sh\n# comment\nada:x:1000:1000::/home/ada:/bin/sh\n"
	must.Write(t, passwd, content)
	for name, tc := range map[string]struct {
		id             int
		fallback, want string
	}{
		"a known id":                      {1000, "x", "ada"},
		"an id from elsewhere":            {4711, "bob", "bob"},
		"a fallback that adds an account": {4711, "bob:x:0:0::/:/bin/sh", "user"},
		"a fallback with a line break":    {4711, "bob\nroot2", "user"},
		"an empty fallback":               {4711, "", "user"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := accountName(passwd, tc.id, tc.fallback); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestTokensOfNixConfStayOutside(t *testing.T) {
	got := string(PublicNixConf([]byte(strings.Join([]string{
		"# a comment",
		"substituters = https://cache.example.org https://user:canary@cache.example.org http://1.example.org/?token=canary http://2.example.org/?token=canary;x",
		"trusted-substituters = s3://cache?region=eu-west-1&priority=30 ssh://canary@host",
		"extra-trusted-public-keys = k:abc=",
		"access-tokens = github.com=ghp_canary",
		"netrc-file = /etc/canary",
		"extra-substituters = https://user:canary@cache.example.org",
		"secret-key-files = /etc/nix/canary",
		"post-build-hook = /bin/canary",
		"!include /etc/nix/canary",
		"extra-substituters = https://cache.example.org/ghp_0123456789abcdefghijABCDEFGHIJ012345/ https://cache.example.org/?priority=ghp_0123456789abcdefghijABCDEFGHIJ012345",
	}, "\n"))))
	want := "substituters = https://cache.example.org\n" +
		"trusted-substituters = s3://cache?region=eu-west-1&priority=30\nextra-trusted-public-keys = k:abc=\nextra-substituters = \nextra-substituters = \n"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// All of what Nix reads is read (N2): includes, the user's file, NIX_CONFIG, in the order in which they count.
func TestAllOfNixConfIsRead(t *testing.T) {
	home := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(home, name)
		must.Write(t, file, text)
		return file
	}
	write("etc/nix.conf", "substituters = https://one # the first\n!include nix.custom.conf\ninclude "+write("more", "extra-substituters = https://three\n")+"\n!include none\n!include nix.conf\n")
	write("etc/nix.custom.conf", "extra-substituters = https://two\naccess-tokens = github.com=canary\n")
	write(".config/nix/nix.conf", "extra-substituters = https://four https://user:canary@five")
	env := Environment{
		"HOME=" + home, "NIX_CONF_DIR=" + filepath.Join(home, "etc"), "XDG_CONFIG_DIRS=" + home,
		"NIX_CONFIG=extra-substituters = https://six\naccess-tokens = x=canary",
	}
	got := string(PublicNixConf(readNixConf(env)))
	last := 0
	for _, cache := range []string{"one", "two", "three", "four", "six"} {
		at := strings.LastIndex(got, "https://"+cache+"\n")
		if at < last {
			t.Errorf("%s is not in its place:\n%s", cache, got)
		}
		last = at
	}
	if strings.Contains(got, "canary") {
		t.Errorf("a login enters:\n%s", got)
	}
	if kept := KeptCaches(env); !slices.Equal(kept, []string{"five"}) {
		t.Errorf("left out: %q", kept)
	}
}

func TestTheBundleIsTheFirstThatIsAFile(t *testing.T) {
	dir := t.TempDir()
	bundle := filepath.Join(dir, "bundle.crt")
	link := filepath.Join(dir, "link.crt")
	const certificate = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"
	for name, content := range map[string]string{
		"bundle.crt": certificate, "secret": "hunter2",
		"both.pem": certificate + "-----BEGIN RSA PRIVATE KEY-----\nAA==\n-----END RSA PRIVATE KEY-----\n",
	} {
		must.Write(t, filepath.Join(dir, name), content)
	}
	must.Do(t, os.Symlink("bundle.crt", link))
	for name, env := range map[string]Environment{
		"through a link":         {"NIX_SSL_CERT_FILE=" + link},
		"past a missing one":     {"NIX_SSL_CERT_FILE=" + dir + "/none", "SSL_CERT_FILE=" + bundle},
		"past what is no bundle": {"NIX_SSL_CERT_FILE=" + dir + "/secret", "SSL_CERT_FILE=" + bundle},
		"past a private key":     {"NIX_SSL_CERT_FILE=" + dir + "/both.pem", "SSL_CERT_FILE=" + bundle},
		"past a folder":          {"NIX_SSL_CERT_FILE=" + dir, "SSL_CERT_FILE=" + bundle},
		"past a relative path":   {"NIX_SSL_CERT_FILE=bundle.crt", "SSL_CERT_FILE=" + bundle},
	} {
		t.Run(name, func(t *testing.T) {
			if got := certificates(env); got != bundle {
				t.Errorf("got %q, want %q", got, bundle)
			}
		})
	}
}

func TestZoneNamesDoNotClimb(t *testing.T) {
	for name, want := range map[string]bool{
		"Europe/Berlin": true, "UTC": true, "Etc/GMT+1": true, "../../etc/shadow": false, "/etc/shadow": false, "a//b": false, "a b": false, "": false,
	} {
		if got := isZoneName(name); got != want {
			t.Errorf("isZoneName(%q) = %v, want %v", name, got, want)
		}
	}
}
