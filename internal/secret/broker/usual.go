package broker

// UsualSecret describes how an agent sends the secret in a variable. Base is the
// variable by which the user names another host for it.
type UsualSecret struct {
	Secret
	Base string
}

// Usual are the variables that hold a secret of an agent. Those of the last line are for agents beside Claude Code:
// they stay outside only if the rule of their agent lets them in, and enter as they are by any other rule.
var Usual = map[string]UsualSecret{
	"ANTHROPIC_API_KEY": {Secret{
		Hosts: ClaudeHosts[:1], Forms: []Form{Header, Bearer},
		Headers: []string{"X-Api-Key"}, Paths: ClaudePaths,
	}, ClaudeBase},
	"ANTHROPIC_AUTH_TOKEN": {Secret{
		Hosts: ClaudeHosts[:1], Forms: []Form{Bearer}, Paths: ClaudePaths,
	}, ClaudeBase},
	"CLAUDE_CODE_OAUTH_TOKEN": {Secret{
		Hosts: ClaudeHosts, Forms: []Form{Bearer}, Paths: ClaudePaths,
	}, ClaudeBase},
	"AWS_BEARER_TOKEN_BEDROCK": {Secret{Forms: []Form{Bearer}}, "ANTHROPIC_BEDROCK_BASE_URL"},
	"ANTHROPIC_FOUNDRY_API_KEY": {Secret{
		Forms: []Form{Header, Bearer}, Headers: []string{"Api-Key", "X-Api-Key"},
	}, "ANTHROPIC_FOUNDRY_BASE_URL"},
	"CODEX_API_KEY": openAI, "OPENAI_API_KEY": openAI, "GEMINI_API_KEY": gemini, "GOOGLE_API_KEY": gemini,
}

// ClaudeBase is the variable by which a user names another host for Claude's API.
const ClaudeBase = "ANTHROPIC_BASE_URL"

var (
	openAI = UsualSecret{Secret{
		Hosts: []string{"api.openai.com"}, Forms: []Form{Bearer},
	}, "OPENAI_BASE_URL"}
	gemini = UsualSecret{Secret{
		Hosts: []string{"aiplatform.googleapis.com", "generativelanguage.googleapis.com"},
		Forms: []Form{Header, Bearer}, Headers: []string{"X-Goog-Api-Key"},
	}, "GOOGLE_GEMINI_BASE_URL"}
)

// HostsOf maps usual variables with tokens to the hosts that the tokens are for.
var HostsOf = map[string]string{
	"GH_TOKEN": "github.com, api.github.com", "GITHUB_TOKEN": "github.com, api.github.com",
	"GITLAB_TOKEN":   "gitlab.com",
	"OPENAI_API_KEY": "api.openai.com", "OPENROUTER_API_KEY": "openrouter.ai", "MISTRAL_API_KEY": "api.mistral.ai",
	"GROQ_API_KEY": "api.groq.com", "HF_TOKEN": "huggingface.co", "NPM_TOKEN": "registry.npmjs.org",
}

// BundleVariables tell programs where the bundle of certificate authorities is, if they do not look in its usual
// place (measured, each with its program).
var BundleVariables = []string{
	"CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "REQUESTS_CA_BUNDLE", "PIP_CERT", "CARGO_HTTP_CAINFO", "AWS_CA_BUNDLE",
	"CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", "HTTPLIB2_CA_CERTS", "DENO_CERT", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
	"HEX_CACERTS_PATH",
}

// AuthorityVariables name one more authority, in a file, to programs that use no bundle, or make them use the system's.
func AuthorityVariables(file string) map[string]string {
	return map[string]string{
		"NODE_EXTRA_CA_CERTS": file, "UV_NATIVE_TLS": "true", "DENO_TLS_CA_STORE": "system,mozilla",
	}
}
