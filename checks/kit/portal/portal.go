package portal

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"

	"claudebox/checks/kit/reply"
)

const (
	code  = "code-of-the-portal"
	token = "token-of-the-portal"
)

type object = reply.Object

// Portal is the server, an http.Handler.
type Portal struct {
	origin string
	mux    *http.ServeMux

	mu        sync.Mutex
	challenge string   // of the login that was approved of
	calls     []string // that were authorised
}

// New makes a portal that is reached at https://HOST. The MCP server is its
// path /mcp.
func New(host string) *Portal {
	p := &Portal{origin: "https://" + host, mux: http.NewServeMux()}
	p.mux.HandleFunc("GET /.well-known/oauth-protected-resource/mcp", reply.Always(object{
		"resource": p.origin + "/mcp", "authorization_servers": []string{p.origin},
	}))
	p.mux.HandleFunc("GET /.well-known/oauth-authorization-server", reply.Always(object{
		"issuer": p.origin, "authorization_endpoint": p.origin + "/authorize", "token_endpoint": p.origin + "/token",
		"registration_endpoint": p.origin + "/register", "response_types_supported": []string{"code"},
		"grant_types_supported": []string{"authorization_code"}, "code_challenge_methods_supported": []string{"S256"},
		"token_endpoint_auth_methods_supported": []string{"none"},
	}))
	p.mux.HandleFunc("POST /register", register)
	p.mux.HandleFunc("POST /token", p.token)
	p.mux.HandleFunc("POST /mcp", p.call)
	return p
}

// ServeHTTP makes it an http.Handler.
func (p *Portal) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.mux.ServeHTTP(w, r) }

// Approve is what a person does on the page that link leads to. It returns
// where the page sends the browser.
func (p *Portal) Approve(link string) (back string, err error) {
	at, err := url.Parse(link)
	if err != nil {
		return "", err
	}
	asked := at.Query()
	if at.Path != "/authorize" || asked.Get("code_challenge_method") != "S256" {
		return "", fmt.Errorf("%s does not ask for a code with a proof", link)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.challenge = asked.Get("code_challenge")
	return asked.Get("redirect_uri") + "?" + url.Values{"code": {code}, "state": {asked.Get("state")}}.Encode(), nil
}

// Calls are the methods of MCP that were called by who has logged in.
func (p *Portal) Calls() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.calls)
}

func register(w http.ResponseWriter, r *http.Request) {
	var client object
	if json.NewDecoder(r.Body).Decode(&client) != nil || client == nil {
		reply.JSON(w, http.StatusBadRequest, object{"error": "invalid_client_metadata"})
		return
	}
	client["client_id"] = "client"
	reply.JSON(w, http.StatusCreated, client)
}

func (p *Portal) token(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	if r.FormValue("code") != code || base64.RawURLEncoding.EncodeToString(sum[:]) != p.challenge {
		reply.JSON(w, http.StatusBadRequest, object{"error": "invalid_grant"})
		return
	}
	p.challenge = "" // a code is good once
	reply.JSON(w, http.StatusOK, object{"access_token": token, "token_type": "Bearer", "expires_in": 3600})
}

// call answers who is logged in, as a server without any tools.
func (p *Portal) call(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+token {
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+p.origin+`/.well-known/oauth-protected-resource/mcp"`)
		reply.JSON(w, http.StatusUnauthorized, object{"error": "invalid_token"})
		return
	}
	var call struct {
		ID     any    `json:"id"`
		Method string `json:"method"`
	}
	if err := json.NewDecoder(r.Body).Decode(&call); err != nil {
		reply.JSON(w, http.StatusBadRequest, object{"error": err.Error()})
		return
	}
	p.mu.Lock()
	p.calls = append(p.calls, call.Method)
	p.mu.Unlock()
	if call.Method != "initialize" {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	reply.JSON(w, http.StatusOK, object{"jsonrpc": "2.0", "id": call.ID, "result": object{
		"protocolVersion": "2025-06-18", "capabilities": object{}, "serverInfo": object{"name": "portal", "version": "1"},
	}})
}
