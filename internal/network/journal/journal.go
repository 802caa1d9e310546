// Package journal records what became of a sandbox's connections: a summary for
// the end of the session, and a line for each connection in a log if there is one.
package journal

import (
	"cmp"
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"sync"
	"time"

	"claudebox/internal/diag"
	"claudebox/internal/network/flow"
	"claudebox/internal/network/helper"
	"claudebox/internal/network/hostpattern"
	"claudebox/internal/network/policy"
)

// Journal counts connections by host, and refusals by what was refused and why.
// It may be used from many goroutines. The zero Journal is ready and has no log.
type Journal struct {
	mu      sync.Mutex
	log     io.Writer
	written int64
	full    bool   // the log has reached its limit, and its last line says so
	lost    string // why a line could not be written; empty: all were
	hosts   map[place]*helper.Host
	others  helper.Host       // the sum for places beyond mostHosts
	asked   map[string][2]int // names that do not exist: how often each was asked for, by kind of address

	names, addresses refusals // separate, so that thousands of refused addresses displace no name
}

// place is a host with a port.
type place struct {
	host string
	port uint16
}

// Bounds of what a sandbox can make us remember: the places reached, and
// what was refused.
const (
	mostHosts     = 512
	mostNames     = 256
	mostAddresses = 64
	mostWritten   = 64 << 20 // bytes of the log
)

// LogTo writes a line to w for each event from now on.
func (j *Journal) LogTo(w io.Writer) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.log = w
}

// line is one line of the log.
type line struct {
	Time     string `json:"time"`
	Event    string `json:"event"`
	Proto    string `json:"proto,omitempty"`
	Host     string `json:"host,omitempty"`
	Address  string `json:"address,omitempty"`
	Port     uint16 `json:"port,omitempty"`
	Why      string `json:"why,omitempty"`
	Sent     *int64 `json:"sent,omitempty"`
	Received *int64 `json:"received,omitempty"`
}

func lineOf(event string, f flow.Flow) line {
	l := line{Event: event, Proto: string(f.Proto), Host: f.Name, Port: f.To.Port()}
	if f.To.Addr().IsValid() {
		l.Address = f.To.Addr().String()
	}
	return l
}

// Opened records a flow that has been dialled.
func (j *Journal) Opened(f flow.Flow) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.host(f).Count++
	j.write(lineOf("opened", f))
}

// Closed notes the end of a flow, and the bytes that it carried.
func (j *Journal) Closed(f flow.Flow, sent, received int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	h := j.host(f)
	h.Sent += sent
	h.Received += received
	l := lineOf("closed", f)
	l.Sent, l.Received = &sent, &received
	j.write(l)
}

// host is what is remembered of a flow's host, alone or among the others.
func (j *Journal) host(f flow.Flow) *helper.Host {
	at := place{cmp.Or(f.Name, f.To.Addr().String()), f.To.Port()}
	if h, known := j.hosts[at]; known {
		return h
	}
	if len(j.hosts) >= mostHosts {
		return &j.others
	}
	if j.hosts == nil {
		j.hosts = map[place]*helper.Host{}
	}
	j.hosts[at] = &helper.Host{Name: at.host, Port: at.port}
	return j.hosts[at]
}

// Refused records a flow that was refused. Why may contain words from the sandbox.
func (j *Journal) Refused(f flow.Flow, why string) {
	why = quoted(why)
	what, named := f.To.String(), f.Name != ""
	if named {
		what = hostpattern.Shown(f.Name) + ":" + strconv.Itoa(int(f.To.Port()))
	} else if f.Proto == flow.ICMP {
		what = f.To.Addr().String()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if named {
		j.names.add(refusal{what, why}, mostNames)
	} else {
		j.addresses.add(refusal{what, why}, mostAddresses)
	}
	l := lineOf("refused", f)
	l.Why = why
	j.write(l)
}

// Failed records a flow that was allowed, and whose host could not be connected to, in the log alone: the sandbox
// itself sees that.
func (j *Journal) Failed(f flow.Flow, why string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	l := lineOf("failed", f)
	l.Why = quoted(why)
	j.write(l)
}

// Unknown records a query for a name that is not on the list of hosts. Most clients
// ask twice, once for each kind of address, in any order; that
// counts once. second says which kind of address this query is for.
func (j *Journal) Unknown(name string, second bool) {
	const why = policy.NotListed
	name = hostpattern.Shown(name)
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.asked == nil {
		j.asked = map[string][2]int{}
	}
	asked, known := j.asked[name]
	if known || len(j.asked) < mostNames {
		kind := 0
		if second {
			kind = 1
		}
		before := max(asked[0], asked[1])
		asked[kind]++
		j.asked[name] = asked
		if max(asked[0], asked[1]) == before {
			return
		}
	}
	j.names.add(refusal{name, why}, mostNames)
	j.write(line{Event: "refused", Proto: "dns", Host: name, Why: why})
}

// write adds a line to the log. The first line beyond the limit is replaced by one that says the log is full.
// That, and an error of writing, as on a full disk, are no reason to end the session: [Journal.Report] tells them.
func (j *Journal) write(l line) {
	if j.log == nil || j.full {
		return
	}
	if j.written > mostWritten {
		j.full, l = true, line{Event: "full", Why: "the log is full"}
		j.lost = cmp.Or(j.lost, helper.LogFull)
	}
	l.Time = time.Now().UTC().Format("2006-01-02T15:04:05.000Z")
	text, err := json.Marshal(l)
	if err != nil {
		return
	}
	n, err := j.log.Write(append(text, '\n'))
	j.written += int64(n)
	if err != nil && j.lost == "" {
		j.lost = diag.Cause(err).Error()
	}
}

// Report returns a summary of what has happened so far.
func (j *Journal) Report() helper.Report {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := helper.Report{More: j.names.more + j.addresses.more, LogLost: j.lost}
	for _, h := range j.hosts {
		r.Hosts = append(r.Hosts, *h)
	}
	if j.others != (helper.Host{}) {
		others := j.others
		others.Name = "others"
		r.Hosts = append(r.Hosts, others)
	}
	slices.SortFunc(r.Hosts, func(a, b helper.Host) int {
		return cmp.Or(cmp.Compare(b.Sent+b.Received, a.Sent+a.Received), cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.Port, b.Port))
	})
	for _, list := range []refusals{j.names, j.addresses} {
		for what, count := range list.count {
			r.Refused = append(r.Refused, helper.Refused{What: what.what, Why: what.why, Count: count})
		}
	}
	slices.SortFunc(r.Refused, func(a, b helper.Refused) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.What, b.What), cmp.Compare(a.Why, b.Why))
	})
	return r
}

// longest is how many bytes of a text from the sandbox are kept.
const longest = 100

// quoted returns a text from the sandbox in printable ASCII.
func quoted(text string) string {
	q := strconv.QuoteToASCII(text)
	q = q[1 : len(q)-1]
	if len(q) > longest {
		q = q[:longest] + "..."
	}
	return q
}
