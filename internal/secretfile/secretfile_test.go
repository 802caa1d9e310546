package secretfile_test

import (
	"testing"

	"claudebox/internal/secretfile"
)

func TestNames(t *testing.T) {
	for verdict, names := range map[secretfile.Verdict][]string{
		secretfile.Secret: {
			".env", ".env.local", ".env.production", ".env.production.local", ".netrc", "server.key", "x.p12", "terraform.tfstate",
			"terraform.tfstate.backup", "prod.auto.tfvars", "id_ed25519", "master.key", ".git-credentials",
		},
		secretfile.Ask: {"cacert.pem", ".npmrc", ".yarnrc.yml", "credentials.json", "keys.txt"},
		secretfile.Plain: {
			".env.example", ".env.sample", ".env.local.example", ".env.d.ts", ".envrc", "main.go", "key", "keys", "id_rsa.pub", "environment",
			".environment", "tfstate", "a.b.c", "", ".", "x.", "package.json",
		},
	} {
		for _, name := range names {
			if got := secretfile.OfName([]byte(name)); got != verdict {
				t.Errorf("%q: got %d, want %d", name, got, verdict)
			}
		}
	}
}

func TestContents(t *testing.T) {
	for content, want := range map[string]bool{
		"-----BEGIN CERTIFICATE-----\nAA\n":                                        false,
		"-----BEGIN EC PRIVATE KEY-----\nAA\n":                                     true,
		"-----BEGIN CERTIFICATE-----\nAA\n-----BEGIN ENCRYPTED PRIVATE KEY-----\n": true,
		"registry=https://registry.npmjs.org\nsave-exact=true\n":                   false,
		"//registry.npmjs.org/:_authToken=${NPM_TOKEN}\n":                          false,
		"//registry.npmjs.org/:_authToken=npm_abc\n":                               true,
		"//r/:_authToken=${NPM_TOKEN}x\n":                                          true,
		"npmAuthToken: \"${TOKEN}\"\n":                                             false,
		"npmAuthToken: abc\n":                                                      true,
		"# created: 2024\nAGE-SECRET-KEY-1QQ\n":                                    true,
		`{"type": "service_account", "private_key": "x"}`:                          true,
		`{"installed": {}}`:                                                        false,
		"":                                                                         false,
	} {
		if got := secretfile.Holds([]byte(content)); got != want {
			t.Errorf("%q: got %v, want %v", content, got, want)
		}
	}
}
