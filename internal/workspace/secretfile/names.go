package secretfile

import (
	"bytes"
	"slices"
	"strings"
)

// All names are in lower case here: some file systems take capitals for the same,
// and people write them.

// ofName judges a whole name.
func ofName(name []byte) Verdict {
	switch string(name) {
	case ".env", "_env", ".netrc", "_netrc", ".git-credentials", ".gitcookies", ".pgpass", ".my.cnf", ".mylogin.cnf",
		".htpasswd", ".vault-token", ".s3cfg", ".boto", ".pypirc", ".terraformrc", "credentials.tfrc.json",
		"kubeconfig", "kubeconfig.yaml", "kubeconfig.yml", ".kubeconfig", ".dockercfg", ".dockerconfigjson",
		".credentials.json", "id_rsa", "id_dsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk", "id_xmss",
		"master.key", "secring.gpg", "wallet.dat", ".dev.vars", ".envrc.private", ".authinfo", ".msmtprc",
		".fetchmailrc", ".secrets", "secrets.yml", "secrets.yaml", "secrets.json", "secrets.toml", "secrets.ini",
		"secret.yml", "secret.yaml", "secret.json", "secret.toml", "client_secret.json",
		"application_default_credentials.json", "credentials.csv", "accesskeys.csv", "rootkey.csv", "cookies.txt",
		"cookies.sqlite", "logins.json", "key3.db", "key4.db", "storage_state.json", "storagestate.json",
		".bash_history", ".zsh_history", ".python_history", ".node_repl_history", ".psql_history", ".mysql_history",
		".sqlite_history", ".rediscli_history", "fish_history":
		return Secret
	case "pip.conf", ".npmrc", ".yarnrc.yml", ".yarnrc", "nuget.config", "settings.xml", "auth.json",
		"gradle.properties", "local.properties", ".hgrc", ".envrc", ".envrc.local", ".flaskenv", ".mcp.json",
		"mcp.json", ".claude.json", "local.settings.json", "database.yml", "web.config", "wp-config.php",
		"profiles.yml", "ngrok.yml", "rclone.conf", "google-services.json", "kaggle.json", "hosts.yml",
		".databrickscfg", "sftp.json", "sftp-config.json", ".ftpconfig", ".remote-sync.json", "wg0.conf", "wg1.conf":
		return Ask
	}
	return Plain
}

// ofPlace judges a name in one kind of folder.
func ofPlace(name []byte) Verdict {
	switch string(name) {
	case ".docker/config.json", ".kube/config", ".aws/credentials", ".cargo/credentials", ".cargo/credentials.toml",
		".gem/credentials", ".huggingface/token", "huggingface/token", ".gnupg/secring.gpg", "gh/hosts.yml",
		".azure/accesstokens.json", ".oci/config":
		return Secret
	case ".bundle/config", ".wrangler/config", ".claude/settings.local.json", ".claude/settings.json":
		return Ask
	}
	return Plain
}

// full are folders in which each file is secret, halfFull those in which each
// with settings is, or with one text: programs have such folders, too.
var (
	full     = []string{".ssh", ".password-store", "private-keys-v1.d"}
	halfFull = []string{"secrets", ".secrets"}
)

// ofLast judges what stands behind the last dot, or the last two.
func ofLast(name []byte) Verdict {
	switch string(name) {
	case "env", "key", "p12", "pfx", "jks", "keystore", "jceks", "bks", "kdbx", "kdb", "psafe3", "1pux", "keychain",
		"keychain-db", "ppk", "p8", "pvk", "priv", "tfstate", "tfstate.backup", "tfvars", "tfvars.json", "ovpn",
		"agekey", "secret":
		return Secret
	case "pem", "asc": // most pem files are certificates, which programs need
		return Ask
	}
	return Plain
}

// examples end the names of files that are there to be copied and filled in:
// ".env.example", "example.env".
var examples = []string{
	"example", "sample", "template", "tmpl", "dist", "defaults", "default", "schema", "md", "nix",
	"ts", "d.ts", "js", "go", "py",
}

// copies end the names of what editors and people leave beside a file.
var copies = []string{"~", ".bak", ".old", ".orig", ".save", ".backup", ".copy", ".swp", ".swo"}

// ofWord judges a word in the name of a file with settings, or with one text: it
// makes the file ask.
func ofWord(name []byte) Verdict {
	switch string(name) {
	case "secret", "secrets", "credential", "credentials", "cred", "creds", "password", "passwords", "passwd", "pass",
		"passphrase", "token", "tokens", "apikey", "apikeys", "key", "keys", "privkey", "private", "vault", "cookie",
		"cookies", "adminsdk", "serviceaccount", "auth", "oauth", "oauth2", "rsa", "dsa", "ecdsa", "ed25519",
		"keystore", "appsettings", "login", "jwt", "account", "accounts":
		return Ask
	}
	return Plain
}

// keyFiles begin the names of private keys that ssh-keygen(1) was asked for.
var keyFiles = []string{"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"}

// ofBeginning judges names that go on as their owner likes.
func ofBeginning(name []byte) Verdict {
	for _, begin := range keyFiles {
		rest, ok := bytes.CutPrefix(name, []byte(begin))
		if ok && len(rest) > 1 && strings.IndexByte("_-.", rest[0]) >= 0 && !bytes.HasSuffix(rest, []byte(".pub")) {
			return Secret
		}
	}
	if bytes.Contains(name, []byte(".tfstate.")) {
		return Secret
	}
	return Plain
}

// mayHold are the endings, beside those of settings, of files that people and
// tools leave a token in.
var mayHold = []string{"md", "log", "sh", "sql", "http", "rest", "ipynb", "tf"}

// settings are the endings of files with settings, or with one text; "": none.
var settings = []string{
	"", "txt", "json", "yml", "yaml", "toml", "ini", "cfg", "conf", "config", "properties", "xml", "csv", "env",
}

// longest is the length of a name, in bytes (NAME_MAX).
const longest = 255

// Of judges a file by the last component of its path, and by that of the
// folder it is in.
func Of(folder, name []byte) Verdict {
	if len(name) == 0 || len(name) > longest || len(folder) > longest {
		return Plain
	}
	if slices.Contains(full, string(folder)) || slices.Contains(halfFull, string(folder)) && hasSettings(name) {
		return Secret
	}
	var room [longest]byte
	low := fold(room[:0], name)
	if v := ofWhole(folder, low); v != Plain {
		return v
	}
	for _, end := range copies {
		if original, is := bytes.CutSuffix(low, []byte(end)); is && len(original) > 0 {
			if v := ofWhole(folder, original); v != Plain {
				return v
			}
			return ofWhole(folder, bytes.TrimPrefix(original, []byte("."))) // Vim's ".NAME.swp"
		}
	}
	return ofWords(name)
}

func fold(room, name []byte) []byte {
	for _, c := range name {
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		room = append(room, c)
	}
	return room
}

func ofWhole(folder, name []byte) Verdict {
	if v := ofName(name); v != Plain {
		return v
	}
	var room [longest + 1 + longest]byte
	if v := ofPlace(append(append(append(room[:0], folder...), '/'), name...)); v != Plain {
		return v
	}
	rest, ok := bytes.CutPrefix(name, []byte(".env"))
	if ok && len(rest) > 1 && strings.IndexByte(".-_", rest[0]) >= 0 {
		return ofVariant(string(rest[1:]))
	}
	if v := ofEnding(name); v != Plain {
		return v
	}
	return ofBeginning(name)
}

// ofEnding judges by what stands behind the last dot, or the last two.
func ofEnding(name []byte) Verdict {
	dot := bytes.LastIndexByte(name, '.')
	if dot < 0 || string(name[dot+1:]) == "env" && slices.Contains(examples, string(name[:dot])) {
		return Plain
	}
	v, before := ofLast(name[dot+1:]), bytes.LastIndexByte(name[:dot], '.')
	if v == Plain && before >= 0 {
		v = ofLast(name[before+1:])
	}
	return v
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

// ofWords judges by the words of a name: "deploy_key", "clientSecret.json".
func ofWords(name []byte) Verdict {
	switch {
	case hasSettings(name):
	case endsIn(name, mayHold):
		return Look
	default:
		return Plain
	}
	base := name
	if dot := bytes.LastIndexByte(name, '.'); dot > 0 {
		base = name[:dot]
	}
	var room [longest]byte
	for begin, i := 0, 0; i <= len(base); i++ {
		if i < len(base) && !ends(base, i) {
			continue
		}
		word := bytes.TrimRight(base[begin:i], "0123456789")
		if v := ofWord(fold(room[:0], word)); v != Plain {
			return v
		}
		begin = i
		if i < len(base) && (base[i]|0x20 < 'a' || base[i]|0x20 > 'z') {
			begin++
		}
	}
	return Look
}

// hasSettings judges by what stands behind the last dot.
func hasSettings(name []byte) bool {
	return bytes.LastIndexByte(name, '.') <= 0 || endsIn(name, settings)
}

func endsIn(name []byte, endings []string) bool {
	var room [longest]byte
	return slices.Contains(endings, string(fold(room[:0], name[bytes.LastIndexByte(name, '.')+1:])))
}

// ends reports whether a word ends before a place in a name.
func ends(name []byte, i int) bool {
	c := name[i]
	return strings.IndexByte("._- ", c) >= 0 || i > 0 && c >= 'A' && c <= 'Z' && name[i-1] >= 'a' && name[i-1] <= 'z'
}
