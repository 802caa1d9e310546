package networking

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/network/helper"
	"claudebox/internal/network/hostpattern"
	"claudebox/internal/network/policy"
)

// Lines returns the report's lines about the network: what was reached and what was refused.
// add is the command, in backticks, that lists the refused; empty: there is none.
func Lines(s helper.Summary, add string) (lines []string) {
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
		if len(Unlisted(s.Report)) > 0 {
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
		name := diag.ASCII(h.Name) // a sandbox may have named it
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
		text := fmt.Sprintf("%d × %s", one.Count, diag.ASCII(one.What))
		if i == len(listed)-1 || listed[i+1].Why != one.Why {
			text += " (" + diag.ASCII(one.Why) + ")"
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

// mostKept is how many refused hosts are kept for `claudebox allow-host --refused`, at most.
const mostKept = 20

// Unlisted returns the hosts of a report that were refused because the profile does not list them, and that it could
// list: with their port, unless that is 443 or 80. It returns at most mostKept.
func Unlisted(r helper.Report) (hosts []string) {
	for _, one := range r.Refused {
		host := Listable(one)
		if host != "" && !slices.Contains(hosts, host) && len(hosts) < mostKept {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// Listable returns the host of a refusal as a profile could list it; empty: it could not.
func Listable(one helper.Refused) string {
	if one.Why != policy.NotListed {
		return ""
	}
	name, port, _ := strings.Cut(one.What, ":")
	host, err := hostpattern.Canonical(name)
	if err != nil || !strings.Contains(host, ".") {
		return ""
	}
	if port != "" && port != "443" && port != "80" {
		host += ":" + port
	}
	if _, err := hostpattern.Parse(host); err != nil {
		return ""
	}
	return host
}
