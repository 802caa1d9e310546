package session

import (
	"crypto/sha256"
	"encoding/base64"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/host"
	"claudebox/internal/plan/resolve"
	"claudebox/internal/profile"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/sandbox/view"
	"claudebox/internal/session/folders"
	"claudebox/internal/session/networking"
	"claudebox/internal/session/program"
)

// environments says of the project's virtual environments, and of the one that the user has activated, why their Python
// is not inside: another one would be found there.
func environments(project, home string, env host.Environment, inside *view.View) (made launch.Part) {
	activated := map[string]bool{}
	folders := append(environmentsIn(project), environmentsOf(project, home)...)
	for _, name := range []string{"VIRTUAL_ENV", "CONDA_PREFIX"} {
		if at := filepath.Clean(env.Value(name, "")); filepath.IsAbs(at) {
			folders = append(folders, at)
			activated[at] = true
		}
	}
	slices.Sort(folders)
	for _, folder := range slices.Compact(folders) {
		if reason := inside.Program(filepath.Join(folder, "bin/python")); reason != "" {
			if activated[folder] {
				reason = "activated here: " + reason
			}
			made.Leave("virtual environment", reason+"; inside, `python3 -m venv` makes one for its own Python, elsewhere")
		}
	}
	return made
}

// environmentsIn lists the virtual environments of a project: those at its top, and .venv and venv in folders there.
func environmentsIn(project string) (list []string) {
	entries, _ := os.ReadDir(project)
	for _, e := range entries[:min(len(entries), mostEntries)] {
		if !e.IsDir() {
			continue
		}
		for _, name := range []string{"", ".venv", "venv"} {
			folder := filepath.Join(project, e.Name(), name)
			if _, err := os.Lstat(filepath.Join(folder, "pyvenv.cfg")); err == nil {
				list = append(list, folder)
			}
		}
	}
	return list
}

// environmentsOf lists the virtual environments that poetry and pipenv keep for a project in the home: their names have
// a sum of its path.
func environmentsOf(project, home string) (list []string) {
	for _, of := range [...]struct{ in, file string }{
		{".cache/pypoetry/virtualenvs", ""}, {".local/share/virtualenvs", "/Pipfile"},
	} {
		sum := sha256.Sum256([]byte(project + of.file))
		pattern := "*-" + base64.URLEncoding.EncodeToString(sum[:6]) + "*"
		found, _ := fs.Glob(os.DirFS(filepath.Join(home, of.in)), pattern) // most have none
		for _, name := range found {
			list = append(list, filepath.Join(home, of.in, name))
		}
	}
	return list
}

// remarksOf notes what a person should know before the start. overrides are for
// variables of the host that the sandbox cannot use as they are. runs is what runs inside, before the user's words.
func remarksOf(in *inputs, runs launch.Agent, inside *view.View) (made launch.Part,
	overrides map[string]launch.Override,
) {
	if len(in.Missing) > 0 {
		made.Note("not in the store yet, to be fetched or built: " + strings.Join(in.Missing, ", "))
	}
	changed, overrides := program.Overrides(in.Plan, in.Facts.Env, inside)
	made.Add(changed)
	entering := slices.Concat(program.ExtraEnv(in.Facts.Env), in.secrets.Gateways())
	for _, e := range in.Plan.Env {
		entering = append(entering, e.Name)
	}
	for _, s := range in.Plan.Secrets {
		entering = append(entering, s.Variable)
	}
	if in.Plan.Network.Tier == profile.TierFull && in.secrets.Used { // the broker goes by them
		entering = append(entering, "HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy")
	}
	missed := program.NotPassed(in.Facts.Env, entering, in.Plan.Network.Tier)
	made.LeaveAll("variable", "set here and not inside: ALL; `extra_env_passthrough: [FIRST]` lets one in", missed)
	made.LeaveAll("variable", "of `env` in your settings.json these are not inside: ALL; `extra_env_passthrough: [FIRST]` "+
		"lets one in", in.settingsLeft)
	made.Add(environments(in.project.Path, in.Facts.Home, in.Facts.Env, inside))
	made.Add(leads{
		tree: in.tree, facts: in.Facts, inside: inside, sees: in.agentState().Sees(inside), lending: in.lending(),
		agent: in.Plan.Agent.Name, command: in.Purpose.Command, reaches: in.agentState().Reaches,
		env: slices.Concat(entering, missed, host.ToolsVariables, []string{host.MoreVariable}),
	}.out())
	folders.Note(&made, "", in.project)
	if in.Plan.Network.Tier == profile.TierFull && !launch.ClosesAbstractSockets() {
		made.Warn("this kernel cannot close abstract sockets: X11 and D-Bus of this machine are within reach")
	}
	if text := in.secrets.Unreached(); text != "" && len(in.Purpose.Command) == 0 {
		made.Warn(text)
	}
	made.Add(networking.Missing(in.Plan.Network.Tier, in.Facts.Env, in.etc, in.Tools[resolve.ToolCacert],
		in.secrets.Used),
		in.agentState().Moved())
	made.Note(in.Remarks...)
	if in.Confirm(in.Folders) != in.Plan.Confirm {
		made.Note("`confirm: never` does not count: an agent could have written the plan, or what it was made of")
	}
	if runs.LookUp { // a command of the user's
		runs.Words = nil
	}
	made.Warn(program.UnseenWords(runs.Words, in.Options.Words, inside)...)
	return made, overrides
}
