package profile

import (
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/profile/shape"
	"claudebox/internal/secret/leak"
)

// judge collects problems that concern several values of a merged profile. Values
// that were invalid by themselves have been reported and left out before.
type judge struct {
	problems, warnings diag.Problems
}

// validate checks the values of a merged profile against each other. Problems make
// the profile invalid; warnings do not stop a launch.
func validate(v shape.Value) (problems, warnings diag.Problems) {
	var j judge
	j.network(v)
	j.secrets(v, j.variables(v))
	j.mounts(v.Get("mounts").Items)
	j.gitHosts(v.Get("git.hosts"))
	j.agent(v.Get("agent.command"))
	j.devshell(v.Get("devshell"))
	return j.problems, j.warnings
}

func (j *judge) refuse(at shape.Place, remedy, format string, args ...any) {
	j.problems = append(j.problems, at.Problem(remedy, format, args...))
}

func (j *judge) warn(at shape.Place, remedy, format string, args ...any) {
	j.warnings = append(j.warnings, at.Problem(remedy, format, args...))
}

// tierKeys are the keys of network that are valid for one tier only, with the
// parts of the message.
var tierKeys = []struct {
	key, tier, what, where, remedy string
}{
	{"allow", TierAllow, "a list of hosts is", "tier allow", "write tier: allow, or remove the list"},
	{
		"via", TierAllow, "a proxy looks names up itself, so it is", "the listed hosts of tier allow",
		"write tier: allow with the hosts, or remove via",
	},
	{"except", TierInet, "exceptions are", "tier inet", "write tier: inet, or remove the list"},
}

// network checks the tier and the keys that depend on it. A key for another tier
// is refused, as a list of hosts would look like a restriction that is not in
// force. It is only ignored if a later document than the key's set the tier:
// then it was written for the earlier tier.
func (j *judge) network(v shape.Value) {
	network, tier := v.Get("network"), v.Get("network.tier")
	for _, k := range tierKeys {
		only := network.Get(k.key)
		if network.Broken && k.key == "allow" || !only.IsSet() || tier.Text == k.tier ||
			tier.IsSet() && tier.Doc.Rank > only.Doc.Rank {
			continue
		}
		j.refuse(only.Place, k.remedy, "%s: %s for %s, and the tier is %s", k.key, k.what, k.where,
			textAt(v, "network.tier"))
	}
	for _, item := range network.Get("allow").Items {
		host := item.Get("host")
		if item.Get("private").Text == "true" && slices.Contains(presets(), host.Text) {
			j.refuse(host.Place, "name the hosts", "allow: %s is a preset, and none of its hosts is private", host.Text)
		}
	}
	if out := v.Get("ports.out"); tier.Text == TierNone && len(out.Items) > 0 {
		j.refuse(out.Place, `write network: inet, or remove ports.out`,
			"out: ports of the host need a network, and the tier is none")
	}
	in := v.Get("ports.in").Texts()
	for _, item := range v.Get("ports.out").Items {
		if slices.Contains(in, item.Text) {
			j.refuse(item.Place, "keep one of them, or have one of the two programs take another port",
				"out: port %s leads inside too, by ports.in: what comes for it would be carried round and round",
				item.Text)
		}
	}
}

// variables checks that no constant is also a host variable, and warns of names
// with an effect and of values that look secret. Messages never show values. It
// returns the place of each name in env and extra_env_passthrough.
func (j *judge) variables(v shape.Value) (first map[string]shape.Place) {
	first = make(map[string]shape.Place)
	for _, m := range v.Get("env").Members {
		first[m.Key] = m.Place
		j.effect(m.Place, m.Key)
		if why := leak.Variable(m.Key, m.Value.Text); why != "" {
			j.warn(m.Place, "write `secrets: [{env: "+m.Key+", hosts: [HOST]}]`, and keep the value out of the file",
				"%s looks like a secret (%s), and its value stands in the profile", m.Key, why)
		}
	}
	passing := v.Get("extra_env_passthrough").Items
	for _, item := range slices.Concat(passing, v.Get("agent.env").Items) {
		if at, both := first[item.Text]; both {
			j.refuse(item.Place, "keep one of them", "%s passes from the host, and is a constant in %s", item.Text,
				origin(at))
		}
		j.effect(item.Place, item.Text)
	}
	for _, item := range passing {
		first[item.Text] = item.Place
	}
	return first
}

func (j *judge) effect(at shape.Place, variable string) {
	if what := Effect(variable); what != "" {
		j.warn(at, "", "%s %s", variable, what)
	}
}

// secrets refuses a secret whose variable is set elsewhere (first has the places),
// and a secret file in the project. It adds the secrets' variables to first.
func (j *judge) secrets(v shape.Value, first map[string]shape.Place) {
	for _, item := range v.Get("secrets").Items {
		name := item.Get("env")
		if at, again := first[name.Text]; again && name.IsSet() {
			j.refuse(name.Place, "keep one of them", "secrets: %s is said in %s too", name.Text, origin(at))
		}
		first[name.Text] = name.Place
		if file := item.Get("file"); strings.HasPrefix(file.Text, "./") {
			j.refuse(file.Place, "keep it outside of the project",
				"file: %s lies in the project, where the agent reads it", shape.Quote(file.Text))
		}
	}
}

// gitHosts refuses hosts that differ only in upper and lower case.
func (j *judge) gitHosts(v shape.Value) {
	first := make(map[string]shape.Place)
	for _, m := range v.Members {
		host := strings.ToLower(m.Key)
		if at, again := first[host]; again {
			j.refuse(m.Place, "keep one of them", "hosts: %s is named in %s too", host, origin(at))
			continue
		}
		first[host] = m.Place
	}
}

// agent refuses a program that would be looked up in the project, where any
// agent could have written it.
func (j *judge) agent(command shape.Value) {
	if len(command.Items) == 0 {
		return
	}
	word := command.Items[0]
	if strings.Contains(word.Text, "/") && !strings.HasPrefix(word.Text, "/") && !strings.HasPrefix(word.Text, "~/") {
		j.refuse(word.Place, "write the whole path, or the name alone",
			"command: %s is relative, and would lead into the project", shape.Quote(word.Text))
	}
}

// devshell refuses a flake beside a file: it is not known which is meant.
func (j *judge) devshell(v shape.Value) {
	flake, file := v.Get("flake"), v.Get("file")
	if flake.IsSet() && file.IsSet() && flake.Text != DevshellAuto && flake.Doc == file.Doc {
		j.refuse(file.Place, "keep one of them", "devshell: a flake and a file are said")
	}
}

// mounts checks each mount, and then refuses different mounts at one destination,
// also if they come from different files.
func (j *judge) mounts(items []shape.Value) {
	type placed struct {
		Mount
		at shape.Place
	}
	var mounts []placed
	for _, item := range items {
		if item.Broken {
			continue
		}
		m, host := buildMount(item), item.Get("host").Place
		if j.source(m, host) {
			at := host
			if sandbox := item.Get("sandbox"); sandbox.IsSet() {
				at = sandbox.Place
			}
			if message, remedy := DestinationFault(m.Sandbox); message != "" {
				j.refuse(at, remedy, "sandbox: %s", message)
			}
		}
		mounts = append(mounts, placed{m, item.Place})
	}
	sorted(mounts, func(m placed) string { return m.Sandbox })
	for i := 1; i < len(mounts); i++ {
		first, second := mounts[i-1], mounts[i]
		if first.Sandbox == second.Sandbox && !sameMount(first.Mount, second.Mount) {
			j.refuse(second.at, "keep one of them, or tag the list with !replace",
				"mounts: %s is mounted differently in %s", second.Sandbox, first.Origin)
		}
	}
}

// source checks the host path of a mount. It returns false if it reported a problem.
func (j *judge) source(m Mount, at shape.Place) bool {
	if message, remedy := SourceFault(m.Host); message != "" {
		j.refuse(at, remedy, "host: %s", message)
		return false
	}
	switch secret, relation := Exposes(m.Host); {
	case relation == Around:
		j.refuse(at, "mount the files and folders in it that are needed",
			"host: %s holds %s (%s)", m.Host, secret.Path, secret.What)
		return false
	case relation == Within && !m.Secret:
		j.warn(at, "add secret: true to the mount if the agent shall read it",
			"host: %s is a secret path (%s), and no launch mounts it so", m.Host, secret.What)
	}
	return true
}

// SourceFault returns why a path of the host cannot be mounted, and what to do
// instead; both are empty if it can. It looks at the path's text only. It does
// not check for secrets: [Exposes] does.
func SourceFault(host string) (message, remedy string) {
	if find(kernelPaths, host) != "" {
		remedy := "remove the mount; the sandbox has one of its own"
		if strings.HasPrefix(host, "/dev/") {
			remedy = "remove the mount; a sandbox has the usual devices, and none of this machine can be given to it"
		}
		return host + " shows the processes and devices of the host", remedy
	}
	return "", ""
}

// kernelPaths cannot be mounted: each sandbox has its own. The host's would show
// the host's processes, their environments, and its devices.
var kernelPaths = []string{"/proc", "/sys", "/dev"}

// takenPaths are made by claudebox inside: nothing can be mounted at or below them.
var takenPaths = []string{"/proc", "/sys", "/dev", "/nix", "/run/claudebox", "~/.claude", "~/.claudebox"}

// wholePaths contain files that the sandbox needs, so nothing can be mounted at
// them; paths below may be mounted.
var wholePaths = []string{"/", "~", "/etc", "/home", "/run", "/usr", "/var"}

// find returns the first of the folders that name is or lies in, or "".
func find(folders []string, name string) string {
	i := slices.IndexFunc(folders, func(folder string) bool { return pathname.Below(name, folder) })
	if i < 0 {
		return ""
	}
	return folders[i]
}

// DestinationFault returns why nothing can be mounted at a path inside, and what
// to do instead; both are empty if it can. Homes are recognised as by [Exposes].
func DestinationFault(inside string) (message, remedy string) {
	switch taken := find(takenPaths, guessTilde(inside)); {
	case taken != "":
		return inside + " is in " + taken + ", which claudebox makes inside", "choose another path inside"
	case slices.Contains(wholePaths, guessTilde(inside)):
		return inside + " holds what the sandbox needs", "mount single files or folders"
	}
	return "", ""
}
