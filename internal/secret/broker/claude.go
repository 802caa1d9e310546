package broker

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
)

// Names of what Claude Code uses.
const (
	ClaudeLogin   = "your Claude login"
	claudeRefresh = "what renews your Claude login"
)

// ClaudeHosts are those that Claude Code sends its login or API key to, or
// asks for tokens.
var ClaudeHosts = []string{
	"api.anthropic.com", "console.anthropic.com", "mcp-proxy.anthropic.com", "platform.claude.com",
}

// ClaudePaths are where Claude Code sends its login or API key (measured with
// 2.1.329, and what its users' own programs ask of the API). No other place can
// be had with a placeholder: some make new keys or show old ones.
var ClaudePaths = []Path{
	{Path: "/v1/messages/"},
	{Path: "/v1/complete"},
	{Path: "/v1/models/"},
	{Path: "/v1/files/"},
	{Path: "/v1/skills/"},
	{Path: "/v1/mcp_servers"},
	{Path: "/v1/mcp/"},
	{Path: "/v1/privacy-consents/checkup"},
	{Path: "/v1/toolbox/"},
	{Path: "/v1/sessions/"},
	{Path: "/v1/session_ingress/"},
	{Path: "/v1/environment_providers"},
	{Path: "/api/oauth/profile"},
	{Path: "/api/oauth/usage"},
	{Path: "/api/oauth/account/"},
	{Path: "/api/oauth/files/"},
	{Path: "/api/oauth/claude_cli/roles"},
	{Path: "/api/oauth/claude_cli/client_data"},
	{Methods: []string{"GET"}, Path: "/api/oauth/organizations/"},
	{Path: "/api/claude_cli/"},
	{Path: "/api/claude_cli_profile"},
	{Path: "/api/claude_cli_feedback"},
	{Path: "/api/claude_code/"},
	{Path: "/api/claude_code_grove"},
	{Path: "/api/claude_code_penguin_mode"},
	{Path: "/api/claude_code_shared_session_transcripts"},
	{Path: "/api/eval/"},
	{Path: "/api/event_logging/"},
	{Path: "/api/artifacts/mcp"},
	{Path: "/api/frame/"},
	{Path: "/api/web/domain_info"},
	{Path: "/api/directory/"},
	{Path: "/api/hello"},
}

// secretPlaces are what in a path, which ends in "$", says that secrets are made,
// changed or ended there, by the end of a host's name.
var secretPlaces = map[string][]string{
	"anthropic.com": anthropicPlaces,
	"claude.com":    anthropicPlaces,
	"github.com": {
		"access_tokens", "registration-token", "remove-token", "jitconfig", "authorizations", "installation/token",
		"/keys$", "gpg_keys", "ssh_signing_keys",
	},
	"gitlab.com": {
		"access_tokens", "deploy_tokens", "impersonation_tokens", "/rotate$", "/keys$", "gpg_keys", "deploy_keys",
		"runners", "oauth/",
	},
	"openai.com": {
		"client_secrets", "realtime/sessions", "transcription_sessions", "api_keys", "service_accounts",
	},
	"openrouter.ai":      {"/keys"},
	"huggingface.co":     {"settings/tokens", "settings/keys"},
	"registry.npmjs.org": {"/npm/v1/tokens", "/-/user/"},
}

var anthropicPlaces = []string{
	"create_api_key", "api_keys", "external_keys", "vaults", "tunnels", "oauth/token", "credentials", "reveal",
	"rotate",
}

// givesSecrets reports whether a request may be answered with a secret that
// nobody has a placeholder for, or end one. Where a path can be read in several
// ways, each counts. Only Anthropic's are asked for by GET as well.
func givesSecrets(t Target, method, escapedPath string) bool {
	text := loose(escapedPath) + "$"
	for domain, places := range secretPlaces {
		reads := method == http.MethodGet && !slices.Equal(places, anthropicPlaces)
		if reads || t.Host != domain && !strings.HasSuffix(t.Host, "."+domain) {
			continue
		}
		if slices.ContainsFunc(places, func(place string) bool { return strings.Contains(text, place) }) {
			return true
		}
	}
	return false
}

// Client is the client id with which Claude Code logs in to a subscription.
// Tokens for another are never the user's login.
const Client = "9d1c250a-e61b-44d9-88ed-5944d1962f5e"

// Grant is a login that was made inside, by a code that anybody may have given.
type Grant struct {
	Access  string    `json:"access"`
	Refresh string    `json:"refresh"`
	Scope   string    `json:"scope"`
	Expires time.Time `json:"expires"`
}

// Keeper has what renews Claude's login, and keeps it outside.
type Keeper interface {
	// Renew renews the login, if the access token is still the one that its
	// server refused. It returns when the broker has the new one.
	Renew(ctx context.Context, refused string) error
	// Keep keeps a login that was made inside, for this instance alone.
	Keep(Grant) error
	// Forget gives such a login up.
	Forget()
	// Report says what was refused.
	Report(Refusal)
}

// insideLife is how long a placeholder of the login is said to be good: the
// parent renews what stands behind it, and longer times were not tried.
const insideLife = 10 * 24 * time.Hour

// demand is what Claude Code asks of the token endpoint.
type demand struct {
	Type    string `json:"grant_type"`
	Refresh string `json:"refresh_token"`
	Client  string `json:"client_id"`
	Expires int64  `json:"expires_in"`
}

const maxDemand = 64 << 10 // bytes; a demand has some hundreds

// oauth answers what is asked of the token endpoint, and reports whether it
// did. The secrets of a login stand in the bodies there, and nowhere else.
func (b *Broker) oauth(w http.ResponseWriter, r *http.Request, t Target) bool {
	const root = "/v1/oauth/token"
	where := loose(r.URL.EscapedPath())
	if !slices.Contains(ClaudeHosts, t.String()) || !strings.Contains(where, "oauth/token") {
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

// loose reads a path as the most generous of servers would.
func loose(escapedPath string) string {
	text := strings.ToLower(strings.ReplaceAll(unescape(escapedPath), `\`, "/"))
	return path.Clean("/" + text)
}

func (b *Broker) token(w http.ResponseWriter, r *http.Request, t Target) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxDemand))
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

// renew answers a renewal with new placeholders. Old ones stay valid. It never
// says that a login has ended: Claude Code would empty its file for good.
func (b *Broker) renew(w http.ResponseWriter, r *http.Request, d demand) {
	const later = http.StatusServiceUnavailable
	access, scope, refused := b.login()
	if !b.loginKey.Is(claudeRefresh, d.Refresh) || d.Client != Client || access == "" {
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

// pair is a new pair of placeholders as the token endpoint gives tokens.
func (b *Broker) pair(scope string) map[string]any {
	access, refresh := LoginPlaceholders(b.loginKey)
	return map[string]any{
		"token_type": "Bearer", "access_token": access, "refresh_token": refresh,
		"expires_in": int(insideLife.Seconds()), "scope": scope,
	}
}

// LoginPlaceholders are a new pair for a file of credentials.
func LoginPlaceholders(key Key) (access, refresh string) {
	filler := strings.Repeat("-", usualToken)
	return key.Placeholder(ClaudeLogin, "sk-ant-oat01-"+filler), key.Placeholder(claudeRefresh, "sk-ant-ort01-"+filler)
}

const usualToken = 95 // bytes behind the prefix

// exchange lets a code be exchanged, and keeps what comes for this instance:
// whose account it is only the user can tell.
func (b *Broker) exchange(w http.ResponseWriter, r *http.Request, t Target, body []byte, d demand) {
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
	if d.Client != Client || d.Expires != 0 {
		said["access_token"] = b.addLogin(g)
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
	replaceAll(clean, needlesOf([]known{
		{Secret{Name: ClaudeLogin, Value: g.Access}, b.loginKey},
		{Secret{Name: claudeRefresh, Value: g.Refresh}, b.loginKey},
	}, nil))
	answer(w, http.StatusOK, json.RawMessage(clean))
}

func grantOf(said map[string]any, now time.Time) Grant {
	text := func(key string) string { s, _ := said[key].(string); return s }
	seconds, _ := said["expires_in"].(float64)
	return Grant{
		Access: text("access_token"), Refresh: text("refresh_token"), Scope: text("scope"),
		Expires: now.Add(time.Duration(seconds) * time.Second),
	}
}

// post sends a demand on, and gives what was answered.
func (b *Broker) post(r *http.Request, t Target, body []byte) (status int, content []byte, err error) {
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

// revoke is answered here: what an agent gives up stays the user's.
func (b *Broker) revoke(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(io.LimitReader(r.Body, maxDemand))
	if b.loginKey.In(claudeRefresh, string(body)) || b.loginKey.In(ClaudeLogin, string(body)) {
		b.keeper.Forget()
	}
	answer(w, http.StatusOK, map[string]any{})
}

func answer(w http.ResponseWriter, status int, value any) {
	content, err := json.Marshal(value)
	if err != nil {
		content = []byte("{}")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(content) // who has left is not told
}
