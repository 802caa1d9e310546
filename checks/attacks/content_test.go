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
