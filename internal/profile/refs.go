package profile

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	"claudebox/internal/diag/pattern"
	"claudebox/internal/network/hostpattern"
	"claudebox/internal/network/policy"
	"claudebox/internal/network/upstream"
	"claudebox/internal/nix/storepath"
	"claudebox/internal/profile/shape"
)

var (
	packageRef = shape.Rule{
		Name:     "a package",
		Pattern:  "^" + attrPattern + `(\^` + outputsPattern + ")?$",
		Examples: []string{"ripgrep", "python3Packages.requests", "openssl^dev,out"},
		Judge:    line(checkPackage),
	}
	nixpkgsRef = shape.Rule{
		Name:     `"pinned", a store path, or a locked flake reference`,
		Pattern:  `^(pinned$|/nix/store/|path:/nix/store/|[a-z][a-z0-9+]*:)`,
		Examples: []string{"pinned"},
		Judge:    line(checkNixpkgs),
	}
	allowedHost = shape.Rule{
		Name:     "a host",
		Pattern:  `^(\*\.)?[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*(:[0-9]+)?$`,
		Examples: []string{"api.anthropic.com", "*.github.com:443", "anthropic"},
		Judge:    line(checkAllowed),
	}
	exceptedPlace = shape.Rule{
		Name:     "an address or a network",
		Pattern:  `^[0-9a-fA-F.:/\[\]]+$`,
		Examples: []string{"192.168.1.20:5432", "10.1.0.0/16"},
		Judge:    checkExcepted,
	}
	proxyURL = shape.Rule{
		Name:     "a proxy",
		Pattern:  `^(http|socks5)://[^/@?#]+:[0-9]+/?$`,
		Examples: []string{"http://proxy.corp:3128", "socks5://127.0.0.1:1080"},
		Judge:    checkProxy,
	}
	gitHost = shape.Rule{
		Name:     "a host",
		Pattern:  `^[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*(:[0-9]+)?$`,
		Examples: []string{"github.com"},
		Judge:    line(checkGitHost),
	}
)

// attrPattern matches an attribute path. Only after the first dot may a name begin
// with a digit: nested sets have names like 3dmodels, the top level of nixpkgs has
// not. outputsPattern matches outputs as Nix writes them: "dev,out" or "*".
const (
	attrPattern    = `[A-Za-z_][A-Za-z0-9_'-]*(\.[A-Za-z0-9_][A-Za-z0-9_'-]*)*`
	outputsPattern = `(\*|[a-z0-9_-]+(,[a-z0-9_-]+)*)`
)

// checkPackage checks a package reference: "attr.path", "attr.path^out,dev" or "attr^*".
func checkPackage(text string) *shape.Fault {
	attr, outputs, asked := strings.Cut(text, "^")
	switch {
	case !pattern.Expr("^" + attrPattern + "$").Matches(attr):
		return notPackage(text)
	case asked && !pattern.Expr("^"+outputsPattern+"$").Matches(outputs):
		return fault("", "%s: %s is not the name of an output", shape.Quote(text), shape.Quote(outputs))
	}
	return nil
}

// packageForms are prefixes of other ways to name a package, with the remedy for each.
var packageForms = []struct{ prefix, remedy string }{
	{"nixpkgs#", "write it without nixpkgs#"},
	{"/nix/store/", "name the attribute of nixpkgs"},
	{"github:", "name an attribute of nixpkgs; another nixpkgs goes under nixpkgs:"},
}

func notPackage(text string) *shape.Fault {
	for _, form := range packageForms {
		if strings.HasPrefix(text, form.prefix) {
			return fault(form.remedy, "%s is not an attribute of nixpkgs", shape.Quote(text))
		}
	}
	remedy := ""
	if name, version, found := strings.Cut(text, "@"); found && name != "" {
		remedy = "find the attribute of that version: nodejs_20, python312"
		if version == "latest" {
			remedy = "write " + name
		}
	}
	return fault(remedy, "%s is not an attribute of nixpkgs", shape.Quote(text))
}

// checkNixpkgs accepts only references whose content can never change, because
// the same profile must give the same plan tomorrow.
func checkNixpkgs(text string) *shape.Fault {
	store := strings.TrimPrefix(text, "path:")
	switch {
	case text == "pinned" || storepath.Check(store) == nil:
		return nil
	case strings.HasPrefix(store, "/"):
		return fault("copy it to the store first: nix store add-path", "%s is not in the store", shape.Quote(text))
	case !pattern.Expr(`^[a-z][a-z0-9+]*:`).Matches(text):
		return fault("write pinned, or a reference with a revision", "%s is not a flake reference", shape.Quote(text))
	case isLocked(text):
		return nil
	}
	return fault("add the revision: github:NixOS/nixpkgs/REV, of 40 hexadecimal digits",
		"%s is not locked; expected a reference with a revision or narHash", shape.Quote(text))
}

// forges are the schemes that may hold the revision in their path.
var forges = []string{"github", "gitlab", "sourcehut"}

// isLocked reports whether a flake reference has a full revision or a narHash, so that it always means the same files.
func isLocked(text string) bool {
	place, query, _ := strings.Cut(text, "?")
	scheme, place, _ := strings.Cut(place, ":")
	// OWNER/REPO/REV: an owner or a repository may well be called like a revision.
	if names := strings.Split(place, "/"); slices.Contains(forges, scheme) && len(names) == 3 && isRevision(names[2]) {
		return true
	}
	for parameter := range strings.SplitSeq(query, "&") {
		key, value, _ := strings.Cut(parameter, "=")
		if key == "rev" && isRevision(value) || key == "narHash" && strings.HasPrefix(value, "sha256-") {
			return true
		}
	}
	return false
}

// isRevision reports whether text is a full SHA-1 commit hash.
func isRevision(text string) bool { return pattern.Expr(`^[0-9a-f]{40}$`).Matches(text) }

// presets returns the names that stand for a list of hosts in tier allow.
func presets() []string {
	return mapped(hostpattern.Presets, func(p hostpattern.Preset) string { return p.Name })
}

// checkAllowed checks an entry of an allow list: a preset, or a host with an
// optional port; a leading "*." matches one label or more.
func checkAllowed(text string) *shape.Fault {
	if slices.Contains(presets(), text) {
		return nil
	}
	name, wild := strings.CutPrefix(text, "*.")
	if fault := checkHost(text, name); fault != nil {
		return fault
	}
	name, _, _ = strings.Cut(name, ":")
	switch dotted := strings.Contains(name, "."); {
	case !dotted && wild:
		return fault("name the domain: *.example.com", "%s covers a whole top-level domain", shape.Quote(text))
	case !dotted:
		return notPreset(text)
	}
	if _, err := hostpattern.Parse(text); err != nil {
		return fault("name the host", "%s: %v", shape.Quote(text), err)
	}
	return nil
}

// HostFault says why a host, or in tier inet an address, cannot be listed in a profile of the tier, and what can be;
// empty: it can.
func HostFault(tier, host string) (message, remedy string) {
	check := checkAllowed
	if tier == TierInet {
		check = checkExcepted
	}
	if fault := check(host); fault != nil {
		return fault.Message, fault.Remedy
	}
	return "", ""
}

// checkExcepted checks an entry of network.except: ADDRESS[:PORT] or NETWORK/BITS[:PORT].
func checkExcepted(text string) *shape.Fault {
	if _, err := policy.ParseException(text); err != nil {
		return fault("write an address or a network, with a port if need be: 192.168.1.20:5432", "%v", err)
	}
	return nil
}

// checkProxy checks the URL of the proxy that hosts are reached through.
func checkProxy(text string) *shape.Fault {
	if _, err := upstream.Parse(text); err != nil || text == "" {
		return fault("write http://HOST:PORT or socks5://HOST:PORT", "%v", cmp.Or(err, errors.New("the URL is empty")))
	}
	return nil
}

func notPreset(text string) *shape.Fault {
	remedy := ""
	if near := shape.Nearest(text, presets()); near != "" {
		remedy = "write " + near
	}
	return fault(remedy, "%s is neither a preset (%s) nor a host with a domain", shape.Quote(text),
		strings.Join(presets(), ", "))
}

func checkGitHost(text string) *shape.Fault {
	if strings.Contains(text, "*") {
		return fault("name each host", "%s is a pattern; expected one host", shape.Quote(text))
	}
	return checkHost(text, text)
}

// checkHost checks name, a host with an optional port. name is text without its
// leading "*."; faults quote text.
func checkHost(text, name string) *shape.Fault {
	if fault := notHost(text); fault != nil {
		return fault
	}
	name, port, ported := strings.Cut(name, ":")
	if number, err := strconv.Atoi(port); ported &&
		(err != nil || strconv.Itoa(number) != port || number < 1 || number > maxPort) {
		return fault("", "%s: %s is not a port; expected 1 to %d", shape.Quote(text), shape.Quote(port), maxPort)
	}
	if strings.Trim(name, "0123456789.") == "" {
		return fault("name the host", "%s is an address; expected a host name", shape.Quote(text))
	}
	for label := range strings.SplitSeq(name, ".") {
		if !isLabel(label) {
			return fault("",
				"%s is not a host; expected NAME.DOMAIN, *.NAME.DOMAIN, and a port if need be", shape.Quote(text))
		}
	}
	return nil
}

// notHost recognises what people write by mistake instead of a host: URLs, paths,
// addresses. It returns nil if text is none of these.
func notHost(text string) *shape.Fault {
	if _, rest, found := strings.Cut(text, "://"); found {
		host, _, _ := strings.Cut(rest, "/")
		return fault("write "+host, "%s is a URL; expected a host", shape.Quote(text))
	}
	host, _, path := strings.Cut(text, "/")
	switch {
	case path:
		return fault("write "+host, "%s has a path; only whole hosts can be allowed", shape.Quote(text))
	case strings.HasSuffix(text, "."):
		return fault("remove the dot at the end", "%s is not a host", shape.Quote(text))
	case strings.ContainsFunc(text, func(r rune) bool { return r >= 0x80 }):
		return fault("write the name in its ASCII form (xn--…)", "%s is not a host", shape.Quote(text))
	case strings.Count(text, ":") > 1:
		return fault("name the host", "%s is an address; expected a host name", shape.Quote(text))
	}
	return nil
}

// isLabel reports whether a text is a label of a host name by RFC 1123, section 2.1.
func isLabel(label string) bool {
	return pattern.Expr(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$`).Matches(label)
}

// maxPort is the largest TCP port.
const maxPort = 65535
