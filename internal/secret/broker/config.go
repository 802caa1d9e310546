package broker

import (
	"slices"
	"strings"
)

// Config is all that a broker knows. The process that started the broker sends it
// over a pipe: no part of it is in a file or on a command line.
type Config struct {
	Secrets   []Secret  `json:"secrets"`
	Login     *Login    `json:"login,omitempty"`
	Key       Key       `json:"key"` // for the placeholders of Secrets
	Authority Authority `json:"authority"`
	Roots     []byte    `json:"roots"` // PEM: the host's own authorities
	// Gateways are services of this machine, HOST:PORT, by the names that stand for them inside. They have no TLS.
	Gateways map[string]string `json:"gateways,omitempty"`
}

// Login is Claude's login without the refresh token.
type Login struct {
	Key    Key    `json:"key"` // for the placeholders of the login; the instance's key
	Access string `json:"access"`
	Scope  string `json:"scope"` // as in the token endpoint's answer, separated by blanks
	// Pending means that the login is being renewed: requests wait for [Line.SetLogin].
	Pending bool `json:"pending,omitempty"`
}

// Targets returns, sorted, the targets whose connections the broker must get.
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

// Names returns the host names of targets, sorted and each once.
func Names(targets []Target) []string {
	var list []string
	for _, t := range targets {
		list = append(list, t.Host)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Hello is the first message to a broker's process.
type Hello struct {
	Config   Config  `json:"config"`
	Password string  `json:"password"` // of the proxy
	Proxies  Proxies `json:"proxies"`  // the proxies through which it reaches the hosts
}

// Proxies are the values of the usual variables HTTPS_PROXY, HTTP_PROXY and NO_PROXY.
type Proxies struct {
	HTTPS string `json:"https,omitempty"`
	HTTP  string `json:"http,omitempty"`
	No    string `json:"no,omitempty"`
}

// ProxyUser is the user name that goes with the proxy's password.
const ProxyUser = "claudebox"
