package gituse

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/agent/agenthome"
	"claudebox/internal/diag"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/linux/smallfile"
	"claudebox/internal/workspace/gitconfig"
)

// hookNames are the hooks that git runs for what an agent does. A commit is made, or not, by the first four.
var hookNames = strings.Fields("pre-commit prepare-commit-msg commit-msg pre-merge-commit pre-push pre-rebase " +
	"post-commit post-checkout post-merge post-rewrite")

const makesCommit = 4

// noteHookPrograms says which hooks cannot run inside. folder is what core.hooksPath says; empty: the repository's own.
// The agent is not told, as it could write a hook that asks so for any file of this machine.
func (made *Part) noteHookPrograms(r Request, folder string) {
	if r.Project.Repo.Common == "" {
		return
	}
	if folder = gitconfig.Path(r.Project.Repo.Worktree, folder, r.Facts.Home); folder == r.Project.Repo.Worktree {
		folder = filepath.Join(r.Project.Repo.Common, "hooks")
	}
	unlessHook := func(ask func(word string) string) func(string) string {
		return func(word string) string {
			if name, _ := r.Inside.Expand(word); pathname.Below(name, folder) {
				return "" // it comes with the hook
			}
			return ask(word)
		}
	}
	asks := agenthome.Request{Runs: unlessHook(r.Inside.Program), Sees: unlessHook(r.Sees)}
	var reasons []string
	hooks := map[string][]string{} // by what they lack
	for _, name := range hookNames {
		reason := cannotRun(asks, r.Inside.OnHost, filepath.Join(folder, name))
		if reason != "" && hooks[reason] == nil {
			reasons = append(reasons, reason)
		}
		hooks[reason] = append(hooks[reason], name)
	}
	for _, reason := range reasons {
		names := hooks[reason]
		made.Left = append(made.Left, diag.Left{
			Kind: "git hook", Also: len(names) - 1, Quiet: true, Red: slices.Index(hookNames, names[0]) < makesCommit,
			Text: "the git hook " + strings.Join(names, ", ") + " cannot run inside: " + diag.Visible(reason),
		})
	}
}

// cannotRun says what a hook lacks inside; empty: nothing, there is none, or that is not known. onHost is the file that
// is seen at a path: the agent's git folder has hooks of its own, once it is made.
func cannotRun(asks agenthome.Request, onHost func(string) string, hook string) string {
	at := onHost(hook)
	info, err := os.Stat(at)
	if err != nil || !info.Mode().IsRegular() {
		at = hook
		info, err = os.Stat(at)
	}
	if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return ""
	}
	content, _ := smallfile.Read(at, hookLimit)
	script := string(content)
	line, isScript := strings.CutPrefix(script, "#!")
	if !isScript {
		return ""
	}
	line, _, _ = strings.Cut(line, "\n")
	if reason := asks.Missing(strings.Replace(line, " -S ", " ", 1)); reason != "" {
		return reason
	}
	if dir := filepath.Dir(at); filepath.Base(dir) == "_" { // husky's, which run what lies above them
		content, _ = smallfile.Read(filepath.Join(filepath.Dir(dir), filepath.Base(at)), hookLimit)
		script = string(content)
	}
	if !strings.HasSuffix(strings.TrimSpace(line), "sh") {
		return ""
	}
	return asks.Missing(script)
}

// noteRemotes says which remotes are folders of this machine that are not inside. An address names none.
func (made *Part) noteRemotes(r Request, own []gitconfig.Entry) {
	for _, e := range own {
		if e.Section != "remote" || e.Name != "url" && e.Name != "pushurl" {
			continue
		}
		at := gitconfig.Path(r.Project.Repo.Worktree, strings.TrimPrefix(e.Value, "file://"), r.Facts.Home)
		if reason := r.Inside.File(at); reason != "" {
			made.Leave("git remote", "the remote "+diag.Visible(e.Subsection)+" is not reached: "+reason+
				"; to push there, --mount-rw")
		}
	}
}
