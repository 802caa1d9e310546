package session

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"claudebox/internal/diag"
	"claudebox/internal/linux/aside"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/network/helper"
	"claudebox/internal/network/hostpattern"
	"claudebox/internal/network/policy"
	"claudebox/internal/network/upstream"
	"claudebox/internal/plan"
	"claudebox/internal/profile"
	"claudebox/internal/sandbox/launch"
)

// networkPart is what the network adds to a launch, and what [runningNetwork.open] needs of the options.
type networkPart struct {
	part
	published []helper.Published
	log       string // the file of --network-log; empty: none
}

// networkOf checks what the plan and the options say of the network, and finds the ports to publish and the log file.
func networkOf(in inputs) (made networkPart, err error) {
	wanted, tier := in.plan.Network, in.plan.Network.Tier
	if in.options.NetworkLog != "" && !launch.OwnNetwork(wanted) {
		return made, diag.Errorf("read --network-log", "leave it out, or use tier inet or allow",
			"there is nothing to log: the tier is %s", tier)
	}
	if tier == profile.TierFull && len(in.options.Publish) > 0 {
		made.warn("--publish changes nothing in tier full: every port inside is a port of this host")
	}
	if tier == profile.TierAllow {
		if err := judgeList(in.plan); err != nil {
			return made, err
		}
		isSet := func(name string) bool { return in.Facts.Env.Value(name, "") != "" }
		names := []string{"HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"}
		if i := slices.IndexFunc(names, isSet); i >= 0 && wanted.Via == "" {
			made.note(names[i] + " of this host is not used: claudebox connects to the listed hosts " +
				"itself, or by the proxy that the profile names (network.via)")
		}
	}
	if made.published, err = publishedPorts(in.plan, in.options.Publish); err != nil {
		return made, err
	}
	for _, port := range made.published {
		switch {
		case port.Outside == port.Inside:
		case tier == profile.TierFull:
			return made, diag.Errorf(fmt.Sprintf("publish --publish %d:%d", port.Outside, port.Inside),
				"add `--network inet`, or leave it out and use the port as it is",
				"in tier full port %d inside is this machine's port %[1]d", port.Inside)
		default:
			made.warn(fmt.Sprintf("127.0.0.1:%d and [::1]:%[1]d lead to port %d inside", port.Outside, port.Inside))
		}
	}
	if in.options.NetworkLog != "" {
		made.log, err = logFile("network log", in.absolute(in.options.NetworkLog), in.project.Path)
	}
	return made, err
}

// judgeList checks the list of hosts, and the proxy, of tier allow.
func judgeList(p plan.Plan) error {
	const op = "use tier allow"
	if len(p.Network.Allow) == 0 {
		return diag.Errorf(op, "list them in the profile: `network: {tier: allow, allow: [anthropic, github]}`",
			"profile %s lists no hosts", p.Profile)
	}
	_, err := hostpattern.ParseList(p.Network.Allow)
	if err == nil {
		_, err = upstream.Parse(p.Network.Via)
	}
	if err != nil {
		return &diag.Error{Op: op, Err: err, Remedy: "mend network.allow or network.via in the profile or the plan"}
	}
	return nil
}

// reaches reports whether a sandbox may reach a port of a host on the internet. n must have passed [judgeList].
func reaches(n plan.Network, name string, port int) bool {
	if n.Tier == profile.TierAllow {
		allowed, _ := hostpattern.ParseList(n.Allow)
		_, found := allowed.Find(name, port)
		return found
	}
	return n.Tier != profile.TierNone
}

// logFile returns the path of the log, which is absolute, with the links of its folder resolved. It refuses a log
// in the project: there an agent could read it, or have put a link in its place.
func logFile(what, file, project string) (string, error) {
	op := "write the " + what + " " + file
	dir, err := filepath.EvalSymlinks(filepath.Dir(file))
	if err != nil {
		return "", diag.Wrap(op, err, "name a file in a folder that exists")
	}
	if pathname.Below(dir, project) {
		return "", diag.Errorf(op, "write it to a place outside of the project",
			"the agent can change what is in the project")
	}
	return filepath.Join(dir, filepath.Base(file)), nil
}

// openLog opens a log, whose path [logFile] returned, to write more to it.
func openLog(what, file string) (*os.File, error) {
	const refuse = syscall.O_NOFOLLOW | syscall.O_NONBLOCK // a link, and a pipe that nobody reads
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_APPEND|refuse, 0o600)
	if err != nil {
		return nil, diag.Wrap("write the "+what+" "+file, err, "name a file that you can write and that is no link")
	}
	return f, nil
}

// runningNetwork is what serves the sandbox's network while it runs. The zero value is none.
type runningNetwork struct {
	helper     *helper.Helper // nil: there was none
	closed     bool
	summary    helper.Summary // when it has ended
	endedEarly error          // why the network ended before the session did; nil: it did not
}

// open listens on the published ports of the host and starts the helper, before the sandbox
// starts. s holds only the settings of a broker in the helper ([brokering.settings]); open
// sets the others. If the sandbox has no network of its own, it returns nil, nil.
func (n *runningNetwork) open(l launch.Launch, wanted networkPart, s helper.Settings) (_ *helper.Helper, err error) {
	if !l.OwnNetwork() {
		return nil, nil
	}
	if s.Program, err = ownProgram(networkProgram); err != nil {
		return nil, err
	}
	if wanted.log != "" {
		if s.Log, err = openLog("network log", wanted.log); err != nil {
			return nil, err
		}
	}
	var out []uint16
	for _, port := range l.Plan.Network.Out {
		out = append(out, uint16(port))
	}
	if s.Ports, err = helper.Listen(wanted.published, out); err != nil {
		return nil, err
	}
	configure(&s.Config, l.Plan.Network)
	s.Ended = func(err error) { n.endedEarly = err }
	n.helper, err = helper.Start(s)
	return n.helper, err
}

// configure sets in the helper's configuration what the plan says of the network.
func configure(c *helper.Config, wanted plan.Network) {
	c.Tier, c.Except, c.Via = wanted.Tier, wanted.Except, wanted.Via
	for _, pattern := range wanted.Allow {
		c.Allow = append(c.Allow, helper.Entry{Pattern: pattern, Private: slices.Contains(wanted.Private, pattern)})
	}
}

// close ends the network. It may be called again.
func (n *runningNetwork) close() {
	if n.helper != nil && !n.closed {
		n.summary, n.closed = n.helper.Close(), true
	}
}

// reap waits for the end of a helper that was closed, see [helper.Helper.Reap].
func (n *runningNetwork) reap() {
	if n.helper != nil {
		n.helper.Reap()
	}
}

// Claudebox's own programs, in ../libexec beside this one.
const (
	networkProgram = "claudebox-network" // serves a sandbox's network, see [helper.Helper]
	helperProgram  = "claudebox-helper"  // does other work outside: secrets, ssh keys, systemd, addresses
)

// ownProgram returns the path of one of claudebox's own programs.
func ownProgram(name string) (string, error) {
	self, err := os.Executable()
	if err == nil {
		self, err = filepath.EvalSymlinks(self)
	}
	if err != nil {
		return "", &diag.Error{Op: "find claudebox's own programs", Err: err}
	}
	return filepath.Join(filepath.Dir(filepath.Dir(self)), "libexec", name), nil
}

// askProgram runs claudebox-helper once, as the stage word, to answer a question; see [aside.Ask].
func askProgram(ctx context.Context, word string, question, answer any) error {
	program, err := ownProgram(helperProgram)
	if err == nil {
		err = aside.Ask(ctx, program, word, question, answer)
	}
	return err
}

// Addresses asks claudebox's helper for this machine's networks and addresses.
func Addresses() (here policy.Host, err error) {
	err = askProgram(context.Background(), policy.StageName, struct{}{}, &here)
	return here, err
}

// networkLines returns the report's lines about the network: what was reached and what was refused.
// add is [call.AllowHost] of the refused.
func networkLines(s helper.Summary, add string) (lines []string) {
	if s.Restarted > 0 {
		lines = append(lines, fmt.Sprintf("the network helper ended by itself and was started again, %d times: "+
			"connections were lost, and what is said below is not all", s.Restarted))
	}
	if s.Lost {
		lines = append(lines, "network: the helper did not tell what was reached and refused")
	}
	if text := reached(s.Hosts); text != "" {
		lines = append(lines, "network: "+text)
	}
	if text := refused(s.Report); text != "" {
		if len(unlisted(s.Report)) > 0 {
			if add != "" {
				text += "; " + add + " adds them to the profile"
			} else {
				text += "; `network: {tier: allow, allow: [HOST]}` in a profile lists them"
			}
		}
		lines = append(lines, "refused: "+text)
	}
	return lines
}

// shown is how many hosts a line names.
const shown = 10

// reached says in one line which hosts were reached.
func reached(hosts []helper.Host) string {
	var parts []string
	for _, h := range hosts[:min(len(hosts), shown)] {
		name := escaped(h.Name) // a sandbox may have named it
		if h.Port != 443 && h.Port != 0 {
			name += ":" + strconv.Itoa(int(h.Port))
		}
		parts = append(parts, name+" ("+bothWays(h.Sent, h.Received)+")")
	}
	if others := hosts[len(parts):]; len(others) > 0 {
		var sent, received int64
		for _, h := range others {
			sent += h.Sent
			received += h.Received
		}
		parts = append(parts, fmt.Sprintf("%d others (%s)", len(others), bothWays(sent, received)))
	}
	return strings.Join(parts, ", ")
}

// bothWays says how much was sent and received.
func bothWays(sent, received int64) string {
	return amount(sent) + " sent, " + amount(received) + " received"
}

// refused says in one line what was refused, the most frequent first. The same reason of several in a row is said once.
func refused(r helper.Report) string {
	var parts []string
	others, listed := r.More, r.Refused[:min(len(r.Refused), shown)]
	for i, one := range listed {
		text := fmt.Sprintf("%d × %s", one.Count, escaped(one.What))
		if i == len(listed)-1 || listed[i+1].Why != one.Why {
			text += " (" + escaped(one.Why) + ")"
		}
		parts = append(parts, text)
	}
	for _, one := range r.Refused[len(listed):] {
		others += one.Count
	}
	if others > 0 {
		parts = append(parts, fmt.Sprintf("%d × others", others))
	}
	return strings.Join(parts, ", ")
}

// escaped returns a text that a sandbox may have chosen in printable ASCII, cut after 200 characters.
func escaped(text string) string {
	const longest = 200
	q := strconv.QuoteToASCII(text)
	q = strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`) // of a name that is none, see [hostpattern.Shown]
	if len(q) > longest {
		q = q[:longest] + "..."
	}
	return q
}

// amount writes a number of bytes for a person.
func amount(bytes int64) string {
	const step = 1000
	if bytes < step {
		return fmt.Sprintf("%d B", bytes)
	}
	n, units := float64(bytes)/step, []string{"kB", "MB", "GB", "TB"}
	for n >= step && len(units) > 1 {
		n, units = n/step, units[1:]
	}
	return fmt.Sprintf("%.1f %s", n, units[0])
}

// publishedPorts lists the ports inside that the host reaches: those of the plan, which has those of --publish, too.
// The host's port has the same number, or the one that --publish gives it.
func publishedPorts(p plan.Plan, words []string) (list []helper.Published, err error) {
	moved, err := parsePublish(words)
	if err != nil {
		return nil, err
	}
	for _, inside := range p.Network.In {
		port := helper.Published{Outside: uint16(inside), Inside: uint16(inside)}
		for _, m := range moved {
			if m.Inside == port.Inside {
				port = m
			}
		}
		list = append(list, port)
	}
	return list, nil
}

// parsePublish reads words of --publish, INSIDE or HOST:INSIDE.
func parsePublish(words []string) (list []helper.Published, err error) {
	for _, word := range words {
		outside, inside := sides(word)
		var port helper.Published
		if port.Outside, err = parsePort(outside); err == nil {
			port.Inside, err = parsePort(inside)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, port)
	}
	return list, nil
}

// parsePort reads a port of --publish.
func parsePort(word string) (uint16, error) {
	port, err := strconv.ParseUint(word, 10, 16)
	if err != nil || strconv.FormatUint(port, 10) != word || port == 0 {
		return 0, diag.Errorf("read --publish", "write a number, or two: --publish 3000, --publish 8080:3000",
			"%q is not a port; expected 1 to 65535", word)
	}
	return uint16(port), nil
}
