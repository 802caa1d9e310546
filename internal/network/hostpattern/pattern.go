package hostpattern

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// webPorts are the ports that a pattern without a port admits.
var webPorts = [...]int{80, 443}

// Pattern admits one host, or all hosts below a domain.
type Pattern struct {
	name string // canonical
	wild bool   // admits the names below name, but not name itself
	port int    // 0: the ports of the web
}

// String returns the pattern in the form that [Parse] reads.
func (p Pattern) String() string {
	text := p.name
	if p.wild {
		text = "*." + text
	}
	if p.port != 0 {
		text += ":" + strconv.Itoa(p.port)
	}
	return text
}

// Matches reports whether the pattern admits a host, in its canonical form, at
// a port.
func (p Pattern) Matches(name string, port int) bool {
	if p.port != 0 && p.port != port || p.port == 0 && !slices.Contains(webPorts[:], port) {
		return false
	}
	return p.Covers(name)
}

// Covers reports whether the pattern admits a host, in its canonical form, at
// any port.
func (p Pattern) Covers(name string) bool {
	if !p.wild {
		return name == p.name
	}
	return len(name) > len(p.name)+1 && strings.HasSuffix(name, p.name) && name[len(name)-len(p.name)-1] == '.'
}

// Parse reads a pattern. A wildcard over a top-level domain is refused.
func Parse(text string) (Pattern, error) {
	host, port, ported := strings.Cut(text, ":")
	host, wild := strings.CutPrefix(host, "*.")
	name, err := Canonical(host)
	if err != nil {
		return Pattern{}, err
	}
	p := Pattern{name: name, wild: wild}
	if wild && !strings.Contains(name, ".") {
		return Pattern{}, fmt.Errorf("*.%s covers a whole top-level domain", name)
	}
	if !ported {
		return p, nil
	}
	p.port, err = strconv.Atoi(port)
	if err != nil || strconv.Itoa(p.port) != port || p.port < 1 || p.port > 65535 {
		return Pattern{}, fmt.Errorf("%q is not a port", port)
	}
	return p, nil
}

// List is a list of the hosts that may be reached.
type List []Pattern

// ParseList reads the patterns and presets of a list.
func ParseList(texts []string) (List, error) {
	var list List
	for _, text := range Expand(texts) {
		p, err := Parse(text)
		if err != nil {
			return nil, fmt.Errorf("host pattern %q: %w", text, err)
		}
		list = append(list, p)
	}
	return list, nil
}

// Find returns the first pattern that admits a host, in its canonical form, at a
// port.
func (l List) Find(name string, port int) (Pattern, bool) {
	i := slices.IndexFunc(l, func(p Pattern) bool { return p.Matches(name, port) })
	if i < 0 {
		return Pattern{}, false
	}
	return l[i], true
}
