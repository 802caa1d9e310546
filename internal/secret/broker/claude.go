package broker

import (
	"context"
	"net/netip"
	"strings"
	"time"
)

// The names of the secrets of Claude Code's login.
const (
	ClaudeLogin   = "your Claude login"
	ClaudeRefresh = "what renews your Claude login"
)

// ClaudeHosts are the hosts that Claude Code sends its login or API key to, or
// requests tokens from.
var ClaudeHosts = []string{
	"api.anthropic.com", "console.anthropic.com", "mcp-proxy.anthropic.com", "platform.claude.com",
}

// ClaudePaths are the paths to which Claude Code sends its login or API key (measured with
// 2.1.329), and those that its users' own programs request from the API. A placeholder cannot
// be used for any other path: some of them create new keys or show old ones.
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

// Client is the client id with which Claude Code logs in to a subscription.
// Tokens for another client id are never treated as the user's login.
const Client = "9d1c250a-e61b-44d9-88ed-5944d1962f5e"

// Grant is a login that was made inside. Anyone may have supplied the code for it, so it may be another user's account.
type Grant struct {
	Access  string    `json:"access"`
	Refresh string    `json:"refresh"`
	Scope   string    `json:"scope"`
	Expires time.Time `json:"expires"`
}

// Refusal is a use of a placeholder, or of Claude's endpoints, that was
// stopped. It contains no secret, and no text from the agent except a path.
type Refusal struct {
	Secret string `json:"secret,omitempty"` // its name; empty: no placeholder was used
	Host   string `json:"host,omitempty"`   // empty: no request was read
	Path   string `json:"path,omitempty"`
	Why    string `json:"why"`
}

// Keeper has the refresh token of Claude's login, which stays outside the broker.
type Keeper interface {
	// Renew renews the login if refused, the access token that its server refused, is still
	// the current one. It returns when the broker has the new token.
	Renew(ctx context.Context, refused string) error
	// Keep stores a login that was made inside, for this instance only.
	Keep(Grant) error
	// Forget drops such a login.
	Forget()
	// Report reports a refusal.
	Report(Refusal)
	// Used reports that a host was sent a secret.
	Used(Use)
	// Judge says why nothing may be sent on a connection to this machine; see package peer.
	Judge(context.Context, Connection) error
}

// Connection is a TCP connection of the broker's.
type Connection struct {
	Local  netip.AddrPort `json:"local"`
	Remote netip.AddrPort `json:"remote"`
}

// Use is the use of a secret at a host.
type Use struct {
	Secret string `json:"secret"` // its name
	Host   string `json:"host"`
}

// LoginPlaceholders returns new placeholders for the two tokens of a credentials file.
func LoginPlaceholders(key Key) (access, refresh string) {
	filler := strings.Repeat("-", usualToken)
	return key.Placeholder(ClaudeLogin, "sk-ant-oat01-"+filler), key.Placeholder(ClaudeRefresh, "sk-ant-ort01-"+filler)
}

const usualToken = 95 // bytes after the prefix

// TokensWord is the argv[0] of the helper that sends a request to a token endpoint, see
// [TokenRequest].
const TokensWord = "claudebox-tokens"

// TokenRequest is a request to a token endpoint, and how to reach it.
type TokenRequest struct {
	Address string  `json:"address"`
	Agent   string  `json:"agent"` // the User-Agent
	Body    []byte  `json:"body"`
	Roots   []byte  `json:"roots"` // see [Config]
	Proxies Proxies `json:"proxies"`
}

// TokenAnswer is the answer to a [TokenRequest].
type TokenAnswer struct {
	Status int    `json:"status"`
	Body   []byte `json:"body"`
}
