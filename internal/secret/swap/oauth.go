package swap

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"claudebox/internal/secret/broker"
)

// anthropicPlaces are parts of paths at Anthropic's hosts below which secrets are made, shown, changed or revoked.
var anthropicPlaces = []string{
	"create_api_key", "api_keys", "external_keys", "vaults", "tunnels", "oauth/token", "credentials", "reveal",
	"rotate",
}

// givesSecrets reports whether a request to a host may be answered with a secret that has no placeholder, whatever its
// method. A path that can be read in several ways counts in its most permissive reading.
func givesSecrets(host, escapedPath string) bool {
	of := func(domain string) bool { return host == domain || strings.HasSuffix(host, "."+domain) }
	text := mostPermissive(escapedPath)
	return (of("anthropic.com") || of("claude.com")) &&
		slices.ContainsFunc(anthropicPlaces, func(place string) bool { return strings.Contains(text, place) })
}

// insideLife is how long a placeholder of the login is said to be valid: the
// parent renews the token that it stands for, and longer times were not tried.
const insideLife = 10 * 24 * time.Hour

// demand is a request of Claude Code to the token endpoint.
type demand struct {
	Type    string `json:"grant_type"`
	Refresh string `json:"refresh_token"`
	Client  string `json:"client_id"`
	Expires int64  `json:"expires_in"`
}

const maxDemand = 64 << 10 // bytes; a demand has some hundreds

// oauth answers requests to the token endpoint, and reports whether this was
// one. Only there are the secrets of a login in the bodies of requests.
func (b *Broker) oauth(w http.ResponseWriter, r *http.Request, t broker.Target) bool {
	const root = "/v1/oauth/token"
	where := mostPermissive(r.URL.EscapedPath())
	if !slices.Contains(broker.ClaudeHosts, t.String()) || !strings.Contains(where, "oauth/token") {
		return false
	}
	switch r.URL.EscapedPath() {
	case root:
		b.token(w, r, t)
	case root + "/revoke":
		b.revoke(w, r)
	default:
		b.stop(w, refuse(http.StatusForbidden, t, "an unknown way to the tokens of a login"))
	}
	return true
}

// mostPermissive returns a path as the most permissive server would read it.
func mostPermissive(escapedPath string) string {
	text := strings.ToLower(strings.ReplaceAll(unescape(escapedPath), `\`, "/"))
	return path.Clean("/" + text)
}

func (b *Broker) token(w http.ResponseWriter, r *http.Request, t broker.Target) {
	body, err := bodyOf(w, r, maxDemand)
	var d demand
	if err != nil || json.Unmarshal(body, &d) != nil {
		answer(w, http.StatusBadRequest, map[string]any{"error": "invalid_request"})
		return
	}
	switch d.Type {
	case "refresh_token":
		b.renew(w, r, d)
	case "authorization_code":
		b.exchange(w, r, t, body, d)
	default:
		b.stop(w, refuse(http.StatusForbidden, t, "a grant that is neither a code nor a renewal"))
	}
}

// renew answers a renewal with new placeholders; old ones stay valid. It never
// says that a login has ended: Claude Code would then empty its credentials file for good.
func (b *Broker) renew(w http.ResponseWriter, r *http.Request, d demand) {
	const later = http.StatusServiceUnavailable
	access, scope, refused := b.login()
	if !b.loginKey.Is(broker.ClaudeRefresh, d.Refresh) || d.Client != broker.Client || access == "" {
		answer(w, later, map[string]any{"error": "temporarily_unavailable"})
		return
	}
	if refused {
		ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
		defer cancel()
		if b.keeper.Renew(ctx, access) != nil {
			answer(w, later, map[string]any{"error": "temporarily_unavailable"})
			return
		}
	}
	answer(w, http.StatusOK, b.pair(scope))
}

// pair returns new placeholders in the form of the token endpoint's answer.
func (b *Broker) pair(scope string) map[string]any {
	access, refresh := broker.LoginPlaceholders(b.loginKey)
	return map[string]any{
		"token_type": "Bearer", "access_token": access, "refresh_token": refresh,
		"expires_in": int(insideLife.Seconds()), "scope": scope,
	}
}

// exchange passes the exchange of a code on, and keeps the resulting login for this instance:
// only the user can tell whose account it is.
func (b *Broker) exchange(w http.ResponseWriter, r *http.Request, t broker.Target, body []byte, d demand) {
	status, content, err := b.post(r, t, body)
	if err != nil {
		b.unreachable(w, t, err)
		return
	}
	var said map[string]any
	if status != http.StatusOK || json.Unmarshal(content, &said) != nil {
		answer(w, status, json.RawMessage(content))
		return
	}
	g := grantOf(said, time.Now())
	if g.Access == "" {
		answer(w, http.StatusBadGateway, map[string]any{"error": "server_error"})
		return
	}
	if d.Client != broker.Client || d.Expires != 0 {
		placeholder, added := b.addLogin(g)
		if !added {
			b.stop(w, refuse(http.StatusForbidden, t, tooManyLogins))
			return
		}
		said["access_token"] = placeholder
		delete(said, "refresh_token")
	} else {
		if b.keeper.Keep(g) != nil {
			answer(w, http.StatusServiceUnavailable, map[string]any{"error": "temporarily_unavailable"})
			return
		}
		b.SetLogin(g.Access, g.Scope)
		for key, value := range b.pair(g.Scope) {
			said[key] = value
		}
	}
	clean, err := json.Marshal(said)
	if err != nil {
		answer(w, http.StatusBadGateway, map[string]any{"error": "server_error"})
		return
	}
	newFinder([]known{
		{broker.Secret{Name: broker.ClaudeLogin, Value: g.Access}, b.loginKey},
		{broker.Secret{Name: broker.ClaudeRefresh, Value: g.Refresh}, b.loginKey},
	}, nil).clean(clean)
	answer(w, http.StatusOK, json.RawMessage(clean))
}

func grantOf(said map[string]any, now time.Time) broker.Grant {
	text := func(key string) string { s, _ := said[key].(string); return s }
	seconds, _ := said["expires_in"].(float64)
	return broker.Grant{
		Access: text("access_token"), Refresh: text("refresh_token"), Scope: text("scope"),
		Expires: now.Add(time.Duration(seconds) * time.Second),
	}
}

// post sends a demand to the real endpoint and returns the answer. An answer that is not JSON is an error.
func (b *Broker) post(r *http.Request, t broker.Target, body []byte) (status int, content []byte, err error) {
	address := "https://" + t.String() + r.URL.EscapedPath()
	out, err := http.NewRequestWithContext(r.Context(), http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	for _, name := range []string{"Content-Type", "User-Agent", "Accept", "Anthropic-Beta", "Anthropic-Version"} {
		if value := r.Header.Get(name); value != "" && !b.holdsPlaceholder(value) {
			out.Header.Set(name, value)
		}
	}
	in, err := b.transport.RoundTrip(out)
	if err != nil {
		return 0, nil, err
	}
	defer in.Body.Close()
	content, err = io.ReadAll(io.LimitReader(in.Body, 1<<20))
	if err == nil && !json.Valid(content) {
		err = errors.New("the answer is no JSON")
	}
	return in.StatusCode, content, err
}

// revoke is answered here and not passed on: the login that an agent gives up stays the user's.
func (b *Broker) revoke(w http.ResponseWriter, r *http.Request) {
	body, _ := bodyOf(w, r, maxDemand)
	if b.loginKey.In(broker.ClaudeRefresh, string(body)) || b.loginKey.In(broker.ClaudeLogin, string(body)) {
		b.keeper.Forget()
	}
	answer(w, http.StatusOK, map[string]any{})
}

// bodyOf reads at most so many bytes of a request's body. The client has [patience] for it.
func bodyOf(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(patience))
	defer control.SetReadDeadline(time.Time{}) //nolint:errcheck // it was set
	return io.ReadAll(io.LimitReader(r.Body, most))
}

func answer(w http.ResponseWriter, status int, value any) {
	content, err := json.Marshal(value)
	if err != nil {
		content = []byte("{}")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(content) // the client may have gone
}
