package networking

import (
	"slices"
	"strings"

	"claudebox/internal/host"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/network/dns"
	"claudebox/internal/profile"
	"claudebox/internal/sandbox/launch"
)

// Missing says what of this machine's network set-up is missing, and so inside. ownBundle is the bundle of
// certificates of claudebox's own nixpkgs; broker reports whether a broker answers inside, which adds certificates.
func Missing(tier string, env host.Environment, etc host.Etc, ownBundle string, broker bool) (made launch.Part) {
	if tier == profile.TierNone {
		return made
	}
	if len(dns.Named(etc.Resolv)) == 0 {
		why := "it names no nameserver"
		if etc.Resolv == nil {
			why = "it is not there, or leads nowhere"
		}
		made.Warn("no name can be looked up inside, unless a resolver listens on 127.0.0.1: " + dns.ResolvConf + ": " +
			why + "; start what writes it (`sudo systemctl start systemd-resolved`), or name a nameserver in it")
	}
	var others []string
	for _, name := range slices.Concat([]string{host.MoreVariable}, host.ToolsVariables) {
		file := env.Value(name, "")
		counts := name == host.MoreVariable && etc.Authorities != nil && broker
		if file != "" && !counts && beneath.Real(file) != etc.Certificates {
			others = append(others, name+" ("+file+")")
		}
	}
	if others != nil {
		made.Warn("certificates that do not count inside: " + strings.Join(others, ", ") +
			"; SSL_CERT_FILE, set outside to a bundle with these certificates too, does")
	}
	for _, name := range host.BundleVariables {
		switch file := env.Value(name, ""); {
		case file == "":
			continue
		case beneath.Real(file) != etc.Certificates:
			made.Warn(name + " (" + file + ") names no certificate bundle that can be read, and does not count " +
				"inside")
		}
		return made
	}
	if etc.Certificates == ownBundle {
		made.Note("this machine has no certificate bundle: inside is that of claudebox's nixpkgs; " +
			"SSL_CERT_FILE=FILE, set outside, names one of your own")
	}
	return made
}
