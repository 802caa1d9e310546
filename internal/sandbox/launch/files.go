package launch

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/network/link"
	"claudebox/internal/plan"
	"claudebox/internal/sandbox/ask"
)

// madeFiles returns the contents of the files that claudebox makes at launch.
func madeFiles(p plan.Plan, h Host) map[plan.MadeFile][]byte {
	return map[plan.MadeFile][]byte{
		plan.MadePasswd:    passwd(p, h),
		plan.MadeGroup:     group(h),
		plan.MadeNsswitch:  []byte(nsswitch),
		plan.MadeServices:  []byte(services),
		plan.MadeProtocols: []byte(protocols),
		plan.MadeOSRelease: []byte(osRelease),
		plan.MadeMachineID: []byte(machineID),
		plan.MadeHosts:     hosts(p, h),
		plan.MadeResolv:    resolvConfInside(p, h),
		plan.MadeZone:      h.Etc.Zone,
		plan.MadeNixConf:   h.Nix.Conf,
		plan.MadeRegistry:  h.Nix.Registry,
		plan.MadeSandboxMD: sandboxMD(p, h),
		plan.MadeGitconfig: h.Gitconfig,
	}
}

// nobody is the id that files of unmapped users have inside a user namespace.
const nobody = 65534

// passwd returns /etc/passwd for inside, with root, the user and "nobody" only.
func passwd(p plan.Plan, h Host) []byte {
	shell, user := plan.ToolPath(p, "bash"), ""
	if h.Facts.UID != 0 && h.Facts.UID != nobody {
		user = fmt.Sprintf("%s:x:%d:%d::%s:%s\n", h.Facts.User, h.Facts.UID, h.Facts.GID, h.Facts.Home, shell)
	}
	return fmt.Appendf(nil, "root:x:0:0:root:/root:%s\n%snobody:x:%d:%[3]d:nobody:/:/bin/false\n", shell, user, nobody)
}

// group returns /etc/group for inside, with the groups of the users in passwd only.
func group(h Host) []byte {
	user := ""
	if h.Facts.GID != 0 && h.Facts.GID != nobody {
		user = fmt.Sprintf("%s:x:%d:\n", h.Facts.Group, h.Facts.GID)
	}
	return fmt.Appendf(nil, "root:x:0:\n%snogroup:x:%d:\n", user, nobody)
}

// nsswitch is /etc/nsswitch.conf for inside. With it libc does not ask name service
// daemons: their sockets are not inside, and if they were they would resolve names even
// in tier none.
const nsswitch = `passwd: files
group: files
shadow: files
hosts: files dns
networks: files
services: files
protocols: files
`

// hosts returns /etc/hosts for inside, with the sandbox's own name. In tier full, which
// has the host's network, the host's file is appended.
func hosts(p plan.Plan, h Host) []byte {
	own := []byte("127.0.0.1 localhost\n::1 localhost\n127.0.0.1 " + Hostname + "\n")
	if p.Network.Tier != "full" {
		return own
	}
	return append(own, h.Etc.Hosts...)
}

// resolvConfInside returns /etc/resolv.conf for inside. In the tiers with a network of
// claudebox's own it names the network helper, which passes queries on to the host's
// resolver; otherwise it is the host's file.
func resolvConfInside(p plan.Plan, h Host) []byte {
	switch p.Network.Tier {
	case InternetTier, ListedTier:
		return []byte("nameserver " + link.Server4.String() + "\n")
	}
	return h.Etc.Resolv
}

// sandboxMD returns the text that explains the sandbox to the agent. It begins
// with the host's managed CLAUDE.md, if there is one.
func sandboxMD(p plan.Plan, h Host) []byte {
	var b bytes.Buffer
	if len(h.Policy) > 0 {
		b.Write(bytes.TrimRight(h.Policy, "\n"))
		b.WriteString("\n\n")
	}
	_, _ = values("{", map[string]string{
		"profile":  p.Profile,
		"project":  h.Project,
		"home":     h.Facts.Home,
		"tier":     p.Network.Tier,
		"network":  networkText(p.Network),
		"nix":      nixWords(h),
		"readonly": readOnlyWords(h),
		"git":      accessWords(p.Git),
		"left":     leftWords(h.Left),
		"why":      whyWords(h),
	}).WriteString(&b, sandboxText)
	return b.Bytes()
}

// nixWords describes for the agent what Nix can do inside.
func nixWords(h Host) string {
	const missing = "Missing a program? Run it once with `, PROGRAM ARGS`, or `nix shell nixpkgs#NAME -c " +
		"PROGRAM ARGS`.\n"
	switch {
	case h.Nix.Store != "":
		return missing + "Nix builds into a store of this sandbox, over the host's: what you build or fetch stays " +
			"here, and a\n" +
			"`result` link leads nowhere outside. `nixpkgs` is pinned; `nix profile` is of no use here, nor is `nix store gc`:\n" +
			"the user makes room with `claudebox instance gc`."
	case h.Nix.Daemon:
		return missing + "`nixpkgs` is pinned; nothing needs to be installed, and nothing you fetch outlives its use."
	}
	return "Nix can evaluate here, but neither build nor fetch: only the programs on PATH are there. " +
		"Ask the user to add a package to the profile."
}

// readOnlyWords describes for the agent which files of the project it cannot write or
// read, and what to do instead.
func readOnlyWords(h Host) string {
	var paths, covered []string
	git, held := "", ""
	for _, m := range h.Mounts {
		switch {
		case m.Why == WhyOwnGit && h.Branch != "":
			git += strings.ReplaceAll(branchWords, "{branch}", h.Branch)
		case m.Why == WhyOwnGit:
			git = gitWords
		case m.Layer != "":
			git += "\n- `" + strings.TrimPrefix(m.Destination, h.Project+"/") + "` is mounted: empty it rather than remove " +
				"it (`rm -rf` and `mv` of the folder fail)."
		case m.Why == WhyHeld:
			held = heldWords
		}
		rel, below := strings.CutPrefix(m.Destination, h.Project+"/")
		if !below || m.Kind != plan.ROBind && m.Kind != plan.ROData {
			continue
		}
		if m.Hides() {
			covered = append(covered, "`"+rel+"`")
			continue
		}
		paths = append(paths, "`"+rel+"`")
	}
	words := "No file of the project is read-only."
	if len(paths) > 0 {
		words = "Read-only in the project, because the user said so or the host executes them: " +
			strings.Join(paths, ", ") + "."
	}
	if len(covered) > 0 {
		words += "\n- Empty here, because the user said so or they look secret: " + strings.Join(covered, ", ") +
			". Their content stays outside: ask the user for what you need of it."
	}
	return words + git + held
}

// WhyTracked is the Why of a mount of a repository that is read-only, as git has its files.
const WhyTracked = "a repository among the files that git has"

// WhyOwnGit is the Why of a mount that has a git folder of the agent's own in the place of the user's.
const WhyOwnGit = "the agent's own git folder"

// WhyObjects is the Why of a mount of a repository's objects.
const WhyObjects = "git: your commits and files, as git stores them"

// WhyTalk is the Why of a mount of the conversations on a branch.
const WhyTalk = "the conversations on this branch"

// WhyLayer is the Why of a mount of an ignored folder below a layer of a branch's own.
const WhyLayer = "ignored; what is written stays with the branch"

// WhyHeld is the Why of a mount with what tools of the host would obey unasked, until the session ends.
const WhyHeld = "what your tools would obey unasked lies here until the session ends"

const heldWords = "\n- A new `.git`, `.vscode`, `.idea`, `.tool-versions`, `mise.toml`, `.envrc.local`, " +
	"`.claude/settings.json` or the like is a link that leads\n  to /run/claudebox/held while the session runs, as the user's tools " +
	"would obey it. Use it as usual, but do not\n  commit the link: the user finds it in its place afterwards."

// WhyHidden and WhyAsked are the Why of a mount that hides a file or folder of the project, rather than protecting it
// from changes: claudebox found it, or the profile names it. By [OtherName] is said that it has a name elsewhere.
const (
	WhyHidden = "it looks secret"
	WhyAsked  = "the profile's `hide` names it"
	OtherName = ", by another name"
)

// Hides reports whether a mount hides a file or folder of the project.
func (m Mount) Hides() bool {
	why := strings.TrimSuffix(m.Why, OtherName)
	return why == WhyHidden || why == WhyAsked
}

const gitWords = "\n- The repository's `.git` is your own. Commits, branches, tags, the index and stashes are handed " +
	"to the user's\n  repository within a moment, and the user's to you. Settings and hooks that you make stay here. " +
	"If both " +
	"sides moved a branch, the user's\n  commits are on `user/NAME` here; rebase onto them." +
	"\n  Make worktrees in `.claude/worktrees/NAME`. One beside the project (`git worktree add ../x`) fails, or is lost " +
	"\n  with the session: there the user has to make it, outside, and write `worktrees: [../x]` into the profile."

const branchWords = "\n- This is a checkout of your own, on branch `{branch}`; the user works elsewhere. What you " +
	"commit is in the user's\n  repository within a moment, on that branch; what you leave uncommitted is committed " +
	"at the end.\n  The user's branches are up to date here. Their commits to `{branch}` are `user/{branch}`. What you commit in a\n" +
	"  submodule stays here: push it."

// accessWords describes for the agent which hosts git and ssh can log in to.
func accessWords(g plan.Git) string {
	var hosts []string
	for _, h := range g.Hosts {
		hosts = append(hosts, h.Host)
	}
	words := "git has no credential: it can fetch what is public."
	if len(hosts) > 0 {
		words = "git can log in over HTTPS to " + strings.Join(hosts, ", ") + " and nowhere else."
	}
	if g.Sign != "" {
		words += " It can sign (`git commit -S`)."
	} else {
		words += " Commits are not signed."
	}
	if len(g.SSH) > 0 {
		words += " ssh can log in to " + strings.Join(g.SSH, ", ") + "."
	}
	if g.SSHToHTTPS {
		words += " SSH remotes are reached over HTTPS."
	}
	return words
}

// whyWords tells the agent whom it can ask, where there is somebody.
func whyWords(h Host) string {
	if !h.Has(ask.Program) {
		return ""
	}
	return "- A host is refused, a path hidden or read-only, a program missing? `" + ask.Name + " HOST|PATH|PROGRAM` says\n" +
		"  why, and what the user can run outside. Then stop trying, and tell the user that command.\n"
}

// leftWords tells the agent what of the user's set-up it does not have, in a line.
func leftWords(left []diag.Left) string {
	left = slices.DeleteFunc(slices.Clone(left), func(l diag.Left) bool { return l.Quiet })
	if len(left) == 0 {
		return ""
	}
	return "- Of the user's own set-up these are not here: " + diag.Kinds(left) + "; `claudebox check`, outside, says why.\n"
}

const sandboxText = `# You are in a sandbox (claudebox)

This session runs inside a bubblewrap sandbox with profile "{profile}". You have full permissions inside;
nothing outside is reachable. Do not try to leave it or to find credentials.

- Project: {project}, read-write. Everything else is read-only, temporary, or absent.
- {home} and /tmp are temporary and gone when the session ends, except ~/.claude and package caches.
- Network: {tier}: {network}.
- {nix}
- {readonly}
- {git}
{left}- There is no sudo, docker, man, ssh key or GPG key.
{why}- A path that the user names but that is not here was not mounted: ask for
  ` + "`claudebox --mount-ro PATH`" + `, or for a copy in the project. Images too.
- Browsers need ` + "`--no-sandbox`" + `: nested user namespaces are off.
`
