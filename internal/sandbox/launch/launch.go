package launch

import (
	"slices"

	"claudebox/internal/diag"
	"claudebox/internal/network/helper"
	"claudebox/internal/plan"
)

// Launch is a plan bound to this host, folder and moment. It is a plain value that
// describes what to run; open files and running processes are in a [Runner]. It is final before it is shown: what runs
// is what was shown, or [Launch.On] a checkout what was shown to depend on it.
type Launch struct {
	Setting
	Plan     plan.Plan
	Tier     string      // network tier in force
	Mounts   []Mount     // in the order in which they are made
	Closure  []string    // store paths that are mounted where a mount of kind closure is; sorted
	ReadOnly []string    // paths that are remounted read-only after bwrap's mounts are made
	Env      []Variable  // sorted by name
	StandIns []StandIn   // created before the sandbox starts, removed when it has ended
	Command  []string    // the agent and the caller's arguments, as bwrap runs them
	Outside  []Outside   // secrets that the agent uses but never sees
	Left     []diag.Left // what of the user's does not enter
	Notes    []string    // messages for the user before the start
	Warnings []string    // the same, shown in red

	alone bool // bwrap is started with nothing of claudebox's beside it, see [Launch.byWords]
}

// Setting has the facts of a [Host] that are the same in its [Launch].
type Setting struct {
	Bwrap    string // path of bwrap; what runs on the host is claudebox's own, not the plan's
	Env      string // path of coreutils' env, to be run on the host
	Bash     string // path of bash, to be run on the host
	Shim     string // path of env inside, which looks up the program there, see [command]
	Project  string // canonical folder, mounted at its own path
	Branch   string // the branch of which a checkout is mounted there instead; empty: none
	Undone   int    // how much of the user's work is not committed, and is not in that checkout
	Dir      string // current folder inside, at or below Project; on a branch that does not have it, Project is
	State    string // the instance's folder on the host; the agent sees only parts of it
	Agent    Agent
	Devshell *Devshell // the dev shell of the project that the agent gets; nil: none is looked for
	Request  []string  // the caller's arguments for the agent
	Limited  bool      // resource limits are put on the sandbox's processes before the agent runs
	Seccomp  []byte    // the filter, as bwrap --seccomp takes it
}

// Devshell is how the agent gets the project's dev shell.
type Devshell struct {
	Before []string // the program that becomes the agent, inside, before the agent's words
	Shown  string   // what is known of the dev shell, for people; empty: there is probably none
	Only   bool     // it is evaluated, and nothing runs after that
}

// Agent is the program that runs inside, and what it needs there.
type Agent struct {
	Words        []string // the program and its fixed arguments, with paths as inside
	LookUp       bool     // the program is looked up on the PATH inside, or may not exist there
	OwnsTerminal bool     // it is interactive: what is typed before it ends is not meant for the shell
	Libraries    bool     // the host's library folders are mounted: the plan's links in /lib… to its own are left out
	Closure      []string // store paths that it needs beyond the plan's, if not the whole store is mounted
}

// Runner runs a launch. Besides the launch it has helpers and callbacks.
type Runner struct {
	Launch
	Network *helper.Helper         // serves the sandbox's own network, see [Launch.OwnNetwork]; nil: it has none
	Signals *Signals               // catches the signals that would end claudebox, see [Listen]
	Limit   func(pids []int) error // puts these processes under the limits; called if Limited is set
	Before  func() error           // called before the agent may run, while bwrap starts
	Laid    func(bwrap int) error  // a last check after Before, when all mounts are made
	Started func(bwrap int)        // called when the agent may run, with bwrap's process id
	// Ended is called when nothing runs inside any more, and is told whether the agent ever did. It must not write to
	// the terminal: the agent may have stopped its output, which is resumed only afterwards, and a write would wait for
	// ever.
	Ended func(ran bool)
	Open  func(path string) (fd int, err error) // opens what is mounted, no link followed; nil: by its path
	Piped bool                                  // the caller's standard output goes to another program
	// Background is whether it starts in the background of a terminal. What is typed there is for others, and an agent
	// could read it: it has no terminal then.
	Background bool
}

// Outside is a secret that the agent uses but never sees.
type Outside struct {
	Name  string   // as the user knows it
	Hosts []string // the hosts that it is sent to
	Why   string   // the rule that names it
}

// On returns the launch on the checkout of a branch that lacks some of the paths inside. The checkout is made after the
// launch was shown, so nothing changes but what the launch leaves to it: the mounts with [Mount.IfThere], and Dir.
func (l Launch) On(lacks []string) Launch {
	l.Mounts = slices.DeleteFunc(slices.Clone(l.Mounts), func(m Mount) bool {
		return m.IfThere && slices.Contains(lacks, m.Destination)
	})
	if slices.Contains(lacks, l.Dir) {
		l.Dir = l.Project
	}
	return l
}

// Mount is one mount of a launch. Every path is absolute and final.
type Mount struct {
	Kind        plan.MountKind
	Source      string // path on the host, link text, or name of the made file
	Destination string
	Mode        string // octal; empty: bwrap's default
	Size        int64  // bytes
	Data        []byte // content of a made file
	Follows     string // file of the host that a made file is a live copy of; empty: none
	Upper       string // folder with the upper layer of an overlay over the source; empty: no overlay
	Layer       string // folder with the layer of a session's own over the source, see [storetree.Layer]; empty: none
	Open        bool   // claudebox opens the source and passes it to bwrap as a descriptor
	Point       Place  // the mount point on the host, if in a writable bind: checked before the mount; else zero
	Secret      bool   // it shows a secret of the host, as the user wanted
	Optional    bool   // it is left out if the source does not exist
	IfThere     bool   // it is left out of the checkout of a branch that has no place for it, see [Launch.On]
	Why         string // the rule behind it: "base", "profile work:12", "--mount-ro"
}

// StandIn is a file or folder that claudebox creates on the host for the time of a
// session, because a mount needs it as its mount point.
type StandIn struct {
	Path string
	Dir  bool // else it is an empty file
}

// Place is a path below a folder that an agent can write. Root is trusted; any
// component of Path may be a planted link.
type Place struct {
	Root string
	Path string // relative to Root
}

// Variable is one variable of the sandbox's environment.
type Variable struct {
	plan.Env
	Value string // what the agent sees
}

// Masked returns the value as it may be shown to people: secrets are shortened, and what was let in by its name, which
// may be one of no known shape; other values are unchanged.
func (v Variable) Masked() string {
	if !v.Secret && (v.From != plan.FromHost || v.Why == plan.Base) {
		return v.Value
	}
	return mask(v.Value)
}

// mask returns the beginning and end of a secret, enough for its owner to recognise
// it. Of a secret of fewer than 16 bytes it shows nothing.
func mask(secret string) string {
	const shown, least = 4, 16
	if len(secret) < least {
		return "••••"
	}
	return secret[:shown] + "••••" + secret[len(secret)-2:]
}
