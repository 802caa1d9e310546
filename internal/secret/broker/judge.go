package broker

import (
	"encoding/base64"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
)

// Refusal is a use of a placeholder, or of Claude's endpoints, that was
// stopped. It holds no secret, and no text of an agent's but a path.
type Refusal struct {
	Secret string `json:"secret,omitempty"` // its name; empty: no placeholder was used
	Host   string `json:"host"`
	Path   string `json:"path,omitempty"`
	Why    string `json:"why"`
}

// verdict is what becomes of a request.
type verdict struct {
	status  int     // to answer with; 0: it goes on, with swaps
	refusal Refusal // when it does not
	swaps   []swap
}

// swap is one header of a request that goes on with another value.
type swap struct {
	header, value string
	secret        string // the true one in it
}

func refuse(status int, target Target, why string) verdict {
	return verdict{status: status, refusal: Refusal{Host: target.String(), Why: why}}
}

// request is what is judged of a request.
type request struct {
	method, serverName, host, uri string
	url                           *url.URL
	header                        http.Header
}

// judge decides about a request on a connection to a target, with the secrets
// of a table. It looks at no body.
func judge(t Target, secrets []known, r request) verdict {
	if r.serverName != t.Host || r.host != t.String() && r.host != t.Host+":"+portOf(t) {
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
	}
	return v
}

func portOf(t Target) string {
	if t.Port == httpsPort {
		return "443"
	}
	_, port, _ := strings.Cut(t.String(), ":")
	return port
}

// known is a secret and the keys that make its placeholders.
type known struct {
	Secret
	key Key
}

// judge gives the swaps of one secret. why says what is wrong with the use that
// a request makes of its placeholder.
func (s known) judge(t Target, r request) (swaps []swap, why string) {
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
			case !s.mayGo(t, r.method, r.url.EscapedPath()):
				return nil, "to a place that is not its own"
			default:
				swaps = append(swaps, swap{name, swapped, s.Value})
			}
		}
	}
	return swaps, ""
}

// isIn finds a placeholder in an address, encoded or not.
func (s known) isIn(text string) bool {
	return s.key.In(s.Name, text) || s.key.In(s.Name, unescape(text))
}

// swap puts the secret in the place of its placeholder in a header, if it may
// stand there; else swapped is empty. used reports whether it stands there.
func (s known) swap(name, value string) (swapped string, used bool) {
	if name == "Authorization" {
		kind, rest, _ := strings.Cut(value, " ")
		rest = strings.TrimSpace(rest)
		switch strings.ToLower(kind) {
		case "basic":
			return s.swapBasic(kind, rest)
		case "bearer", "token":
			if s.key.Is(s.Name, rest) && slices.Contains(s.Forms, Bearer) {
				return kind + " " + s.Value, true
			}
		}
		return "", s.key.In(s.Name, value)
	}
	own := func(header string) bool { return textproto.CanonicalMIMEHeaderKey(header) == name }
	if slices.Contains(s.Forms, Header) && slices.ContainsFunc(s.Headers, own) && s.key.Is(s.Name, value) {
		return s.Value, true
	}
	return "", s.key.In(s.Name, value)
}

// swapBasic does so in a password (RFC 7617).
func (s known) swapBasic(kind, encoded string) (swapped string, used bool) {
	decoded, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return "", s.key.In(s.Name, encoded)
	}
	user, password, _ := strings.Cut(string(decoded), ":")
	if s.key.Is(s.Name, password) && !s.key.In(s.Name, user) && slices.Contains(s.Forms, Basic) {
		return kind + " " + base64.StdEncoding.EncodeToString([]byte(user+":"+s.Value)), true
	}
	return "", s.key.In(s.Name, string(decoded))
}
