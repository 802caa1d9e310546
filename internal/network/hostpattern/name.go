package hostpattern

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"
)

// What can be wrong with a host name.
var (
	ErrEmpty   = errors.New("no host")
	ErrLong    = errors.New("longer than a host name can be")
	ErrLabel   = errors.New("not a host name")
	ErrAddress = errors.New("an address, not a name")
)

// Limits of RFC 1035, 2.3.4, in bytes; that of a name is without the last dot.
const (
	longestName  = 253
	longestLabel = 63
)

// Canonical is a host name in the one form in which names are compared and
// looked up: lower case, without a dot at the end. It admits ASCII letters,
// digits, hyphens and underscores only (RFC 1123, 2.1): no NUL byte that ends
// a name for one reader and not for another, no userinfo, no port, no percent
// sign. An internationalised name has to come in its ASCII form (xn--…), as
// clients send it.
//
// A text that could be read as an IPv4 address is no name, in any notation that
// inet_aton(3) or a browser takes: decimal, hexadecimal, octal, with fewer
// than four parts. Their last part always begins with a digit and no
// top-level domain does.
func Canonical(text string) (string, error) {
	name := strings.TrimSuffix(text, ".")
	switch {
	case name == "":
		return "", ErrEmpty
	case len(name) > longestName:
		return "", ErrLong
	}
	last := ""
	for label := range strings.SplitSeq(name, ".") {
		if !isLabel(label) {
			return "", notLabel(text)
		}
		last = label
	}
	if last[0] >= '0' && last[0] <= '9' {
		return "", ErrAddress
	}
	return strings.ToLower(name), nil
}

// notLabel returns what kind of text it is that is not a name.
func notLabel(text string) error {
	if _, err := netip.ParseAddr(strings.Trim(text, "[]")); err == nil {
		return ErrAddress
	}
	return ErrLabel
}

func isLabel(label string) bool {
	if label == "" || len(label) > longestLabel || label[0] == '-' || label[len(label)-1] == '-' {
		return false
	}
	for i := range len(label) {
		c := label[i]
		if c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return true
}

// Shown is a text that stands for a host name, for a person to read, of about a hundred bytes at most. What could be
// neither a name nor an address with a port, as it is longer or has a blank in it, comes in quotation marks: the
// sandbox chose it, and it could be read as another host, or as a part of the sentence.
func Shown(text string) string {
	const longest = 100
	if address, err := netip.ParseAddrPort(text); err == nil && address.Addr().Zone() == "" {
		return text
	}
	name := strings.TrimPrefix(text, "*.")
	if len(text) <= longest && name != "" && strings.IndexFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_.", r)
	}) < 0 {
		return text
	}
	quoted := strconv.QuoteToASCII(text)
	if len(quoted) > longest+2 {
		return quoted[:longest] + `..."`
	}
	return quoted
}
