package why_test

import (
	"strings"
	"testing"

	"claudebox/internal/diag"
)

// Whatever an agent asks, the answer is short, in lines that a terminal shows as they are, and offers a host only as a
// list could have it.
func FuzzAnAnswerToAnAgent(f *testing.F) {
	for _, question := range []string{
		"host a.test", "host [::1]:22", "host 10.0.0.1", "path /home/u/p/.env", "path /../..", "program gh", "refusals", "host xn--a.test:443",
		"host A.TEST.", "path /home/u/p/keys/../x", "host \u202e.test", "host localhost:0", "program -", "host 1", "host 0x7f.1", "here /nix/store/x", "here /tmp/x", "set X", "program 3000", "here relative",
	} {
		f.Add(question)
	}
	f.Fuzz(func(t *testing.T, question string) {
		for _, tier := range []string{"full", "inet", "allow", "none"} {
			a, ok := within(tier).Answer(question)
			if !ok {
				continue
			}
			text := a.Answered()
			for line := range strings.SplitSeq(text, "\n") {
				if diag.Visible(line) != line {
					t.Errorf("tier %s, %q: %q", tier, question, text)
				}
			}
			if len(text) > 2000+4*len(question) {
				t.Errorf("tier %s, %q: %d bytes", tier, question, len(text))
			}
			if rest, offered := strings.CutPrefix(a.Change, "claudebox allow-host --session=abcdefgh "); offered && strings.Trim(rest, "abcdefghijklmnopqrstuvwxyz0123456789.-:[]") != "" {
				t.Errorf("tier %s, %q: %q", tier, question, a.Change)
			}
		}
	})
}
