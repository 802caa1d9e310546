package profile

import "claudebox/internal/profile/shape"

// Schema is the shape of a profile: the one table behind the decoder, the
// JSON Schema and the manual. It must not be changed.
func Schema() *shape.Shape { return &schema }

var schema = shape.Shape{
	Kind: shape.Record,
	Doc:  "What a coding agent may have inside a claudebox sandbox.",
	Keys: []shape.Key{
		{Name: "name", Shape: &shape.Shape{
			Kind: shape.Text, Rule: &profileName,
			Doc: "The name of the profile, as errors and the audit show it. The name of the file when unsaid.",
		}},
		{Name: "description", Shape: &shape.Shape{
			Kind: shape.Text, Rule: &anyLine,
			Doc: "What the profile is for, in one line; `claudebox profile list` shows it.",
		}},
		{Name: "extends", Shape: &shape.Shape{
			Kind: shape.List, Single: true,
			Elem: &shape.Shape{Kind: shape.Text, Rule: &profileRef},
			Doc: "Profiles that this one builds on, by name or file. Later ones win, this one last; " +
				"lists append, unless tagged !replace.",
		}},
		{Name: "agent", Shape: &agentShape},
		{Name: "packages", Shape: &shape.Shape{
			Kind: shape.List, Elem: &shape.Shape{Kind: shape.Text, Rule: &packageRef},
			Doc: "Packages on PATH inside, as attribute paths in the pinned nixpkgs, in the order of PATH " +
				"and before the built-in ones. Outputs are asked for by `openssl^dev,out`.",
		}},
		{Name: "nixpkgs", Shape: &shape.Shape{
			Kind: shape.Text, Rule: &nixpkgsRef, Default: "pinned",
			Doc: "Where packages are looked up: `pinned` is the nixpkgs that claudebox was built with; " +
				"else a store path or a flake reference with a revision.",
		}},
		{Name: "network", Shape: &networkShape},
		{Name: "env", Shape: &shape.Shape{
			Kind: shape.Table, Rule: &envName, Elem: &shape.Shape{Kind: shape.Scalar},
			Doc: "Variables with a fixed value. No place for secrets: use extra_env_passthrough.",
		}},
		{Name: "extra_env_passthrough", Shape: &shape.Shape{
			Kind: shape.List, Elem: &shape.Shape{Kind: shape.Text, Rule: &envName},
			Doc: "Variables of your environment that may pass. The agent can read them.",
		}},
		{Name: "secrets", Shape: &shape.Shape{
			Kind: shape.List, Elem: &secretShape,
			Doc: "Secrets that the agent uses and never holds: a placeholder is inside, swapped on the way to the " +
				"hosts that are named.",
		}},
		{Name: "mounts", Shape: &shape.Shape{
			Kind: shape.List, Elem: &mountShape,
			Doc: "Files and folders of the host that the agent may see, besides the project.",
		}},
		{Name: "state", Shape: &shape.Shape{
			Kind: shape.Word, Words: []string{"project", "shared", "ephemeral", "host"},
			Doc: "Where the agent's home is kept: one for each project, one for all, none, " +
				"or your own ~/.claude as far as it is safe.",
		}},
		{Name: "nix", Shape: &nixShape},
		{Name: "git", Shape: &gitShape},
		{Name: "ssh", Shape: &sshShape},
		{Name: "hide", Shape: &shape.Shape{
			Kind: shape.List, Elem: &globShape,
			Doc: "Files of the project that the agent must not read, besides the built-in list (.env, *.pem, …).",
		}},
		{Name: "show", Shape: &shape.Shape{
			Kind: shape.List, Elem: &globShape,
			Doc: "Files that the built-in list or hide would cover, and that the agent may read.",
		}},
		{Name: "protect", Shape: &shape.Shape{
			Kind: shape.List, Elem: &globShape,
			Doc: "Files of the project that the agent must not change, besides the built-in list of what the " +
				"host executes.",
		}},
		{Name: "protect_mode", Shape: &shape.Shape{
			Kind: shape.Word, Words: []string{"default", "strict"},
			Doc: "Whether files that the host executes are read-only also when git tracks them; " +
				"strict makes `git switch` fail where they differ.",
		}},
		{Name: "cache", Shape: &shape.Shape{
			Kind: shape.Word, Words: []string{"project", "ephemeral"},
			Doc: "Whether ~/.cache, ~/.npm, ~/.cargo and the like are kept for the project between sessions.",
		}},
		{Name: "ports", Shape: &portsShape},
		{Name: "limits", Shape: &limitsShape},
		{Name: "mcp", Shape: &shape.Shape{
			Kind: shape.Record,
			Doc:  "MCP servers of the host.",
			Keys: []shape.Key{{Name: "import", Shape: &shape.Shape{
				Kind: shape.List, Elem: &shape.Shape{Kind: shape.Text, Rule: &serverName},
				Doc: "Servers of your own user scope that come in, by name. Their settings may hold secrets.",
			}}},
		}},
		{Name: "compat", Shape: &shape.Shape{
			Kind: shape.Word, Words: []string{"nix-ld", "off"},
			Doc: "Whether prebuilt programs (wheels, npm binaries) find a loader and /bin/bash.",
		}},
		{Name: "toolbox", Shape: &shape.Shape{
			Kind: shape.Word, Words: []string{"full", "base"},
			Doc: "The tools that are there without being listed: full adds make, patch, python3, ps, file, tree, xz, " +
				"bzip2, zstd, zip and " +
				"unzip to those of base (bash, coreutils, git, curl, jq, ripgrep, fd, nix, …).",
		}},
		{Name: "project", Shape: &shape.Shape{
			Kind: shape.Word, Words: []string{"git-root", "cwd"},
			Doc: "Which folder is the project: the root of the repository that claudebox is called in, or that " +
				"folder alone.",
		}},
		{Name: "worktrees", Shape: &shape.Shape{
			Kind: shape.List, Elem: &shape.Shape{Kind: shape.Text, Rule: &siblingGlob},
			Doc: "Folders beside the project that are mounted read-write where they are there, for git worktrees.",
		}},
		{Name: "confirm", Shape: &shape.Shape{
			Kind: shape.Word, Words: []string{"changed", "always", "never"},
			Doc: "When the audit asks before it launches; changed asks only when it differs from the last one " +
				"you approved.",
		}},
	},
}

var agentShape = shape.Shape{
	Kind: shape.Record, Short: "name", Whole: true,
	Doc: "The agent: a name, or a mapping. A later profile replaces it as a whole.",
	Keys: []shape.Key{
		{Name: "name", Shape: &shape.Shape{
			Kind: shape.Text, Rule: &programName, Default: "claude",
			Doc: "The program, looked up in the manifest and on PATH. The first word of command when that is said.",
		}},
		{Name: "command", Shape: &shape.Shape{
			Kind: shape.List, Filled: true, Elem: &shape.Shape{Kind: shape.Text, Rule: &commandWord},
			Doc: "The program and the words it always gets: [codex, --yolo].",
		}},
		{Name: "home", Shape: &shape.Shape{
			Kind: shape.Table, Rule: &homeFolder,
			Elem: &shape.Shape{Kind: shape.Word, Words: []string{"persist", "ephemeral"}},
			Doc:  "Folders of the agent's home, and whether they are kept between sessions.",
		}},
		{Name: "env", Shape: &shape.Shape{
			Kind: shape.List, Elem: &shape.Shape{Kind: shape.Text, Rule: &envName},
			Doc: "Variables of your environment that the agent needs.",
		}},
	},
}

var networkShape = shape.Shape{
	Kind: shape.Record, Short: "tier",
	Doc: "What of the network the agent reaches: a tier, or a mapping with a list of hosts.",
	Keys: []shape.Key{
		{Name: "tier", Shape: &shape.Shape{
			Kind: shape.Word, Words: []string{"full", "inet", "allow", "none"},
			Doc: "full: your network. inet: the internet without private networks. " +
				"allow: the listed hosts only. none: loopback only.",
		}},
		{Name: "allow", Shape: &shape.Shape{
			Kind: shape.List, Filled: true, Elem: &allowedShape,
			Doc: "Tier allow: the hosts, with a port if need be; *.example.com covers all names below, not " +
				"example.com itself. " +
				"A preset stands for a list of hosts. {host: NAME, private: true} is a host of your own network.",
		}},
		{Name: "except", Shape: &shape.Shape{
			Kind: shape.List, Elem: &shape.Shape{Kind: shape.Text, Rule: &exceptedPlace},
			Doc: "Tier inet: hosts and networks of your own that the agent reaches all the same, by address, with a " +
				"port if need be. " +
				"A project's own profile cannot add any.",
		}},
		{Name: "via", Shape: &shape.Shape{
			Kind: shape.Text, Rule: &proxyURL,
			Doc: "Tier allow: the proxy that the hosts are reached by, http://HOST:PORT or socks5://HOST:PORT. " +
				"It looks their names up itself.",
		}},
	},
}

// An entry of the hosts of tier allow.
var allowedShape = shape.Shape{
	Kind: shape.Record, Short: "host",
	Keys: []shape.Key{
		{Name: "host", Required: true, Shape: &shape.Shape{
			Kind: shape.Text, Rule: &allowedHost,
			Doc: "The host, with a port if need be, or a preset.",
		}},
		{Name: "private", Shape: &shape.Shape{
			Kind: shape.Flag,
			Doc: "Whether the name may lead to an address of a private network, or of one that this machine is " +
				"connected to. " +
				"This machine itself is never reached.",
		}},
	},
}

var secretShape = shape.Shape{
	Kind: shape.Record,
	Keys: []shape.Key{
		{Name: "env", Required: true, Shape: &shape.Shape{
			Kind: shape.Text, Rule: &envName,
			Doc: "The variable that has the placeholder inside, and the secret in your environment.",
		}},
		{Name: "file", Shape: &shape.Shape{
			Kind: shape.Text, Rule: &hostPath,
			Doc: "The file of the host that has the secret, instead of the variable.",
		}},
		{Name: "hosts", Required: true, Shape: &shape.Shape{
			Kind: shape.List, Filled: true, Elem: &shape.Shape{Kind: shape.Text, Rule: &gitHost},
			Doc: "The hosts that the secret may be sent to, over HTTPS; exactly these, with a port if need be.",
		}},
		{Name: "as", Shape: &shape.Shape{
			Kind: shape.List, Filled: true, Elem: &shape.Shape{Kind: shape.Word, Words: []string{"bearer", "basic"}},
			Doc: "Where it is sent: `Authorization: Bearer` (or token), or the password of `Authorization: Basic`; " +
				"both when unsaid, " +
				"and neither with a header.",
		}},
		{Name: "header", Shape: &shape.Shape{
			Kind: shape.Text, Rule: &headerName,
			Doc: "A header of its own that it is sent in.",
		}},
		{Name: "secret", Shape: &shape.Shape{
			Kind: shape.Word, Words: []string{"outside", "inside"},
			Doc: "inside: the agent holds it after all, as with extra_env_passthrough, and can send it anywhere.",
		}},
	},
}

var mountShape = shape.Shape{
	Kind: shape.Record,
	Keys: []shape.Key{
		{Name: "host", Required: true, Shape: &shape.Shape{
			Kind: shape.Text, Rule: &hostPath,
			Doc: "The path on the host: absolute, below home (~/) or below the project (./).",
		}},
		{Name: "sandbox", Shape: &shape.Shape{
			Kind: shape.Text, Rule: &hostPath,
			Doc: "The path inside; the same as on the host when unsaid.",
		}},
		{Name: "mode", Shape: &shape.Shape{
			Kind: shape.Word, Words: []string{"ro", "rw"},
			Doc: "Read-only or read-write.",
		}},
		{Name: "optional", Shape: &shape.Shape{
			Kind: shape.Flag,
			Doc:  "Leave the mount out when the host has no such path; else the launch stops.",
		}},
		{Name: "secret", Shape: &shape.Shape{
			Kind: shape.Flag,
			Doc:  "Say that the path holds secrets and shall be visible all the same.",
		}},
	},
}

var nixShape = shape.Shape{
	Kind: shape.Record,
	Doc:  "How much of Nix the sandbox may use.",
	Keys: []shape.Key{
		{Name: "daemon", Shape: &shape.Shape{
			Kind: shape.Word, Words: []string{"own", "host", "off"},
			Doc: "What Nix uses inside: a store of its own over the host's, which stays as it is; the host's daemon " +
				"(in the tier full only, and only when the daemon does not trust you), so that the agent " +
				"builds into the " +
				"host's store; or nothing.",
			Former: []shape.Former{
				{Name: "gate", Remedy: "write own: Nix inside has a store of its own now, in every tier"},
				{Name: "raw", Remedy: "write host, or own for a store that is the sandbox's"},
			},
		}},
		{Name: "store", Shape: &shape.Shape{
			Kind: shape.Word, Words: []string{"full", "closure"},
			Doc: "Which store paths are visible: all, or only those that the plan needs.",
		}},
	},
	Former: []shape.Former{
		{Name: "builds", Remedy: "leave it out: builds run in the sandbox, as everything that the agent runs"},
		{Name: "fetch", Remedy: "leave it out: what builds fetch passes the network tier, as everything that the " +
			"agent fetches"},
	},
}

var gitShape = shape.Shape{
	Kind: shape.Record,
	Doc:  "What git may do inside.",
	Keys: []shape.Key{
		{Name: "hosts", Shape: &shape.Shape{
			Kind: shape.Table, Rule: &gitHost, Elem: &shape.Shape{Kind: shape.Text, Rule: &envName},
			Doc: "Hosts that git may log in to over HTTPS, each with the variable that holds the token.",
		}},
		{Name: "ssh_to_https", Shape: &shape.Shape{
			Kind: shape.Flag,
			Doc:  "Use HTTPS for remotes that are written for SSH; there are no SSH keys inside.",
		}},
		{Name: "config", Shape: &shape.Shape{
			Kind: shape.Word, Words: []string{"readonly", "writable"},
			Doc: "Whether the agent may change .git/config and hooks, which your own git executes.",
		}},
		{Name: "sign", Shape: &shape.Shape{
			Kind: shape.Word, Words: []string{"off", "ssh"},
			Doc: "ssh: git signs with the key of your user.signingkey, which stays outside: " +
				"an agent inside signs for git alone.",
		}},
	},
}

var sshShape = shape.Shape{
	Kind: shape.Record,
	Doc:  "What ssh may do inside, with keys that stay outside.",
	Keys: []shape.Key{
		{Name: "hosts", Shape: &shape.Shape{
			Kind: shape.List, Elem: &shape.Shape{Kind: shape.Text, Rule: &gitHost},
			Doc: "Hosts that ssh may log in to with the keys of your agent; exactly these, " +
				"by the host keys of your known_hosts.",
		}},
	},
}

var portsShape = shape.Shape{
	Kind: shape.Record,
	Doc:  "TCP ports carried between host and sandbox, on 127.0.0.1 only.",
	Keys: []shape.Key{
		{Name: "in", Shape: &shape.Shape{
			Kind: shape.List, Elem: &shape.Shape{Kind: shape.Number, Min: 1, Max: maxPort},
			Doc: "Ports that the host may reach inside, for a development server.",
		}},
		{Name: "out", Shape: &shape.Shape{
			Kind: shape.List, Elem: &shape.Shape{Kind: shape.Number, Min: 1, Max: maxPort},
			Doc: "Ports of services on the host that the sandbox may reach.",
		}},
	},
}

var limitsShape = shape.Shape{
	Kind: shape.Record,
	Doc: "What everything inside may use together, held by a scope of your systemd. " +
		"Where there is none, tasks alone holds, and the audit says so.",
	Keys: []shape.Key{
		{Name: "memory", Shape: &shape.Shape{
			Kind: shape.Text, Rule: &memorySize,
			Doc: "Memory, with its unit: K, M, G or T, each 1024 of the one before.",
		}},
		{Name: "tasks", Shape: &shape.Shape{
			Kind: shape.Number, Min: minTasks, Max: maxTasks,
			Doc: "Processes and threads; 16384 when unsaid.",
		}},
		{Name: "cpu", Shape: &shape.Shape{
			Kind: shape.Text, Rule: &cpuShare,
			Doc: "Time of processors, in percent of one: 400% is four.",
		}},
	},
}

// A pattern relative to the project, as hide, show and protect list them.
var globShape = shape.Shape{Kind: shape.Text, Rule: &projectGlob}
