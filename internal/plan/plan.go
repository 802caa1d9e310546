package plan

import (
	"claudebox/internal/plan/resolve"
	"claudebox/internal/profile"
)

// Version is the version of the plan file that this build writes.
const Version = 3

// Plan is a pinned and portable launch: store paths, mounts and environment
// by rule, with nothing in it that depends on host, folder or moment but the
// late values below. Same inputs, same bytes.
//
// Late values, bound by package launch: ${home} ${project} ${state}
// ${runtime}, and what the host decides: ${certs} ${zone} ${zone-name}. The
// agent is looked up on the host when Agent.Command is empty.
type Plan struct {
	Version   int      `json:"version"`
	Profile   string   `json:"profile"`
	Sources   []Source `json:"sources"` // the profile files it was made of
	System    string   `json:"system"`
	Pins      Pins     `json:"pins"`
	Path      []string `json:"path"`              // PATH inside: store folders in order
	Env       []Env    `json:"env"`               // sorted by name
	Secrets   []Secret `json:"secrets,omitempty"` // sorted by variable
	Mounts    []Mount  `json:"mounts"`
	Network   Network  `json:"network"`
	Limits    Limits   `json:"limits,omitzero"`
	State     string   `json:"state"`
	Cache     string   `json:"cache"`
	Project   string   `json:"project"`             // cwd or git-root
	Workspace string   `json:"workspace,omitempty"` // branch; empty: the agent works in the project
	Nix       Nix      `json:"nix"`
	Devshell  Devshell `json:"devshell,omitzero"`
	Git       Git      `json:"git"`
	Hide      []string `json:"hide,omitempty"`
	Show      []string `json:"show,omitempty"`
	Protect   Protect  `json:"protect"`
	Agent     Agent    `json:"agent"`
	MCP       []string `json:"mcp,omitempty"`       // MCP servers of the user that enter, by name
	Worktrees []string `json:"worktrees,omitempty"` // patterns of folders beside the project that are mounted read-write
	Compat    string   `json:"compat"`
	Confirm   string   `json:"confirm"`
}

// Source is one profile file, by name and content.
type Source struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

// Pins is everything fixed by store path.
type Pins struct {
	Nixpkgs  Nixpkgs   `json:"nixpkgs"`
	Packages []Package `json:"packages"`          // in PATH order
	Tools    []Tool    `json:"tools"`             // sorted by name
	Closure  []string  `json:"closure,omitempty"` // all that is mounted of the store, sorted; empty: the whole store is
}

// Packages stand in a plan as they were resolved.
type (
	Nixpkgs = resolve.Nixpkgs
	Package = resolve.Package
	Output  = resolve.Output
)

// Tool is one file that claudebox itself uses.
type Tool struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

// EnvFrom says where a variable's value comes from.
type EnvFrom string

const (
	FromConst EnvFrom = "const" // the profile
	FromHost  EnvFrom = "host"  // the caller's environment; never copied into a plan
	FromMade  EnvFrom = "made"  // claudebox
)

// Env is one variable inside. Value is empty when From is FromHost: Secret then says what is known without it, by the
// name or by what the profile says of it.
type Env struct {
	Name   string  `json:"name"`
	From   EnvFrom `json:"from"`
	Value  string  `json:"value,omitempty"`
	Secret bool    `json:"secret,omitempty"`
	Inside bool    `json:"inside,omitempty"` // a secret that enters as it is, because the profile says so
	Why    string  `json:"why"`
}

// Secret is something that the agent uses and never holds: a variable has a
// placeholder of it inside.
type Secret struct {
	Variable string   `json:"variable"`
	File     string   `json:"file,omitempty"` // of the host, absolute or beginning with "~/"; empty: a variable has it
	Hosts    []string `json:"hosts"`
	As       []string `json:"as,omitempty"` // "bearer", "basic"
	Header   string   `json:"header,omitempty"`
	Write    []string `json:"write,omitempty"` // PATH or METHOD PATH
	Why      string   `json:"why"`
}

// MountKind is what a mount does; the words are bwrap's, without the dashes.
type MountKind string

const (
	ROBind  MountKind = "ro-bind"
	Bind    MountKind = "bind"
	Tmpfs   MountKind = "tmpfs"
	Proc    MountKind = "proc"
	Dev     MountKind = "dev"
	Dir     MountKind = "dir"
	Symlink MountKind = "symlink" // Source is the link's text
	Closure MountKind = "closure" // the store paths of Pins.Closure, and no others
	File    MountKind = "file"    // Source is a [MadeFile], copied into place
	ROData  MountKind = "ro-data" // the same as a mount of its own: it stays where the folder around it is writable
)

// Mount is one mount inside; a Tmpfs has no Source.
type Mount struct {
	Kind        MountKind `json:"kind"`
	Source      string    `json:"source,omitempty"`
	Destination string    `json:"destination"`
	Mode        string    `json:"mode,omitempty"` // octal, of a tmpfs, dir or file
	Size        int64     `json:"size,omitempty"` // bytes, of a tmpfs
	Optional    bool      `json:"optional,omitempty"`
	Secret      bool      `json:"secret,omitempty"`
	Why         string    `json:"why"` // "base", "profile work:12", "--mount-ro"
}

// MadeFile names a file whose content claudebox makes at launch.
type MadeFile string

const (
	MadePasswd    MadeFile = "passwd"
	MadeGroup     MadeFile = "group"
	MadeNsswitch  MadeFile = "nsswitch.conf"
	MadeServices  MadeFile = "services"
	MadeProtocols MadeFile = "protocols"
	MadeOSRelease MadeFile = "os-release"
	MadeMachineID MadeFile = "machine-id"
	MadeHosts     MadeFile = "hosts"
	MadeResolv    MadeFile = "resolv.conf"
	MadeZone      MadeFile = "zone"
	MadeNixConf   MadeFile = "nix.conf"
	MadeRegistry  MadeFile = "registry.json"
	MadeSandboxMD MadeFile = "SANDBOX.md"
	MadeGitconfig MadeFile = "gitconfig"
)

// These settings are the same in a profile and in its plan.
type (
	Network = profile.Network
	Limits  = profile.Limits
	Nix     = profile.Nix

	Devshell = profile.Devshell
)

// Git is what git may do inside.
type Git struct {
	Hosts      []GitHost `json:"hosts,omitempty"`
	SSHToHTTPS bool      `json:"sshToHttps"`
	Config     string    `json:"config"`
	Sign       string    `json:"sign,omitempty"` // "ssh"
	SSH        []string  `json:"ssh,omitempty"`  // hosts that ssh may log in to
}

// GitHost is a host that git may log in to with the token in a variable.
type GitHost struct {
	Host     string `json:"host"`
	Variable string `json:"variable"`
}

// Protect is what the agent may not change.
type Protect struct {
	Mode  string   `json:"mode"`
	Globs []string `json:"globs,omitempty"`
}

// Agent is the program that runs inside. An empty Command means that the
// agent Name is looked up at launch, as ${agent}.
type Agent struct {
	Name    string   `json:"name"`
	Command []string `json:"command,omitempty"`
	Args    []string `json:"args,omitempty"` // always passed, before the caller's words
	Home    []string `json:"home,omitempty"` // folders of its home that are kept, below home
}
