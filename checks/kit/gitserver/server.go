// Package gitserver serves git repositories over HTTPS by git's own
// http-backend, to those who show a token. It is for tests and listens on
// loopback alone.
package gitserver

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"claudebox/checks/kit/authority"
)

// Server is one server under several names, "localhost", "127.0.0.1" and this
// machine's: for git these are different hosts.
type Server struct {
	Port   string
	server *httptest.Server
	roots  []byte
	token  string
	git    http.Handler

	mu     sync.Mutex
	logins []Login
	large  map[string][]byte // what git-lfs has stored, by the hash of its content
}

// Login is a request that showed a name and a password.
type Login struct{ Host, User, Password string }

// Start serves the repositories below a folder. Close it.
func Start(folder, token string) (*Server, error) {
	programs, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		return nil, fmt.Errorf("find git's programs: %w", err)
	}
	machine, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	certificate, roots, err := authority.Certify([]string{"localhost", "127.0.0.1", machine})
	if err != nil {
		return nil, err
	}
	s := &Server{roots: roots, token: token, large: map[string][]byte{}, git: &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(programs)), "git-http-backend"),
		Env: []string{
			"GIT_PROJECT_ROOT=" + folder, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=tester",
			"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		},
		Logger: log.New(io.Discard, "", 0), Stderr: io.Discard,
	}}
	s.server = httptest.NewUnstartedServer(s)
	s.server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	s.server.Config.ErrorLog = log.New(io.Discard, "", 0) // whoever does not trust it leaves in a handshake
	s.server.StartTLS()
	_, s.Port, err = net.SplitHostPort(s.server.Listener.Addr().String())
	return s, err
}

// Close stops the server.
func (s *Server) Close() { s.server.Close() }

// Roots is the certificate to trust, in PEM.
func (s *Server) Roots() []byte { return slices.Clone(s.roots) }

// Logins are those so far, oldest first.
func (s *Server) Logins() []Login {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.logins)
}

// ServeHTTP lets those in who show the token. What lies below /elsewhere/ is
// on the other host.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, password, shown := r.BasicAuth()
	if shown {
		s.mu.Lock()
		s.logins = append(s.logins, Login{r.Host, user, password})
		s.mu.Unlock()
	}
	if rest, moved := strings.CutPrefix(r.URL.Path, "/elsewhere/"); moved {
		http.Redirect(w, r, "https://127.0.0.1:"+s.Port+"/"+rest+"?"+r.URL.RawQuery, http.StatusFound)
		return
	}
	if password != s.token {
		w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	switch dir, oid := path.Split(r.URL.Path); {
	case strings.HasSuffix(r.URL.Path, "/info/lfs/objects/batch"):
		s.batch(w, r)
	case dir == "/large/" && r.Method == http.MethodPut:
		content, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.large[oid] = content
	case dir == "/large/":
		_, _ = w.Write(s.Large(oid))
	default:
		s.git.ServeHTTP(w, r)
	}
}

// Large is what git-lfs has stored under a hash.
func (s *Server) Large(oid string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.large[oid]
}

// batch answers git-lfs where to put and to get what it asks for (git-lfs's batch API).
func (s *Server) batch(w http.ResponseWriter, r *http.Request) {
	type object struct {
		OID     string                       `json:"oid"`
		Size    int64                        `json:"size"`
		Actions map[string]map[string]string `json:"actions,omitempty"`
	}
	var asked struct {
		Operation string   `json:"operation"`
		Objects   []object `json:"objects"`
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for i, o := range asked.Objects {
		at := map[string]string{"href": "https://" + r.Host + "/large/" + o.OID}
		asked.Objects[i].Actions = map[string]map[string]string{asked.Operation: at}
	}
	w.Header().Set("Content-Type", "application/vnd.git-lfs+json")
	_ = json.NewEncoder(w).Encode(map[string]any{"transfer": "basic", "objects": asked.Objects})
}
