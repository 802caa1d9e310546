package hostpattern

import "slices"

// Preset is a name for a group of hosts.
type Preset struct {
	Name   string
	Hosts  []string
	Source string // the document that lists the hosts, or the program whose code contains them
}

// Presets are sorted by name. They hold the hosts that the work needs. Hosts where anybody can store data are left out
// if the work is possible without them: an agent could send secrets there.
var Presets = []Preset{
	{
		// Without statsig.anthropic.com and sentry.io, which its telemetry goes to: anybody can receive data at the
		// second.
		"anthropic",
		[]string{"api.anthropic.com", "claude.ai", "console.anthropic.com", "platform.claude.com"},
		"Claude Code documentation, Network configuration: Network access requirements",
	},
	{
		"gemini",
		[]string{
			"accounts.google.com", "cloudcode-pa.googleapis.com", "generativelanguage.googleapis.com",
			"oauth2.googleapis.com",
			"www.googleapis.com",
		},
		"Gemini CLI 0.61.0, its program: where it logs in and asks",
	},
	{
		"github",
		[]string{
			"api.github.com", "codeload.github.com", "github-cloud.s3.amazonaws.com", "github.com",
			"uploads.github.com",
			"*.githubusercontent.com",
		},
		"GitHub Docs, Communicating with self-hosted runners: accessible domains; uploads: Releases API, upload_url",
	},
	{
		// The module proxy sends clients on to storage.googleapis.com for large
		// modules (golang/go#52908). That host is left out, as everybody can
		// store there: who needs it lists it.
		"go",
		[]string{"proxy.golang.org", "sum.golang.org"},
		"go help environment: GOPROXY, GOSUMDB",
	},
	{
		"nixpkgs",
		[]string{"cache.nixos.org", "channels.nixos.org", "nixos.org", "releases.nixos.org", "tarballs.nixos.org"},
		"nix.conf(5): substituters; Nix manual, nix-channel; nixpkgs, fetchurl/mirrors.nix: hashedMirrors",
	},
	{
		"npm",
		[]string{"registry.npmjs.org", "registry.yarnpkg.com"},
		"npm documentation, config: registry; Yarn 1 documentation, yarn config: registry",
	},
	{
		"openai",
		[]string{"api.openai.com", "auth.openai.com", "chatgpt.com"},
		"Codex CLI 0.169.0, its program: where it logs in and asks",
	},
	{
		"opencode",
		[]string{"models.dev", "opencode.ai"},
		"OpenCode documentation, Models and Zen; the providers have hosts of their own",
	},
	{
		"pypi",
		[]string{"files.pythonhosted.org", "pypi.org"},
		"PyPI Docs, Index API",
	},
}

// Expand replaces each preset by its hosts, and returns each entry once, sorted. Entries
// that are not presets are kept.
func Expand(texts []string) []string {
	var list []string
	for _, text := range texts {
		i := slices.IndexFunc(Presets, func(p Preset) bool { return p.Name == text })
		if i < 0 {
			list = append(list, text)
			continue
		}
		list = append(list, Presets[i].Hosts...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}
