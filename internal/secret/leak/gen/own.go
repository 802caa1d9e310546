package main

import "strings"

// unfit are rules of gitleaks for whole lines of source code, or whose beginning is that of
// any address or of no word; and two that take for a secret what every program may have: both ends of a key,
// "s.aMethodOfTwentyFour".
var unfit = []string{
	"private-key", "vault-service-token",
	"curl-auth-header", "curl-auth-user", "freemius-secret-key", "kubernetes-secret-yaml", "nuget-config-password",
	"gitlab-session-cookie", "microsoft-teams-webhook", "sidekiq-sensitive-url", "slack-webhook-url",
}

// own are tokens that gitleaks has no rule for, with the shapes that their issuers document or
// print.
var own = []source{
	{id: "claude-login", what: "a login of Claude Code", expr: `sk-ant-(?:oat|ort)[0-9]{2}-[A-Za-z0-9_-]{40,}`},
	{id: "openai", what: "an OpenAI key", expr: `sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{40,}`},
	{id: "openrouter", what: "an OpenRouter key", expr: `sk-or-v1-[a-f0-9]{64}`},
	{id: "tailscale", what: "a Tailscale key", expr: `tskey-[a-z]+-[A-Za-z0-9]+-[A-Za-z0-9]{16,}`},
	{id: "groq", what: "a Groq key", expr: `gsk_[A-Za-z0-9]{40,}`},
	{id: "xai", what: "an xAI key", expr: `xai-[A-Za-z0-9]{60,}`},
	{id: "replicate", what: "a Replicate token", expr: `r8_[A-Za-z0-9]{37}`},
	{id: "nvidia", what: "an NVIDIA key", expr: `nvapi-[A-Za-z0-9_-]{60,}`},
	{id: "supabase", what: "a Supabase key", expr: `sb(?:p|_secret)_[A-Za-z0-9_-]{20,}`},
	{
		id: "slack-webhook", what: "a Slack webhook",
		expr: `hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/]{40,}`,
	},
	{id: "vault", what: "a Vault service token", expr: `hvs\.[\w-]{90,120}`},
	{id: "vault-old", what: "a Vault service token", entropy: 4, expr: `s\.[A-Za-z0-9]{24}\b`},
	{
		id: "private-key-body", what: "a private key",
		expr: `(?i)-----BEGIN[ A-Z0-9_-]{0,100}PRIVATE KEY(?: BLOCK)?-----(?:[\s"'+,;>|#*]|\\+[nr]|` +
			`[a-z-]{4,20}: [^\n\\]{0,200})*[a-z0-9+/]{32,}`,
	},
	{id: "header", what: "a login as HTTP sends it", expr: `(?i)(?:bearer|basic|token)[ \t]+[a-z0-9._~+/=-]{16,}`},
}

// names are the words of ids that title case would misspell.
var names = map[string]string{
	"aws": "AWS", "gcp": "Google Cloud", "github": "GitHub", "gitlab": "GitLab", "npm": "npm", "pypi": "PyPI",
	"jwt":   "JSON web token",
	"oauth": "OAuth", "openai": "OpenAI", "huggingface": "Hugging Face", "digitalocean": "DigitalOcean",
	"sendgrid": "SendGrid", "hashicorp": "HashiCorp",
	"jfrog": "JFrog", "rubygems": "RubyGems", "easypost": "EasyPost", "planetscale": "PlanetScale",
	"newrelic": "New Relic", "new": "New",
	"sourcegraph": "Sourcegraph", "droneci": "Drone CI", "flyio": "Fly.io", "readme": "ReadMe", "api": "API",
	"pat":     "personal token",
	"private": "private", "secret": "secret", "age": "age", "ptt": "trigger token", "rrt": "runner token", "cicd": "CI",
}

// named makes "a GitLab deploy token" of "gitlab-deploy-token".
func named(id string) string {
	words := strings.Split(strings.TrimSuffix(id, "-v2"), "-")
	for i, word := range words {
		switch name, known := names[word]; {
		case known:
			words[i] = name
		case i == 0:
			words[i] = strings.ToUpper(word[:1]) + word[1:]
		}
	}
	if words[len(words)-1] == "OAuth" {
		words = append(words, "token")
	}
	if strings.ContainsAny(words[0][:1], "AEIOaeiou") || words[0] == "npm" {
		return "an " + strings.Join(words, " ")
	}
	return "a " + strings.Join(words, " ")
}
