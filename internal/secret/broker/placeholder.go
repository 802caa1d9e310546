package broker

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"strings"
)

// Key makes placeholders and recognises those it made. Without the key nobody can
// make one, and a placeholder reveals nothing about the secret, so it is safe to print. All
// placeholders ever made with a key stay valid.
type Key []byte

// NewKey makes a key.
func NewKey() Key {
	key := make(Key, sha256.Size)
	_, _ = rand.Read(key) // never fails (Go 1.24)
	return key
}

// A placeholder consists of a prefix that tools look at ("ghp_"), filling, mark, a nonce,
// and a proof that it was made with the key.
const (
	filling  = "x"
	mark     = "cbx"
	letters  = "abcdefghijklmnopqrstuvwxyz234567"
	nonceLen = 10 // of 5 bits each
	proofLen = 20
)

var encoding = base32.NewEncoding(letters).WithPadding(base32.NoPadding)

// Placeholder makes a new placeholder for the secret of that name. It is as long as value,
// unless value is too short, and starts with the same prefix if that only tells
// the kind of token.
func (k Key) Placeholder(name, value string) string {
	random := make([]byte, nonceLen)
	_, _ = rand.Read(random)
	return k.placeholder(name, value, encoding.EncodeToString(random)[:nonceLen])
}

// Lasting returns a placeholder that is the same each time for the same name and value:
// sessions that share an agent's files agree on it.
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

// Is reports whether text as a whole is a placeholder for that name.
func (k Key) Is(name, text string) bool {
	at := len(text) - len(mark) - nonceLen - proofLen
	if at < 0 || strings.Trim(strings.TrimPrefix(text[:at], shape(text)), filling) != "" {
		return false
	}
	return k.proves(name, text[at:])
}

// proves reports whether text begins with mark, a nonce and the proof for them.
func (k Key) proves(name, text string) bool {
	const all = len(mark) + nonceLen + proofLen
	if len(text) < all || !strings.HasPrefix(text, mark) {
		return false
	}
	return hmac.Equal([]byte(k.proof(name, text[len(mark):len(mark)+nonceLen])), []byte(text[len(mark)+nonceLen:all]))
}

// In reports whether text contains a placeholder for that name.
func (k Key) In(name, text string) bool {
	for at := strings.Index(text, mark); at >= 0; at = strings.Index(text, mark) {
		if k.proves(name, text[at:]) {
			return true
		}
		text = text[at+1:]
	}
	return false
}

// prefixes are the beginnings of tokens that tell their kind, longer
// ones first.
var prefixes = []string{
	"sk-ant-admin01-", "sk-ant-api03-", "sk-ant-oat01-", "sk-ant-ort01-", "sk-ant-",
	"sk-svcacct-", "sk-admin-", "sk-or-v1-", "sk-proj-",
	"github_pat_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "glpat-", "xoxb-", "xoxp-",
	"npm_", "pypi-", "nvapi-", "pplx-", "tvly-",
	"lin_api_", "dop_v1_", "figd_", "gsk_", "xai-", "ntn_", "hf_", "r8_", "sk-",
}

// shape returns the prefix of a token that is not secret, or "".
func shape(value string) string {
	for _, prefix := range prefixes {
		if strings.HasPrefix(value, prefix) {
			return prefix
		}
	}
	return ""
}
