//go:build lab

package network_test

import (
	"crypto/ed25519"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/realgit"
)

// repository makes repo.git in a folder of its own: one commit, with one file. It
// returns the folder, and where git keeps its programs.
func repository(t *testing.T) (root, programs string) {
	t.Helper()
	root = t.TempDir()
	work, bare := filepath.Join(root, "work"), filepath.Join(root, "repo.git")
	realgit.Do(t, root, nil, "init", "-q", "-b", "main", work)
	must.Write(t, filepath.Join(work, "file"), "one\n")
	realgit.Do(t, work, nil, "add", "file")
	realgit.Do(t, work, nil, "commit", "-q", "-m", "one")
	realgit.Do(t, root, nil, "clone", "-q", "--bare", work, bare)
	realgit.Do(t, bare, nil, "config", "http.receivepack", "true")
	return root, strings.TrimSpace(realgit.Do(t, root, nil, "--exec-path"))
}

// gitServer serves /git/repo.git by git's own HTTP backend.
func gitServer(root, programs string) http.Handler {
	return &cgi.Handler{
		Path: filepath.Join(programs, "git-http-backend"), Root: "/git",
		Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "HOME=" + root, "GIT_CONFIG_NOSYSTEM=1"},
	}
}

// serveSSH lets anybody in who calls for git, as git's hosts do.
func serveSSH(l net.Listener, root string) error {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return err
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		return err
	}
	config := &ssh.ServerConfig{NoClientAuth: true}
	config.AddHostKey(signer)
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			_, channels, requests, err := ssh.NewServerConn(conn, config)
			if err != nil {
				return
			}
			go ssh.DiscardRequests(requests)
			for offered := range channels {
				if channel, requests, err := offered.Accept(); err == nil {
					go runGit(channel, requests, root)
				}
			}
		}()
	}
}

// runGit runs what an ssh client asks for: git-upload-pack of the repository.
func runGit(channel ssh.Channel, requests <-chan *ssh.Request, root string) {
	defer channel.Close()
	for request := range requests {
		if request.Type != "exec" {
			_ = request.Reply(request.Type == "env", nil)
			continue
		}
		_ = request.Reply(true, nil)
		cmd := exec.Command("git", "upload-pack", filepath.Join(root, "repo.git"))
		cmd.Env = []string{"HOME=" + root, "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1"}
		cmd.Stdin, cmd.Stdout = channel, channel
		status := make([]byte, 4)
		if cmd.Run() != nil {
			status[3] = 1
		}
		_, _ = channel.SendRequest("exit-status", false, status)
		return
	}
}
