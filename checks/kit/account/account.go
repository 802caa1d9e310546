package account

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"

	"claudebox/checks/kit/authority"
	"claudebox/checks/kit/reply"
)

type object = reply.Object

// Grant is a demand for tokens.
type Grant struct {
	Type   string // "authorization_code" or "refresh_token"
	Secret string // the code or the refresh token that was shown
	OK     bool   // tokens were given
}

// Account is one person's account. As an http.Handler it is the proxy before
// the hosts of [Hosts]; requests for any other go on to next.
type Account struct {
	next     http.Handler
	hosts    *httptest.Server
	roots    []byte
	code     string
	lifetime time.Duration

	mu      sync.Mutex
	grants  []Grant
	refresh string        // the one refresh token that is good
	logins  int           // that [Account.Login] gave
	issued  []string      // access tokens
	expired []string      // those that are refused
	gate    chan struct{} // whoever asks for tokens waits until it is closed; nil: nobody
}

// Hosts are the hosts that it plays.
var Hosts = []string{"platform.claude.com", "api.anthropic.com"}

// Start makes an account whose owner has got a code to log in with. Access
// tokens are said to expire after lifetime; they are good until [Account.Expire]. Close it.
func Start(code string, lifetime time.Duration, next http.Handler) (*Account, error) {
	certificate, roots, err := authority.Certify(Hosts)
	if err != nil {
		return nil, fmt.Errorf("certify account hosts: %w", err)
	}
	a := &Account{next: next, roots: roots, code: code, lifetime: lifetime}
	mux := http.NewServeMux()
	mux.HandleFunc("POST platform.claude.com/v1/oauth/token", a.token)
	mux.HandleFunc("GET api.anthropic.com/api/oauth/profile", reply.Always(profile))
	mux.HandleFunc("GET api.anthropic.com/api/oauth/claude_cli/roles", reply.Always(roles))
	mux.HandleFunc("GET api.anthropic.com/api/claude_code/", http.NotFound) // what an organization prescribes
	mux.HandleFunc("/", a.authorised)
	a.hosts = httptest.NewUnstartedServer(mux)
	a.hosts.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	a.hosts.Config.ErrorLog = log.New(io.Discard, "", 0) // agents leave in the middle of a handshake
	a.hosts.StartTLS()
	return a, nil
}

// Serve plays the hosts at one more listener until that is closed: for who
// reaches them by their names, and not by the proxy.
func (a *Account) Serve(l net.Listener) error {
	return a.hosts.Config.Serve(tls.NewListener(l, a.hosts.TLS))
}

// Close stops the hosts.
func (a *Account) Close() { a.hosts.Close() }

// Roots is the certificate to trust, in PEM.
func (a *Account) Roots() []byte { return slices.Clone(a.roots) }

// Grants are the demands for tokens so far, oldest first.
func (a *Account) Grants() []Grant {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.grants)
}

// Login is a file of credentials as Claude Code keeps it, of somebody who
// logged in before and whose access token expires at the given time. What
// renews it is good from now on, and nothing else. Its tokens are numbered 0,
// those of the next such login 100, and so on.
func (a *Account) Login(expires time.Time) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	number := 100 * a.logins
	a.issued = append(a.issued, Access(number))
	a.logins++
	a.refresh = refreshToken(number)
	content, err := json.Marshal(object{"claudeAiOauth": object{
		"accessToken": Access(number), "refreshToken": a.refresh, "expiresAt": expires.UnixMilli(),
		"scopes": []string{"user:inference", "user:profile"}, "subscriptionType": "max", "rateLimitTier": "default_claude_max_5x",
	}})
	if err != nil {
		panic("bug: " + err.Error())
	}
	return string(content)
}

// Revoke makes every refresh token a bad one.
func (a *Account) Revoke() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refresh = ""
}

// Expire makes every access token that was given a bad one.
func (a *Account) Expire() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.expired = slices.Clone(a.issued)
}

// authorised lets requests go on, unless their token is a bad one.
func (a *Account) authorised(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	bad := slices.Contains(a.expired, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	a.mu.Unlock()
	if !bad {
		a.next.ServeHTTP(w, r)
		return
	}
	reply.JSON(w, http.StatusUnauthorized, object{
		"type": "error", "error": object{"type": "authentication_error", "message": "OAuth token has expired."},
	})
}

// Hold keeps whoever asks for tokens waiting until the gate is opened.
func (a *Account) Hold() (open func()) {
	gate := make(chan struct{})
	a.mu.Lock()
	defer a.mu.Unlock()
	a.gate = gate
	return sync.OnceFunc(func() { close(gate) })
}

// wait waits at the gate, if there is one.
func (a *Account) wait(r *http.Request) {
	a.mu.Lock()
	gate := a.gate
	a.mu.Unlock()
	if gate == nil {
		return
	}
	select {
	case <-gate:
	case <-r.Context().Done():
	}
}

// ServeHTTP is the proxy.
func (a *Account) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	host, _, _ := strings.Cut(r.Host, ":")
	if r.Method != http.MethodConnect || !slices.Contains(Hosts, host) {
		a.next.ServeHTTP(w, r)
		return
	}
	if err := tunnel(w, a.hosts.Listener.Addr().String()); err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
	}
}

// token is the OAuth token endpoint (RFC 6749, sections 4.1.3 and 6, with JSON
// in place of a form).
func (a *Account) token(w http.ResponseWriter, r *http.Request) {
	var demand struct {
		Type    string `json:"grant_type"`
		Code    string `json:"code"`
		Refresh string `json:"refresh_token"`
	}
	if err := json.NewDecoder(io.LimitReader(r.Body, 1<<16)).Decode(&demand); err != nil {
		reply.JSON(w, http.StatusBadRequest, object{"error": "invalid_request"})
		return
	}
	a.wait(r)
	number, ok := a.grant(demand.Type, demand.Code+demand.Refresh)
	if !ok {
		reply.JSON(w, http.StatusBadRequest, object{"error": "invalid_grant"})
		return
	}
	reply.JSON(w, http.StatusOK, object{
		"token_type": "Bearer", "expires_in": int(a.lifetime.Seconds()), "scope": "user:inference user:profile",
		"access_token": Access(number), "refresh_token": refreshToken(number),
		"account": profile["account"], "organization": profile["organization"],
	})
}

// grant judges a demand and notes it. A code and a refresh token are good once.
func (a *Account) grant(kind, secret string) (number int, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	good := map[string]*string{"authorization_code": &a.code, "refresh_token": &a.refresh}[kind]
	ok = good != nil && secret != "" && secret == *good
	a.grants = append(a.grants, Grant{Type: kind, Secret: secret, OK: ok})
	number = len(a.grants)
	if ok {
		*good = ""
		a.issued = append(a.issued, Access(number))
		a.refresh = refreshToken(number)
	}
	return number, ok
}

// Access is the access token that was given for a demand, counted from 1.
func Access(number int) string { return fmt.Sprintf("sk-ant-oat01-access-%d", number) }

func refreshToken(number int) string { return fmt.Sprintf("sk-ant-ort01-refresh-%d", number) }

// Owner is the e-mail address of the account.
const Owner = "owner@example.org"

var (
	profile = object{
		"account": object{
			"uuid": "11111111-1111-4111-8111-111111111111", "display_name": "Owner",
			"email": Owner, "email_address": Owner, "has_claude_max": true,
		},
		"organization": object{
			"uuid": "22222222-2222-4222-8222-222222222222", "name": "Example",
			"organization_type": "claude_max", "rate_limit_tier": "default_claude_max_5x",
		},
	}
	roles = object{"organization_role": "admin", "workspace_role": nil, "organization_name": "Example"}
)
