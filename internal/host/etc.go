package host

import (
	"bytes"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/smallfile"
	"claudebox/internal/secret/leak"
)

// Etc is what the host's system configuration gives a sandbox: paths to
// mount and contents to copy.
type Etc struct {
	Certificates string   // certificate bundle, links resolved; empty: the host has none
	Authorities  []byte   // certificates that the user adds by [MoreVariable]; nil: none
	Resolv       []byte   // resolv.conf, whatever links lead to it
	Hosts        []byte   // hosts
	ZoneName     string   // "Europe/Berlin"; empty: UTC
	Zone         []byte   // its file
	Zones        string   // the folder with all of them, links resolved; empty: the host has none
	NixConf      []byte   // nix.conf lines that are public: caches and their keys
	Keys         []string // files of /proc that name the keys which the kernel keeps for the user
}

// BundleVariables name the user's own certificate bundle; the first that names one counts.
var BundleVariables = []string{"NIX_SSL_CERT_FILE", "SSL_CERT_FILE"}

// MoreVariable names a file with authorities that Node, and so Claude Code, trusts beside the bundle.
const MoreVariable = "NODE_EXTRA_CA_CERTS"

// ToolsVariables are those by which single tools find a bundle. Inside, all have the same.
var ToolsVariables = []string{
	"AWS_CA_BUNDLE", "CARGO_HTTP_CAINFO", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "PIP_CERT", "REQUESTS_CA_BUNDLE",
}

// bundles are the places where distributions keep the certificate bundle.
var bundles = []string{
	"/etc/ssl/certs/ca-certificates.crt",
	"/etc/ssl/certs/ca-bundle.crt",
	"/etc/pki/tls/certs/ca-bundle.crt",
}

// ReadEtc reads the host's /etc. What is missing or unreadable stays empty:
// each user of a field decides whether it can do without.
func ReadEtc(env Environment) Etc {
	e := Etc{
		Certificates: certificates(env),
		Resolv:       readSmall("/etc/resolv.conf"),
		Hosts:        readSmall("/etc/hosts"),
		NixConf:      PublicNixConf(readNixConf(env)),
	}
	for _, name := range []string{"/proc/keys", "/proc/key-users"} {
		if _, err := os.Lstat(name); err == nil { // a kernel may be built without
			e.Keys = append(e.Keys, name)
		}
	}
	if more := readUpTo(regularFile(env.Value(MoreVariable, "")), bundleLimit); isBundle(more) {
		e.Authorities = more
	}
	e.ZoneName, e.Zone = zone(env)
	for _, folder := range []string{"/usr/share/zoneinfo", "/etc/zoneinfo"} {
		if real, err := beneath.Canonical(folder); err == nil && regularFile(real+"/Etc/UTC") != "" && e.Zones == "" {
			e.Zones = real
		}
	}
	return e
}

// certificates returns the path of the certificate bundle; empty: there is none. A file that a variable names is used
// only if it looks like a bundle, because it can be read inside, or is one of the places that only root writes to.
func certificates(env Environment) string {
	for _, variable := range BundleVariables {
		name := env.Value(variable, "")
		real := regularFile(name)
		if real != "" && (slices.Contains(bundles, name) || isBundle(readUpTo(real, bundleLimit))) {
			return real
		}
	}
	for _, name := range bundles {
		if real := regularFile(name); real != "" {
			return real
		}
	}
	return ""
}

// bundleLimit is the size of the largest certificate bundle that is accepted, in bytes; Mozilla's has a quarter of a
// million.
const bundleLimit = 4 << 20

// isBundle reports whether content is certificates, and not another file that a variable names by mistake, or because
// a tool took its name from a file of the project. A file that holds a private key as well is not a bundle.
func isBundle(content []byte) bool {
	return bytes.Contains(content, []byte("CERTIFICATE-----")) && !bytes.Contains(content, []byte("PRIVATE KEY-----"))
}

// regularFile resolves every link of path. It returns "" if path is relative or does not lead to a regular file.
func regularFile(path string) string {
	if !filepath.IsAbs(path) {
		return ""
	}
	real, err := beneath.Canonical(path)
	if err != nil {
		return ""
	}
	if info, err := os.Stat(real); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	return real
}

const zoneinfo = "zoneinfo/"

// zone returns the name and the file of the time zone: TZ if it names one, else where /etc/localtime leads; empty:
// UTC. NixOS and Debian both have the name after "zoneinfo/" in the link's text.
func zone(env Environment) (name string, content []byte) {
	if tz := strings.TrimPrefix(env.Value("TZ", ""), ":"); tz != "" && isZoneName(tz) {
		for _, root := range []string{"/etc/zoneinfo/", "/usr/share/zoneinfo/"} {
			if content := readSmall(root + tz); content != nil {
				return tz, content
			}
		}
	}
	link, err := os.Readlink("/etc/localtime")
	if err != nil {
		return "", nil
	}
	_, name, ok := strings.Cut(link, zoneinfo)
	if !ok || !isZoneName(name) {
		return "", nil
	}
	return name, readSmall("/etc/localtime")
}

// isZoneName reports whether s can be a name of the tz database: a relative path without "..", of visible ASCII
// characters.
func isZoneName(s string) bool {
	return filepath.IsLocal(s) && filepath.Clean(s) == s && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r > '~'
	})
}

// readSmall reads a configuration file, links followed, up to 1 MiB.
func readSmall(path string) []byte { return readUpTo(path, 1<<20) }

// readUpTo reads a regular file. It returns nil if the file is not regular, is larger than limit (in bytes), or
// cannot be read.
func readUpTo(path string, limit int64) []byte {
	content, _ := smallfile.Read(path, limit)
	return content
}

// readNixConf returns all that Nix on the host reads as its configuration, in the order in which later lines win: the
// machine's file, the user's files, NIX_CONFIG; each with the files that it includes.
func readNixConf(env Environment) (conf []byte) {
	dir := env.Value("NIX_CONF_DIR", "/etc/nix")
	conf = withIncluded(filepath.Join(dir, "nix.conf"), nil)
	var users []string
	if files, set := env.Get("NIX_USER_CONF_FILES"); set {
		users = strings.Split(files, ":")
	} else {
		home := env.Value("XDG_CONFIG_HOME", env.Value("HOME", "/")+"/.config")
		users = append(users, filepath.Join(home, "nix/nix.conf"))
		for dir := range strings.SplitSeq(env.Value("XDG_CONFIG_DIRS", "/etc/xdg"), ":") {
			users = append(users, filepath.Join(dir, "nix/nix.conf"))
		}
	}
	slices.Reverse(users) // the first is the most specific
	for _, file := range users {
		if filepath.IsAbs(file) {
			conf = append(conf, withIncluded(file, nil)...)
		}
	}
	return append(conf, env.Value("NIX_CONFIG", "")+"\n"...)
}

// withIncluded returns the lines of a nix.conf, with those of the files that it includes in their place. around are the
// files that include it.
func withIncluded(file string, around []string) (conf []byte) {
	const deepest = 8
	if len(around) > deepest || slices.Contains(around, file) {
		return nil
	}
	around = append(around, file)
	for line := range bytes.Lines(readSmall(file)) {
		line, _, _ = bytes.Cut(line, []byte("#"))
		words := strings.Fields(string(line))
		if len(words) == 2 && (words[0] == "include" || words[0] == "!include") {
			at := words[1]
			if !filepath.IsAbs(at) {
				at = filepath.Join(filepath.Dir(file), at)
			}
			conf = append(conf, withIncluded(at, around)...)
			continue
		}
		conf = append(append(conf, bytes.TrimRight(line, "\n")...), '\n')
	}
	return conf
}

// publicNixSettings are the settings of nix.conf(5) that a sandbox may know.
// Everything else stays outside: access-tokens and netrc-file are secrets.
var publicNixSettings = []string{
	"substituters", "extra-substituters", "trusted-substituters", "extra-trusted-substituters",
	"trusted-public-keys", "extra-trusted-public-keys",
	"max-jobs", "cores", "experimental-features", "extra-experimental-features",
}

// KeptCaches lists the hosts of the caches that [PublicNixConf] leaves out.
func KeptCaches(env Environment) (hosts []string) {
	for line := range bytes.Lines(readNixConf(env)) {
		name, value, _ := strings.Cut(string(line), "=")
		if name = strings.TrimPrefix(strings.TrimSpace(name), "extra-"); name != "substituters" {
			continue
		}
		for _, cache := range strings.Fields(value) {
			of, err := url.Parse(cache)
			if err == nil && !isPublicCache(cache) && !slices.Contains(hosts, of.Hostname()) {
				hosts = append(hosts, of.Hostname())
			}
		}
	}
	return hosts
}

// PublicNixConf keeps the public settings of a nix.conf, without caches whose address may carry a login.
func PublicNixConf(conf []byte) []byte {
	var kept bytes.Buffer
	for line := range bytes.Lines(conf) {
		name, value, ok := strings.Cut(string(line), "=")
		name = strings.TrimSpace(name)
		if !ok || !slices.Contains(publicNixSettings, name) {
			continue
		}
		words := strings.Fields(value)
		if strings.HasSuffix(name, "substituters") {
			words = slices.DeleteFunc(words, func(cache string) bool { return !isPublicCache(cache) })
		}
		kept.WriteString(name + " = " + strings.Join(words, " ") + "\n")
	}
	return kept.Bytes()
}

// cacheSettings are what the address of a cache may say after its "?": settings of `nix help-stores` that are no
// secret.
var cacheSettings = []string{
	"compression", "endpoint", "local-nar-cache", "parallel-compression", "priority", "profile", "region", "scheme",
	"trusted", "want-mass-query",
}

func isPublicCache(address string) bool {
	cache, err := url.Parse(address)
	if err != nil || strings.Contains(address, "@") || leak.Token(address) != "" {
		return false
	}
	settings, err := url.ParseQuery(cache.RawQuery)
	for setting := range settings {
		if !slices.Contains(cacheSettings, setting) {
			return false
		}
	}
	return err == nil
}
