package secretfile

import (
	"bytes"
	"strings"
)

// Verdict is what a name tells.
type Verdict int

const (
	Plain  Verdict = iota
	Secret         // hide it
	Ask            // what is in it decides, see [Holds]
)

// names are whole names.
var names = map[string]Verdict{
	".env": Secret, ".netrc": Secret, "_netrc": Secret, ".git-credentials": Secret, ".pgpass": Secret, ".my.cnf": Secret,
	".htpasswd": Secret, ".vault-token": Secret, ".dockercfg": Secret, ".dockerconfigjson": Secret, ".s3cfg": Secret, ".boto": Secret,
	".pypirc": Secret, ".terraformrc": Secret, "credentials.tfrc.json": Secret, "kubeconfig": Secret, ".kubeconfig": Secret,
	"id_rsa": Secret, "id_dsa": Secret, "id_ecdsa": Secret, "id_ecdsa_sk": Secret, "id_ed25519": Secret, "id_ed25519_sk": Secret,
	"master.key": Secret, "secring.gpg": Secret, "wallet.dat": Secret, ".dev.vars": Secret, ".envrc.private": Secret,
	".npmrc": Ask, ".yarnrc.yml": Ask, ".yarnrc": Ask, "credentials.json": Ask, "client_secret.json": Secret,
	"service-account.json": Ask, "service_account.json": Ask, "serviceAccountKey.json": Ask, "keys.txt": Ask, "key.txt": Ask,
	"nuget.config": Ask, "NuGet.Config": Ask, "settings.xml": Ask, "auth.json": Ask, "gradle.properties": Ask,
}

// endings are what stands behind the last dot, or the last two.
var endings = map[string]Verdict{
	"key": Secret, "p12": Secret, "pfx": Secret, "jks": Secret, "keystore": Secret, "kdbx": Secret, "kdb": Secret, "ppk": Secret,
	"p8": Secret, "tfstate": Secret, "tfstate.backup": Secret, "tfvars": Secret, "tfvars.json": Secret, "ovpn": Secret, "agekey": Secret,
	"pem": Ask, // most are certificates, which programs need
}

// examples end the names of files that are there to be copied and filled in:
// ".env.example".
var examples = []string{"example", "sample", "template", "tmpl", "dist", "defaults", "default", "schema", "md", "nix", "ts", "d.ts", "js", "go", "py"}

// OfName judges a file by the last component of its path.
func OfName(name []byte) Verdict {
	if v, known := names[string(name)]; known {
		return v
	}
	if rest, ok := bytes.CutPrefix(name, []byte(".env.")); ok {
		return ofVariant(string(rest))
	}
	dot := bytes.LastIndexByte(name, '.')
	if dot < 0 {
		return Plain
	}
	if v, known := endings[string(name[dot+1:])]; known {
		return v
	}
	if before := bytes.LastIndexByte(name[:dot], '.'); before >= 0 {
		return endings[string(name[before+1:])]
	}
	return Plain
}

// ofVariant judges ".env.REST".
func ofVariant(rest string) Verdict {
	for _, e := range examples {
		if rest == e || strings.HasSuffix(rest, "."+e) {
			return Plain
		}
	}
	return Secret
}

// Limit is how much of a file, in bytes, [Holds] wants to see. A larger file
// with a name that asks counts as secret.
const Limit = 256 << 10

// signs are what makes a file a secret one whose name does not tell.
var signs = []string{
	"PRIVATE KEY", "AGE-SECRET-KEY-", "PuTTY-User-Key-File",
	"_authToken", "_password", "_auth=", "_auth =", "npmAuthToken", "npmAuthIdent", "\"private_key\"", "\"client_secret\"",
	"<password>", "ClearTextPassword", "\"github-oauth\"", "\"http-basic\"", "\"gitlab-token\"", "\"auth\":", "assword=", "Token=", "Secret=",
}

// Holds tells whether the content of a file whose name asks is secret. A
// setting that only names a variable ("${NPM_TOKEN}") is not.
func Holds(content []byte) bool {
	for line := range bytes.Lines(content) {
		for _, sign := range signs {
			if at := bytes.Index(line, []byte(sign)); at >= 0 && !namesVariable(line[at+len(sign):]) {
				return true
			}
		}
	}
	return false
}

// namesVariable tells whether a setting's value is a variable's name and
// nothing else.
func namesVariable(value []byte) bool {
	text := strings.Trim(string(value), " \t\r\n=:\"'")
	return strings.HasPrefix(text, "${") && strings.IndexByte(text, '}') == len(text)-1
}
