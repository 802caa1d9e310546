package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"
	"testing"

	"claudebox/checks/kit/expect"
	"claudebox/checks/kit/must"
	"claudebox/internal/network/flow"
	"claudebox/internal/network/helper"
)

func to(port uint16, last byte) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 168, 77, last}), port)
}

// F8: the summary has what the agent wrote, in printable ASCII alone.
func TestNamesAreQuoted(t *testing.T) {
	var j Journal
	j.Unknown("e\x1b[31mvil\n.test"+strings.Repeat("x", 300), false)
	got := j.Report().Refused[0].What
	if !strings.HasPrefix(got, `"e\x1b[31mvil\n.test`) || len(got) > 110 {
		t.Errorf("got %q", got)
	}
}

// A name that is none, as one with a blank or a colon, is not taken for another host, nor for the rest of the sentence.
func TestARefusedNameForgesNoLine(t *testing.T) {
	for name, want := range map[string]string{
		"a.test": "a.test", "*.a.test": "*.a.test", " github.com": `" github.com"`, "github.com:22": `"github.com:22"`,
		"a.test (not on the list of hosts), 3 × b.test": `"a.test (not on the list of hosts), 3 \u00d7 b.test"`, `a"b`: `"a\"b"`,
	} {
		var j Journal
		j.Unknown(name, false)
		j.Refused(flow.Flow{Proto: flow.TCP, To: to(22, 9), Name: name}, "private")
		for _, r := range j.Report().Refused {
			if r.What != want && r.What != want+":22" {
				t.Errorf("%q is shown as %s; want %s", name, r.What, want)
			}
		}
	}
}

// A log on a full disk is not complete, and who reads it has to know that.
func TestALineThatCannotBeWrittenIsTold(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("NOT RUN: ", err)
	}
	defer full.Close()
	var j Journal
	j.LogTo(full)
	if r := j.Report(); r.LogLost != "" {
		t.Errorf("before any line: %q", r.LogLost)
	}
	j.Failed(flow.Flow{Proto: flow.TCP, To: to(443, 9)}, "no answer")
	j.LogTo(io.Discard)
	j.Opened(flow.Flow{Proto: flow.TCP, To: to(443, 9)})
	if r := j.Report(); r.LogLost != "no space left on device" {
		t.Errorf("the reason: %q", r.LogLost)
	}
}

// An agent that fills the log hides what it does then from who reads it.
func TestAFloodThatFillsTheLogIsTold(t *testing.T) {
	var j Journal
	var log bytes.Buffer
	j.LogTo(&log)
	j.written = mostWritten
	j.Refused(flow.Flow{Proto: flow.TCP, To: to(443, 9)}, "private")
	if r := j.Report(); r.LogLost != "" {
		t.Errorf("by the last line: %q", r.LogLost)
	}
	j.Opened(flow.Flow{Proto: flow.TCP, To: to(443, 9), Name: "evil.test"})
	if r := j.Report(); r.LogLost != helper.LogFull || strings.Contains(log.String(), "evil.test") {
		t.Errorf("%q is told of the log\n%s", r.LogLost, &log)
	}
}

func TestAHostThatWasNotReachedIsInTheLog(t *testing.T) {
	var j Journal
	var log bytes.Buffer
	j.LogTo(&log)
	j.Failed(flow.Flow{Proto: flow.TCP, To: to(443, 9), Name: "good.test"}, "connection\nrefused")
	expect.Contains(t, log.String(), `"event":"failed"`, `"host":"good.test"`, `connection\\nrefused`)
}

// Who tries thousands of addresses hides no name.
func TestNoiseHidesNoRefusal(t *testing.T) {
	var j Journal
	for port := range 5000 {
		j.Refused(flow.Flow{Proto: flow.TCP, To: to(uint16(port+1), 2)}, "private")
	}
	j.Refused(flow.Flow{Proto: flow.TCP, To: to(443, 9), Name: "rebind.test"}, "private")
	r := j.Report()
	found := false
	for _, one := range r.Refused {
		found = found || one.What == "rebind.test:443"
	}
	if !found || len(r.Refused) != mostAddresses+1 || r.More != 5000-mostAddresses {
		t.Errorf("%d are kept, %d more, the name is there: %t", len(r.Refused), r.More, found)
	}
}

// What is refused before noise of any kind is told, and so is what is refused
// behind it.
func TestNoiseOfNamesHidesNoName(t *testing.T) {
	for name, noise := range map[string]func(*Journal, int){
		"hellos": func(j *Journal, n int) {
			good := flow.Flow{Proto: flow.TCP, To: to(443, 9), Name: "good.test"}
			j.Refused(good, fmt.Sprintf("TLS for another host: %d.test", n))
		},
		"questions": func(j *Journal, n int) { j.Unknown(fmt.Sprintf("%d.test", n), false) },
	} {
		var j Journal
		rebind := func(name string) { j.Refused(flow.Flow{Proto: flow.TCP, To: to(443, 9), Name: name}, "private") }
		rebind("before.test")
		for n := range 5000 {
			noise(&j, n)
		}
		rebind("behind.test")
		found, all := 0, 0
		r := j.Report()
		for _, one := range r.Refused {
			if all += one.Count; one.What == "before.test:443" || one.What == "behind.test:443" {
				found++
			}
		}
		if found != 2 || len(r.Refused) > mostNames || all+r.More != 5002 {
			t.Errorf("%s: %d are kept, of %d refusals and %d more; %d of the two names are there", name, len(r.Refused), all, r.More, found)
		}
		if name == "hellos" && len(r.Refused) != mostReasons+3 {
			t.Errorf("one host is there with %d reasons", len(r.Refused)-2)
		}
	}
}

// What a client says in its hello is told as a name is.
func TestReasonsAreQuoted(t *testing.T) {
	var j Journal
	var log bytes.Buffer
	j.LogTo(&log)
	j.Refused(flow.Flow{Proto: flow.TCP, To: to(443, 9)}, "TLS for another host: \u009b31m\u202e"+strings.Repeat("x", 31000))
	got := j.Report().Refused[0].Why
	if !strings.HasPrefix(got, `TLS for another host: \u009b31m\u202e`) || len(got) > 110 {
		t.Errorf("got %q", got)
	}
	if log.Len() > 300 || strings.ContainsAny(log.String(), "\u009b\u202e") {
		t.Errorf("the log: %q", log.String())
	}
}

// Who reaches hundreds of places carries nothing out unseen.
func TestPlacesBeyondTheBoundAreCountedTogether(t *testing.T) {
	var j Journal
	for port := range mostHosts + 3 {
		f := flow.Flow{Proto: flow.TCP, To: to(uint16(port+1), 2)}
		j.Opened(f)
		j.Closed(f, 5, 7)
	}
	hosts := j.Report().Hosts
	if first := hosts[0]; len(hosts) != mostHosts+1 || first.Name != "others" || first.Count != 3 || first.Sent != 15 || first.Received != 21 {
		t.Errorf("%d hosts, the first %+v", len(hosts), first)
	}
}

func TestALogThatIsFullSaysSo(t *testing.T) {
	var log bytes.Buffer
	j := Journal{written: mostWritten}
	j.LogTo(&log)
	for range 3 {
		j.Opened(flow.Flow{Proto: flow.TCP, To: to(443, 9)})
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if last := lines[len(lines)-1]; len(lines) != 2 || !strings.Contains(last, `"event":"full","why":"the log is full"`) {
		t.Errorf("the log: %q", lines)
	}
}

// Most clients ask for both kinds of address, in any order.
func TestAQuestionForBothKindsOfAddressCountsOnce(t *testing.T) {
	var j Journal
	for range 3 {
		j.Unknown("a.test", true)
		j.Unknown("a.test", false)
		j.Unknown("b.test", false)
		j.Unknown("b.test", true)
	}
	j.Unknown("c.test", true)
	if got := fmt.Sprint(j.Report().Refused); got != "[{a.test not on the list of hosts 3} {b.test not on the list of hosts 3} {c.test not on the list of hosts 1}]" {
		t.Error(got)
	}
}

func TestTheLogIsJSONLines(t *testing.T) {
	var j Journal
	var log bytes.Buffer
	j.LogTo(&log)
	f := flow.Flow{Proto: flow.TCP, To: to(443, 9), Name: "good.test"}
	j.Opened(f)
	j.Closed(f, 5, 7)
	j.Refused(flow.Flow{Proto: flow.ICMP, To: to(0, 2)}, "private")
	var events []string
	for line := range strings.Lines(log.String()) {
		var l struct{ Event, Host, Address string }
		must.Do(t, json.Unmarshal([]byte(line), &l))
		events = append(events, l.Event+" "+l.Host+" "+l.Address)
	}
	if got := strings.Join(events, ", "); got != "opened good.test 192.168.77.9, closed good.test 192.168.77.9, refused  192.168.77.2" {
		t.Error(got)
	}
	if hosts := j.Report().Hosts; len(hosts) != 1 || hosts[0].Sent != 5 || hosts[0].Received != 7 || hosts[0].Count != 1 {
		t.Errorf("%+v", hosts)
	}
}
