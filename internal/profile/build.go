package profile

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"claudebox/internal/profile/shape"
)

// build makes the [Profile] of a merged document, which must be valid.
func build(v shape.Value) Profile {
	return Profile{
		Name:        textAt(v, "name"),
		Description: textAt(v, "description"),
		Agent:       buildAgent(v.Get("agent")),
		Packages: mapped(distinct(v.Get("packages").Items), func(v shape.Value) Package {
			attr, outputs, named := strings.Cut(v.Text, "^")
			p := Package{Attr: attr, Origin: origin(v.Place)}
			if named {
				p.Outputs = strings.Split(outputs, ",")
			}
			return p
		}),
		Nixpkgs: textAt(v, "nixpkgs"),
		Network: buildNetwork(v),
		Env: sorted(mapped(v.Get("env").Members, func(m shape.Member) Constant {
			return Constant{Name: m.Key, Value: m.Value.Text, Origin: origin(m.Place)}
		}), func(c Constant) string { return c.Name }),
		PassThrough: sorted(entries(v.Get("extra_env_passthrough")), entryText),
		Secrets:     sorted(mapped(v.Get("secrets").Items, buildSecret), func(s Secret) string { return s.Variable }),
		Mounts: slices.CompactFunc(sorted(mapped(v.Get("mounts").Items, buildMount),
			func(m Mount) string { return m.Sandbox }), sameMount),
		State:    textAt(v, "state"),
		Nix:      Nix{Daemon: textAt(v, "nix.daemon"), Store: textAt(v, "nix.store")},
		Devshell: buildDevshell(v),
		Git: Git{
			Hosts: sorted(mapped(v.Get("git.hosts").Members, func(m shape.Member) GitHost {
				return GitHost{Host: strings.ToLower(m.Key), Variable: m.Value.Text, Origin: origin(m.Place)}
			}), func(h GitHost) string { return h.Host }),
			SSHToHTTPS: textAt(v, "git.ssh_to_https") == "true",
			Config:     textAt(v, "git.config"),
			Sign:       textAt(v, "git.sign"),
		},
		SSHHosts:    hosts(v.Get("ssh.hosts")),
		Hide:        entries(v.Get("hide")),
		Show:        entries(v.Get("show")),
		Protect:     entries(v.Get("protect")),
		ProtectMode: textAt(v, "protect_mode"),
		Cache:       textAt(v, "cache"),
		Limits: Limits{
			Memory: amount(textAt(v, "limits.memory"), units), Tasks: decimal(textAt(v, "limits.tasks")),
			CPU: int(amount(textAt(v, "limits.cpu"), percent)),
		},
		MCP:       unique(v.Get("mcp.import").Texts()),
		Compat:    textAt(v, "compat"),
		Toolbox:   textAt(v, "toolbox"),
		Project:   textAt(v, "project"),
		Workspace: textAt(v, "workspace"),
		Worktrees: entries(v.Get("worktrees")),
		Confirm:   textAt(v, "confirm"),
	}
}

// textAt returns the text at a key ("nix.store"), or the schema's default.
func textAt(v shape.Value, path string) string {
	s := schema
	for key := range strings.SplitSeq(path, ".") {
		s, v = s.Key(key), v.Get(key)
	}
	if v.IsSet() {
		return v.Text
	}
	return s.DefaultText()
}

// origin converts a place in a document to an [Origin].
func origin(at shape.Place) Origin { return Origin{at.Doc.Name, at.Doc.File, at.Line} }

func buildAgent(v shape.Value) Agent {
	agent := Agent{Command: v.Get("command").Texts(), Env: sorted(entries(v.Get("env")), entryText)}
	claude := agentShape.Key("name").Default
	named := claude
	if len(agent.Command) > 0 && !IsAdapter(agent.Command) {
		named = path.Base(agent.Command[0])
	}
	if agent.Name = cmp.Or(v.Get("name").Text, named); agent.Name == "claude-acp" {
		agent.Name = claude
		if len(agent.Command) == 0 {
			agent.Command = []string{Adapter}
		}
	}
	for _, m := range v.Get("home").Members {
		if agent.Home == nil {
			agent.Home = make(map[string]string)
		}
		agent.Home[m.Key] = m.Value.Text
	}
	return agent
}

// buildNetwork makes the network settings. It drops an inherited list of hosts
// if a later document set a tier that does not use it.
func buildNetwork(v shape.Value) Network {
	network := Network{
		Tier: textAt(v, "network.tier"), Via: v.Get("network.via").Text,
		Except: unique(v.Get("network.except").Texts()),
		In:     numbers(v.Get("ports.in")), Out: numbers(v.Get("ports.out")),
	}
	if network.Tier == TierAllow {
		for _, item := range v.Get("network.allow").Items {
			host := strings.ToLower(item.Get("host").Text)
			network.Allow = append(network.Allow, host)
			if item.Get("private").Text == "true" {
				network.Private = append(network.Private, host)
			}
		}
		network.Allow, network.Private = unique(network.Allow), unique(network.Private)
	}
	return network.Under(network.Tier)
}

func buildDevshell(v shape.Value) Devshell {
	d := Devshell{
		Flake: textAt(v, "devshell.flake"), File: v.Get("devshell").Get("file").Text,
		NoHook: textAt(v, "devshell.hook") == "false", Vars: unique(v.Get("devshell").Get("vars").Texts()),
		Watch:   unique(v.Get("devshell").Get("watch").Texts()),
		Require: textAt(v, "devshell.require") == "true", Wait: int(amount(textAt(v, "devshell.wait"), seconds)),
	}
	switch {
	case d.Flake == DevshellOff:
		return Devshell{}
	case d.File != "":
		d.Flake = ""
	}
	slices.Sort(d.Vars)
	slices.Sort(d.Watch)
	return d
}

func buildSecret(v shape.Value) Secret {
	s := Secret{
		Variable: v.Get("env").Text, Hosts: hosts(v.Get("hosts")), As: unique(v.Get("as").Texts()),
		Header: v.Get("header").Text, Write: unique(v.Get("write").Texts()),
		Inside: v.Get("secret").Text == "inside", Origin: origin(v.Place),
	}
	if file := v.Get("file"); file.IsSet() {
		s.File = cleanPath(file.Text)
	}
	if len(s.As) == 0 && s.Header == "" {
		s.As = []string{"bearer", "basic"}
	}
	return s
}

func buildMount(v shape.Value) Mount {
	host := v.Get("host").Text
	return Mount{
		Host:     cleanPath(host),
		Sandbox:  cleanPath(cmp.Or(v.Get("sandbox").Text, host)),
		Writable: v.Get("mode").Text == "rw",
		Optional: v.Get("optional").Text == "true",
		Secret:   v.Get("secret").Text == "true",
		Origin:   origin(v.Place),
	}
}

// sameMount reports whether two mounts are equal apart from their origins.
func sameMount(a, b Mount) bool {
	a.Origin = b.Origin
	return a == b
}

// entries returns the texts of a list with their origins, without duplicates.
func entries(list shape.Value) []Entry {
	return mapped(distinct(list.Items), func(v shape.Value) Entry { return Entry{v.Text, origin(v.Place)} })
}

func entryText(e Entry) string { return e.Text }

// hosts returns the names of a list in lower case, as DNS ignores case; sorted, without duplicates.
func hosts(list shape.Value) []string {
	return slices.Compact(slices.Sorted(slices.Values(mapped(list.Texts(), strings.ToLower))))
}

// numbers returns the numbers of a list, sorted, without duplicates.
func numbers(list shape.Value) []int {
	return slices.Compact(slices.Sorted(slices.Values(mapped(list.Texts(), decimal))))
}

// decimal parses a number that the schema has checked already; "" gives 0. It panics on anything else.
func decimal(text string) int {
	number, err := strconv.Atoi(cmp.Or(text, "0"))
	if err != nil {
		panic(fmt.Sprintf("bug: %s passed for a number", text))
	}
	return number
}

// unique returns the texts without duplicates, in the order of the first ones.
func unique(texts []string) []string {
	return uniqueBy(texts, func(text string) string { return text })
}

// distinct returns the items without those whose text occurred before.
func distinct(items []shape.Value) []shape.Value {
	return uniqueBy(items, func(v shape.Value) string { return v.Text })
}

func uniqueBy[T any](list []T, key func(T) string) []T {
	seen := make(map[string]bool, len(list))
	return slices.DeleteFunc(slices.Clone(list), func(t T) bool {
		again := seen[key(t)]
		seen[key(t)] = true
		return again
	})
}

func sorted[T any](list []T, key func(T) string) []T {
	slices.SortStableFunc(list, func(a, b T) int { return cmp.Compare(key(a), key(b)) })
	return list
}

// mapped returns f of each element; nil for an empty list.
func mapped[A, B any](list []A, f func(A) B) []B {
	var made []B
	for _, a := range list {
		made = append(made, f(a))
	}
	return made
}
