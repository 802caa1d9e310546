// Package homelinks judges the links of the user's home, and of the folders of PATH, that lead into what an agent is
// given: before a launch, and for those that are made while it runs.
package homelinks

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"claudebox/internal/diag"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/linux/smallfile"
	"claudebox/internal/plan"
	"claudebox/internal/profile"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/session/alarm"
	"claudebox/internal/session/guarded"
	"claudebox/internal/session/lending"
	"claudebox/internal/session/planning"
	"claudebox/internal/workspace/homelink"
	"claudebox/internal/workspace/project"
	"claudebox/internal/workspace/secretfile"
)

// Look begins to look at the links of the user's home and of PATH, beside what else a launch prepares. The
// function that it returns waits for what is found. What walks have seen is not looked at once more.
func Look(c planning.Call, walks lending.Walks) func() homelink.Found {
	q := homelink.Question{
		Home: c.Facts.Home, Cache: filepath.Join(c.Folders.Cache, "home"), Build: c.Build, Whole: c.Purpose.Look,
		Walked: walks.Folder,
	}
	if c.Build == "" {
		q.Cache = ""
	}
	for _, dir := range filepath.SplitList(c.Facts.Env.Value("PATH", "")) {
		if dir = fromCwd(c, dir); !pathname.Below(dir, "/nix/store") && !slices.Contains(q.Folders, dir) {
			q.Folders = append(q.Folders, dir)
		}
	}
	for _, name := range obeyedVariables {
		if at := c.Facts.Env.Value(name, ""); filepath.IsAbs(at) && !pathname.Below(at, "/nix/store") {
			q.Named = append(q.Named, homelink.Named{Variable: name, Path: filepath.Clean(at)})
		}
	}
	found := make(chan homelink.Found, 1)
	go func() { found <- homelink.Look(q) }()
	return func() homelink.Found { return <-found }
}

// obeyedVariables name files and folders that shells and other tools obey without being told to.
var obeyedVariables = []string{
	"ZDOTDIR", "BASH_ENV", "ENV", "PYTHONSTARTUP", "INPUTRC", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "CLAUDE_CONFIG_DIR",
	"CODEX_HOME", "GEMINI_CLI_HOME", "OPENCODE_CONFIG_DIR", "GIT_CONFIG_GLOBAL",
}

// fromCwd makes a folder of PATH absolute: an empty one stands for the current folder.
func fromCwd(c planning.Call, dir string) string {
	if filepath.IsAbs(dir) {
		return filepath.Clean(dir)
	}
	return filepath.Join(c.Facts.Cwd, dir)
}

// Judge returns an error if a place of secrets in the user's home is, or leads by, a link into a folder that the agent
// is given: a project is mounted as it is, and what it has of a name that tells nothing is not hidden. The folders are
// the project, and mounts that the user named and that do not say that they show a secret.
func Judge(found homelink.Found, home, project string, mounts []launch.Mount) error {
	folders := given(project, mounts)
	for _, link := range found.Links {
		at := slices.IndexFunc(folders, func(dir string) bool {
			return pathname.Below(link.Leads, dir) || pathname.Below(dir, link.Leads) && link.Leads != home
		})
		if at < 0 || link.Of != "" {
			continue
		}
		if secret := secretBehind(home, link); secret != "" {
			return diag.Errorf("give away "+folders[at],
				fmt.Sprintf("move it out of %s, and lead %s there; or make %s a folder or file of its own",
					folders[at], link.Path, link.Path),
				"%s leads into it, to %s, and holds %s", link.Path, link.Leads, secret)
		}
	}
	return nil
}

// given are the folders that an agent is given: the project, and what the user named and does not say to show a secret.
func given(project string, mounts []launch.Mount) []string {
	folders := []string{project}
	for _, m := range mounts {
		if lending.UserNamed(m) && !m.Secret && (m.Kind == plan.Bind || m.Kind == plan.ROBind) {
			folders = append(folders, m.Source)
		}
	}
	return folders
}

// LookAgain refuses a launch where the home leads into what the agent is given by a link, or another name of a file,
// that was not there at the last look. The next try knows of it.
func LookAgain(found homelink.Found, p project.Project, mounts []launch.Mount) error {
	links, files := found.Missed()
	again := func(name, what string) error {
		found.Write()
		return diag.Wrap("protect "+diag.Name(name), launch.Again(errors.New(what)), "start again")
	}
	for _, dir := range given(p.Path, mounts) {
		for _, link := range links {
			if link.Enters(dir) || pathname.Below(dir, link.Leads) {
				return again(link.Path, "it leads to "+link.Leads+" since the last start")
			}
		}
	}
	if name := p.NamesOne(files); name != "" {
		return again(name, "it has another name in the project since the last start")
	}
	return nil
}

// IsSecret reports whether a file of the user's home is secret.
func IsSecret(home, name string) bool { return secretBehind(home, homelink.Link{Path: name}) != "" }

// secretBehind says what secrets a link of the home leads to; empty if there are none.
func secretBehind(home string, link homelink.Link) string {
	short := profile.Tilde(home, link.Path)
	secret, relation := profile.Exposes(short)
	rel, ofHome := strings.CutPrefix(short+"/", "~/")
	rel = strings.TrimSuffix(rel, "/")
	if !ofHome {
		return "" // in a folder of PATH
	}
	info, err := os.Stat(link.Path)
	folder := err == nil && info.IsDir()
	switch {
	case relation == profile.Around:
		for _, s := range profile.SecretPaths {
			below, is := pathname.Cut(s.Path, short)
			if found, _ := filepath.Glob(filepath.Join(link.Path, below)); is && len(found) > 0 {
				return s.What
			}
		}
	case obeyedThere(rel):
	case relation == profile.Within && (folder || err != nil):
		return secret.What
	case relation == profile.Within && holdsSecret(link.Path):
		return secret.What
	case relation == profile.Apart && secretfile.Of(path.Dir(rel), path.Base(rel)) == secretfile.Secret && !folder:
		return "a secret, by its name"
	}
	return ""
}

// obeyed are places below those of secrets that hold none: tools obey what is there.
var obeyed = []string{
	".claude/skills", ".claude/hooks", ".claude/agents", ".claude/commands", ".claude/plugins",
	".claude/output-styles", ".claude/rules", ".claude/themes", ".claude/workflows",
	".ssh/config", ".ssh/config.d", ".ssh/conf.d", ".ssh/known_hosts",
	".ssh/authorized_keys", ".ssh/rc", ".docker/cli-plugins", ".terraform.d/plugins",
}

func obeyedThere(rel string) bool {
	return pathname.BelowAny(rel, obeyed) ||
		strings.HasPrefix(rel, ".ssh/") && strings.HasSuffix(rel, ".pub")
}

// holdsSecret reports whether a file in a place of secrets is one itself: by its name, or by what is in it.
func holdsSecret(file string) bool {
	name, folder := path.Base(file), path.Dir(file)
	if secretfile.Of(folder, name) == secretfile.Secret || path.Base(folder) == ".claude" && name == "history.jsonl" {
		return true
	}
	content, err := smallfile.Read(file, secretfile.Limit)
	return err != nil || secretfile.Holds(content)
}

// moment is how long a session must have run for links to be looked for that were made meanwhile: of a short command's
// the next launch tells.
const moment = 100 * time.Millisecond

// Later looks again, when the session has ended, for links, and other names of files, that were made while it ran. The
// zero value does not.
type Later struct{ found chan missed }

type missed struct {
	links []homelink.Link
	files map[homelink.Inode]string
}

// Again begins to look, for a session that began then.
func Again(before homelink.Found, began time.Time) (l Later) {
	if time.Since(began) < moment {
		return l
	}
	l.found = make(chan missed, 1)
	go func() {
		links, files := before.Again()
		l.found <- missed{links, files}
	}()
	return l
}

// Lines says what came that leads into a folder which the agent could change. Nothing held what it leads to.
func (l Later) Lines(folders []guarded.Folder) (lines []string) {
	if l.found == nil {
		return nil
	}
	found := <-l.found
	say := func(at, leads string) {
		const text = "%s %s, which was not known when this session began, and the agent could write there: look at " +
			"that before you use it"
		if len(lines) < alarm.Most {
			lines = append(lines, fmt.Sprintf(text, diag.Visible(at), leads))
		}
	}
	for _, folder := range folders {
		for _, link := range found.links {
			if link.Enters(folder.Path) {
				say(link.Path, "leads to "+diag.Visible(link.Leads))
			}
		}
		if name := folder.Project.NamesOne(found.files); name != "" {
			say(name, "has another name in "+diag.Visible(folder.Path))
		}
	}
	return lines
}
