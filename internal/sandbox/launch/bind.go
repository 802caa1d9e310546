package launch

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"claudebox/internal/host"
	"claudebox/internal/plan"
)

// Hostname is the name of every sandbox: the host's own would tell the agent
// whose machine it is on.
const Hostname = "claudebox"

// Host is what a launch needs to know besides its plan, as values.
type Host struct {
	Facts     host.Facts
	Etc       host.Etc
	Bwrap     string   // the program; the manifest's, or one from PATH
	Env       string   // coreutils' env
	Project   string   // canonical folder, mounted at its own path
	Dir       string   // current folder inside, at or below Project
	State     string   // the instance's folder
	Daemon    bool     // the Nix daemon may be reached
	NixStore  string   // folder of a store of the sandbox's own, which lies over the host's; empty: there is none
	NixConf   []byte   // the made nix.conf
	Registry  []byte   // the made registry of flakes
	Agent     []string // the program and the words it always gets, as the sandbox sees them
	Owns      bool     // see [Launch.Owns]
	Held      bool     // see [Launch.Held]
	LookUp    bool     // the program is a name for the PATH inside, or may not be there
	Words     []string // the caller's words for the agent
	Gitconfig []byte   // the made .gitconfig
	Mounts    []Mount  // all of the launch, see [Mounts]
	Closure   []string // store paths that the agent's program needs, where not the whole store is mounted
	StandIns  []StandIn
	ExtraEnv  []string   // host variables added for this launch
	Made      []Variable // that claudebox makes for this launch; a plan's of the same name does not count
	Bundle    []byte     // certificates, in the place of the host's own; nil: those
	Outside   []Outside
	Overrides map[string]Override
	Libraries bool // Mounts hold the host's library folders: no other loader fits beside them

	OwnPIDs  bool     // bwrap gets a pid namespace, see [CanOwnPIDs]
	CanLay   bool     // mounts can be laid, see [CanLay]
	Ignored  []string // signals that the caller had ignored: "INT", "HUP"
	Seccomp  []byte
	Notes    []string
	Warnings []string
}

// Override says that a host variable enters with another value, or not at
// all.
type Override struct {
	Value string
	Drop  bool
	Why   string
	// Public says that the value is no secret, whatever the host's was.
	Public bool
}

// Bind makes the launch of a plan on a host. It is a pure function. It fails
// when two mounts would lie on one destination.
func Bind(p plan.Plan, h Host) (Launch, error) {
	late := lateValues(h)
	l := Launch{
		Plan: p, Bwrap: h.Bwrap, Tier: p.Network.Tier, Hostname: Hostname,
		Env: variables(p, h, late), State: h.State, StandIns: h.StandIns, Project: h.Project, Dir: h.Dir,
		Agent: h.Agent, Request: h.Words, Seccomp: h.Seccomp,
		Outside: h.Outside, Command: command(h), Owns: h.Owns, Held: h.Held, Shim: h.Env, OwnPIDs: h.OwnPIDs,
	}
	warnings, notes := judge(l.Env)
	l.Warnings, l.Notes = slices.Concat(h.Warnings, warnings), slices.Concat(h.Notes, notes)
	parents := projectParents(h, h.Mounts)
	l.Mounts = withoutLinksAbove(slices.Clone(h.Mounts))
	for _, dir := range parents {
		l.Mounts = append(l.Mounts,
			Mount{Kind: plan.Tmpfs, Destination: dir, Mode: "0755", Size: parentSize, Why: "parent of the project"})
	}
	slices.SortStableFunc(l.Mounts, byDestination)
	if err := noConflicts(l.Mounts); err != nil {
		return Launch{}, err
	}
	if err := nothingMadeOutside(l.Mounts); err != nil {
		return Launch{}, err
	}
	l.Mounts = withParents(l.Mounts)
	markAbove(l.Mounts)
	l.Lay = h.CanLay && worthLaying(l.Mounts)
	l.ReadOnly = append(parents, "/")
	if slices.ContainsFunc(l.Mounts, func(m Mount) bool { return m.Destination == sharedMemory }) {
		l.ReadOnly = append(l.ReadOnly, "/dev") // bwrap's own, and of no size
	}
	l.Closure = slices.Concat(p.Pins.Closure, h.Closure)
	slices.Sort(l.Closure)
	l.Closure = slices.Compact(l.Closure)
	return l, nil
}

// sharedMemory is what programs write to in /dev.
const sharedMemory = "/dev/shm"

// parentSize bounds, in bytes, a folder that holds mount points only.
const parentSize = 1 << 20

func byDestination(a, b Mount) int { return cmp.Compare(a.Destination, b.Destination) }

// runtimeDir is XDG_RUNTIME_DIR inside, at its usual place.
func runtimeDir(uid string) string { return "/run/user/" + uid }

// late are the values that a plan leaves to the launch: "${home}".
type late map[string]string

func lateValues(h Host) late {
	return late{
		"home":      h.Facts.Home,
		"project":   h.Project,
		"state":     h.State,
		"runtime":   runtimeDir(strconv.Itoa(h.Facts.UID)),
		"cwd":       h.Dir,
		"certs":     h.Etc.Certificates,
		"zone-name": h.Etc.ZoneName,
	}
}

func (l late) Replace(text string) string { return expand(text, "${", l) }

// expand puts values in the places of their names, which stand between open
// and "}". It is done at each start, and a [strings.Replacer] makes tables of
// some kilobytes first.
func expand(text, open string, values map[string]string) string {
	if !strings.Contains(text, open) {
		return text // as nearly everything
	}
	var b strings.Builder
	b.Grow(len(text))
	for {
		before, rest, found := strings.Cut(text, open)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		name, after, closed := strings.Cut(rest, "}")
		if value, known := values[name]; closed && known {
			b.WriteString(value)
			text = after
			continue
		}
		b.WriteString(open)
		text = rest
	}
}

// command is what bwrap runs: the agent and its words. A command that is not
// claudebox's own choice goes through env(1), which looks it up on the PATH
// inside and whose status says that it was not found there (127) or cannot be
// run (126). So does any where signals are blocked in bwrap, to be set free
// for the agent; those that the caller ignores stay as they are.
func command(h Host) []string {
	words := slices.Concat(h.Agent, h.Words)
	shim := []string{h.Env}
	if !h.OwnPIDs {
		for _, name := range []string{"INT", "QUIT", "TERM", "HUP"} {
			if !slices.Contains(h.Ignored, name) {
				shim = append(shim, "--default-signal="+name)
			}
		}
	}
	if h.LookUp || len(shim) > 1 {
		return slices.Concat(shim, []string{"--"}, words)
	}
	return words
}
