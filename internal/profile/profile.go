package profile

import (
	"slices"
	"strings"
)

// Profile says what the agent may have. A value made by [Load] is valid:
// nobody downstream checks it again.
type Profile struct {
	Name        string
	Description string
	Agent       Agent
	Packages    []Package // in the order of PATH
	Nixpkgs     string    // "pinned", or a locked reference or store path
	Network     Network
	Env         []Constant // sorted by name
	PassThrough []HostEnv  // sorted by name
	Secrets     []Secret   // sorted by variable
	Mounts      []Mount    // sorted by destination
	State       string     // where the agent's home is kept
	Nix         Nix
	Git         Git
	SSH         SSH
	Hide        []Pattern // added to the built-in list
	Show        []Pattern // taken away from it
	Protect     []Pattern // added to the built-in list
	ProtectMode string
	Cache       string
	Limits      Limits
	MCP         MCP
	Compat      string
	Toolbox     string
	Project     string
	Worktrees   []Pattern
	Confirm     string
	Sources     []Source // the files it was made of, in order of application
}

// WithTier is the profile under another network tier, as `--network` asks for;
// an empty one leaves it as it is.
func (p Profile) WithTier(tier string) Profile {
	if tier != "" {
		p.Network.Tier = tier
	}
	return p
}

// Origin is where a setting was said, as "NAME:LINE" ("work:12").
type Origin string

// Rule names the origin as the reason of what is in a plan: "profile work:12".
// The project's own profile is named by its file.
func (o Origin) Rule() string {
	if strings.HasPrefix(string(o), ProjectFile+":") {
		return string(o)
	}
	return "profile " + string(o)
}

// Source is one file a profile was made of.
type Source struct {
	Name   string // the profile's name
	File   string // as shown to a person; "(built in)" for the embedded one
	SHA256 string // of the bytes read, in hex
}

// Agent is the program that runs inside.
type Agent struct {
	Name    string            // "claude", or the file name of Command's first word
	Command []string          // empty: the agent Name is looked up
	Home    map[string]string // folders of its home: path below home → "persist" or "ephemeral"
	Env     []HostEnv         // host variables it may have
}

// Package is one attribute path in nixpkgs, with the outputs asked for.
type Package struct {
	Attr    string   // "python3Packages.requests"
	Outputs []string // from "pkg^dev,out"; empty: what meta.outputsToInstall says
	Origin  Origin
}

// Constant is a variable with a fixed value.
type Constant struct {
	Name, Value string
	Origin      Origin
}

// HostEnv is a variable that may pass from the caller's environment.
type HostEnv struct {
	Name   string
	Origin Origin
}

// Secret is something that the agent uses and never holds.
type Secret struct {
	Variable string   // that has the placeholder inside, and the secret outside when File is empty
	File     string   // clean, and absolute or beginning with "~/"
	Hosts    []string // in lower case, sorted: it is for these alone
	As       []string // "bearer", "basic"
	Header   string   // one of its own; empty: none
	Inside   bool     // the agent holds it after all
	Origin   Origin
}

// Pattern is a glob relative to the project root.
type Pattern struct {
	Glob   string
	Origin Origin
}

// Mount is a path of the host that the sandbox may see. Host and Sandbox are
// clean, and absolute or begin with "~/" or "./" (relative to the project); no
// two mounts of a profile have the same Sandbox. Links are not followed yet:
// who does judges the result by [Exposes] again.
type Mount struct {
	Host     string
	Sandbox  string
	Writable bool
	Optional bool
	Secret   bool
	Origin   Origin
}

// Network is the tier and what it lets through.
type Network struct {
	Tier string `json:"tier"`
	// Allow are hosts in lower case and, in a profile, presets (package hostpattern),
	// for tier allow only.
	Allow []string `json:"allow,omitempty"`
	// Except are addresses and networks of the user's own that are reached all
	// the same (package policy), for tier inet only.
	Except []string `json:"except,omitempty"`
	// Private are those of Allow whose names may lead to a private network.
	Private []string `json:"private,omitempty"`
	// Via is the URL of the proxy that the hosts of tier allow are reached by;
	// empty: none.
	Via string `json:"via,omitempty"`
	// In and Out are TCP ports carried between host and sandbox, on 127.0.0.1 only,
	// sorted, each once: In leads inside, Out to the host.
	In  []int `json:"in,omitempty"`
	Out []int `json:"out,omitempty"`
}

// Under is the network under another tier, without what is for one tier alone.
func (n Network) Under(tier string) Network {
	n.Tier = tier
	if tier != TierInet {
		n.Except = nil
	}
	if tier != TierAllow {
		n.Private, n.Via = nil, ""
	}
	return n
}

// Hosts are those of tier allow, for people.
func (n Network) Hosts() []string {
	return mapped(n.Allow, func(host string) string {
		if slices.Contains(n.Private, host) {
			return host + " (may be in your own network)"
		}
		return host
	})
}

// Limits are what everything inside may use together; 0: as much as there is.
type Limits struct {
	Memory int64 `json:"memory,omitempty"` // bytes
	Tasks  int   `json:"tasks,omitempty"`  // processes and threads
	CPU    int   `json:"cpu,omitempty"`    // percent of one processor
}

// Nix is how much of Nix the sandbox may use.
type Nix struct {
	Daemon string `json:"daemon"`
	Store  string `json:"store"`
}

// Git is what git may do inside.
type Git struct {
	Hosts      []GitHost // sorted by host
	SSHToHTTPS bool
	Config     string
	Sign       string
}

// SSH is what ssh may do inside, with keys that stay outside.
type SSH struct {
	Hosts []string // in lower case, sorted, with a port that is not 22
}

// GitHost is a host that git may log in to with the token in a variable.
type GitHost struct {
	Host     string
	Variable string
	Origin   Origin
}

// MCP names the user-scope MCP servers of the host that come in.
type MCP struct{ Import []string }

// Words of settings that the program asks for; [ByGrant] has them all.
const (
	TierFull       = "full"
	TierInet       = "inet"
	TierAllow      = "allow"
	TierNone       = "none"
	StateShared    = "shared"
	DaemonHost     = "host"
	DaemonOff      = "off"
	StoreFull      = "full"
	StoreClosure   = "closure"
	GitSignSSH     = "ssh"
	CacheProject   = "project"
	CompatNixLd    = "nix-ld"
	ToolboxBase    = "base"
	ProjectGitRoot = "git-root"
)

// ByGrant are the words of settings, that which grants least first. The shared home
// is a case of its own: it shows what no other does.
var ByGrant = map[string][]string{
	"network":      {"none", "allow", "inet", "full"},
	"state":        {"ephemeral", "project", "shared", "host"},
	"nix.daemon":   {"off", "own", "host"},
	"nix.store":    {"closure", "full"},
	"git.config":   {"readonly", "writable"},
	"git.sign":     {"off", "ssh"},
	"protect_mode": {"strict", "default"},
	"cache":        {"ephemeral", "project"},
	"compat":       {"off", "nix-ld"},
	"toolbox":      {"base", "full"},
	"project":      {"cwd", "git-root"},
	"confirm":      {"always", "changed", "never"},
}
