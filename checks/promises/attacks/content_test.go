//go:build lab

package attacks_test

import (
	"strings"
	"testing"
)

// token is one of a known shape, of nobody.
const token = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"

// Secrets have any name: what is in a small file tells.
//
// Promise: no secret of the project.
func TestASecretThatIsCalledLikeAnythingElse(t *testing.T) {
	w := newWorld(t)
	w.git("project", "init", "-q")
	for name, content := range map[string]string{
		"id_ed25519_work": canary, "kubeconfig.yaml": canary, "terraform.tfstate.123.backup": canary, "_env": canary, "jwt.secret": canary,
		"sa.json":                     `{"k": "-----BEGIN PRIVATE KEY-----\n` + canary + `"}`,
		".claude/settings.local.json": `{"env": {"API_TOKEN": "` + token + `"}, "x": "` + canary + `"}`,
		"pip.conf":                    "[global]\nindex-url = https://u:" + token + "@x.example/\n# " + canary,
		"notes":                       "deploy with " + token + " " + canary,
		"deep/in/it/todo.md":          "AKIAQYLPMN5HFIQR7XYA " + canary,
		".env copy":                   canary,
		".git/hooks/pre-push":         "curl -H 'Authorization: Bearer " + token + "' # " + canary,
		"prod-token.txt.bak":          "TOKEN_SECRET=hunter2x9\n" + canary,
		"secrets/prod/db.txt":         canary,
		"token.txt":                   "QZ4m1v9Kc7xT2bNn8wRs5A==\n" + canary,
		"run.sh":                      "curl -H 'Authorization: Bearer " + token + "' # " + canary,
	} {
		w.write("project/"+name, content)
	}
	w.wantNoCanary(w.attack("cat $(find . -type f -not -path './.git/*' -not -name '* *') '.env copy' .git/hooks/*"))
	w.write("project/harmless.md", "nothing in it")
	w.write("project/tracked.md", "an example: "+token)
	w.git("project", "add", "tracked.md")
	if got := w.attack("cat harmless.md tracked.md"); !strings.Contains(got.stdout, "nothing in it") || !strings.Contains(got.stdout, token) {
		t.Errorf("what is none, or is tracked, is hidden: %s", got)
	}
}

// What the copy of a configuration holds must be worth nothing.
func TestASecretInAGitConfiguration(t *testing.T) {
	w := newWorld(t)
	w.git("project", "init", "-q")
	for key, value := range map[string]string{
		"azure.pat":         canary,
		"remote.blob.url":   "https://x.example/c?sv=1&sig=" + canary,
		"alias.deploy":      "!curl -H 'X: " + token + "' # " + canary,
		"remote.origin.url": "https://u:" + canary + "@x.example/y",
	} {
		w.git("project", "config", key, value)
	}
	got := w.attack("cat .git/config")
	w.wantNoCanary(got)
	if !strings.Contains(got.stdout, "x.example/y") {
		t.Errorf("the address is gone: %s", got)
	}
}

// The repository of a linked worktree, or of a folder below its root, lies outside of the project: its secrets are
// covered nowhere, as nothing of it enters, not by a link either. Where its folder is mounted, they are covered there.
//
// Promise: no secret of the project.
func TestTheSecretsOfARepositoryOutsideOfTheProject(t *testing.T) {
	w := newWorld(t)
	w.git("project", "init", "-q")
	w.write("project/below/file", "plain\n")
	w.git("project", "add", ".")
	w.git("project", "commit", "-qm", "one")
	w.git("project", "worktree", "add", "-q", w.path("side"))
	w.git("project", "config", "remote.origin.url", "https://u:"+canary+"@x.example/y")
	w.git("project", "config", "include.path", "more")
	for name, content := range map[string]string{
		"credentials": "https://u:" + canary + "@h\n", "git-crypt/keys/default": canary, "more": "[a]\n\tpassword = " + canary + "\n",
		"FETCH_HEAD": "0000 branch 'm' of https://u:" + canary + "@h/x\n", "hooks/pre-push": "curl -H 'Authorization: Bearer " + token + "' # " + canary,
		"worktrees/side/config.worktree": "[remote \"o\"]\n\turl = https://u:" + canary + "@h/x\n",
	} {
		w.write("project/.git/"+name, content)
	}
	for _, project := range []string{"side", "project/below"} {
		w.link(w.path("project/.git"), project+"/repository")
		w.link(w.path("project/.git/credentials"), project+"/.env")
		w.link(w.path("project/.git/git-crypt"), project+"/secrets")
		w := w.in(project)
		profile := w.profile("project: cwd")
		script := "cat .env; grep -rs . . repository/ secrets/ " + w.path("project") + "; git config --list; true"
		for what, got := range map[string]outcome{
			project:                       w.attack(script, profile...),
			project + " beside all of it": w.attack(script, append(profile, "--mount-ro", w.path("project"))...),
		} {
			w.wantNoCanary(got)
			if !strings.Contains(got.stdout, "plain") || !strings.Contains(got.stdout, "url=https://x.example/y") {
				w.t.Errorf("%s: git and the files are not there: %s", what, got)
			}
		}
	}
}

// A folder that the project lies in is lent: what is secret there, and in other projects, was readable.
//
// Promise: no secret of the project.
func TestTheSecretsAroundTheProject(t *testing.T) {
	w := newWorld(t)
	for name, content := range map[string]string{
		"src/.env": canary, "src/other/secrets/key": canary, "src/other/notes": "deploy with " + token + " " + canary, "src/plain": "plain\n",
		"src/mine/sub/.env": canary, "src/mine/.env": canary, "src/mine/top": "plain\n", "src/mine/sub/file": "plain\n",
	} {
		w.write(name, content)
	}
	for _, repo := range []string{"src/mine", "src/other"} {
		w.git(repo, "init", "-q")
		w.git(repo, "config", "remote.origin.url", "https://u:"+canary+"@x.example/y")
	}
	w.git("src/mine", "add", "top", "sub/file")
	w.git("src/mine", "commit", "-qm", "one")
	for _, project := range []string{"src/mine", "src/mine/sub"} {
		w := w.in(project)
		for _, flags := range [][]string{{"src"}, {"src/mine"}, {"src", "--branch", "x"}} {
			if flags[0] == project {
				continue
			}
			flags = append([]string{"--mount-ro", w.path(flags[0])}, flags[1:]...)
			got := w.attack("cd; grep -rs . src; git -C "+w.path(project)+" config --list; true", append(w.profile("project: cwd"), flags...)...)
			w.wantNoCanary(got)
			if !strings.Contains(got.stdout, "plain") || !strings.Contains(got.stdout, "url=https://x.example/y") {
				w.t.Errorf("%s, %v: git and the files are not there: %s", project, flags, got)
			}
		}
	}
}

// Package managers clone with the user's token in the address (Terraform's modules, deps of mix): git ignores these
// folders as a whole, and a session on a branch got them as they are, git folders and all.
//
// Promise: no secret of the project.
func TestTheSecretsOfRepositoriesInWhatGitIgnoresOnABranch(t *testing.T) {
	w := newWorld(t)
	w.git("project", "init", "-q")
	w.write("project/.gitignore", "/deps\n/big\nnode_modules\n")
	w.git("project", "add", ".gitignore")
	w.git("project", "commit", "-qm", "one")
	w.write("project/big/block", strings.Repeat("plain\n", 21<<20/6)) // it is overlaid
	for _, in := range []string{"deps/a", "deps/b/c", "big/a", "node_modules/x"} {
		repo := "project/" + in
		w.folder(repo)
		w.git(repo, "init", "-q")
		w.git(repo, "config", "remote.origin.url", "https://u:"+canary+"@x.example/y")
		w.git(repo, "config", "http.extraheader", "Authorization: Basic "+canary)
		w.write(repo+"/.git/credentials", "https://u:"+canary+"@x.example\n")
		w.write(repo+"/.git/FETCH_HEAD", strings.Repeat("0", 40)+"\t\tbranch 'main' of https://u:"+canary+"@x.example/y\n")
		w.write(repo+"/.git/hooks/pre-push", "#!/bin/sh\ncurl -H 'Authorization: token "+token+"' x # "+canary+"\n")
		w.write(repo+"/.git/git-crypt/keys/default", canary)
		w.write(repo+"/file", "plain\n")
	}
	w.git("project/deps", "clone", "-q", "--bare", "a", "bare.git")
	w.git("project/deps/bare.git", "config", "remote.origin.url", "https://u:"+canary+"@x.example/y")
	look := "grep -rs . deps node_modules big/a; git -C deps/a config remote.origin.url; git -C big/a status --porcelain"
	for range 2 {
		got := w.attack(look, "--branch", "x")
		w.wantNoCanary(got)
		if !strings.Contains(got.stdout, "deps/b/c/file:plain") || !strings.Contains(got.stdout, "?? file") ||
			!strings.Contains(got.stdout, "\nhttps://x.example/y\n") {
			t.Errorf("git and the files are not there: %s", got)
		}
		w.git("project/deps/a", "config", "remote.other.url", "https://u:"+canary+"@x.example/y")
		w.git("project/big/a", "config", "remote.other.url", "https://u:"+canary+"@x.example/y")
	}
}

// A link with the name of a secret leads from one given folder into another: only in its own was hidden what it leads
// to.
//
// Promise: no secret of the project.
func TestALinkLeadsToASecretInAnotherGivenFolder(t *testing.T) {
	for name, tc := range map[string]struct {
		links map[string]string // with their targets, in which the secret lies
		lines []string          // of the profile
		read  bool              // the agent may
	}{
		"of the project, to a file":   {links: map[string]string{"project/.env": "lent/values"}},
		"of the project, to a folder": {links: map[string]string{"project/secrets": "lent/team"}},
		"of the project, in it":       {links: map[string]string{"project/secrets/a": "lent/team/a"}},
		"of the project, by another":  {links: map[string]string{"project/.env": "project/next", "project/next": "lent/values"}},
		"of the other folder":         {links: map[string]string{"lent/.env": "project/conf/values"}},
		"of the other, to a folder":   {links: map[string]string{"lent/secrets": "project/conf"}},
		"of the other, which is hidden by the profile": {
			links: map[string]string{"lent/.env": "project/conf/values"}, lines: []string{`hide: [conf/values]`},
		},
		"that the profile shows": {
			links: map[string]string{"project/.env": "lent/values"}, lines: []string{`show: [.env]`}, read: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write("project/plain", "plain\n")
			w.write("lent/plain", "plain\n")
			for link, target := range tc.links {
				file := target
				if strings.HasSuffix(target, "team") || strings.HasSuffix(target, "conf") {
					file += "/file"
				}
				if tc.links[target] == "" {
					w.write(file, canary)
				}
				w.link(w.path(target), link)
			}
			for _, flags := range [][]string{
				{"--mount-ro", "../lent"},
				{"--mount-rw", "../lent"},
				{"--mount-ro", "../lent:/mnt/lent"},
				{"--mount-rw", "../lent:/mnt/lent"},
			} {
				got := w.attack("grep -rs . . ../lent /mnt/lent; true", append(w.profile(tc.lines...), flags...)...)
				if tc.read == !strings.Contains(got.stdout, canary) {
					t.Errorf("%v: %s", flags, got)
				}
				if !strings.Contains(got.stdout, "plain") && !strings.Contains(got.stderr, "the name of a secret leads to") {
					t.Errorf("%v: %s", flags, got)
				}
				if len(tc.lines) > 0 && got.status != 0 {
					t.Errorf("%v: the remedy does not help: %s", flags, got)
				}
			}
		})
	}
}
