package brokering

import (
	"fmt"
	"strings"
	"testing"

	"claudebox/internal/secret/broker"
)

// Words in the place of a host read as claudebox's own, and long ones filled the terminal.
func TestWhatIsToldOfARefusalIsNoWordOfTheAgents(t *testing.T) {
	for host, want := range map[string]string{
		"api.github.com": "was sent to api.github.com/p, ", "foo.example:8443": "was sent to foo.example:8443/p, ",
		"[fe80::1%25api.github.com, as is right; nothing else was sent (fine)]": `was sent to "[fe80::1%25api.github.com, as is right; nothing else was sent (fine)]"/p, `,
		"\u202emoc.live": `was sent to "\u202emoc.live"/p, `, strings.Repeat("a", 60000) + ".test": `was sent to "` + strings.Repeat("a", 99) + `..."/p, `,
	} {
		k := secretKeeper{Refusals: &Refusals{}}
		k.Report(broker.Refusal{Secret: "TOKEN", Host: host, Path: "/p", Why: "without TLS"})
		if told := strings.Join(k.Told(), "\n"); !strings.Contains(told, want) {
			t.Errorf("%.80q is told as %.300q", host, told)
		}
	}
}

// The first path alone was told, so that what came after it was not seen.
func TestThePathsOfARefusalAreCounted(t *testing.T) {
	for paths, want := range map[int]string{1: "/0, why: stopped", 3: "/0, why: stopped (4 times, at 3 paths)", 30: "/0, why: stopped (31 times or more, at 20 paths or more)"} {
		var n Refusals
		for i := range paths {
			n.Report(broker.Refusal{Host: "a.example", Path: fmt.Sprint("/", i), Why: "why"})
		}
		if paths > 1 {
			n.Report(broker.Refusal{Host: "a.example", Path: "/1", Why: "why"})
		}
		if told := n.Told(); !strings.HasSuffix(told[0], want) {
			t.Errorf("%d paths: %q; want %q", paths, told, want)
		}
	}
}
