package swap

import (
	"encoding/base64"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"claudebox/internal/secret/broker"
)

// verdict is what to do with a request.
type verdict struct {
	status  int            // to answer with; 0: the request is passed on, with swaps
	refusal broker.Refusal // if it is not passed on
	swaps   []swap
	used    []string // the names of the secrets that are swapped in
}

// swap replaces the value of one header of a request.
type swap struct {
	header, value string
	secret        string // the real secret in value
	byBody        bool   // what the request does stands in its body, see [Broker.judgeBody]
}

func refuse(status int, target broker.Target, why string) verdict {
	return verdict{status: status, refusal: broker.Refusal{Host: target.String(), Why: why}}
}

// request is the part of a request that is judged.
type request struct {
	method, serverName, host, uri string
	url                           *url.URL
	header                        http.Header
}

// leads reports whether a header names another path, which some servers use instead of the request's.
func (r request) leads() bool {
	return r.says("X-Original-Url", "X-Original-Uri", "X-Rewrite-Url", "X-Forwarded-Uri")
}

// says reports whether one of these headers is there.
func (r request) says(names ...string) bool {
	for name := range r.header {
		if slices.Contains(names, hyphened(name)) {
			return true
		}
	}
	return false
}

// hyphened is a header's name with - for _: for many programs both are one (CGI).
func hyphened(name string) string {
	return textproto.CanonicalMIMEHeaderKey(strings.ReplaceAll(name, "_", "-"))
}

// overrides are headers, and names in a query, that name another method, which some servers use instead.
var overrides = []string{"X-Http-Method-Override", "X-Http-Method", "X-Method-Override", "-Method"}

// does returns the method; empty means any, because something that some servers obey may override it.
func (r request) does() string {
	if r.says(overrides...) {
		return ""
	}
	for part := range strings.FieldsFuncSeq(r.url.RawQuery, func(c rune) bool { return c == '&' || c == ';' }) {
		if name, _, _ := strings.Cut(unescape(part), "="); slices.Contains(overrides, hyphened(name)) {
			return ""
		}
	}
	return r.method
}

// judge decides about a request on a connection to a target, given the
// secrets. It does not look at the body.
func judge(t broker.Target, secrets []known, r request) verdict {
	if canonical(r.serverName) != t.Host || !isNamed(r.host, t) {
		return refuse(http.StatusMisdirectedRequest, t, "the Host of a request is not the name of its connection")
	}
	if r.method == http.MethodConnect || !strings.HasPrefix(r.uri, "/") || r.url.Host != "" {
		return refuse(http.StatusBadRequest, t, "a request that is for a proxy")
	}
	for _, name := range []string{"Host", "Proxy-Authorization"} {
		if r.header[name] != nil {
			return refuse(http.StatusBadRequest, t, "a request with a header "+name)
		}
	}
	v := verdict{}
	for _, s := range secrets {
		swaps, why := s.judge(t, r)
		if why != "" {
			v = refuse(http.StatusForbidden, t, why)
			v.refusal.Secret, v.refusal.Path = s.Name, r.url.EscapedPath()
			return v
		}
		v.swaps = append(v.swaps, swaps...)
		if len(swaps) > 0 {
			v.used = append(v.used, s.Name)
		}
	}
	return v
}

// isNamed reports whether the Host of a request is a target's. A Host without a port means that of HTTPS.
func isNamed(host string, t broker.Target) bool {
	name, port, ported := strings.Cut(host, ":")
	if !ported {
		port = strconv.Itoa(broker.HTTPSPort)
	}
	return canonical(name) == t.Host && port == strconv.Itoa(t.Port)
}

// canonical returns a host name in the form that it has in a [broker.Target].
func canonical(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// known is a secret and the key that makes its placeholders.
type known struct {
	broker.Secret
	key broker.Key
}

// judge returns the swaps of one secret. If the request uses its placeholder in a way that is
// not allowed, why says what is wrong; else it is empty.
func (s known) judge(t broker.Target, r request) (swaps []swap, why string) {
	if s.isIn(r.uri) {
		return nil, "in an address"
	}
	for name, values := range r.header {
		for _, value := range values {
			swapped, used := s.swap(name, value)
			switch {
			case !used:
			case !s.isFor(t):
				return nil, "to a host that is not its own"
			case swapped == "":
				return nil, "in a header where it does not belong"
			case len(values) > 1:
				return nil, "in a header that stands twice"
			case s.Value == "":
				return nil, "while there is no such secret"
			case r.leads():
				return nil, "with another path in a header"
			default:
				if why = s.mayGo(t, r.does(), r.url.EscapedPath()); why != "" {
					return nil, why
				}
				swaps = append(swaps, swap{name, swapped, s.Value, s.isJudgedByBody(t, r)})
			}
		}
	}
	return swaps, ""
}

// isIn reports whether a placeholder is in an address, percent-encoded or not.
func (s known) isIn(text string) bool {
	return s.key.In(s.Name, text) || s.key.In(s.Name, unescape(text))
}

// swap returns the header's value with the secret in place of its placeholder. used reports whether
// the placeholder is in the header; swapped is empty if it must not be there.
func (s known) swap(name, value string) (swapped string, used bool) {
	if name == "Authorization" {
		kind, rest, _ := strings.Cut(value, " ")
		rest = strings.TrimSpace(rest)
		switch strings.ToLower(kind) {
		case "basic":
			return s.swapBasic(kind, rest)
		case "bearer", "token":
			if s.key.Is(s.Name, rest) && slices.Contains(s.Forms, broker.Bearer) {
				return kind + " " + s.Value, true
			}
		}
		return "", s.key.In(s.Name, value)
	}
	own := func(header string) bool { return textproto.CanonicalMIMEHeaderKey(header) == name }
	if slices.Contains(s.Forms, broker.Header) && slices.ContainsFunc(s.Headers, own) && s.key.Is(s.Name, value) {
		return s.Value, true
	}
	return "", s.key.In(s.Name, value)
}

// swapBasic is swap for a password in Basic authentication (RFC 7617).
func (s known) swapBasic(kind, encoded string) (swapped string, used bool) {
	decoded, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return "", s.key.In(s.Name, encoded)
	}
	user, password, _ := strings.Cut(string(decoded), ":")
	if s.key.Is(s.Name, password) && !s.key.In(s.Name, user) && slices.Contains(s.Forms, broker.Basic) {
		return kind + " " + base64.StdEncoding.EncodeToString([]byte(user+":"+s.Value)), true
	}
	return "", s.key.In(s.Name, string(decoded))
}

// isFor reports whether the secret belongs to a host and port.
func (s known) isFor(t broker.Target) bool { return slices.Contains(s.Hosts, t.String()) }

// mayGo returns why the secret may not be sent with a request; empty: it may.
func (s known) mayGo(t broker.Target, method, escapedPath string) (why string) {
	admits := func(p broker.Path) bool { return p.Admits(method, escapedPath) }
	list, known := broker.Writing(t.Host)
	reads := method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
	switch {
	case !s.isFor(t):
		return notOwn
	case slices.ContainsFunc(s.Write, admits):
		return ""
	case givesSecrets(t.Host, escapedPath), len(s.Paths) > 0 && !slices.ContainsFunc(s.Paths, admits):
		return notOwn
	case len(s.Paths) > 0, reads, !known && len(s.Write) == 0:
		return ""
	case !slices.ContainsFunc(list, admits):
		return notWriting
	}
	return ""
}

// Why a secret may not be sent to a place.
const (
	notOwn     = "to a place that is not its own"
	notWriting = "to write at a place that is not listed; an entry in `secrets` can add it: write: [PATH]"
)
