package launch

import (
	"slices"
	"strings"

	"claudebox/internal/network/helper"
	"claudebox/internal/plan"
)

// Launch is a plan bound to this host, folder and moment: a value, which names
// what is to be run. What is open or running stands in a [Runner].
type Launch struct {
	Plan     plan.Plan
	Bwrap    string     // the program
	Tier     string     // network tier in force
	Hostname string     // inside
	Mounts   []Mount    // in the order in which they are made
	Closure  []string   // store paths that are mounted where a mount of kind closure is; sorted
	Lay      bool       // mounts over what is there already are laid when bwrap has made the others, see [Mount.isOver]
	ReadOnly []string   // remounted read-only when all mounts are made
	Env      []Variable // sorted by name
	State    string     // the instance's folder, outside what the agent sees of it
	StandIns []StandIn  // made before the sandbox starts, gone after
	Project  string     // canonical folder, mounted at its own path
	Dir      string     // current folder inside
	Agent    []string   // the program and what it is always called with
	Request  []string   // the caller's words for the agent
	Command  []string   // the agent and the caller's words, as bwrap runs them
	Shim     string     // coreutils' env: starts what has to be looked up inside
	OwnPIDs  bool       // bwrap gets a pid namespace, see [CanOwnPIDs]
	Seccomp  []byte     // the filter, as bwrap --seccomp takes it
	Outside  []Outside  // secrets that the agent uses and never holds
	Notes    []string   // what a person should know before it starts
	Warnings []string   // the same, in red
	Owns     bool       // the agent takes a terminal for itself: what is typed ahead of its end is no command
	Held     bool       // its processes are put under limits before the agent runs
}

// Runner runs a launch, with what is open or running for it.
type Runner struct {
	Launch
	Network *helper.Helper         // serves a network of claudebox's own, see [Launch.OwnNetwork]; nil: there is none
	Post    *Post                  // gets the signals that would end claudebox, see [Listen]; nil: they end it
	Hold    func(pids []int) error // puts all processes of a launch that is Held under its limits
	Before  func() error           // done while bwrap starts, before the agent may run; nil: nothing is to be
	Laid    func() error           // a last look, when all mounts are laid; nil: none
	Started func(bwrap int)        // called when bwrap runs, with its process id; nil: nothing else waits for it
}

// Outside is a secret that is used inside, and stays outside.
type Outside struct {
	Name  string   // as its owner knows it
	Hosts []string // that it is for
	Why   string   // the rule that names it
}

// WithNixStore is the launch with another folder for the store of its own.
func (l Launch) WithNixStore(from, to string) Launch {
	mounts := slices.Clone(l.Mounts)
	for i := range mounts {
		if mounts[i].Upper == from {
			mounts[i].Upper = to
		}
		if rest, below := strings.CutPrefix(mounts[i].Source, from+"/"); below {
			mounts[i].Source = to + "/" + rest
		}
	}
	l.Mounts = mounts
	return l
}

// Mount is one mount of a launch. Every path is absolute and final.
type Mount struct {
	Kind        plan.MountKind
	Source      string // path on the host, link text, or name of the made file
	Destination string
	Mode        string // octal; empty: bwrap's default
	Size        int64  // bytes
	Data        []byte // of a made file
	Follows     string // file of the host that a made file is kept equal to; empty: none
	Upper       string // folder of what is written there, which lies over a read-only source; empty: nothing is written
	Open        bool   // the source is opened by claudebox and handed over as a descriptor
	Above       Place  // what Destination is on the host, when it lies in a writable bind
	Secret      bool
	Optional    bool
	Why         string
}

// StandIn is a file or folder of the host that stands in for an absent one
// while a session runs, for a mount to lie on.
type StandIn struct {
	Path    string
	Dir     bool
	Content string // of a file
}

// Place is a path below a folder that an agent can write: Root is trusted,
// no component of Path is.
type Place struct {
	Root string
	Path string // relative to Root
}

// Variable is one variable of the sandbox's environment.
type Variable struct {
	plan.Env
	Value string // what the agent sees
}

// Masked is how a person may see the value: secrets shortened, the rest as
// it is.
func (v Variable) Masked() string {
	if !v.Secret {
		return v.Value
	}
	return mask(v.Value)
}

// mask shows so much of a secret that its owner knows which one it is. A
// short one shows nothing.
func mask(secret string) string {
	const shown, least = 4, 16
	if len(secret) < least {
		return "••••"
	}
	return secret[:shown] + "••••" + secret[len(secret)-2:]
}
