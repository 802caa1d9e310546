package networking

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"claudebox/checks/kit/must"
	"claudebox/internal/host"
	"claudebox/internal/network/helper"
	"claudebox/internal/network/policy"
	"claudebox/internal/plan"
	"claudebox/internal/profile"
	"claudebox/internal/sandbox/launch"
)

// F8: what a sandbox wrote is told in printable ASCII.
func TestWhatIsToldOfTheNetworkIsPrintable(t *testing.T) {
	s := helper.Summary{Restarted: 1, Report: helper.Report{
		Hosts:   []helper.Host{{Name: "good.test", Port: 443, Sent: 1_500_000, Received: 20}, {Name: "a\x1b[2J.test", Port: 80}},
		Refused: []helper.Refused{{What: "evil\r.test", Why: "not on the list of hosts", Count: 3}},
		More:    7,
	}}
	got := strings.Join(Lines(s, ""), "\n")
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

func TestTheReasonOfSeveralRefusalsIsSaidOnce(t *testing.T) {
	r := helper.Report{Refused: []helper.Refused{
		{What: "a.test", Why: "not listed", Count: 2},
		{What: "b.test", Why: "not listed", Count: 1},
		{What: "c.test", Why: "private", Count: 1},
		{What: "d.test", Why: "not listed", Count: 1},
	}}
	const want = "2 × a.test, 1 × b.test (not listed), 1 × c.test (private), 1 × d.test (not listed)"
	if got := refused(r); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for range shown {
		r.Refused = append(r.Refused, helper.Refused{What: "e.test", Why: "not listed", Count: 1})
	}
	if got := refused(r); !strings.HasSuffix(got, "1 × e.test (not listed), 4 × others") {
		t.Errorf("got %q", got)
	}
}

// A log that is a pipe would hold the launch until somebody reads it.
func TestALogThatIsAPipeWithoutAReaderIsRefused(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "log")
	must.Do(t, syscall.Mkfifo(pipe, 0o600))
	refused := make(chan error)
	go func() {
		l := launch.Launch{Plan: plan.Plan{Network: plan.Network{Tier: profile.TierAllow}}}
		_, err := new(Running).Open(l, Part{Log: pipe}, helper.Settings{})
		refused <- err
	}()
	select {
	case err := <-refused:
		if err == nil || !strings.Contains(err.Error(), "write the network log "+pipe) {
			t.Errorf("got %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("it waits for a reader")
	}
}

// A summary that did not come is not one of a session that reached nothing.
func TestALostSummaryIsTold(t *testing.T) {
	if got := fmt.Sprint(Lines(helper.Summary{Lost: true}, "")); got != "[network: the helper did not tell what was reached and refused]" {
		t.Error(got)
	}
}

func TestPublishedPorts(t *testing.T) {
	p := plan.Plan{Network: plan.Network{In: []int{3000, 5000}}}
	got, err := publishedPorts(p, []string{"8080:3000", "5000"})
	if want := "[{8080 3000} {5000 5000}]"; err != nil || fmt.Sprint(got) != want {
		t.Errorf("got %v, %v; want %s", got, err, want)
	}
	p.Network.Out = []int{8931, 5000}
	if got, err := publishedPorts(p, []string{"5000"}); err == nil {
		t.Errorf("a port that leads both ways: %v", got)
	}
	p.Network.Out = []int{8080}
	if got, err := publishedPorts(p, []string{"8080:3000"}); err == nil {
		t.Errorf("a sandbox in the place of what it reaches: %v", got)
	}
	p.Network.Out = nil
	for _, word := range []string{"", "x", "0", "80:", ":80", "1:2:3", "65536", "080:80"} {
		if _, err := publishedPorts(p, []string{word}); err == nil {
			t.Errorf("%q was taken", word)
		}
	}
}

// What the agent asked for is listed as hosts alone, whatever it wrote.
func TestWhatCanBeListedOfARefusal(t *testing.T) {
	r := helper.Report{}
	for _, what := range []string{"a.test", "a.test:443", "b.test:22", "c.test:80", "A.Test", "evil\\x1b.test", "intranet", "203.0.113.10:80", "[2001:db8::1]:80", "x.test\nnetwork: full", "d.test:0", "*.e.test", "f.test, g.test", " h.test", "\"i.test:22\"", "j.test:22:80", "k.test:022"} {
		r.Refused = append(r.Refused, helper.Refused{What: what, Why: policy.NotListed, Count: 1})
	}
	r.Refused = append(r.Refused, helper.Refused{What: "h.test:443", Why: "private", Count: 9})
	if got := fmt.Sprint(Unlisted(r)); got != "[a.test b.test:22 c.test]" {
		t.Errorf("got %s", got)
	}
}

func TestTheLogIsNamedLikeOtherPathsOfTheCommandLine(t *testing.T) {
	home := t.TempDir()
	r := Request{Facts: host.Facts{Home: home, Cwd: home + "/project"}, Project: home + "/other"}
	r.Plan.Network.Tier = profile.TierInet
	for _, dir := range []string{"/project/logs", "/other"} {
		must.Do(t, os.MkdirAll(home+dir, 0o700))
	}
	for name, want := range map[string]string{"~/x": "/x", "logs/x": "/project/logs/x", "../x": "/x"} {
		r.Log = name
		if made, err := Of(r); err != nil || made.Log != home+want {
			t.Errorf("%s: %q, %v", name, made.Log, err)
		}
	}
	r.Log = "~/other/x"
	if _, err := Of(r); err == nil || !strings.Contains(err.Error(), "can change what is in the project") {
		t.Errorf("in the project: %v", err)
	}
}

// In tier full no port can have another number outside.
func TestAPortIsNotMovedInTierFull(t *testing.T) {
	var r Request
	r.Plan.Network = plan.Network{Tier: profile.TierFull, In: []int{13000}}
	r.Publish = []string{"18080:13000"}
	if _, err := Of(r); err == nil || !strings.Contains(err.Error(), "port 13000 inside is this machine's") {
		t.Errorf("got %v", err)
	}
	r.Publish = []string{"13000"}
	if _, err := Of(r); err != nil {
		t.Error(err)
	}
	r.Plan.Network.Tier, r.Publish = profile.TierNone, []string{"18080:13000"}
	made, err := Of(r)
	if err != nil || !slices.Equal(made.Warnings, []string{"127.0.0.1:18080 and [::1]:18080 lead to port 13000 inside"}) {
		t.Errorf("got %q, %v", made.Warnings, err)
	}
}
