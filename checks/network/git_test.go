//go:build lab

package network_test

import (
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// gitServer serves /git/repo.git by git's own HTTP backend: one commit, with
// one file.
func gitServer(t *testing.T) http.Handler {
	t.Helper()
	root := t.TempDir()
	work, bare := filepath.Join(root, "work"), filepath.Join(root, "repo.git")
	git := func(dir string, words ...string) string {
		cmd := exec.Command("git", words...)
		cmd.Dir = dir
		cmd.Env = []string{"HOME=" + root, "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1"}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v\n%s", words, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git(root, "init", "-q", "-b", "main", work)
	if err := os.WriteFile(filepath.Join(work, "file"), []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	git(work, "add", "file")
	git(work, "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "-m", "one")
	git(root, "clone", "-q", "--bare", work, bare)
	git(bare, "config", "http.receivepack", "true")
	return &cgi.Handler{
		Path: filepath.Join(git(root, "--exec-path"), "git-http-backend"), Root: "/git",
		Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "HOME=" + root, "GIT_CONFIG_NOSYSTEM=1"},
	}
}
