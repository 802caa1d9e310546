package session

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/agent/agenthome"
	"claudebox/internal/diag"
	"claudebox/internal/host"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/linux/smallfile"
	"claudebox/internal/plan"
	"claudebox/internal/profile"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/secret/leak"
	"claudebox/internal/secret/sshagent"
	"claudebox/internal/session/usergit"
	"claudebox/internal/workspace/gitconfig"
	"claudebox/internal/workspace/project"
)

// gitPart is the sandbox's .gitconfig, and what it takes to sign and to log in.
type gitPart struct {
	part
	access usergit.Access
	keys   sshagent.Request // Socket is empty if none are used
	config []byte           // made of all that
}

// gitOf makes the sandbox's .gitconfig from the identity that git would pick
// for this folder. No git is run: it would obey the project's configuration.
func gitOf(in inputs) (made gitPart, err error) {
	env := in.Facts.Env
	identity, err := identityOf(in)
	if err != nil {
		const remedy = "mend the file; `git config --list` says the same"
		return made, &diag.Error{Op: "read the git identity", Err: err, Remedy: cmp.Or(diag.Remedy(err), remedy)}
	}
	if missing := identity.Missing(); missing != "" {
		made.note("git commits nothing inside: " + missing + " is not set; outside: " +
			"git config --global " + missing + " …")
	}
	made.access = usergit.Access{
		Hosts: in.plan.Git.Hosts, SSHToHTTPS: in.plan.Git.SSHToHTTPS, NoSSH: in.inside.Find("ssh") == "",
	}
	for _, host := range in.plan.Git.Hosts {
		if token, _ := env.Get(host.Variable); token == "" {
			made.warn("git cannot log in to " + host.Host + ": " + host.Variable + " is not set")
		}
	}
	habits, settings := gitHabits(in, identity)
	made.add(habits)
	own := usergit.Carry(identity, repositorySettings(in.project),
		agenthome.Request{Runs: in.inside.Program, Sees: in.seesFile}.Missing)
	made.leaveAll("git setting", "set in your git configuration and not inside: ALL", own.Left)
	for _, refused := range own.Refuses {
		text := "git refuses what needs " + refused.Why
		if asksFor(in, identity, refused.Attribute) {
			made.leaveRed("git filter", text)
		} else {
			made.leave("git filter", text)
		}
	}
	hooks, err := hooksOf(in, identity.Hooks)
	if err != nil {
		return made, err
	}
	made.add(hooks)
	if identity.Hooks != "" && len(hooks.Left) == 0 {
		settings = append(settings, gitconfig.Entry{Section: "core", Name: "hookspath", Value: identity.Hooks})
	}
	own.Entries = append(own.Entries, settings...)
	made.letKeys(in, identity)
	made.config = usergit.Make(identity, own, safeDirectories(in.project), made.access)
	return made, nil
}

// identityOf is what git would pick of the user's configuration for this folder.
func identityOf(in inputs) (usergit.Identity, error) {
	home, env := in.Facts.Home, in.Facts.Env
	return usergit.Pick(usergit.Sources{
		Files: usergit.Files(home, env.Get), Home: home, Repo: repoOf(in.project, in.Facts.Cwd),
		ReadFile: in.userGit.read, Canonical: filepath.EvalSymlinks,
	}, env.Get)
}

// asksFor reports whether the attributes of the project, or those of the user, name a filter or driver. Those deeper in
// the project are not looked for: git refuses in any case.
func asksFor(in inputs, id usergit.Identity, attribute string) bool {
	const limit = 1 << 20
	files := []string{filepath.Join(in.project.Path, ".gitattributes"), xdgGit(in.Facts) + "/attributes"}
	if id.Attributes != "" {
		files = append(files, in.absolute(id.Attributes))
	}
	for _, place := range in.project.Places {
		files = append(files, place.Outer+"/info/attributes")
	}
	return slices.ContainsFunc(files, func(file string) bool {
		content, _ := smallfile.Read(file, limit)
		return slices.Contains(strings.Fields(string(content)), attribute)
	})
}

// repositorySettings are the settings of the project's repositories, which git inside has as well.
func repositorySettings(p project.Project) (all []gitconfig.Entry) {
	const limit = 1 << 20
	for _, place := range p.Places {
		content, _ := smallfile.Read(place.Outer+"/config", limit) // most have one; without it there are none
		entries, _ := gitconfig.Parse(content)
		all = append(all, entries...)
	}
	return all
}

// hooksOf brings the folder of the user's own hooks, which decide what a commit holds, to its place inside. It may be
// there already: one of the project or the store.
func hooksOf(in inputs, named string) (made part, err error) {
	if named == "" || named == os.DevNull {
		return made, nil
	}
	const op, without = "your core.hooksPath ", " does not enter, and commits inside are made without its hooks: "
	at := in.absolute(named)
	if !filepath.IsAbs(named) && !strings.HasPrefix(named, "~/") {
		return made, nil // of each working tree
	}
	info, err := os.Stat(at)
	if err != nil || !info.IsDir() || in.inside.Has(at) {
		return made, nil //nolint:nilerr // git does without it outside, too
	}
	real, link, err := follow(in, at)
	if err == nil && link != "" {
		err = errors.New("it is reached by the link " + link + ", which an agent could have made")
	}
	m := launch.Mount{Kind: plan.ROBind, Source: real, Destination: at, Open: true, Why: "your core.hooksPath"}
	if err == nil {
		err = judgeNamed(in, op+at, m)
	}
	if err != nil {
		made.leaveRed("git hook", op+named+without+diag.Cause(err).Error())
		return made, nil
	}
	lent, _, whole, err := coverSecretsIn(in, real, at)
	if err != nil || !whole {
		made.leaveRed("git hook", op+named+without+"it has too many files")
		return made, nil //nolint:nilerr // said above
	}
	made.mount(m)
	made.add(lent)
	return made, nil
}

// gitHabits carries over what the user would miss of their own git configuration: the file that says what git
// ignores, without which `git add -A` adds such files, and the attributes of files. It notes that commits are not
// signed.
func gitHabits(in inputs, id usergit.Identity) (habits part, settings []gitconfig.Entry) {
	switch {
	case id.Signs != "true" || in.plan.Git.Sign != "":
	case id.SignsBy == "ssh":
		habits.leaveRed("git setting", "commits are not signed inside: "+
			"`git: {sign: ssh}` in the profile signs them with your key, which stays outside")
	default:
		habits.leaveRed("git setting", "commits are not signed inside: your key is not there; "+
			"`git: {sign: ssh}` in the profile signs with an SSH key")
	}
	for _, habit := range []struct{ setting, file, consequence string }{
		{id.Excludes, "excludes", "git adds inside what it says to ignore"},
		{id.Attributes, "attributes", "git commits inside as if it were not there"},
	} {
		name := strings.Replace(habit.file, "excludes", "ignore", 1) // as git has it
		file := xdgGit(in.Facts) + "/" + name
		if habit.setting != "" {
			file = in.absolute(habit.setting)
		}
		if in.inside.Has(file) {
			settings = append(settings, gitconfig.Entry{Section: "core", Name: habit.file + "file", Value: file})
			continue
		}
		content, reason := habitFile(file, in.Facts.Home, in.project.Path)
		if reason != "" {
			habits.leaveRed("git setting", file+" of your git configuration does not enter, and "+habit.consequence+
				": "+reason)
		}
		if habit.file == "attributes" {
			content = slices.Concat(systemAttributes(in.Facts.Env), content)
		}
		if len(content) > 0 {
			habits.mount(launch.Mount{
				Kind: plan.ROData, Source: file, Destination: in.Facts.Home + "/.config/git/" + name,
				Data: content, Why: "your git configuration",
			})
		}
	}
	return habits, settings
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
		return nil, "it is reached by a link"
	case what != "":
		return nil, "it holds what looks like " + what
	}
	return content, ""
}

// userGit is the user's own git configuration with all files that it includes, under whatever condition: the host's
// git may obey any of them in the project. Each file is read once, so that the identity is made from what was judged.
// A file that cannot be read is left out: git does not obey it either, or reading the identity reports it.
type userGit struct {
	files    []project.UserGit
	contents map[string][]byte
}

func readUserGit(c call) userGit {
	const mostFiles = 100
	git, files := userGit{contents: map[string][]byte{}}, usergit.Files(c.Facts.Home, c.Facts.Env.Get)
	for i := 0; i < len(files) && i < mostFiles; i++ {
		content, err := git.read(files[i])
		if err != nil {
			continue
		}
		git.contents[files[i]] = content
		entries, _ := gitconfig.Parse(content)
		git.files = append(git.files, project.UserGit{Dir: filepath.Dir(files[i]), Entries: entries})
		for _, e := range entries {
			if gitconfig.IsInclude(e) {
				files = append(files, gitconfig.Path(filepath.Dir(files[i]), e.Value, c.Facts.Home))
			}
		}
	}
	at := xdgGit(c.Facts) // git obeys these without a setting
	git.files = append(git.files, project.UserGit{Dir: at, Entries: []gitconfig.Entry{
		{Section: "core", Name: "excludesfile", Value: at + "/ignore"},
		{Section: "core", Name: "attributesfile", Value: at + "/attributes"},
	}})
	return git
}

// xdgGit is the folder of the user's own files that git obeys.
func xdgGit(facts host.Facts) string {
	return filepath.Join(facts.Env.Value("XDG_CONFIG_HOME", filepath.Join(facts.Home, ".config")), "git")
}

// read reads a file of the configuration. That may include a file of the project,
// so reading neither waits for a pipe nor goes on without end.
func (u userGit) read(name string) ([]byte, error) {
	const limit = 1 << 20
	if content, known := u.contents[name]; known || name == os.DevNull { // GIT_CONFIG_GLOBAL=/dev/null is a habit
		return content, nil
	}
	return smallfile.Read(name, limit)
}

// nameNoCommand are the sections of git's configuration whose values name
// repositories, and nothing that git would run or obey.
var nameNoCommand = []string{"safe", "maintenance", "scalar", "gui", "remote", "url", "branch", "http", "user"}

// obeyed are the files of the configuration, and all paths that they name for git
// to obey or run: hooks, attributes, commands.
func (u userGit) obeyed(c call) []string {
	list := usergit.Files(c.Facts.Home, c.Facts.Env.Get)
	for _, file := range u.files {
		for _, e := range file.Entries {
			if gitconfig.IsInclude(e) {
				list = append(list, gitconfig.Path(file.Dir, e.Value, c.Facts.Home))
			} else if !slices.Contains(nameNoCommand, e.Top()) {
				list = append(list, pathsIn(c, e.Value)...)
			}
		}
	}
	return list
}

// pathsIn are the words of a command that are paths from the root or the home.
func pathsIn(c call, command string) (list []string) {
	for _, word := range strings.FieldsFunc(command,
		func(r rune) bool { return strings.ContainsRune(" \t\"'`;|&()<>=!$", r) }) {
		if filepath.IsAbs(word) || strings.HasPrefix(word, "~/") {
			list = append(list, c.absolute(word))
		}
	}
	return list
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
