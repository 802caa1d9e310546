package launch

import (
	"slices"
	"strconv"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/host"
	"claudebox/internal/plan"
)

// Hostname is the host name in every sandbox: the host's own could tell the agent whose
// machine it is.
const Hostname = "claudebox"

// Host has all facts besides the plan that a launch is made from.
type Host struct {
	Setting
	Part      // the parts of all subjects together; for [Bind], Mounts are all mounts of the launch, see [Mounts]
	Nix       Nix
	Facts     host.Facts
	Etc       host.Etc
	Gitconfig []byte   // the made .gitconfig
	Policy    []byte   // what the administrator of this machine tells the agent
	ExtraEnv  []string // host variables added for this launch
	Bundle    []byte   // certificate bundle to use instead of the host's; nil: the host's is used
	Overrides map[string]Override
	Kept      []Kept // secrets that stay outside: no variable and no argument has one
}

// Kept is a secret that stays outside.
type Kept struct {
	Name, Value string
	Placeholder string // what stands for it inside; empty: nothing does
	Why         string // the rule by which that enters
}

// Nix says which daemon, store and configuration Nix uses inside.
type Nix struct {
	Daemon   bool   // the host's daemon can be reached
	Store    string // folder with the layer of the sandbox's own store over the host's; empty: it has none
	Conf     []byte // the made nix.conf
	Registry []byte // the made registry of flakes
}

// Override replaces the value of a host variable for the sandbox, or drops the variable.
type Override struct {
	Value string
	Drop  bool // the variable is not set inside
	Why   string
	// Public means that Value is not secret, even if the host's value was.
	Public bool
}

// Bind makes the launch of a plan on a host. It is a pure function. It returns an error
// if two mounts have one destination, or if one cannot be made at its destination.
func Bind(p plan.Plan, h Host) (Launch, error) {
	late := lateValues(h)
	env, left, copies := variables(p, h, late)
	command, told, err := command(h)
	if err != nil {
		return Launch{}, err
	}
	l := Launch{
		Setting: h.Setting, Plan: p, Tier: p.Network.Tier, Env: env,
		StandIns: h.StandIns, Outside: h.Outside, Command: command,
	}
	warnings, notes := judge(l.Env)
	l.Left = slices.Concat(h.Left, left)
	l.Warnings, l.Notes = slices.Concat(h.Warnings, warnings), slices.Concat(h.Notes, copies, told, notes)
	parents, mounts := projectParents(h, h.Mounts), WithoutLinksAbove(h.Facts.Home, h.Mounts)
	for _, dir := range parents {
		mounts = append(mounts,
			Mount{Kind: plan.Tmpfs, Destination: dir, Mode: "0755", Size: parentSize, Why: "parent of the project"})
	}
	if l.Mounts, err = place(mounts); err != nil {
		return Launch{}, err
	}
	l.ReadOnly = append(parents, "/")
	if slices.ContainsFunc(l.Mounts, func(m Mount) bool { return m.Destination == sharedMemory }) {
		l.ReadOnly = append(l.ReadOnly, "/dev") // bwrap's own tmpfs, which has no size limit
	}
	if slices.ContainsFunc(l.Mounts, func(m Mount) bool { return m.Kind == plan.Proc && m.Destination == "/proc" }) {
		l.ReadOnly = append(l.ReadOnly, "/proc") // see [victim]
	}
	l.Closure = slices.Concat(p.Pins.Closure, h.Agent.Closure)
	slices.Sort(l.Closure)
	l.Closure = slices.Compact(l.Closure)
	return l, nil
}

// sharedMemory is the only folder in /dev that programs must be able to write to.
const sharedMemory = "/dev/shm"

// parentSize is the size limit, in bytes, of a tmpfs that contains mount points only.
const parentSize = 1 << 20

// runtimeDir returns XDG_RUNTIME_DIR inside, which is the usual path.
func runtimeDir(uid string) string { return "/run/user/" + uid }

// lateValues returns a replacer for the late values of a plan, such as "${home}".
func lateValues(h Host) *strings.Replacer {
	return values("${", map[string]string{
		"home":      h.Facts.Home,
		"project":   h.Project,
		"state":     h.State,
		"runtime":   runtimeDir(strconv.Itoa(h.Facts.UID)),
		"cwd":       h.Dir,
		"certs":     h.Etc.Certificates,
		"zone-name": h.Etc.ZoneName,
	})
}

// values returns a replacer that replaces each name between open and "}" by its value.
func values(open string, byName map[string]string) *strings.Replacer {
	var pairs []string
	for name, value := range byName {
		pairs = append(pairs, open+name+"}", value)
	}
	return strings.NewReplacer(pairs...)
}

// command returns what bwrap runs: the agent with its arguments. If the program must be
// looked up inside, env(1) starts it: it searches the PATH inside, and its exit status
// is 127 if the program was not found, 126 if it cannot be run. An argument that has a secret which stays outside gets
// its placeholder; notes say so.
func command(h Host) (words, notes []string, err error) {
	words = slices.Concat(h.Agent.Words, h.Request)
	for i, word := range words {
		without, held := withoutSecret(word, h.Kept)
		for _, secret := range held {
			if secret.Placeholder == "" {
				return nil, nil, diag.Errorf("start the agent", "leave it out: nothing uses it inside",
					"an argument holds the secret of %s, which stays outside", secret.Name)
			}
			notes = append(notes, "an argument holds the same secret as "+secret.Name+
				", and enters with its placeholder")
		}
		words[i] = without
	}
	if h.Agent.LookUp {
		words = slices.Concat([]string{h.Shim, "--"}, words)
	}
	if h.Devshell != nil {
		words = slices.Concat(h.Devshell.Before, words)
	}
	return words, notes, nil
}
