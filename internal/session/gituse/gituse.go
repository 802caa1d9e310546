// Package gituse is git as the agent uses it: the sandbox's .gitconfig, made of what the user's own git would obey, and
// the keys that sign and log in, which stay outside.
package gituse

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/agent/agenthome"
	"claudebox/internal/diag"
	"claudebox/internal/host"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/linux/smallfile"
	"claudebox/internal/network/policy"
	"claudebox/internal/plan"
	"claudebox/internal/profile"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/sandbox/view"
	"claudebox/internal/secret/leak"
	"claudebox/internal/secret/sshagent"
	"claudebox/internal/session/usergit"
	"claudebox/internal/workspace/gitconfig"
	"claudebox/internal/workspace/handover"
	"claudebox/internal/workspace/project"
)

// Request is what git inside depends on.
type Request struct {
	Plan     plan.Plan
	Facts    host.Facts
	Project  project.Project
	User     Config
	Inside   *view.View
	Instance string                   // the instance's folder
	Sees     func(word string) string // says of a file of the user's that a setting names why it is not inside
	// Lend mounts a folder of the user's, read-only; fault says why not.
	Lend func(folder, why string) (lent launch.Part, fault error)
}

// Part is the sandbox's .gitconfig, and what it takes to sign and to log in.
type Part struct {
	launch.Part
	Config   []byte           // the file
	Keys     sshagent.Request // Socket is empty if none are used
	Template string           // what new repositories of the user's begin with, where no agent writes; empty: nothing
	access   usergit.Access   // what Config says of them
}

// notSet says which keys are not set, and how to set them.
func notSet(keys []string) string {
	of := map[string]string{"user.name": "NAME", "user.email": "ADDRESS"}
	var commands []string
	for _, key := range keys {
		commands = append(commands, "git config --global "+key+" "+of[key])
	}
	are := " is not set; outside: `"
	if len(keys) > 1 {
		are = " are not set; outside: `"
	}
	return strings.Join(keys, " and ") + are + strings.Join(commands, "; ") + "`"
}

// Of makes the sandbox's .gitconfig from the identity that git would pick
// for this folder. No git is run: it would obey the project's configuration.
func Of(r Request) (made Part, err error) {
	identity, err := identityOf(r.Facts, r.User, r.Project)
	if err != nil {
		return made, &diag.Error{Op: "read the git identity", Err: err, Remedy: diag.Remedy(err)}
	}
	repository, own := repositorySettings(r.Project.Places)
	made.noteIdentity(own, identity)
	made.access = usergit.Access{
		Hosts: r.Plan.Git.Hosts, SSHToHTTPS: r.Plan.Git.SSHToHTTPS, NoSSH: r.Inside.Find("ssh") == "",
	}
	made.noteHosts(r)
	identity.SignAs(own)
	made.noteSigning(r, identity)
	named, settings := namedOf(r, identity)
	made.Add(named)
	made.Template = lentAt(named, r.Facts.Absolute(identity.Value("init.templatedir")))
	made.noteRepository(r, repository)
	hooks := gitconfig.Last(slices.Concat(identity.Settings, repository), "core.hookspath")
	if hooks == "" {
		made.noteHooks(r)
	}
	made.noteHookPrograms(r, hooks)
	made.noteRemotes(r, own)
	made.noteLogins(r, identity)
	carried := usergit.Carry(identity, repository,
		agenthome.Request{Runs: r.Inside.Program, Sees: r.Sees}.Missing)
	made.LeaveAll("git setting", "set in your git configuration and not inside: ALL", carried.Left)
	for _, refused := range carried.Refuses {
		text := "git refuses what needs " + refused.Why
		if asksFor(r, identity, refused.Attribute) {
			made.LeaveRed("git filter", text)
		} else {
			made.Leave("git filter", text)
		}
	}
	carried.Entries = append(carried.Entries, settings...)
	made.letKeys(r, identity)
	if r.Project.Repo.Worktree != "" { // between a mount and the repository around it lies another file system
		made.Set("GIT_DISCOVERY_ACROSS_FILESYSTEM", "1", plan.Base)
	}
	made.Config = usergit.Make(identity, carried, safeDirectories(r.Project), made.access)
	return made, nil
}

// noteLogins says that git logs in nowhere, of a user whose git does for a remote of the project.
func (made *Part) noteLogins(r Request, id usergit.Identity) {
	isFor := func(address string) bool {
		return slices.ContainsFunc(r.Project.Repo.Remotes, func(url string) bool {
			return strings.HasPrefix(url, "http") && strings.HasPrefix(url, address)
		})
	}
	logsIn := func(e gitconfig.Entry) bool {
		return e.Section == "credential" && e.Name == "helper" && e.Value != "" && isFor(e.Subsection)
	}
	_, noNetrc := os.Stat(r.Facts.Home + "/.netrc")
	if len(r.Plan.Git.Hosts) == 0 && (slices.ContainsFunc(id.Settings, logsIn) || noNetrc == nil && isFor("")) {
		made.Leave("git setting", "your credential helpers and ~/.netrc stay outside, and git logs in nowhere: "+
			"`git: {hosts: {github.com: GH_TOKEN}}` in the profile logs in there, with the token in that variable")
	}
}

// noteIdentity says what a commit's author lacks, where the project's own repository does not say that either.
func (made *Part) noteIdentity(own []gitconfig.Entry, id usergit.Identity) {
	missing := slices.DeleteFunc(id.Missing(), func(key string) bool { return gitconfig.Last(own, key) != "" })
	if len(missing) > 0 {
		made.Note("git commits nothing inside: " + notSet(missing))
	}
}

// noteHosts says which hosts git has a token for and cannot log in to.
func (made *Part) noteHosts(r Request) {
	tier := r.Plan.Network.Tier
	for _, host := range r.Plan.Git.Hosts {
		name, _, _ := strings.Cut(host.Host, ":")
		local := policy.IsLoopback(name)
		token, _ := r.Facts.Env.Get(host.Variable)
		switch {
		case token == "":
			made.Warn("git cannot log in to " + host.Host + ": " + host.Variable + " is not set")
		case local && tier != profile.TierFull && tier != profile.TierNone:
			made.Warn("git cannot log in to " + host.Host + ": in tier " + tier + " that is the sandbox itself, " +
				"to which no token goes: `network: full`")
		case local && r.Inside.Find("git-lfs") != "":
			made.Note("git-lfs cannot log in to " + host.Host + ": as all programs in Go it asks no proxy for this " +
				"name; another name of this machine works (/etc/hosts)")
		}
	}
}

// identityOf is what git would pick of the user's configuration for this folder.
func identityOf(facts host.Facts, user Config, p project.Project) (usergit.Identity, error) {
	home, env := facts.Home, facts.Env
	return usergit.Pick(usergit.Sources{
		Files: usergit.Files(home, env.Get), Home: home, Repo: repoOf(p, facts.Cwd),
		ReadFile: user.read, Canonical: filepath.EvalSymlinks,
	}, env.Get)
}

// Ignored is the content of the user's core.excludesFile, if it may enter.
func Ignored(facts host.Facts, user Config, p project.Project) []byte {
	identity, err := identityOf(facts, user, p)
	if err != nil {
		return nil // which stops the launch later
	}
	file := xdgGit(facts) + "/ignore"
	if named := identity.Value("core.excludesfile"); named != "" {
		file = facts.Absolute(named)
	}
	content, _ := habitFile(file, facts.Home, p.Path) // [namedOf] says why not
	return content
}

// asksFor reports whether the attributes of the project, or those of the user, name a filter or driver. Those deeper in
// the project are not looked for: git refuses in any case.
func asksFor(r Request, id usergit.Identity, attribute string) bool {
	const limit = 1 << 20
	files := []string{filepath.Join(r.Project.Path, ".gitattributes"), xdgGit(r.Facts) + "/attributes"}
	if named := id.Value("core.attributesfile"); named != "" {
		files = append(files, r.Facts.Absolute(named))
	}
	for _, place := range r.Project.Places {
		files = append(files, place.Outer+"/info/attributes")
	}
	return slices.ContainsFunc(files, func(file string) bool {
		content, _ := smallfile.Read(file, limit)
		return slices.Contains(strings.Fields(string(content)), attribute)
	})
}

// repositorySettings are the settings of the project's repositories, which git inside has as well; own are those of its
// own one.
func repositorySettings(places []handover.Place) (all, own []gitconfig.Entry) {
	const limit = 1 << 20
	for _, place := range places {
		content, _ := smallfile.Read(place.Outer+"/config", limit) // most have one; without it there are none
		entries, _ := gitconfig.Parse(content)
		if all = append(all, entries...); place.Own {
			own = append(own, entries...)
		}
	}
	return all, own
}

// noteSigning says that commits are not signed, of a user whose are.
func (made *Part) noteSigning(r Request, id usergit.Identity) {
	switch {
	case !gitconfig.IsTrue(id.Signs) || r.Plan.Git.Sign != "":
	case id.SignsBy == "ssh":
		made.LeaveRed("git setting", "commits are not signed inside: "+
			"`git: {sign: ssh}` in the profile signs them with your key, which stays outside")
	default:
		made.LeaveRed("git setting", "commits are not signed inside: your key is not there; "+
			"`git: {sign: ssh}` in the profile signs with an SSH key")
	}
}

// namedOf brings inside what settings of the user's name for git to obey, read-only, and has them name it there.
// What is inside anyway, as in the project or the store, stays where it is.
func namedOf(r Request, id usergit.Identity) (made launch.Part, settings []gitconfig.Entry) {
	for _, of := range usergit.Named {
		value := id.Value(of.Key)
		at := r.Facts.Absolute(value)
		if value == "" {
			at = xdgGit(r.Facts) + "/" + of.Default
		}
		part, place, reason := launch.Part{}, value, ""
		switch _, err := os.Stat(at); {
		case value == "" && of.Default == "":
			continue
		case value != "" && !filepath.IsAbs(value) && !strings.HasPrefix(value, "~/"), value == os.DevNull:
			// one of each working tree, or none
		case r.Inside.Has(at):
			place = at
		case of.Folder && err == nil:
			var fault error
			if part, fault = r.Lend(at, "your "+of.Key); fault != nil {
				reason = diag.Cause(fault).Error()
			}
		case !of.Folder:
			part, place, reason = bringFile(r, of.Key, of.Default, at)
		}
		if reason != "" {
			text := at + " of your git configuration does not enter, and " + of.Consequence + ": " + reason
			made.Left = append(made.Left, diag.Left{Kind: "git setting", Text: text, Red: of.Content})
			continue
		}
		made.Add(part)
		if place != "" {
			settings = append(settings, gitconfig.Of(of.Key, place))
		}
	}
	return made, settings
}

// lentAt returns what a part mounts read-only at a path; empty: nothing.
func lentAt(p launch.Part, at string) string {
	for _, m := range p.Mounts {
		if m.Kind == plan.ROBind && m.Destination == at {
			return m.Source
		}
	}
	return ""
}

// noteRepository says what the settings of the project's repositories name for git to obey that is not inside. Git
// inside has these settings as they are.
func (made *Part) noteRepository(r Request, entries []gitconfig.Entry) {
	for _, of := range usergit.Named {
		value := gitconfig.Last(entries, of.Key)
		if !filepath.IsAbs(value) && !strings.HasPrefix(value, "~/") {
			continue // of the working tree
		}
		if reason := r.Sees(value); reason != "" {
			text := of.Key + " of the repository: " + reason + "; until then " + of.Consequence
			made.Left = append(made.Left, diag.Left{Kind: "git setting", Text: text, Red: of.Content})
		}
	}
}

// hookLimit bounds what is compared of a hook, in bytes.
const hookLimit = 1 << 20

// noteHooks says which hooks of the repository's own git folder, of those that decide what a commit holds, are not as
// in the agent's, which got a copy when it was made.
func (made *Part) noteHooks(r Request) {
	var differ []string
	for _, name := range [...]string{"pre-commit", "prepare-commit-msg", "commit-msg", "pre-merge-commit"} {
		hook := filepath.Join(r.Project.Repo.Common, "hooks", name)
		info, err := os.Stat(hook)
		if r.Project.Repo.Common == "" || err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
			continue
		}
		at := r.Inside.OnHost(hook)
		if _, err := os.Stat(filepath.Dir(at)); at == "" || at == hook || err != nil {
			continue // the copy is not made yet
		}
		yours, err := smallfile.Read(hook, hookLimit)
		if err != nil {
			continue
		}
		if copied, err := smallfile.Read(at, hookLimit); err != nil || !bytes.Equal(yours, copied) {
			differ = append(differ, name)
		}
	}
	if differ != nil {
		made.LeaveRed("git hook", "hooks of the repository are not as in the agent's git folder, whose commits go by "+
			"its own: "+strings.Join(differ, ", ")+"; a folder of the project that `core.hooksPath` names has them for both")
	}
}

// bringFile brings a file that git obeys to git's own folder of the user's configuration. place is what the setting
// says then; empty: git finds it there without.
func bringFile(r Request, key, name, at string) (made launch.Part, place, reason string) {
	content, reason := habitFile(at, r.Facts.Home, r.Project.Path)
	if key == "core.attributesfile" {
		content = slices.Concat(systemAttributes(r.Facts.Env), content)
	}
	inside := r.Facts.Home + "/.config/git/" + cmp.Or(name, strings.ReplaceAll(key, ".", "-"))
	switch {
	case content == nil && name == "":
		return made, at, reason // git complains of it outside, too
	case name == "":
		place = inside
	}
	if content != nil {
		made.Mount(launch.Mount{
			Kind: plan.ROData, Source: at, Destination: inside, Data: content, Why: "your git configuration",
		})
	}
	return made, place, reason
}

// systemAttributes are the attributes that git has for all users of this machine; nil: none.
func systemAttributes(env host.Environment) []byte {
	const limit = 1 << 20
	if env.Value("GIT_ATTR_NOSYSTEM", "") != "" {
		return nil
	}
	content, err := smallfile.Read("/etc/gitattributes", limit)
	if err != nil || len(content) == 0 {
		return nil
	}
	return append(content, '\n')
}

// habitFile returns the content of a file that says what git ignores, or how it treats files; nil if there is none.
// reason says why an existing one may not enter. An agent must not be able to put another file in its place: only links
// into the store are followed, and nothing in the project is read.
func habitFile(file, home, project string) (content []byte, reason string) {
	const limit = 1 << 20
	real, err := filepath.EvalSymlinks(file)
	if err != nil {
		return nil, "" // not there
	}
	_, relation := profile.Exposes(profile.Tilde(home, real))
	if content, err = smallfile.Read(real, limit); err != nil {
		return nil, diag.Cause(err).Error()
	}
	what := leak.Text(string(content))
	switch {
	case relation != profile.Apart:
		return nil, "it lies in a secret place"
	case pathname.Below(real, project):
		return nil, "it lies in the project"
	case real != file && !pathname.Below(real, "/nix/store"):
		return nil, "it is reached by a link: --mount-ro " + diag.Name(real) + ":" + diag.Name(file)
	case what != "":
		return nil, "it holds what looks like " + what
	}
	return content, ""
}

// repoOf is what conditional includes of the user's git configuration may ask
// about a project. shown is the folder as the caller came to it, with
// links not resolved.
func repoOf(p project.Project, shown string) usergit.Repo {
	r := usergit.Repo{Branch: p.Repo.Branch, Remotes: p.Repo.Remotes}
	if p.Repo.Dir == "" {
		return r
	}
	r.Dirs = []string{p.Repo.Dir}
	below := strings.TrimPrefix(p.Dir, p.Repo.Worktree)
	if came, ok := strings.CutSuffix(shown, below); ok && p.Repo.Dir == p.Repo.Worktree+"/.git" {
		r.Dirs = append(r.Dirs, came+"/.git")
	}
	return r
}

// safeDirectories are the folders that git inside may trust: the
// project, the worktree it lies in, and the repository's common folder.
func safeDirectories(p project.Project) []string {
	others := slices.DeleteFunc([]string{p.Repo.Worktree, p.Repo.Common},
		func(dir string) bool { return dir == "" || dir == p.Path })
	return append([]string{p.Path}, others...)
}
