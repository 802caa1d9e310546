package proxy

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
)

// longestHead bounds the request line and fields of a request, in bytes.
const longestHead = 32 << 10

// head is the first part of a request (RFC 9112).
type head struct {
	method, target, version string
	fields                  []field
}

type field struct{ name, value string }

// parseHead reads a head whose empty line has been seen and is not part of
// text. Its lines end in CRLF and nothing else; a line that goes on in the
// next one, a space before the colon and bytes that no field may have are
// refused: there, two readers of one text begin to differ (RFC 9112, 2.2, 5.1,
// 11.2).
func parseHead(text string) (head, error) {
	lines := strings.Split(text, "\r\n")
	parts := strings.Split(lines[0], " ")
	if len(parts) != 3 || !isToken(parts[0]) || !isVisible(parts[1]) {
		return head{}, malformed(lines[0], "not a request of HTTP/1")
	}
	h := head{method: parts[0], target: parts[1], version: parts[2]}
	if h.version != "HTTP/1.1" && h.version != "HTTP/1.0" {
		return head{}, malformed(lines[0], "not a request of HTTP/1")
	}
	for _, line := range lines[1:] {
		name, value, found := strings.Cut(line, ":")
		value = strings.Trim(value, " \t")
		if !found || !isToken(name) || !isFieldValue(value) {
			return head{}, malformed(h.target, "not a field of HTTP/1: %q", line)
		}
		h.fields = append(h.fields, field{name, value})
	}
	return h, nil
}

// values are all values of a field.
func (h head) values(name string) []string {
	var list []string
	for _, f := range h.fields {
		if strings.EqualFold(f.name, name) {
			list = append(list, f.value)
		}
	}
	return list
}

// hopByHop are the fields that concern one connection only (RFC 9110, 7.6.1),
// and what could change what is spoken on it. Those of the body's framing are
// not among them: it is passed on as it was checked. Host is written anew.
var hopByHop = []string{
	"connection", "host", "http2-settings", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection",
	"te", "trailer", "upgrade",
}

// origin is the head as the server gets it: for one request.
func (h head) origin(t target, path string) []byte {
	var b bytes.Buffer
	host := t.name
	if t.port != portHTTP {
		host = t.String()
	}
	b.WriteString(h.method + " " + path + " " + h.version + "\r\nHost: " + host + "\r\n")
	named := h.connectionOptions()
	for _, f := range h.fields {
		name := strings.ToLower(f.name)
		if !slices.Contains(hopByHop, name) && !slices.Contains(named, name) {
			b.WriteString(f.name + ": " + f.value + "\r\n")
		}
	}
	b.WriteString("Connection: close\r\n\r\n")
	return b.Bytes()
}

// connectionOptions are the fields that the client wants dropped.
func (h head) connectionOptions() []string {
	var names []string
	for _, value := range h.values("connection") {
		for name := range strings.SplitSeq(value, ",") {
			names = append(names, strings.ToLower(strings.Trim(name, " \t")))
		}
	}
	return names
}

// body is how long a request's content is.
type body struct {
	chunked bool
	length  int64
}

// framing reads what says where a request ends. Two statements of it, equal
// or not, are refused: requests have been smuggled between their readers
// (RFC 9112, 11.2).
func (h head) framing() (body, error) {
	lengths, codings := h.values("content-length"), h.values("transfer-encoding")
	for _, name := range h.connectionOptions() {
		if name == "content-length" || name == "transfer-encoding" || name == "host" {
			return body{}, malformed(h.target, "the field %s is no option of a connection", name)
		}
	}
	switch {
	case len(lengths)+len(codings) == 0:
		return body{}, nil
	case len(lengths)+len(codings) > 1:
		return body{}, malformed(h.target, "its length is said twice")
	case len(codings) == 1:
		if !strings.EqualFold(codings[0], "chunked") || h.version != "HTTP/1.1" {
			return body{}, malformed(h.target, "transfer coding %q", codings[0])
		}
		return body{chunked: true}, nil
	}
	n, err := strconv.ParseUint(lengths[0], 10, 62)
	if err != nil {
		return body{}, malformed(h.target, "content length %q", lengths[0])
	}
	return body{length: int64(n)}, nil
}

// absolute takes a target in absolute form apart (RFC 9112, 3.2.2). There is
// no other scheme: TLS is the client's own business.
func (h head) absolute() (t target, path string, err error) {
	const scheme = "http://"
	if len(h.target) < len(scheme) || !strings.EqualFold(h.target[:len(scheme)], scheme) {
		return target{}, "", malformed(h.target, "not the URL of a plain HTTP request; this is a proxy")
	}
	authority, path := h.target[len(scheme):], "/"
	if i := strings.IndexAny(authority, "/?#"); i >= 0 {
		authority, path = authority[:i], authority[i:]
	}
	if path[0] == '?' {
		path = "/" + path
	}
	if strings.Contains(path, "#") {
		return target{}, "", malformed(h.target, "a fragment is not for the server")
	}
	if t, err = parseTarget(authority, portHTTP); err != nil {
		return target{}, "", err
	}
	return t, path, h.wantHost(t, false)
}

// wantHost refuses a Host field that says another host than the target.
func (h head) wantHost(t target, required bool) error {
	hosts := h.values("host")
	if len(hosts) > 1 || len(hosts) == 0 && required {
		return malformed(t.String(), "%d Host fields", len(hosts))
	}
	if len(hosts) == 0 {
		return nil
	}
	said, err := parseTarget(hosts[0], portHTTP)
	if err != nil || said != t {
		return &refusal{what: t.String(), why: "the request is for another host: " + hosts[0], status: 403}
	}
	return nil
}

func isToken(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	}) < 0
}

// isVisible admits the bytes of a request target: printable ASCII.
func isVisible(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

// isFieldValue admits what RFC 9110, 5.5 does, the obsolete bytes above ASCII
// included.
func isFieldValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c != '\t' && c < ' ' || c == 0x7f {
			return false
		}
	}
	return true
}
