package profile

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// Profile says what the agent may have. A value made by [Load] is valid:
// no caller needs to check it again.
type Profile struct {
	Name        string
	Description string
	Agent       Agent
	Packages    []Package // in the order of PATH
	Nixpkgs     string    // "pinned", or a locked reference or store path
	Network     Network
	Env         []Constant // sorted by name
	PassThrough []Entry    // variables that may pass from the caller's environment, sorted
	Secrets     []Secret   // sorted by variable
	Mounts      []Mount    // sorted by destination
	State       string     // where the agent's home is kept
	Nix         Nix
	Devshell    Devshell
	Git         Git
	SSHHosts    []string // in lower case, sorted, with a port that is not 22; the keys for them stay outside
	Hide        []Entry  // patterns added to the built-in list
	Show        []Entry  // patterns of files that the agent may read although Hide or the built-in list covers them
	Protect     []Entry  // patterns added to the built-in list of files that the agent may not change
	ProtectMode string
	Cache       string
	Limits      Limits
	MCP         []string // names of the user-scope MCP servers of the host that are imported
	Compat      string
	Toolbox     string
	Project     string
	Workspace   string
	Worktrees   []Entry // patterns of folders beside the project root ("../wt-*")
	Confirm     string
	Sources     []Source // the files that were merged into it; a later one overrides an earlier one
}

// WithTier returns a copy of the profile with another network tier, as
// `--network` asks for. An empty tier changes nothing.
func (p Profile) WithTier(tier string) Profile {
	if tier != "" {
		p.Network.Tier = tier
	}
	return p
}

// Origin is the place in a profile where a setting was written.
type Origin struct {
	Name string // name of the profile; for the project's own what [ProjectFileOf] returns
	File string // as errors show it
	Line int
}

// String returns the origin as it is shown to people ("work:12"), or "" for the zero Origin.
func (o Origin) String() string {
	if o == (Origin{}) {
		return ""
	}
	return o.Name + ":" + strconv.Itoa(o.Line)
}

// Rule returns the origin as the reason that a plan gives for an entry: "profile work:12".
// For the project's own profile it is ".claudebox.yaml:12", without "profile".
func (o Origin) Rule() string {
	if IsProjectRule(o.String()) {
		return o.String()
	}
	return "profile " + o.String()
}

// Entry is one item of a list of strings: the name of a variable, or a glob
// pattern relative to the project root.
type Entry struct {
	Text   string
	Origin Origin
}

// Source is one of the files that a profile was merged from.
type Source struct {
	Name   string // the profile's name
	File   string // as shown to a person; "(built in)" for the embedded one
	SHA256 string // of the file's content, in hex
}

// Adapter is the program by which an editor drives Claude Code with the Agent Client Protocol.
const Adapter = "claude-agent-acp"

// IsAdapter reports whether a command is the [Adapter], by its name of today or before. It starts Claude Code itself.
func IsAdapter(command []string) bool {
	return len(command) > 0 && slices.Contains([]string{Adapter, "claude-code-acp"}, path.Base(command[0]))
}

// Agent is the program that runs inside.
type Agent struct {
	Name    string            // "claude", or the file name of Command's first word
	Command []string          // program and arguments; empty: the program is looked up by Name
	Home    map[string]string // folders of the agent's home: path below home → "persist" or "ephemeral"
	Env     []Entry           // names of host variables that are passed to it
}

// Package is one attribute path in nixpkgs, with the outputs asked for.
type Package struct {
	Attr    string   // "python3Packages.requests"
	Outputs []string // from "pkg^dev,out"; empty: those in meta.outputsToInstall
	Origin  Origin
}

// String returns the package as it is written in a profile: "openssl^dev,out".
func (p Package) String() string {
	if len(p.Outputs) == 0 {
		return p.Attr
	}
	return p.Attr + "^" + strings.Join(p.Outputs, ",")
}

// Constant is a variable with a fixed value.
type Constant struct {
	Name, Value string
	Origin      Origin
}

// Secret is a secret that the agent can use but does not see: inside it has a
// placeholder, which claudebox replaces in requests to Hosts.
type Secret struct {
	Variable string   // holds the placeholder inside, and the secret on the host if File is empty
	File     string   // file of the host with the secret: clean, and absolute or beginning with "~/"; empty: none
	Hosts    []string // the only hosts that it is sent to, in lower case, sorted
	As       []string // kinds of Authorization header that it is sent in: "bearer", "basic"
	Header   string   // another header that it is sent in; empty: none
	Write    []string // PATH or METHOD PATH for which it is used to write besides the known ones, sorted
	Inside   bool     // the agent sees the secret itself after all
	Origin   Origin
}

// Mount is a path of the host that the sandbox may see. Host and Sandbox are
// clean, and absolute or begin with "~/" or "./" (relative to the project); no
// two mounts of a profile have the same Sandbox. Symbolic links are not resolved
// yet: the code that resolves them must check the result with [Exposes] again.
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
	// In and Out are TCP ports carried between host and sandbox, on loopback only,
	// sorted, each once: In leads inside, Out to the host.
	In  []int `json:"in,omitempty"`
	Out []int `json:"out,omitempty"`
}

// Under returns the network with another tier, without the settings that the
// new tier does not use: Except is for inet only; Allow, Private and Via for allow only.
func (n Network) Under(tier string) Network {
	n.Tier = tier
	if tier != TierInet {
		n.Except = nil
	}
	if tier != TierAllow {
		n.Allow, n.Private, n.Via = nil, nil, ""
	}
	return n
}

// Listed returns the list of what the tier reaches besides: hosts in tier allow, addresses of the user's own network in
// tier inet; nil: the tier has no list.
func (n *Network) Listed() *[]string {
	switch n.Tier {
	case TierAllow:
		return &n.Allow
	case TierInet:
		return &n.Except
	}
	return nil
}

// Hosts returns the hosts of tier allow as they are shown to people.
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

// Devshell is the dev shell of the project that the agent has. The zero value is none.
type Devshell struct {
	// Flake is "auto", or a flake reference; empty: File counts, or there is none.
	Flake   string   `json:"flake,omitempty"`
	File    string   `json:"file,omitempty"` // a Nix file, relative to the project
	NoHook  bool     `json:"noHook,omitempty"`
	Vars    []string `json:"vars,omitempty"`  // patterns of variables that come in although they are refused, sorted
	Watch   []string `json:"watch,omitempty"` // patterns of files, sorted
	Require bool     `json:"require,omitempty"`
	Wait    int      `json:"wait,omitempty"` // seconds
}

// Git is what git may do inside.
type Git struct {
	Hosts      []GitHost // sorted by host
	SSHToHTTPS bool
	Config     string
	Sign       string
}

// GitHost is a host that git may log in to with the token in a variable.
type GitHost struct {
	Host     string
	Variable string
	Origin   Origin
}

// Values of settings that the code compares with; the schema has all values.
const (
	TierFull       = "full"
	TierInet       = "inet"
	TierAllow      = "allow"
	TierNone       = "none"
	StateShared    = "shared"
	DaemonHost     = "host"
	DevshellAuto   = "auto"
	DevshellOff    = "off"
	DaemonOff      = "off"
	StoreFull      = "full"
	StoreClosure   = "closure"
	GitSignSSH     = "ssh"
	CacheProject   = "project"
	CompatNixLd    = "nix-ld"
	ToolboxBase    = "base"
	ProjectGitRoot = "git-root"

	WorkspaceBranch = "branch"
)
