package broker

import (
	"slices"
	"strings"
)

// Config is all that a broker knows. It is told by the process that started
// this one, over a pipe: nothing of it stands in a file or on a command line.
type Config struct {
	Secrets   []Secret  `json:"secrets"`
	Login     *Login    `json:"login,omitempty"`
	Key       Key       `json:"key"` // of the placeholders of Secrets
	Authority Authority `json:"authority"`
	Roots     []byte    `json:"roots"` // PEM: the host's own authorities
}

// Login is Claude's, without what renews it.
type Login struct {
	Key    Key    `json:"key"` // of its placeholders: the instance's
	Access string `json:"access"`
	Scope  string `json:"scope"` // as the token endpoint says it, with blanks between
	// Pending says that it is being renewed: requests wait for [Line.SetLogin].
	Pending bool `json:"pending,omitempty"`
}

// Targets are the connections that a broker has to be given.
func (c Config) Targets() ([]Target, error) {
	var list []Target
	for _, s := range c.Secrets {
		for _, host := range s.Hosts {
			target, err := ParseTarget(host)
			if err != nil {
				return nil, err
			}
			list = append(list, target)
		}
	}
	if c.Login != nil {
		for _, host := range ClaudeHosts {
			list = append(list, Target{host, HTTPSPort})
		}
	}
	slices.SortFunc(list, func(a, b Target) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(list), nil
}

// Names are the names among targets.
func Names(targets []Target) []string {
	var list []string
	for _, t := range targets {
		list = append(list, t.Host)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Hello is what a broker's process is told first.
type Hello struct {
	Config   Config  `json:"config"`
	Password string  `json:"password"` // of the proxy
	Proxies  Proxies `json:"proxies"`  // that lead out
}

// Proxies are the usual variables: HTTPS_PROXY, HTTP_PROXY, NO_PROXY.
type Proxies struct {
	HTTPS string `json:"https,omitempty"`
	HTTP  string `json:"http,omitempty"`
	No    string `json:"no,omitempty"`
}

// ProxyUser is the name with which the password is asked for.
const ProxyUser = "claudebox"
