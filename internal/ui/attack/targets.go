package attack

import (
	"crypto/rand"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"

	"claudebox/internal/diag"
)

// Made are targets on this machine, until they are closed.
type Made struct {
	Targets
	folders   []string
	listeners []net.Listener
}

// Make plants what is to be stolen: a project with a repository and secrets in
// it below the user's home, a file and a socket in the host's folder of
// temporary files, services on loopback.
func Make(home string) (made *Made, err error) {
	canary := "canary-" + rand.Text()
	made = &Made{Targets: Targets{Canary: canary, Home: home, Abstract: canary}}
	defer func() {
		if err != nil {
			made.Close()
			err = &diag.Error{
				Op: "make targets for the attacks", Err: diag.Cause(err),
				Remedy: "make " + home + " and the folder of temporary files writable for you",
			}
		}
	}()
	for _, at := range []string{home, ""} {
		folder, err := os.MkdirTemp(at, ".claudebox-attack-")
		if err != nil {
			return made, err
		}
		made.folders = append(made.folders, folder)
	}
	folder, temporary := made.folders[0], made.folders[1]
	made.Project, made.HostFile, made.Socket = filepath.Join(folder, "project"), filepath.Join(temporary, "file"),
		filepath.Join(temporary, "socket")
	if err := os.WriteFile(made.HostFile, []byte(canary), 0o600); err != nil {
		return made, err
	}
	for name, content := range map[string]string{
		"project/.env": "SECRET=" + canary + "\n", "project/.envrc": "true\n", "project/.mcp.json": "{}\n",
		"project/.git/HEAD":        "ref: refs/heads/main\n",
		"project/.git/config":      "[core]\n\trepositoryformatversion = 0\n\tbare = false\n",
		"project/.git/refs/heads/": "", "project/.git/objects/": "", "project/.git/hooks/": "",
	} {
		file := filepath.Join(folder, name)
		if strings.HasSuffix(name, "/") {
			err = os.MkdirAll(file, 0o700)
		} else {
			err = errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(content), 0o600))
		}
		if err != nil {
			return made, err
		}
	}
	made.GitFolder = FileID(filepath.Join(made.Project, ".git"))
	return made, made.listen()
}

// listen opens the services. The one at all addresses is reached on loopback,
// too, but under another port.
func (m *Made) listen() error {
	for _, at := range []struct{ network, address string }{
		{"tcp", "127.0.0.1:0"}, {"tcp", ":0"}, {"unix", "@" + m.Abstract}, {"unix", m.Socket},
	} {
		listener, err := net.Listen(at.network, at.address)
		if err != nil {
			return err
		}
		m.listeners = append(m.listeners, listener)
		go m.serve(listener)
	}
	m.Loopback = m.listeners[0].Addr().String()
	_, port, err := net.SplitHostPort(m.listeners[1].Addr().String())
	if err != nil {
		return err
	}
	addresses, err := net.InterfaceAddrs()
	for _, address := range addresses {
		if ip, ok := address.(*net.IPNet); ok && !ip.IP.IsLoopback() && !ip.IP.IsLinkLocalUnicast() {
			m.Addresses = append(m.Addresses, net.JoinHostPort(ip.IP.String(), port))
		}
	}
	return err
}

func (m *Made) serve(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		_, _ = conn.Write([]byte(m.Canary))
		conn.Close()
	}
}

// Folder is a folder below the home for what a caller needs beside the targets. Close removes it.
func (m *Made) Folder() string { return m.folders[0] }

// Close stops the services, and removes all that was planted.
func (m *Made) Close() {
	for _, listener := range m.listeners {
		listener.Close()
	}
	for _, folder := range m.folders {
		_ = os.RemoveAll(folder)
	}
}
