package networking

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"claudebox/internal/host"
)

// D27: a network set-up of this machine that is missing, and so inside, is said.
func TestWhatIsMissingOfTheNetworkIsSaid(t *testing.T) {
	certificates := filepath.Join(t.TempDir(), "bundle")
	for name, tc := range map[string]struct {
		resolv, bundle, variable, tier string
		says                           string // empty: nothing
	}{
		"all is there":                 {"nameserver 10.0.0.1\n", certificates, "", "full", ""},
		"a link that leads nowhere":    {"", certificates, "", "full", "no name can be looked up"},
		"no nameserver":                {"search example\n", certificates, "", "inet", "it names no nameserver"},
		"no bundle":                    {"nameserver 10.0.0.1\n", "/nix/store/own", "", "allow", "this machine has no certificate bundle"},
		"a bundle that cannot be read": {"nameserver 10.0.0.1\n", "/nix/store/own", "/absent", "full", "SSL_CERT_FILE (/absent) names no certificate bundle"},
		"a bundle that is named":       {"nameserver 10.0.0.1\n", certificates, certificates, "full", ""},
		"nothing without a network":    {"", "/nix/store/own", "/absent", "none", ""},
	} {
		t.Run(name, func(t *testing.T) {
			etc := host.Etc{Certificates: tc.bundle}
			if tc.resolv != "" {
				etc.Resolv = []byte(tc.resolv)
			}
			made := Missing(tc.tier, host.Environment{"SSL_CERT_FILE=" + tc.variable}, etc, "/nix/store/own", false)
			said := strings.Join(slices.Concat(made.Warnings, made.Notes), "\n")
			if tc.says == "" && said != "" || !strings.Contains(said, tc.says) {
				t.Errorf("it says %q; want %q", said, tc.says)
			}
		})
	}
}

// Many machines have the same bundle in all of these variables.
func TestMoreCertificatesThatAreInsideAlreadyAreNoRemark(t *testing.T) {
	certificates := filepath.Join(t.TempDir(), "bundle")
	for file, want := range map[string]int{certificates: 0, certificates + "-of-a-firm": 1} {
		etc := host.Etc{Certificates: certificates, Resolv: []byte("nameserver 10.0.0.1\n")}
		for _, name := range []string{host.MoreVariable, "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE"} {
			made := Missing("full", host.Environment{name + "=" + file}, etc, "/nix/store/own", false)
			if got := len(made.Warnings); got != want {
				t.Errorf("%s=%s: %q", name, file, made.Warnings)
			}
		}
	}
}
