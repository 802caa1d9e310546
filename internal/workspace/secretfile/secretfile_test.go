package secretfile_test

import (
	"path"
	"strings"
	"testing"

	"claudebox/internal/workspace/secretfile"
)

func TestNames(t *testing.T) {
	for verdict, names := range map[secretfile.Verdict]string{
		secretfile.Secret: `.env .dev.vars.staging .env.local prod.kubeconfig .smbcredentials .rbenv-vars gcloud/access_tokens.db .env.production .env.production.local .netrc server.key x.p12 terraform.tfstate
			terraform.tfstate.backup prod.auto.tfvars id_ed25519 master.key .git-credentials
			.ENV .env.LOCAL server.KEY .env~ .env.bak .env-prod .env_prod prod.env .env.swp ..env.swp id_rsa.old secrets.yml
			.bash_history storageState.json accessKeys.csv
			.ssh/config .ssh/any .password-store/a.gpg secrets/db.txt secrets/db .docker/config.json .kube/config .aws/credentials .cargo/credentials.toml
			secrets/prod/db.txt Secrets/db.yml SECRETS/db.yml .SSH/any .Docker/config.json gh/hosts.yml .ssh/sub/key .envs/.local/.postgres .env.d/web.conf .env2 .env.kate-swp .viminfo .node_repl_history
			rsyncd.secrets krb5.keytab home.nmconnection .curlrc .id_rsa
			credentials.sbt settings-security.xml .streamlit/secrets.toml id_rsa.private id_rsa_old id_ed25519_work kubeconfig.yaml terraform.tfstate.123.backup _env jwt.secret`,
		secretfile.Suspect: `dev.vars cacert.pem .npmrc .yarnrc.yml .env/production .ENV/web.yml secret/db.txt .secret/db credentials/key .hg/hgrc prod-kubeconfig.yaml
			kubeconfig-prod env.local env.production application-local.properties .mise.local.toml pg_service.conf credentials.json keys.txt mykey.PEM.bak
			deploy_key deploy_rsa firebase-adminsdk-x1.json service-account-prod.json serviceAccountKey.json token
			token.txt api_key.txt .token .vault_pass ansible_vault_password credentials oauth.json .envrc .mcp.json
			appsettings.Development.json keystore.properties trace.har my-secret.yaml token2.txt private.asc
			.condarc uv.toml init.d/mirror.gradle .cabal/config .cargo/config.toml .config/go/env .config/pnpm/rc
			my.token db.password prod.credentials site.cookies vpn.auth admin.pass my.TOKEN my.token.bak ssl.privkey`,
		secretfile.Ordinary: `core core.1234 vgcore.1234 app.core nohup.out env.js env.ts environment .environment tfstate . x. package.json Makefile keyboard.json monkey.yaml tsconfig.json
			config.json config README.md author.txt .ssh keymap.toml .env/lib/names.txt secret/sub/x.txt env docker-compose.yml example.env notes deploy.sh deploy.ps1 x.log app.log.1`,
		secretfile.Plain: `core.js score.go .dev.vars.example .env.example .env.sample .env.local.example .env.d.ts main.go id_rsa.pub id_ed25519_work.pub a.b.c
			token.go secrets.py keys.ts password_test.rb secrets/manager.go secrets/impl/manager.go credentials/src.rs
			.env/lib/site.py secret/broker.go
			grammar.tokens wiki.train.tokens libx.so.6 man.1 frame.0001 python3.11 x.mp4`,
	} {
		for name := range strings.FieldsSeq(names) {
			folder, last := path.Split(name)
			if got := secretfile.Of(strings.TrimSuffix(folder, "/"), last); got != verdict {
				t.Errorf("%q: got %d, want %d", name, got, verdict)
			}
		}
	}
	if got := secretfile.Of("", ""); got != secretfile.Plain {
		t.Errorf("no name: %d", got)
	}
}

// What editors, systems and people leave beside a file is judged as it is.
//
// Promise: no secret of the project.
func TestWhatIsLeftBesideASecretFile(t *testing.T) {
	for original, want := range map[string]secretfile.Verdict{
		".env": secretfile.Secret, "secrets.yml": secretfile.Secret, "id_rsa": secretfile.Secret, ".netrc": secretfile.Secret,
		"prod-token.txt": secretfile.Suspect, "deployKey.json": secretfile.Suspect, ".npmrc": secretfile.Suspect, "app.log": secretfile.Ordinary,
	} {
		for _, beside := range []string{
			"N~", "N.bak", "N.OLD", ".N.swp", ".N.swn", ".N.un~", "#N#", "N copy", "N copy 2", "N (1)", "N(copy)", "N.1", "N.~1~", "N-20260101",
			"N.2026-01-01", "N.bak.1", "N.kate-swp", "N.rpmsave", "N_old", "N-bak", "N_backup", "N.20260101",
		} {
			name := strings.ReplaceAll(beside, "N", original)
			got := secretfile.Of("", name)
			numbered := !strings.Contains(original, ".") && strings.Contains(beside, "1") // "man.1"
			if got != want && (got != secretfile.Secret || want == secretfile.Ordinary) && !numbered {
				t.Errorf("%q: got %d, want %d", name, got, want)
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
		"export AWS_SECRET_ACCESS_KEY=abc/def+123\n":                               true,
		"use flake\nexport API_TOKEN=$(pass show x)\nPATH_add bin\n":               false,
		`{"mcpServers":{"x":{"command":"npx","env":{"MY_TOKEN":"abc123def"}}}}`:    true,
		`{"mcpServers":{"x":{"command":"npx","env":{"MY_TOKEN":"${MY_TOKEN}"}}}}`:  false,
		"password: hunter2x\n":                                                     true,
		"password: <fill in>\nkey: name\ntoken: \n":                                false,
		"url: postgres://app:s3cret9@db/x\n":                                       true,
		"hunter2horse9\n":                                                          true,
		"password: hunter2x  # of staging\n":                                       true,
		"password: /x7Kd9QwZ81\n":                                                  true,
		"password: /run/secrets/x7Kd9QwZ81\npassword_file: ./x7Kd9QwZ81\n":         false,
		"two words\n": false,
		"ghp_abcdefghijklmnopqrstuvwxyz0123456789 is it\n":  true,
		`{"title": "Log in", "login_password": "Password"}`: false,
		"QZ4m1v9Kc7xT2bNn8wRs5A==\n":                        true, // base64
		"{{TOKEN}}\n":                                       false,
		"api_token = hunter2x9\n":                           true,
		"admin:hunter2horse9\n":                             true,
		"https://example.org/login2\n":                      false,
		"prod\nQZ4m1v9Kc7xT2bNn8wRs5AuY\n":                  true,
		"\xff\xfeP\x00A\x00S\x00S\x00W\x00D\x00=\x00h\x00u\x00n\x00t\x00e\x00r\x002\x00x\x00": true, // UTF-16
		"\xef\xbb\xbfhunter2horse9\n": true,
		"":                            false,
		// of package managers, as each writes a login
		"channels:\n  - https://conda.corp/t/hunter2x9/private\n":                  true,
		"# https://discuss.example.org/t/how-to-use-private-channels/123\n":        false,
		"---\nBUNDLE_GEMS__CORP__COM: \"me:hunter2x9\"\n":                          true,
		"---\nBUNDLE_BUILD__NOKOGIRI: \"--use-system-libraries\"\n":                false,
		"---\nBUNDLE_MIRROR__HTTPS://RUBYGEMS__ORG/: \"https://gems.corp:8080\"\n": false,
		"credentials { username \"me\"; password \"hunter2x9\" }\n":                true,
		"[[index]]\nurl = \"https://me:hunter2x9@pypi.corp/simple\"\n":             true,
		"[[index]]\nurl = \"https://pypi.corp/simple\"\n":                          false,
		"GOPROXY=https://me:hunter2x9@proxy.corp\n":                                true,
		"GOPROXY=https://proxy.corp\nGOPRIVATE=corp.example\n":                     false,
		"access-tokens = github.com=hunter2x9abc\n":                                true,
	} {
		if got := secretfile.Holds([]byte(content)); got != want {
			t.Errorf("%q: got %v, want %v", content, got, want)
		}
	}
}

func TestATokenInAnotherEncodingIsSeen(t *testing.T) {
	const token = "ghp_Zq3vX8nT5kLw1RbY7mHc2DfJ9sGa4PeU6oKi"
	for _, zeros := range []string{"", "\x00"} {
		text := strings.Join(strings.Split("use "+token+" here", ""), zeros)
		if !secretfile.HoldsToken([]byte(text)) {
			t.Errorf("%q: not seen", text)
		}
	}
}

// Promise: no secret of the project.
func TestASecretOfKubernetesThatIsFilledIn(t *testing.T) {
	for content, want := range map[string]bool{
		"apiVersion: v1\nkind: Secret\nstringData:\n  password: hunter2x\n":                 true,
		"apiVersion: v1\nkind: Secret\ndata:\n  password: czNjcjN0LXB3\n":                   true,
		"apiVersion: v1\nkind: Secret\nstringData:\n  password: {{ .Values.password }}\n":   false,
		"apiVersion: v1\nkind: SealedSecret\nspec:\n  password: AgBy8hCi3kZ0aHVudGVyMng=\n": false,
		"apiVersion: v1\nkind: ConfigMap\ndata:\n  password: hunter2x\n":                    false,
	} {
		if got := secretfile.HoldsToken([]byte(content)); got != want {
			t.Errorf("%q: got %v, want %v", content, got, want)
		}
	}
}
