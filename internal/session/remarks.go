package session

import (
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/host"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/linux/smallfile"
	"claudebox/internal/plan"
	"claudebox/internal/profile"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/secret/leak"
	"claudebox/internal/session/usergit"
)

// families are variables that change what Claude Code, git and programs that
// use a network do: whoever set one outside would miss it inside.
var families = []string{"ANTHROPIC_", "CLAUDE_CODE_", "GIT_"}

var proxies = []string{"ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"}

// ownNames are set by Claude Code for what it starts, or have been taken over
// already, as git's identity.
var ownNames = []string{
	"CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_EXECPATH", "CLAUDE_CODE_SSE_PORT", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_NAME",
	"GIT_COMMITTER_EMAIL",
	"GIT_COMMITTER_NAME", "GIT_EDITOR", "GIT_PAGER",
}

// missed names the variables of those families that are set outside and are
// not inside; entering are the names that are.
func missed(env host.Environment, entering []string, tier string) []string {
	var list []string
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		if value == "" {
			continue
		}
		inFamily := slices.ContainsFunc(families, func(f string) bool { return strings.HasPrefix(name, f) })
		isProxy := tier != "allow" && slices.Contains(proxies, strings.ToUpper(name))
		if (inFamily || isProxy) && !slices.Contains(ownNames, name) && !slices.Contains(entering, name) {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// addMissed says which variables of the host do not enter, where that is felt.
func addMissed(h *launch.Host, p plan.Plan, env host.Environment) {
	entering := slices.Clone(h.ExtraEnv)
	for _, e := range p.Env {
		entering = append(entering, e.Name)
	}
	if list := missed(env, entering, p.Network.Tier); len(list) > 0 {
		h.Notes = append(h.Notes,
			"set here and not inside: "+strings.Join(list, ", ")+"; `extra_env_passthrough` lets them in")
	}
}

// addGitHabits carries over what of the user's own git configuration would be
// missed: the files that git is to ignore, without which `git add -A` takes
// them. That commits are not signed is said.
func (s *Session) addGitHabits(h *launch.Host, p plan.Plan, id usergit.Identity) {
	switch {
	case id.Signs != "true" || p.Git.Sign != "":
	case id.SignsBy == "ssh":
		h.Notes = append(h.Notes, "commits are not signed inside: `git: {sign: ssh}` in the profile signs them with your key, which stays outside")
	default:
		h.Notes = append(h.Notes, "commits are not signed inside: your key is not there")
	}
	if id.Others != "" {
		h.Notes = append(h.Notes, "set in your git configuration and not inside: "+diag.Visible(id.Others))
	}
	file := s.Facts.Env.Value("XDG_CONFIG_HOME", filepath.Join(s.Facts.Home, ".config")) + "/git/ignore"
	if id.Excludes != "" {
		file = s.absolute(id.Excludes)
	}
	content, reason := s.ignoreFile(file)
	if reason != "" {
		h.Notes = append(h.Notes, "what "+file+" has git ignore is not ignored inside: "+reason)
	}
	if len(content) == 0 {
		return
	}
	h.Mounts = append(h.Mounts, launch.Mount{
		Kind: plan.ROData, Source: file, Destination: s.Facts.Home + "/.config/git/ignore", Data: content,
		Why: "your core.excludesFile",
	})
}

// ignoreFile is the content of a file that says what git ignores; none where it is
// not there, or where reason says why it does not enter. An agent must not be
// able to have another file taken for it: no link is followed but those of the
// store, and nothing in the project is read.
func (s *Session) ignoreFile(file string) (content []byte, reason string) {
	const limit = 1 << 20
	real, err := filepath.EvalSymlinks(file)
	if err != nil {
		return nil, "" // not there
	}
	_, relation := profile.Exposes(profile.Tilde(s.Facts.Home, real))
	if content, err = smallfile.Read(real, limit); err != nil {
		return nil, diag.Cause(err).Error()
	}
	what := leak.Text(string(content))
	switch {
	case relation != profile.Apart:
		return nil, "it lies in a secret place"
	case pathname.Below(real, s.project.Path):
		return nil, "it lies in the project"
	case real != file && !pathname.Below(real, "/nix/store"):
		return nil, "it is reached by a link"
	case what != "":
		return nil, "it holds what looks like " + what
	}
	return content, ""
}
