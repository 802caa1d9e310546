package profile

import (
	_ "embed"

	"claudebox/internal/profile/shape"
)

// Schema returns the shape of a profile. The decoder, the JSON Schema and the
// manual all use this one table. Callers must not change it.
func Schema() *shape.Shape { return schema }

//go:embed schema.json
var jsonSchema []byte

// JSONSchema returns the JSON Schema (draft 2020-12) of profiles, for editors; the
// options of the Nix modules are generated from it. It accepts every profile that
// [Load] accepts, and more: only Load checks several keys against each other. It is
// generated from the table by `go test ./internal/profile -update`.
func JSONSchema() []byte { return jsonSchema }

var schema = record("What a coding agent may have inside a claudebox sandbox.",
	key("name", text(&profileName,
		"The name of the profile, as errors and the question show it. The name of the file when unsaid.")),
	key("description", text(&anyLine,
		"What the profile is for, in one line; `claudebox profile list` shows it.")),
	key("extends", orOne(list(text(&profileRef, ""),
		"Profiles that this one builds on, by name or file. Later ones win, this one last; "+
			"lists append, unless tagged !replace."))),
	key("agent", agentShape),
	key("packages", list(text(&packageRef, ""),
		"Packages on PATH inside, as attribute paths in the pinned nixpkgs, in the order of PATH "+
			"and before the built-in ones. Outputs are asked for by `openssl^dev,out`.")),
	key("nixpkgs", withDefault("pinned", text(&nixpkgsRef,
		"Where packages are looked up: `pinned` is the nixpkgs that claudebox was built with; "+
			"else a store path or a flake reference with a revision."))),
	key("network", networkShape),
	key("env", table(&envName, &shape.Shape{Kind: shape.Scalar},
		"Variables with a fixed value. No place for secrets: use extra_env_passthrough.")),
	key("extra_env_passthrough", list(text(&envName, ""),
		"Variables of your environment that may pass. The agent can read them.")),
	key("secrets", list(secretShape,
		"Secrets that the agent uses and never holds: a placeholder is inside, swapped on the way to the "+
			"hosts that are named.")),
	key("mounts", list(mountShape,
		"Files and folders of the host that the agent may see, besides the project.")),
	key("state", word("Where the agent's home is kept: one for each project, one for all, none, "+
		"or your own ~/.claude as far as it is safe.", "project", "shared", "ephemeral", "host")),
	key("nix", record("How much of Nix the sandbox may use.",
		key("daemon", word("What Nix uses inside: a store of its own over the host's, "+
			"which stays as it is; the host's daemon (in the tier full only, and only when the daemon does not trust "+
			"you), so that the agent builds into the host's store; or nothing.", "own", "host", "off")),
		key("store", word("Which store paths are visible: all, or only those that the plan needs.",
			"full", "closure")),
	)),
	key("devshell", devshellShape),
	key("git", record("What git may do inside.",
		key("hosts", table(&gitHost, text(&envName, ""),
			"Hosts that git may log in to over HTTPS, each with the variable that holds the token.")),
		key("ssh_to_https", flag("Use HTTPS for remotes that are written for SSH; there are no SSH keys inside.")),
		key("config", word("Git folders never enter, so their settings and hooks are safe with either. writable: "+
			"a session also starts where .git is a link, which nothing keeps the agent from leading elsewhere.",
			"readonly", "writable")),
		key("sign", word("ssh: git signs with the key of your user.signingkey, which stays outside: "+
			"an agent inside signs for git alone.", "off", "ssh")),
	)),
	key("ssh", record("What ssh may do inside, with keys that stay outside.",
		key("hosts", list(text(&gitHost, ""),
			"Hosts that ssh may log in to with the keys of your agent; exactly these, "+
				"by the host keys of your known_hosts.")),
	)),
	key("hide", list(text(&projectGlob, ""),
		"Files and folders of the project that the agent must not read, tracked or not, besides the built-in list "+
			"(.env, *.pem, …). A pattern with a slash begins at the project, one without matches names at any "+
			"depth; a slash at the end is for folders. Inside they are empty, so a commit of all changes there "+
			"would empty them; what git has, the agent can read in git.")),
	key("show", list(text(&projectGlob, ""),
		"Files that the built-in list or hide would cover, and that the agent may read. Patterns are as in hide; of "+
			"a folder that hide names, no single file is let in.")),
	key("protect", list(text(&projectGlob, ""),
		"Files and folders of the project that the agent must not change, tracked or not, besides the built-in list "+
			"of what the host executes. Patterns are as in hide. `git switch` inside may stop half-way at such a file.")),
	key("protect_mode", word("Whether files that the host executes are read-only also when git tracks them; "+
		"strict makes `git switch` fail where they differ.", "default", "strict")),
	key("cache", word("Whether ~/.cache, ~/.npm, ~/.cargo and the like are kept for the project between sessions.",
		"project", "ephemeral")),
	key("ports", record("TCP ports carried between host and sandbox, on loopback only: 127.0.0.1, and [::1] of the "+
		"host.",
		key("in", list(number(1, maxPort, ""), "Ports that the host may reach inside, for a development server.")),
		key("out", list(number(1, maxPort, ""), "Ports of services on the host that the sandbox may reach.")),
	)),
	key("limits", record("What everything inside may use together, held by a scope of your systemd. "+
		"Where there is none, tasks alone holds, and the question says so.",
		key("memory", text(&memorySize, "Memory, with its unit: K, M, G or T, each 1024 of the one before.")),
		key("tasks", number(minTasks, maxTasks, "Processes and threads; 16384 when unsaid.")),
		key("cpu", text(&cpuShare, "Time of processors, in percent of one: 400% is four.")),
	)),
	key("mcp", record("MCP servers of the host.",
		key("import", list(text(&serverName, ""),
			"Servers of your own user scope that come in, by name. Their settings may hold secrets.")),
	)),
	key("compat", word("Whether prebuilt programs (wheels, npm binaries) find a loader and /bin/bash.",
		"nix-ld", "off")),
	key("toolbox", word("The tools that are there without being listed: full adds make, patch, python3, ps, clear, "+
		"file, nano, tree, xz, bzip2, zstd, zip and unzip to those of base (bash, coreutils, git, curl, jq, ripgrep, "+
		"fd, nix, …).",
		"full", "base")),
	key("project", word("Which folder is the project: the root of the repository that claudebox is called in, or that "+
		"folder alone.", "git-root", "cwd")),
	key("workspace", word("Where the agent works: in the project, or in a checkout of its own on a branch, as with "+
		"--branch. The branch is called agent/ and the one you are on; --branch names another, and with --no-branch "+
		"the agent works in the project.", "project", WorkspaceBranch)),
	key("worktrees", list(text(&siblingGlob, ""),
		"Folders beside the project that are mounted read-write where they are there, for git worktrees.")),
	key("confirm", word("When you are asked before a launch; changed asks only when more enters than you "+
		"approved. never counts in claudebox's own folders only: a file elsewhere an agent could have written.",
		"changed", "always", "never")),
)

var agentShape = whole(short("name", record(
	"The agent: a name, or a mapping. A later profile replaces it as a whole.",
	key("name", withDefault("claude", text(&programName,
		"The program, looked up in the manifest and on PATH; claude-acp is Claude Code for editors, by the program "+
			"claude-agent-acp. The first word of command when that is said."))),
	key("command", filled(list(text(&commandWord, ""),
		"The program and the words it always gets: [codex, --yolo]."))),
	key("home", table(&homeFolder, word("", "persist", "ephemeral"),
		"Folders of the agent's home, and whether they are kept between sessions.")),
	key("env", list(text(&envName, ""), "Variables of your environment that the agent needs.")),
)))

var networkShape = short("tier", record(
	"What of the network the agent reaches: a tier, or a mapping with a list of hosts.",
	key("tier", word("full: your network. inet: the internet without private networks. "+
		"allow: the listed hosts only. none: loopback only.", "full", "inet", "allow", "none")),
	key("allow", filled(list(allowedShape,
		"Tier allow: the hosts, with a port if need be; *.example.com covers all names below, not "+
			"example.com itself. Left out: those of the agent itself. "+
			"A preset stands for a list of hosts. {host: NAME, private: true} is a host of your own network."))),
	key("except", list(text(&exceptedPlace, ""),
		"Tier inet: hosts and networks of your own that the agent reaches all the same, by address, with a "+
			"port if need be. A project's own profile cannot add any.")),
	key("via", text(&proxyURL,
		"Tier allow: the proxy that the hosts are reached by, http://HOST:PORT or socks5://HOST:PORT. "+
			"It looks their names up itself.")),
))

// allowedShape is the shape of an entry of network.allow.
var allowedShape = short("host", record("",
	required("host", text(&allowedHost, "The host, with a port if need be, or a preset.")),
	key("private", flag("Whether the name may lead to an address of a private network, or of one that this "+
		"machine is connected to. This machine itself is never reached.")),
))

var devshellShape = whole(short("flake", record(
	"The project's dev shell, whose programs and variables the agent has as by `nix develop`: a reference, or a "+
		"mapping. It is evaluated inside the sandbox, never outside. A later profile replaces it as a whole.",
	key("flake", withDefault(DevshellAuto, text(&devshellRef,
		"auto: what flake.nix has as its default, if it has a flake.lock; where .envrc has a line `use flake REF` or "+
			"`use nix`, that. off: none. Else a flake reference, as `nix develop` takes it."))),
	key("file", text(&projectFile, "A Nix file of the project instead of a flake, such as shell.nix.")),
	key("hook", flagOn("Whether the shell's shellHook is run, inside, before the agent. It has ten seconds and no "+
		"terminal.")),
	key("vars", list(text(&variableGlob, ""),
		"Variables of the dev shell, with * for any part of a name, that come in although claudebox leaves them out: "+
			"those that lead the agent, git or Nix elsewhere, and those that claudebox sets itself.")),
	key("watch", list(text(&projectFile, ""),
		"Further files that the dev shell depends on, with * for any part of a name: when one changes, it is "+
			"evaluated again. Nix files that it is made of are watched anyway.")),
	key("require", flag("Whether a launch is refused when there is no dev shell.")),
	key("wait", withDefault("5m", text(&waitTime,
		"How long an evaluation may take, with what it fetches and builds."))),
)))

var secretShape = record("",
	required("env", text(&envName,
		"The variable that has the placeholder inside, and the secret in your environment.")),
	key("file", text(&hostPath, "The file of the host that has the secret, instead of the variable.")),
	required("hosts", filled(list(text(&gitHost, ""),
		"The hosts that the secret may be sent to, over HTTPS; exactly these, with a port if need be."))),
	key("as", filled(list(word("", "bearer", "basic"),
		"Where it is sent: `Authorization: Bearer` (or token), or the password of `Authorization: Basic`; "+
			"both when unsaid, and neither with a header."))),
	key("header", text(&headerName, "A header of its own that it is sent in.")),
	key("write", filled(list(text(&writePlace, ""),
		"Paths for which it can be used to write: other requests than GET, HEAD and OPTIONS. At hosts that "+
			"claudebox knows (GitHub, GitLab, OpenAI, Anthropic, Google, Hugging Face, npm, PyPI, OpenRouter) these "+
			"come to its own list, which makes no keys and lets nobody in; at others all are meant when unsaid."))),
	key("secret", word("inside: the agent holds it after all, as with extra_env_passthrough, and can send it "+
		"anywhere.", "outside", "inside")),
)

var mountShape = record("",
	required("host", text(&hostPath,
		"The path on the host: absolute, below home (~/) or below the project (./).")),
	key("sandbox", text(&hostPath, "The path inside; the same as on the host when unsaid.")),
	key("mode", word("Read-only or read-write.", "ro", "rw")),
	key("optional", flag("Leave the mount out when the host has no such path; else the launch stops.")),
	key("secret", flag("Say that the path holds secrets and shall be visible all the same.")),
)

// Constructors of shapes, to write the table with. doc is the description of the
// key that editors and the manual show.

func record(doc string, keys ...shape.Key) *shape.Shape {
	return &shape.Shape{Kind: shape.Record, Doc: doc, Keys: keys}
}

func key(name string, s *shape.Shape) shape.Key { return shape.Key{Name: name, Shape: s} }
func required(name string, s *shape.Shape) shape.Key {
	return shape.Key{Name: name, Shape: s, Required: true}
}

func text(rule *shape.Rule, doc string) *shape.Shape {
	return &shape.Shape{Kind: shape.Text, Rule: rule, Doc: doc}
}

func flag(doc string) *shape.Shape { return &shape.Shape{Kind: shape.Flag, Doc: doc} }

func flagOn(doc string) *shape.Shape { return withDefault("true", flag(doc)) }

func number(least, most int, doc string) *shape.Shape {
	return &shape.Shape{Kind: shape.Number, Min: least, Max: most, Doc: doc}
}

func word(doc string, words ...string) *shape.Shape {
	return &shape.Shape{Kind: shape.Word, Words: words, Doc: doc}
}

func list(elem *shape.Shape, doc string) *shape.Shape {
	return &shape.Shape{Kind: shape.List, Elem: elem, Doc: doc}
}

func table(keys *shape.Rule, elem *shape.Shape, doc string) *shape.Shape {
	return &shape.Shape{Kind: shape.Table, Rule: keys, Elem: elem, Doc: doc}
}

// The next functions set one field of a shape and return the shape.

func withDefault(text string, s *shape.Shape) *shape.Shape { s.Default = text; return s }
func short(key string, s *shape.Shape) *shape.Shape        { s.ScalarKey = key; return s }
func orOne(s *shape.Shape) *shape.Shape                    { s.Single = true; return s }
func filled(s *shape.Shape) *shape.Shape                   { s.Filled = true; return s }
func whole(s *shape.Shape) *shape.Shape                    { s.Whole = true; return s }
