package session

import (
	"net/url"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/smallfile"
	"claudebox/internal/plan"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/secret/broker"
)

// tiersWithBroker are those whose connections can be led to it: by a proxy, or by
// the sandbox's own network.
var tiersWithBroker = []string{proxied, "inet", "allow"}

const proxied = "full"

// usual are the variables that hold a secret of Claude Code's, and how it sends
// that.
var usual = map[string]broker.Secret{
	apiKey: {
		Hosts: broker.ClaudeHosts[:1], Forms: []broker.Form{broker.Header, broker.Bearer},
		Headers: []string{"X-Api-Key"},
		Paths:   broker.ClaudePaths,
	},
	"ANTHROPIC_AUTH_TOKEN": {
		Hosts: broker.ClaudeHosts[:1], Forms: []broker.Form{broker.Bearer},
		Paths: broker.ClaudePaths,
	},
	"CLAUDE_CODE_OAUTH_TOKEN": {
		Hosts: broker.ClaudeHosts, Forms: []broker.Form{broker.Bearer},
		Paths: broker.ClaudePaths,
	},
}

// namedSecret is a secret with the rule that names it.
type namedSecret struct {
	broker.Secret
	why         string
	placeholder string // that stands for it inside
}

// listSecrets lists the secrets that stay outside by a plan: Claude Code's own,
// those of the profile, and the tokens that git logs in with. One that this host
// does not have is left out.
func listSecrets(g ground) ([]namedSecret, error) {
	var list []namedSecret
	add := func(secret broker.Secret, why string) {
		at := slices.IndexFunc(list, func(n namedSecret) bool { return n.Name == secret.Name })
		if at < 0 {
			list = append(list, namedSecret{Secret: secret, why: why})
			return
		}
		list[at].Hosts = merged(list[at].Hosts, secret.Hosts)
		list[at].Forms = merged(list[at].Forms, secret.Forms)
	}
	for _, e := range entering(g) {
		secret, known := usual[e.Name]
		if value := g.Facts.Env.Value(e.Name, ""); known && value != "" {
			secret.Name, secret.Value = e.Name, value
			add(secretFor(secret, insideValue(g, "ANTHROPIC_BASE_URL")), e.Why)
		}
	}
	for _, named := range g.plan.Secrets {
		value, err := secretValue(g.call, named)
		if err != nil {
			return nil, err
		}
		if value != "" {
			add(ofProfile(named, value), named.Why)
		}
	}
	for _, host := range g.plan.Git.Hosts {
		value := g.Facts.Env.Value(host.Variable, "")
		named := slices.ContainsFunc(g.plan.Secrets, func(n plan.Secret) bool { return n.Variable == host.Variable })
		if why := gitRule(g, host.Variable); value != "" && (why != "" || named) {
			add(broker.Secret{
				Name: host.Variable, Value: value, Hosts: withAPI(host.Host),
				Forms: []broker.Form{broker.Basic, broker.Bearer},
			}, why)
		}
	}
	return list, nil
}

func merged[T ~string](a, b []T) []T {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b))))
}

// gitRule is the rule by which a variable enters for git alone; empty where it
// enters by another, too.
func gitRule(g ground, variable string) string {
	for _, e := range entering(g) {
		if e.Name == variable && strings.HasSuffix(e.Why, plan.ForGit) {
			return e.Why
		}
	}
	return ""
}

// withAPI is a host with those that its tokens are for as well.
func withAPI(host string) []string {
	if host == "github.com" {
		return []string{"api.github.com", "github.com", "uploads.github.com"}
	}
	return []string{host}
}

func ofProfile(named plan.Secret, value string) broker.Secret {
	secret := broker.Secret{Name: named.Variable, Value: value, Hosts: named.Hosts}
	for _, form := range named.As {
		secret.Forms = append(secret.Forms, broker.Form(form))
	}
	if named.Header != "" {
		secret.Forms, secret.Headers = append(secret.Forms, broker.Header), []string{named.Header}
	}
	return secret
}

// secretValue reads a secret of the profile; empty: this host has none.
func secretValue(c call, named plan.Secret) (value string, err error) {
	from := named.Variable
	if named.File == "" {
		value = c.Facts.Env.Value(named.Variable, "")
	} else if from, value, err = secretFile(c, named); err != nil {
		return "", err
	}
	if named.File == "" && value == "" {
		return "", nil
	}
	if err := broker.CheckValue(value); err != nil {
		return "", &diag.Error{
			Op:  "use the secret " + from + " (" + named.Why + ")",
			Err: err, Remedy: "put the token there, and nothing else",
		}
	}
	return value, nil
}

func secretFile(c call, named plan.Secret) (name, value string, err error) {
	name = c.absolute(named.File)
	const most = 64 << 10
	content, err := smallfile.Read(name, most)
	if err != nil {
		return "", "", &diag.Error{
			Op: "read the secret " + name + " (" + named.Why + ")", Err: diag.Cause(err),
			Remedy: "make it, or take the entry out of `secrets`",
		}
	}
	return name, strings.TrimSpace(string(content)), nil
}

// judgeSecretFiles refuses a secret that stays outside and whose file is visible
// inside, in the project or by a mount.
func judgeSecretFiles(g ground, mounts []launch.Mount) error {
	if !g.secrets.used {
		return nil
	}
	for _, named := range g.plan.Secrets {
		if named.File == "" {
			continue
		}
		file, missing := beneath.Canonical(g.absolute(named.File))
		if missing != nil {
			continue // it was read a moment ago
		}
		if m := visibleBy(mounts, file); m != nil {
			return diag.Errorf("keep the secret "+file+" outside ("+named.Why+")",
				"move it elsewhere, or hide it by `hide`", "the agent can read it: %s is mounted (%s)", m.Source, m.Why)
		}
	}
	return nil
}

// visibleBy is the mount by which a file of the host is visible inside; nil: it is
// not.
func visibleBy(mounts []launch.Mount, file string) *launch.Mount {
	for i, m := range mounts {
		rest, below := strings.CutPrefix(file+"/", strings.TrimSuffix(m.Source, "/")+"/")
		if !below || m.Kind != plan.Bind && m.Kind != plan.ROBind {
			continue
		}
		inside, top := m.Destination+"/"+rest, &mounts[i]
		for k, over := range mounts {
			if len(over.Destination) >= len(top.Destination) && strings.HasPrefix(inside, over.Destination+"/") {
				top = &mounts[k]
			}
		}
		if top == &mounts[i] {
			return top
		}
	}
	return nil
}

// secretFor makes a secret one of another host than Anthropic's, where the user
// has named one. One that is reached without TLS is no host for a secret.
func secretFor(secret broker.Secret, base string) broker.Secret {
	if base == "" {
		return secret
	}
	secret.Hosts, secret.Paths = nil, nil
	gateway, err := url.Parse(base)
	if err != nil || gateway.Scheme != "https" {
		return secret
	}
	if target, err := broker.ParseTarget(strings.ToLower(gateway.Host)); err == nil {
		secret.Hosts = []string{target.String()}
	}
	return secret
}

// entering are the host's variables that a plan or the caller lets in.
func entering(g ground) []plan.Env {
	var list []plan.Env
	for _, e := range g.plan.Env {
		if e.From == plan.FromHost {
			list = append(list, e)
		}
	}
	for _, name := range extraEnv(g.Facts.Env) {
		list = append(list, plan.Env{Name: name, Why: "CLAUDEBOX_EXTRA_ENV"})
	}
	return list
}

// known are the hosts that usual tokens are for.
var known = map[string]string{
	"GH_TOKEN": "github.com, api.github.com", "GITHUB_TOKEN": "github.com, api.github.com",
	"GITLAB_TOKEN":   "gitlab.com",
	"OPENAI_API_KEY": "api.openai.com", "OPENROUTER_API_KEY": "openrouter.ai", "MISTRAL_API_KEY": "api.mistral.ai",
	"GROQ_API_KEY": "api.groq.com", "HF_TOKEN": "huggingface.co", "NPM_TOKEN": "registry.npmjs.org",
}
