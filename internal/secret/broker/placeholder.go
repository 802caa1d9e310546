package broker

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"strings"
)

// Key makes placeholders and knows its own again. Who has no key can neither
// make one nor learn anything from one; a placeholder is safe to print. All
// that were ever made with a key stay valid.
type Key []byte

// NewKey makes a key.
func NewKey() Key {
	key := make(Key, sha256.Size)
	_, _ = rand.Read(key) // never fails (Go 1.24)
	return key
}

// A placeholder is a prefix that tools look at ("ghp_"), filling, mark, a nonce,
// and what proves that the key made it.
const (
	filling  = "x"
	mark     = "cbx"
	letters  = "abcdefghijklmnopqrstuvwxyz234567"
	nonceLen = 10 // of 5 bits each
	proofLen = 20
)

var encoding = base32.NewEncoding(letters).WithPadding(base32.NoPadding)

// Placeholder makes a new placeholder of a name for a value: as long as it
// where that is long enough, and beginning like it where that says nothing but
// what kind of token it is.
func (k Key) Placeholder(name, value string) string {
	random := make([]byte, nonceLen)
	_, _ = rand.Read(random)
	return k.placeholder(name, value, encoding.EncodeToString(random)[:nonceLen])
}

// Lasting is the one placeholder of a name and value that is the same each
// time: sessions that share an agent's files agree on it.
func (k Key) Lasting(name, value string) string {
	return k.placeholder(name, value, k.proof(name, "\x00"+value)[:nonceLen])
}

func (k Key) placeholder(name, value, nonce string) string {
	prefix := shape(value)
	filled := max(0, len(value)-len(prefix)-len(mark)-nonceLen-proofLen)
	return prefix + strings.Repeat(filling, filled) + mark + nonce + k.proof(name, nonce)
}

func (k Key) proof(name, nonce string) string {
	mac := hmac.New(sha256.New, k)
	mac.Write([]byte(name + "\x00" + nonce))
	return encoding.EncodeToString(mac.Sum(nil))[:proofLen]
}

// Is reports whether a whole text is a placeholder of a name.
func (k Key) Is(name, text string) bool {
	at := len(text) - len(mark) - nonceLen - proofLen
	if at < 0 || strings.Trim(strings.TrimPrefix(text[:at], shape(text)), filling) != "" {
		return false
	}
	return k.proves(name, text[at:])
}

// proves reports whether a text begins with a mark, a nonce and its proof.
func (k Key) proves(name, text string) bool {
	const all = len(mark) + nonceLen + proofLen
	if len(text) < all || !strings.HasPrefix(text, mark) {
		return false
	}
	return hmac.Equal([]byte(k.proof(name, text[len(mark):len(mark)+nonceLen])), []byte(text[len(mark)+nonceLen:all]))
}

// In reports whether a placeholder of a name stands anywhere in a text.
func (k Key) In(name, text string) bool {
	for at := strings.Index(text, mark); at >= 0; at = strings.Index(text, mark) {
		if k.proves(name, text[at:]) {
			return true
		}
		text = text[at+1:]
	}
	return false
}

// prefixes are the beginnings of tokens that say what they are for, the longer
// ones first.
var prefixes = []string{
	"sk-ant-admin01-", "sk-ant-api03-", "sk-ant-oat01-", "sk-ant-ort01-", "sk-ant-",
	"sk-svcacct-", "sk-admin-", "sk-or-v1-", "sk-proj-",
	"github_pat_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "glpat-", "xoxb-", "xoxp-",
	"npm_", "pypi-", "nvapi-", "pplx-", "tvly-",
	"lin_api_", "dop_v1_", "figd_", "gsk_", "xai-", "ntn_", "hf_", "r8_", "sk-",
}

// shape is the beginning of a token that is no secret.
func shape(value string) string {
	for _, prefix := range prefixes {
		if strings.HasPrefix(value, prefix) {
			return prefix
		}
	}
	return ""
}
