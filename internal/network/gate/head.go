package gate

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"claudebox/internal/network/hostpattern"
)

// Bounds of a request: of its request line and fields together, and of each.
const (
	longestHead = 32 << 10
	longestLine = 16 << 10
)

// head is the first part of a request (RFC 9112).
type head struct {
	method, target, version string
	fields                  []field
	last                    bool // the server is to close the connection after the answer
}

type field struct{ name, value string }

// parseHead reads the head of a request; text is without the empty line at its end. Lines must end
// in CRLF. It refuses a line that continues on the next one, a space before
// the colon and bytes that are not allowed in a field: two readers
// may understand such a text differently (RFC 9112, 2.2, 5.1, 11.2).
func parseHead(text string) (head, error) {
	lines := strings.Split(text, "\r\n")
	parts := strings.Split(lines[0], " ")
	if len(parts) != 3 || !isToken(parts[0]) || !isVisible(parts[1]) {
		return head{}, refusef("its request line is not one of HTTP/1")
	}
	h := head{method: parts[0], target: parts[1], version: parts[2]}
	if h.version != "HTTP/1.1" && h.version != "HTTP/1.0" {
		return head{}, refusef("its request line is not one of HTTP/1")
	}
	for _, line := range lines[1:] {
		name, value, found := strings.Cut(line, ":")
		value = strings.Trim(value, " \t")
		if !found || !isToken(name) || !isFieldValue(value) {
			return head{}, refusef("a field of its request is not one of HTTP/1")
		}
		h.fields = append(h.fields, field{name, value})
	}
	return h, nil
}

// values returns all values of a field.
func (h head) values(name string) []string {
	var list []string
	for _, f := range h.fields {
		if strings.EqualFold(f.name, name) {
			list = append(list, f.value)
		}
	}
	return list
}

// connectionOptions are the names, in lower case, of fields that concern only this connection
// (RFC 9110, 7.6.1).
func (h head) connectionOptions() []string {
	var names []string
	for _, value := range h.values("connection") {
		for name := range strings.SplitSeq(value, ",") {
			names = append(names, strings.ToLower(strings.Trim(name, " \t")))
		}
	}
	return names
}

// judge refuses a request that is for a proxy rather than the server itself, or for another
// host than name.
func (h head) judge(name string) error {
	if h.target[0] != '/' && (h.target != "*" || h.method != "OPTIONS") {
		return refusef("a request with a whole URL, as a proxy gets it")
	}
	hosts := h.values("host")
	if len(hosts) != 1 {
		return refusef("a request with %d Host fields", len(hosts))
	}
	host := hosts[0]
	if i := strings.LastIndexByte(host, ':'); i >= 0 {
		if port, err := strconv.ParseUint(host[i+1:], 10, 16); err != nil || port == 0 {
			return refusef("a Host field with an impossible port")
		}
		host = host[:i]
	}
	if said, err := hostpattern.Canonical(host); err != nil || said != name {
		return &Refused{"a request for another host: " + hostpattern.Shown(hosts[0]), said}
	}
	return nil
}

// upgrade returns the protocol that a request asks the server to change to; empty if
// there is none.
func (h head) upgrade() string { return strings.ToLower(strings.Join(h.values("upgrade"), ",")) }

// bytes returns the head for the server. It leaves out a request to change to HTTP/2, since
// nothing that follows could be judged then.
func (h head) bytes() []byte {
	drop := []string{"http2-settings"}
	if strings.Contains(h.upgrade(), "h2c") {
		drop = append(drop, "upgrade")
	}
	if h.last {
		drop = append(drop, "keep-alive", "close")
	}
	var b bytes.Buffer
	b.WriteString(h.method + " " + h.target + " " + h.version + "\r\n")
	for _, f := range h.fields {
		name := strings.ToLower(f.name)
		switch {
		case slices.Contains(drop, name):
		case name == "connection":
			kept := slices.DeleteFunc(strings.Split(f.value, ","), func(option string) bool {
				return slices.Contains(drop, strings.ToLower(strings.Trim(option, " \t")))
			})
			if len(kept) > 0 {
				b.WriteString(f.name + ": " + strings.Join(kept, ",") + "\r\n")
			}
		default:
			b.WriteString(f.name + ": " + f.value + "\r\n")
		}
	}
	if h.last {
		b.WriteString("Connection: close\r\n")
	}
	b.WriteString("\r\n")
	return b.Bytes()
}

// body says how the length of a request's content is given.
type body struct {
	chunked bool
	length  int64
}

// framing reads the fields that say where a request ends. It refuses a request that says so twice,
// even if both agree: such differences between two readers have been used to smuggle requests
// (RFC 9112, 11.2).
func (h head) framing() (body, error) {
	lengths, codings := h.values("content-length"), h.values("transfer-encoding")
	for _, name := range h.connectionOptions() {
		if name == "content-length" || name == "transfer-encoding" || name == "host" {
			return body{}, refusef("the field %s is no option of a connection", name)
		}
	}
	switch {
	case len(lengths)+len(codings) == 0:
		return body{}, nil
	case len(lengths)+len(codings) > 1:
		return body{}, refusef("a request that says its length twice")
	case len(codings) == 1:
		if !isToken(codings[0]) || !strings.EqualFold(codings[0], "chunked") || h.version != "HTTP/1.1" {
			return body{}, refusef("a request with another transfer coding than chunked")
		}
		return body{chunked: true}, nil
	}
	n, err := strconv.ParseUint(lengths[0], 10, 62)
	if err != nil || strconv.FormatUint(n, 10) != lengths[0] {
		return body{}, refusef("a request whose length is no number")
	}
	return body{length: int64(n)}, nil
}

// allowContent refuses content where servers expect none: a server that leaves
// it unread takes it for the next request (RFC 9110, 9.3.1). Elsewhere, too, some leave it unread, so the request
// becomes the last of the connection.
func (h *head) allowContent() error {
	switch strings.ToUpper(h.method) {
	case "GET", "HEAD", "OPTIONS", "TRACE":
		return refusef("content in a request of method %s, which a server could take for another request", h.method)
	}
	h.last = true
	return nil
}

func isToken(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool { return r > '~' || !isTokenByte(byte(r)) }) < 0
}

func isTokenByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}

// isVisible reports whether a byte may be in a request target: printable ASCII.
func isVisible(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

// isFieldValue reports whether a text may be a field's value (RFC 9110, 5.5), the obsolete bytes above ASCII
// included.
func isFieldValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c != '\t' && c < ' ' || c == 0x7f {
			return false
		}
	}
	return true
}
