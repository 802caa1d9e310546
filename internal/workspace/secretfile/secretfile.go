// Package secretfile knows files that hold secrets by their names, and where a
// name alone does not tell, by what is in them.
//
// It has no effects. What a token looks like is known by package leak.
package secretfile

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"slices"
	"strings"
	"sync"

	"claudebox/internal/secret/leak"
)

// Verdict is what a name tells.
type Verdict int

const (
	Plain    Verdict = iota
	Ordinary         // the name tells nothing; the file is secret only if it holds a token, see [HoldsToken]
	Suspect          // the name suggests a secret; what the file holds decides, see [Holds]
	Secret           // hide it
)

// Limit is how large a file of a project may be, in bytes, for [Holds] to be asked. A larger suspect counts as secret.
const Limit = 256 << 10

// SmallLimit is how large a file of a project may be, in bytes, for [HoldsToken] to be asked.
const SmallLimit = 64 << 10

// HoldsToken reports whether a file of any name holds a token of a known shape, begins a private key, whatever that
// looks like, or is a Secret of Kubernetes that is filled in. An address with a password does not count here: many
// manuals have one.
func HoldsToken(content []byte) bool {
	what := Text(content)
	return what != "" && what != leak.Address || bytes.Contains(eightBit(content), []byte(" PRIVATE KEY-----")) ||
		bytes.Contains(content, []byte("\nkind: Secret\n")) && Holds(content)
}

// Text returns what a file of any name holds: "a GitHub token", a private key, or else [leak.Address]; empty: nothing.
func Text(content []byte) string { return leak.Text(string(eightBit(content))) }

// eightBit returns a text without what belongs to its encoding only: UTF-16 has a zero byte beside each letter of a
// token. Other zero bytes end a text, as in programs.
func eightBit(content []byte) []byte {
	if bytes.IndexByte(content, 0) >= 0 {
		zero := func(i int) bool { return i >= 0 && i < len(content) && content[i] == 0 }
		text := make([]byte, 0, len(content))
		for i, c := range content {
			switch {
			case c != 0:
				text = append(text, c)
			case !zero(i-2) && !zero(i+2) || zero(i-1) || zero(i+1):
				text = append(text, '\n')
			}
		}
		content = text
	}
	for _, mark := range []string{"\xef\xbb\xbf", "\xff\xfe", "\xfe\xff"} {
		content = bytes.TrimPrefix(content, []byte(mark))
	}
	return content
}

// CoreHead is how many bytes at the beginning of a file [IsCore] asks for.
const CoreHead = 18

// IsCore reports whether a file is what the kernel leaves of a program that crashed, by its beginning (ET_CORE of
// elf(5)). It has the memory of the program, and so its environment.
func IsCore(head []byte) bool {
	return len(head) == CoreHead && string(head[:4]) == "\x7fELF" && int(head[16])+int(head[17]) == 4
}

// signs are texts that make a file secret if its name leaves that open.
var signs = []string{
	"PRIVATE KEY", "AGE-SECRET-KEY-", "PuTTY-User-Key-File", "_authToken", ":_password", "_password=", "_auth=",
	"_auth =", "npmAuthToken", "npmAuthIdent", `"private_key"`, `"client_secret"`, "<password>", "ClearTextPassword",
	`"github-oauth"`, `"http-basic"`, `"gitlab-token"`, `"auth":`, "assword=", "Token=", "Secret=",
	`assword "`, "assword '",
}

// Holds reports whether the content of a suspect file is secret: by one of the signs, a token of a known shape, an
// address with a password, a setting with a secret's name, a line that looks random, or because it is one word and
// nothing else. A setting that only names a variable ("${NPM_TOKEN}") is not secret.
func Holds(content []byte) bool {
	content = eightBit(content)
	for line := range bytes.Lines(content) {
		if leak.Value(string(bytes.TrimSpace(line))) != "" {
			return true
		}
		if _, rest, is := bytes.Cut(line, []byte("/t/")); is && isCondas(rest) {
			return true
		}
		for _, sign := range signs {
			if at := bytes.Index(line, []byte(sign)); at >= 0 && !namesVariable(line[at+len(sign):]) {
				return true
			}
		}
	}
	for piece := range bytes.FieldsFuncSeq(content, func(r rune) bool { return strings.ContainsRune("\n,{}&", r) }) {
		if name, value := setting(piece); isSecret(value) && (leak.Name(name) != "" || isBundlers(name, value)) {
			return true
		}
	}
	return isOneWord(content) || leak.Text(string(content)) != ""
}

// isCondas reports whether an address goes on behind "/t/" with a token, as those of private channels of conda do.
func isCondas(rest []byte) bool {
	word, _, is := strings.Cut(string(rest), "/")
	return is && isSecret(word) && strings.ContainsAny(word, "0123456789")
}

// isBundlers reports whether a setting of Bundler is a login: its name is a host's.
func isBundlers(name, value string) bool {
	return strings.HasPrefix(name, "BUNDLE_") && strings.Contains(name, "__") &&
		strings.Contains(value, ":") && !strings.Contains(value, "://")
}

// HoldsLogin reports whether a configuration or plain text of any name holds what tools keep of a login: a random value
// by a secret's name, the user and password of a registry, or a netrc.
func HoldsLogin(name string, content []byte) bool {
	if !isText(name) {
		return false
	}
	content = eightBit(content)
	if words := strings.Fields(string(content)); len(words) > 0 && words[0] == "machine" &&
		slices.Contains(words, "password") {
		return true
	}
	for piece := range bytes.FieldsFuncSeq(content, func(r rune) bool { return strings.ContainsRune("\n,{}&", r) }) {
		name, value := setting(piece)
		if name == "auth" {
			user, _ := base64.StdEncoding.DecodeString(value)
			if bytes.IndexByte(user, ':') > 0 && !bytes.ContainsFunc(user, func(r rune) bool { return r < ' ' }) {
				return true
			}
		}
		random := func(part string) bool { return isSecret(part) && leak.Value(part) != "" }
		if ofLogin(strings.ToLower(name)) && slices.ContainsFunc(strings.Split(value, "."), random) {
			return true
		}
	}
	return false
}

// ofLogin reports whether a setting is called as one of a login. Keys of other things are called "key".
func ofLogin(name string) bool {
	part := leak.Name(name)
	isKey := func(of string) bool { return strings.Contains(name, of) }
	return part != "" && part != "KEY" || name == "refresh" || name == "access" ||
		part == "KEY" && slices.ContainsFunc([]string{"api", "access", "secret", "private", "client"}, isKey)
}

// namesVariable reports whether a setting's value is a variable's name and nothing else.
func namesVariable(value []byte) bool {
	text := strings.Trim(string(value), " \t\r\n=:\"'")
	return strings.HasPrefix(text, "${") && strings.IndexByte(text, '}') == len(text)-1
}

// setting splits a piece of a line into name and value, in the forms that most formats have: `export NAME="value"`,
// `name: value`, `"name": "value"`.
func setting(piece []byte) (name, value string) {
	at := bytes.IndexAny(piece, "=:")
	if at < 0 {
		return "", ""
	}
	const around = " \t\r\n\"',;{[("
	name = strings.Trim(string(piece[:at]), around)
	if i := strings.LastIndexAny(name, " \t"); i >= 0 {
		name = name[i+1:]
	}
	value, _, _ = strings.Cut(string(piece[at+1:]), " #") // a comment
	return name, strings.Trim(value, around+">=]})")
}

// How long the value of a setting must be to count as secret, in bytes; how long if it has letters alone, and may be a
// plain word; and how long a file that is one word may be.
const (
	leastSecret  = 6
	leastLetters = 16
	mostOneWord  = 4096
)

// placeholders are the beginnings, and placeholderEnds the ends, of values that are still to be filled in, or are not
// secret: a variable, a path.
var (
	placeholders = []string{
		"$", "<", "{{", "%", "xxx", "***", "...", "your", "change", "example", "placeholder",
		"todo",
	}
	placeholderEnds = []string{">", "}}", "%", "xxx", "***", "...", "example", "here"}
)

// isSecret reports whether the value of a setting with a secret's name is secret. Numbers and sentences are not.
func isSecret(value string) bool {
	low := strings.ToLower(value)
	letters := strings.Trim(low, "abcdefghijklmnopqrstuvwxyz_-") == ""
	switch {
	case len(value) < leastSecret, letters && len(value) < leastLetters, strings.ContainsAny(value, " \t"),
		strings.Trim(value, "0123456789.") == "", leak.IsPath(value):
		return false
	}
	return !slices.ContainsFunc(placeholders, func(p string) bool { return strings.HasPrefix(low, p) }) &&
		!slices.ContainsFunc(placeholderEnds, func(p string) bool { return strings.HasSuffix(low, p) })
}

// isOneWord reports whether a file is one printable word, as one that holds a password or token is.
func isOneWord(content []byte) bool {
	word := bytes.TrimRight(bytes.TrimSpace(content), "=") // base64 ends so
	return len(word) <= mostOneWord && isSecret(string(word)) && !bytes.Contains(word, []byte("://")) &&
		!bytes.ContainsFunc(word,
			func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("{}[]<>=", r) })
}

// The names in these lists are in lower case, and are compared with names in lower case: some file systems take
// capitals for the same letters, and people write both.

// ofName judges a whole name.
func ofName(name string) Verdict {
	switch name {
	case ".env", "_env", ".netrc", "_netrc", ".git-credentials", ".gitcookies", ".pgpass", ".my.cnf", ".mylogin.cnf",
		".htpasswd", ".vault-token", ".s3cfg", ".boto", ".pypirc", ".terraformrc", "credentials.tfrc.json",
		"kubeconfig", "kubeconfig.yaml", "kubeconfig.yml", ".kubeconfig", ".dockercfg", ".dockerconfigjson",
		".credentials.json", "id_rsa", "id_dsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk", "id_xmss",
		"master.key", "secring.gpg", "wallet.dat", ".dev.vars", ".envrc.private", ".authinfo", ".msmtprc",
		".fetchmailrc", ".secrets", "secrets.yml", "secrets.yaml", "secrets.json", "secrets.toml", "secrets.ini",
		"secret.yml", "secret.yaml", "secret.json", "secret.toml", "client_secret.json",
		"application_default_credentials.json", "credentials.csv", "accesskeys.csv", "rootkey.csv", "cookies.txt",
		"cookies.sqlite", "logins.json", "key3.db", "key4.db", "storage_state.json", "storagestate.json",
		"credentials.sbt", "settings-security.xml",
		"fish_history", ".histfile", ".zhistory", ".rhistory", ".viminfo", ".lesshst", ".dbshell", "pgpass.conf",
		"htpasswd", ".curlrc", "_curlrc", ".smbcredentials", ".rbenv-vars", "access_tokens.db", "credentials.db":
		return Secret
	case "pip.conf", ".npmrc", ".yarnrc.yml", ".yarnrc", "nuget.config", "settings.xml", "auth.json",
		"gradle.properties", "local.properties", ".hgrc", ".envrc", ".envrc.local", ".flaskenv", ".mcp.json",
		"mcp.json", ".claude.json", "local.settings.json", "database.yml", "web.config", "wp-config.php",
		"profiles.yml", "ngrok.yml", "rclone.conf", "google-services.json", "kaggle.json", "hosts.yml",
		".databrickscfg", "sftp.json", "sftp-config.json", ".ftpconfig", ".remote-sync.json", "wg0.conf", "wg1.conf",
		".wgetrc", ".rsyncpass", ".pg_service.conf", "pg_service.conf", ".mbsyncrc", ".mise.local.toml",
		"mise.local.toml", "env.local", "env.production", "env.prod", "env.staging", "env.development", "env.dev",
		"env.test", ".condarc", ".gemrc", ".bunfig.toml", "bunfig.toml", "uv.toml", "init.gradle", "init.gradle.kts",
		"nix.conf", "profiles.clj", "dev.vars":
		return Suspect
	case "nohup.out", "env.js", "env.mjs", "env.cjs", "env.ts":
		return Ordinary
	}
	if strings.HasPrefix(name, ".") && strings.HasSuffix(name, "_history") {
		return Secret
	}
	return Plain
}

// ofPlace judges a name together with the folder that it is in.
var ofPlace = map[string]Verdict{
	".docker/config.json": Secret, ".kube/config": Secret, ".aws/credentials": Secret, ".cargo/credentials": Secret,
	".cargo/credentials.toml": Secret, ".gem/credentials": Secret, ".huggingface/token": Secret,
	"huggingface/token": Secret, ".gnupg/secring.gpg": Secret, "gh/hosts.yml": Secret,
	".azure/accesstokens.json": Secret, ".oci/config": Secret,
	".hg/hgrc": Suspect, ".bundle/config": Suspect, ".wrangler/config": Suspect, ".claude/settings.local.json": Suspect,
	".claude/settings.json": Suspect, ".cabal/config": Suspect, ".cargo/config": Suspect, ".cargo/config.toml": Suspect,
	"composer/config.json": Suspect, "go/env": Suspect, "hatch/config.toml": Suspect, "pnpm/rc": Suspect,
	"pdm/config.toml": Suspect, "pypoetry/config.toml": Suspect,
}

// Folders returns a function for the names in a folder. It reports whether files below a folder of that name may be
// secret because of the folders that they are in.
func Folders(folder string) func(name string) bool {
	full, texts := ofFolders(folder)
	all, places := full || texts, foldersOfPlaces()
	return func(name string) bool {
		full, texts := ofFolders(name)
		name = strings.ToLower(name)
		return all || full || texts || places[name] || slices.Contains(doubtful, name)
	}
}

// foldersOfPlaces are the folders of [ofPlace].
var foldersOfPlaces = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{}
	for place := range ofPlace {
		folder, _, _ := strings.Cut(place, "/")
		names[folder] = true
	}
	return names
})

// ofFolders judges the folders on the way to a file. full: every file in and below them is secret. texts: only
// configurations and plain texts are, as there are programs in such folders, too.
func ofFolders(path string) (full, texts bool) {
	for name := range strings.SplitSeq(strings.ToLower(path), "/") {
		switch name {
		case ".ssh", ".password-store", "private-keys-v1.d":
			full = true
		case "secrets", ".secrets", ".envs", ".env.d":
			texts = true
		}
	}
	return full, texts
}

// doubtful are folders whose own configurations and plain texts are suspect. In many a project .env is Python's, and
// secret a package of the program.
var doubtful = []string{".env", "secret", ".secret", "credentials", ".credentials"}

// ofLast judges an ending, which may have a dot in it ("tfvars.json").
func ofLast(name string) Verdict {
	switch name {
	case "env", "key", "p12", "pfx", "jks", "keystore", "jceks", "bks", "kdbx", "kdb", "psafe3", "1pux", "keychain",
		"keychain-db", "ppk", "p8", "pvk", "priv", "tfstate", "tfstate.backup", "tfvars", "tfvars.json", "ovpn",
		"agekey", "secret", "secrets", "keytab", "pkcs12", "jwk", "nmconnection", "rdp", "kubeconfig":
		return Secret
	case "pem", "asc", "har", // most pem files are certificates, which programs need
		"token", "jwt", "password", "passwd", "pwd", "pass", "passphrase", "credential", "credentials", "cred", "creds",
		"apikey", "apikeys", "keys", "privkey", "private", "cookie", "cookies", "auth", "login":
		return Suspect
	}
	return Plain
}

// examples are words by which ".env.WORD" or "WORD.env" is no secret: a file to be copied and filled in, or a program.
var examples = []string{
	"example", "sample", "template", "tmpl", "dist", "defaults", "default", "schema", "md", "nix",
	"ts", "d.ts", "js", "go", "py",
}

// isCopy reports whether an ending is one of a copy that an editor, a system or a person leaves beside a file.
func isCopy(ending string) bool {
	switch low := strings.ToLower(ending); low {
	case "bak", "old", "orig", "save", "backup", "copy", "tmp", "new", "prev", "rej", "disabled", "off", "local",
		"dec", "decrypted", "un", "kate-swp", "dpkg-old", "dpkg-dist", "rpmsave", "rpmnew":
		return true
	default:
		return len(low) == 3 && low[:2] == "sw" // Vim's
	}
}

// original returns the name of a file without one of the additions that a copy left beside it has: "NAME~",
// ".NAME.swp", "#NAME#", "NAME copy", "NAME (1)", "NAME.2", "NAME_old". It is empty if there is none.
func original(name string) string {
	end, dot := name[len(name)-1], strings.LastIndexByte(name, '.')
	if end == '~' || end == '#' {
		return name[:len(name)-1]
	}
	if dot > 0 && isCopy(name[dot+1:]) {
		return name[:dot]
	}
	if blank := strings.IndexAny(name, " ("); blank > 0 {
		return name[:blank]
	}
	for _, word := range []string{"old", "bak", "backup", "orig"} {
		if rest, is := strings.CutSuffix(strings.ToLower(name), word); is && len(rest) > 1 &&
			strings.ContainsRune("_-", rune(rest[len(rest)-1])) {
			return name[:len(rest)-1]
		}
	}
	unnumbered := strings.TrimRight(name, "0123456789.-_~")
	number := name[len(unnumbered):]
	apart := name[0] == '.' && len(unnumbered) > 1 && number != "" && strings.IndexByte(".-_~", number[0]) >= 0
	if end >= '0' && end <= '9' && (apart || strings.LastIndexByte(unnumbered, '.') > 0) { // "man.1" is no copy
		return unnumbered
	}
	if name[0] == '.' || name[0] == '#' {
		return name[1:]
	}
	return ""
}

// ofWord judges a word in the name of a configuration or plain text: some words make it suspect.
func ofWord(name string) Verdict {
	switch name {
	case "secret", "secrets", "credential", "credentials", "cred", "creds", "password", "passwords", "passwd", "pass",
		"passphrase", "token", "tokens", "apikey", "apikeys", "key", "keys", "privkey", "private", "vault", "cookie",
		"cookies", "adminsdk", "serviceaccount", "auth", "oauth", "oauth2", "rsa", "dsa", "ecdsa", "ed25519",
		"keystore", "appsettings", "application", "login", "jwt", "account", "accounts",
		"kubeconfig":
		return Suspect
	}
	return Plain
}

// ofPart judges names that go on as their owner chose: private keys of ssh-keygen(1), numbered backups of Terraform's
// state, and core files.
func ofPart(name string) Verdict {
	for _, begin := range []string{"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"} {
		rest, ok := strings.CutPrefix(name, begin)
		if ok && len(rest) > 1 && strings.IndexByte("_-.", rest[0]) >= 0 && !strings.HasSuffix(rest, ".pub") {
			return Secret
		}
	}
	if strings.Contains(name, ".tfstate.") {
		return Secret
	}
	process, ok := strings.CutPrefix(strings.TrimPrefix(name, "vg"), "core.") // Valgrind's have a "vg" in front
	if ok && strings.Trim(process, "0123456789") == "" {
		return Ordinary
	}
	return Plain
}

// mayHold are the endings of other files in which people and tools leave a token.
var mayHold = []string{
	"core", "md", "log", "sh", "sql", "http", "rest", "ipynb", "tf", "bash", "zsh", "fish", "ps1", "bat", "bru",
}

// textEndings are the endings of configurations and plain texts; "" is for names without an ending.
var textEndings = []string{
	"", "txt", "json", "yml", "yaml", "toml", "ini", "cfg", "conf", "config", "properties", "xml", "csv", "env",
}

// longest is how long a name can be, in bytes (NAME_MAX). An index can have longer ones, which no file has.
const longest = 255

// Of judges a file by the last component of its path, and by the path of the folder that it is in.
func Of(folder, name string) (found Verdict) {
	if len(name) == 0 || len(name) > longest {
		return Plain
	}
	if full, texts := ofFolders(folder); full || texts && isText(name) {
		return Secret
	}
	folder = strings.ToLower(folder[strings.LastIndexByte(folder, '/')+1:])
	if slices.Contains(doubtful, folder) && isText(name) {
		found = Suspect
	}
	for ; name != "" && found != Secret; name = original(name) {
		found = max(found, cmp.Or(byRules(folder, strings.ToLower(name)), ofWords(name)))
	}
	return found
}

// byRules judges a name and the folder that it is in, both in lower case: by the lists of names and places, else as a
// variant of .env or .dev.vars, else by its ending and other parts.
func byRules(folder, name string) Verdict {
	v := max(ofName(name), ofPlace[folder+"/"+name])
	if folder == "init.d" && strings.Contains(name, ".gradle") {
		v = max(v, Suspect)
	}
	for _, begin := range []string{".env", ".dev.vars"} {
		rest, ok := strings.CutPrefix(name, begin)
		if v == Plain && ok && rest != "" && (rest[0] < 'a' || rest[0] > 'z') { // not ".envrc"
			return ofVariant(rest[1:])
		}
	}
	return cmp.Or(v, max(ofEnding(name), ofPart(name)))
}

// ofEnding judges by the ending of a name: what follows the last dot, else what follows the last but one.
func ofEnding(name string) Verdict {
	dot := strings.LastIndexByte(name, '.')
	if dot < 0 || name[dot+1:] == "env" && slices.Contains(examples, name[:dot]) {
		return Plain
	}
	v, before := ofLast(name[dot+1:]), strings.LastIndexByte(name[:dot], '.')
	if v == Plain && before >= 0 {
		v = ofLast(name[before+1:])
	}
	return v
}

// ofVariant judges a name that begins with .env and goes on with no letter, as ".env.REST" or ".env-REST".
func ofVariant(rest string) Verdict {
	if slices.ContainsFunc(examples, func(e string) bool { return strings.HasSuffix("."+rest, "."+e) }) {
		return Plain
	}
	return Secret
}

// ofWords judges by the words of a name: "deploy_key", "clientSecret.json".
func ofWords(name string) Verdict {
	switch {
	case isText(name):
	case endsIn(name, mayHold):
		return Ordinary
	default:
		return Plain
	}
	base := name
	if dot := strings.LastIndexByte(name, '.'); dot > 0 {
		base = name[:dot]
	}
	for begin, i := 0, 0; i <= len(base); i++ {
		if i < len(base) && !ends(base, i) {
			continue
		}
		word := strings.TrimRight(base[begin:i], "0123456789")
		if v := ofWord(strings.ToLower(word)); v != Plain {
			return v
		}
		begin = i
		if i < len(base) && (base[i]|0x20 < 'a' || base[i]|0x20 > 'z') {
			begin++
		}
	}
	return Ordinary
}

// isText reports whether a file is a configuration or plain text, by its ending.
func isText(name string) bool {
	return strings.LastIndexByte(name, '.') <= 0 || endsIn(name, textEndings)
}

func endsIn(name string, endings []string) bool {
	return slices.Contains(endings, strings.ToLower(name[strings.LastIndexByte(name, '.')+1:]))
}

// ends reports whether a word of a name ends before the byte at i.
func ends(name string, i int) bool {
	c := name[i]
	return strings.IndexByte("._- ", c) >= 0 || i > 0 && c >= 'A' && c <= 'Z' && name[i-1] >= 'a' && name[i-1] <= 'z'
}
