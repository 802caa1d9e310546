package session

import (
	"fmt"
	"strings"
	"testing"

	"claudebox/internal/network/helper"
	"claudebox/internal/plan"
)

// F8: what a sandbox wrote is told in printable ASCII.
func TestWhatIsToldOfTheNetworkIsPrintable(t *testing.T) {
	n := outside{summary: helper.Summary{Restarted: 1, Report: helper.Report{
		Hosts:   []helper.Host{{Name: "good.test", Port: 443, Sent: 1_500_000, Received: 20}, {Name: "a\x1b[2J.test", Port: 80}},
		Refused: []helper.Refused{{What: "evil\r.test", Why: "not on the list of hosts", Count: 3}},
		More:    7,
	}}}
	got := strings.Join(n.told(), "\n")
	for _, want := range []string{
		"started again, 1 times", "network: good.test (1.5 MB sent, 20 B received), a\\x1b[2J.test:80 (0 B sent, 0 B received)", "refused: 3 × evil\\r.test (not on the list of hosts), 7 × others",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %q in %q", want, got)
		}
	}
	if strings.ContainsAny(got, "\x1b\r") {
		t.Errorf("got %q", got)
	}
}

func TestPublishedPorts(t *testing.T) {
	p := plan.Plan{Network: plan.Network{In: []int{3000, 5000}}}
	got, err := published(p, []string{"8080:3000", "5000"})
	if want := "[{8080 3000} {5000 5000}]"; err != nil || fmt.Sprint(got) != want {
		t.Errorf("got %v, %v; want %s", got, err, want)
	}
	for _, word := range []string{"", "x", "0", "80:", ":80", "1:2:3", "65536", "080:80"} {
		if _, err := published(p, []string{word}); err == nil {
			t.Errorf("%q was taken", word)
		}
	}
}
