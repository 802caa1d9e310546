package session

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/diag"
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
	config []byte
	keys   sshagent.Request // without a socket: none are used
}

// gitOf makes the sandbox's .gitconfig from the identity that git would pick
// for this folder. No git is run: it would obey the project's configuration.
func gitOf(g ground) (made gitPart, err error) {
	home, env := g.Facts.Home, g.Facts.Env
	identity, err := usergit.Pick(usergit.Sources{
		Files: usergit.Files(home, env.Get), Home: home, Repo: repoOf(g.project, g.Facts.Cwd),
		ReadFile: g.userGit.read, Canonical: filepath.EvalSymlinks,
	}, env.Get)
	if err != nil {
		const remedy = "mend the file; `git config --list` says the same"
		return made, &diag.Error{Op: "read the git identity", Err: err, Remedy: remedy}
	}
	if missing := identity.Missing(); missing != "" {
		made.note("git commits nothing inside: " + missing + " is not set; outside: " +
			"git config --global " + missing + " …")
	}
	access := usergit.Access{SSHToHTTPS: g.plan.Git.SSHToHTTPS, NoSSH: !isInside(g.plan, "ssh")}
	for _, host := range g.plan.Git.Hosts {
		access.Hosts = append(access.Hosts, usergit.Host{Name: host.Host, Variable: host.Variable})
		if token, _ := env.Get(host.Variable); token == "" {
			made.note("git cannot log in to " + host.Host + ": " + host.Variable + " is not set")
		}
	}
	ssh := keysOf(g, identity)
	made.add(gitHabits(g, identity), ssh.part)
	made.keys, access.SSH, access.SigningKey, access.Signs = ssh.request, ssh.logins, ssh.signs, ssh.always
	made.config = usergit.Make(identity, safeDirectories(g.project), access)
	return made, nil
}

// gitHabits carries over what of the user's own git configuration would be
// missed: the files that git is to ignore, without which `git add -A` takes
// them. That commits are not signed is said.
func gitHabits(g ground, id usergit.Identity) (habits part) {
	switch {
	case id.Signs != "true" || g.plan.Git.Sign != "":
	case id.SignsBy == "ssh":
		habits.note("commits are not signed inside: " +
			"`git: {sign: ssh}` in the profile signs them with your key, which stays outside")
	default:
		habits.note("commits are not signed inside: your key is not there")
	}
	if id.Others != "" {
		habits.note("set in your git configuration and not inside: " + diag.Visible(id.Others))
	}
	file := g.Facts.Env.Value("XDG_CONFIG_HOME", filepath.Join(g.Facts.Home, ".config")) + "/git/ignore"
	if id.Excludes != "" {
		file = g.absolute(id.Excludes)
	}
	content, reason := ignoreFile(file, g.Facts.Home, g.project.Path)
	if reason != "" {
		habits.note("what " + file + " has git ignore is not ignored inside: " + reason)
	}
	if len(content) > 0 {
		habits.mount(launch.Mount{
			Kind: plan.ROData, Source: file, Destination: g.Facts.Home + "/.config/git/ignore", Data: content,
			Why: "your core.excludesFile",
		})
	}
	return habits
}

// ignoreFile is the content of a file that says what git ignores; none where it is
// not there, or where reason says why it does not enter. An agent must not be
// able to have another file taken for it: no link is followed but those of the
// store, and nothing in the project is read.
func ignoreFile(file, home, project string) (content []byte, reason string) {
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

// userGit is the user's own git configuration with all that it includes, under
// whatever condition: the host's git may obey any of it in the project. Each file
// is read once: what is judged is what the identity is made of. What cannot be read
// is nothing to git either, or said when the identity is read.
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
	return git
}

// read reads a file of the configuration, which may include one of the project:
// it neither waits for a pipe nor reads without end.
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

// safeDirectories are the folders that git inside may trust (GIT-02): the
// project, the worktree it lies in, and the repository's common folder.
func safeDirectories(p project.Project) []string {
	dirs := []string{p.Path}
	for _, dir := range []string{p.Repo.Worktree, p.Repo.Common} {
		if dir != "" && dir != p.Path {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}
