package broker

import (
	"context"
	"strings"
	"time"
)

// Names of what Claude Code uses.
const (
	ClaudeLogin   = "your Claude login"
	ClaudeRefresh = "what renews your Claude login"
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

// Refusal is a use of a placeholder, or of Claude's endpoints, that was
// stopped. It holds no secret, and no text of an agent's but a path.
type Refusal struct {
	Secret string `json:"secret,omitempty"` // its name; empty: no placeholder was used
	Host   string `json:"host"`
	Path   string `json:"path,omitempty"`
	Why    string `json:"why"`
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

// LoginPlaceholders are a new pair for a file of credentials.
func LoginPlaceholders(key Key) (access, refresh string) {
	filler := strings.Repeat("-", usualToken)
	return key.Placeholder(ClaudeLogin, "sk-ant-oat01-"+filler), key.Placeholder(ClaudeRefresh, "sk-ant-ort01-"+filler)
}

const usualToken = 95 // bytes behind the prefix

// PostWord is what claudebox's helper is called with to ask a token endpoint, see
// [Post].
const PostWord = "claudebox-tokens"

// Post is what a token endpoint is asked, and how it is reached.
type Post struct {
	Address string  `json:"address"`
	Agent   string  `json:"agent"` // what asks, for its User-Agent
	Body    []byte  `json:"body"`
	Roots   []byte  `json:"roots"` // see [Config]
	Proxies Proxies `json:"proxies"`
}

// Posted is what it answers.
type Posted struct {
	Status int    `json:"status"`
	Body   []byte `json:"body"`
}
