package swap

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"claudebox/checks/kit/must"
	"claudebox/internal/secret/broker"
)

// attempt is one way to get a secret out, or to destroy it. Whatever it is, no
// text inside may hold a true secret, and none may have gone anywhere.
type attempt struct {
	do       way
	want     string // in what was seen; empty: anything
	reported string // in what the user is told; empty: nothing is told
	sent     bool   // the secret may go to its own host
	ended    bool   // a newer Go may end the stream before the broker sees it
}

// way is how it is tried. It gives all that was seen inside.
type way func(w *world) string

// ends has the secret go nowhere.
func (do way) ends(want, reported string) attempt {
	return attempt{do: do, want: want, reported: reported}
}

// passes has it go to its own host, and the user told nothing.
func (do way) passes(want string) attempt { return attempt{do: do, want: want, sent: true} }

// asked is an attempt by one request with headers in pairs. NAME stands for a
// placeholder.
func asked(method, address, body string, headers ...string) way {
	return func(w *world) string {
		fill := w.filler()
		filled := make([]string, len(headers))
		for i, text := range headers {
			filled[i] = fill.Replace(text)
		}
		status, text, header := w.send(method, fill.Replace(address), fill.Replace(body), filled...)
		return fmt.Sprint(status, "\n", text, "\n", header)
	}
}

// written is an attempt by bytes in a connection to a target, under a name.
func written(target broker.Target, serverName, text string) way {
	return func(w *world) string { return w.raw(target, serverName, w.filler().Replace(text)) }
}

// hosted is one in a connection to GitHub, under its own name.
func hosted(text string) way { return written(hubTarget, "api.github.com", text) }

func (w *world) filler() *strings.Replacer {
	github := w.placeholder("GH_TOKEN")
	return strings.NewReplacer("{LOGIN}", w.placeholder(broker.ClaudeLogin), "{REFRESH}", w.placeholder(broker.ClaudeRefresh), "{GH}", github,
		"{GH-ENCODED}", "%67"+github[1:], "{GH-BEGIN}", github[:12], "{GH-END}", github[12:], "{FOO}", w.placeholder("FOO"),
		"{CLIENT}", broker.Client, "{GH-USER}", base64.StdEncoding.EncodeToString([]byte(github+":x")),
		"{LOGIN-PASSWORD}", base64.StdEncoding.EncodeToString([]byte("x:"+w.placeholder(broker.ClaudeLogin))),
		"{GH-PASSWORD}", base64.StdEncoding.EncodeToString([]byte("x:"+github)))
}

const (
	api    = "https://api.anthropic.com"
	tokens = "https://platform.claude.com/v1/oauth/token"
	hub    = "https://api.github.com"
)

var (
	apiTarget = broker.Target{Host: "api.anthropic.com", Port: 443}
	hubTarget = broker.Target{Host: "api.github.com", Port: 443}
)

const own = "to a place that is not its own"

func bearer(secret string) []string { return []string{"Authorization", "Bearer " + secret} }

// keyMaking are places where secrets are made or shown. Those of GitHub have
// its name in theirs.
var keyMaking = map[string]string{
	"make an API key":                          "POST /api/oauth/claude_cli/create_api_key",
	"make an API key by GET":                   "GET /api/oauth/claude_cli/create_api_key",
	"make an API key, slash behind":            "POST /api/oauth/claude_cli/create_api_key/",
	"make an API key, encoded":                 "POST /api/oauth/claude_cli/create%5Fapi_key",
	"make an API key, encoded twice":           "POST /api/oauth/claude_cli/create%255Fapi_key",
	"make an API key, by dots":                 "POST /v1/messages/../../api/oauth/claude_cli/create_api_key",
	"make an API key, by encoded dots":         "POST /v1/messages/%2e%2e/%2e%2e/api/oauth/claude_cli/create_api_key",
	"make an API key, two slashes":             "POST //api/oauth/claude_cli/create_api_key",
	"make an API key, a parameter":             "POST /v1/messages/..;/api/oauth/claude_cli/create_api_key",
	"make an API key, in capitals":             "POST /API/oauth/claude_cli/Create_API_key",
	"make an organization's key":               "POST /v1/organizations/api_keys",
	"make an external key":                     "POST /v1/organizations/external_keys",
	"make a key below an organization":         "POST /api/oauth/organizations/1/api_keys",
	"list keys of an organization":             "GET /api/oauth/organizations/1/api_keys",
	"read a vault":                             "GET /v1/vaults/1/credentials",
	"reveal a tunnel's token":                  "POST /v1/tunnels/1/reveal_token",
	"rotate a tunnel's token":                  "POST /v1/tunnels/1/rotate_token",
	"a place that nobody listed":               "GET /v1/something/new",
	"make a key below a place that is listed":  "POST /v1/files/api_keys",
	"a GitHub app's token":                     "POST /app/installations/1/access_tokens",
	"a GitHub runner's token":                  "POST /repos/a/b/actions/runners/registration-token",
	"a GitHub runner's token, slashes encoded": "POST /repos/a/b/actions/runners/registration%2Dtoken",
}

// Whoever is let do these has a secret of their own afterwards, or the user has none any more, or somebody else is let
// in. It is not a list of what is refused: what is not listed is.
//
// Promise: no login, no API key, no token of git's.
func TestAtKnownHostsAPlaceholderWritesWhereWorkNeedsIt(t *testing.T) {
	for place, want := range map[string]bool{
		"POST api.github.com/user/keys": false, "POST api.github.com/user/gpg_keys": false, "POST api.github.com/user/ssh_signing_keys": false,
		"POST api.github.com/repos/a/b/keys": false, "DELETE api.github.com/installation/token": false, "DELETE api.github.com/user%2Fkeys": false,
		"DELETE api.github.com/user/keys/1": false, "DELETE api.github.com/repos/a/b/keys/1": false, "POST api.github.com/user/keys;x": false,
		"POST api.github.com/user/keys%20": false, "POST api.github.com//user/keys": false, "POST api.github.com/User/Keys": false,
		"POST api.github.com/repos/a/b/issues/../keys": false, "POST api.github.com/repos/a/b/issues/..%2Fkeys": false,
		"POST api.github.com/repos/a/b/issues/%2e%2e/keys": false, "POST api.github.com/repos/a/b/issues//": false,
		"POST api.github.com/repos/a/b/issues/..;/keys": false, "POST api.github.com/repos/a/b/issues\\..\\keys": false,
		"POST api.github.com/repos/a/b/issues/%2500": false, "POST api.github.com/repos/a/b/issues/%c0%ae%c0%ae/keys": false, "POST api.github.com/repos/a/../keys/issues": false,
		"PUT api.github.com/repos/a/b/collaborators/evil": false, "POST api.github.com/repos/a/b/hooks": false, "DELETE api.github.com/repos/a/b": false,
		"PATCH api.github.com/repos/a/b": false, "PUT api.github.com/repos/a/b/actions/secrets/X": false, "POST api.github.com/orgs/a/invitations": false,
		"POST github.com/settings/tokens": false, "POST gist.github.com/x": false, "PROPPATCH api.github.com/user/keys": false, "get api.github.com/user/keys": false,
		"POST gitlab.com/api/v4/personal_access_tokens/self/rotate": false, "DELETE gitlab.com/api/v4/personal_access_tokens/self": false,
		"POST gitlab.com/api/v4/user/keys": false, "POST gitlab.com/api/v4/projects/1/deploy_tokens": false, "POST gitlab.com/oauth/revoke": false,
		"DELETE gitlab.com/api/v4/user/keys/1": false, "POST gitlab.com/api/v4/projects/1/triggers": false,
		"POST gitlab.com/api/v4/projects/1/cluster_agents/1/tokens": false, "POST gitlab.com/api/v4/projects/1/error_tracking/client_keys": false,
		"POST gitlab.com/api/v4/applications": false, "POST gitlab.com/api/v4/projects/1%2F..%2F..%2Fuser/issues": false, "POST gitlab.com/api/v4/code_suggestions/direct_access": false,
		"POST api.openai.com/v1/realtime/client_secrets": false, "POST api.openai.com/v1/chatkit/sessions": false, "POST api.openai.com/v1/organization/admin_api_keys": false,
		"POST generativelanguage.googleapis.com/v1alpha/auth_tokens": false, "POST openrouter.ai/api/v1/keys": false, "POST openrouter.ai/api/v1/auth/keys": false,
		"POST huggingface.co/settings/tokens": false, "PUT huggingface.co/api/models/a/b/settings": false, "POST huggingface.co/api/spaces/a/b/secrets": false,
		"DELETE registry.npmjs.org/-/npm/v1/tokens/token/1": false, "PUT registry.npmjs.org/-/user/org.couchdb.user:a": false,
		"POST registry.npmjs.org/-%2Fnpm%2Fv1%2Ftokens": false, "POST registry.npmjs.org/@-%2Fnpm%2Fv1%2Ftokens": false, "POST pypi.org/manage/account/token/": false,
		"POST api.anthropic.com/v1/organizations/api_keys": false, "GET api.anthropic.com/v1/organizations/api_keys": false, "POST api.anthropic.com/v1/new": false,

		// What changes rights, approves, or unprotects lies below paths that are listed.
		"POST api.github.com/repos/a/b/actions/runs/1/approve": false, "POST api.github.com/repos/a/b/actions/runs/1/pending_deployments": false,
		"POST api.github.com/repos/a/b/actions/runs/1/deployment_protection_rule": false, "PUT api.github.com/repos/a/b/actions/workflows/1/enable": false,
		"PUT api.github.com/repos/a/b/actions/workflows/1/disable": false, "PATCH api.github.com/repos/a/b/check-suites/preferences": false,
		"PATCH api.github.com/repos/a/b/code-scanning/default-setup": false, "POST api.github.com/repos/a/b/code-scanning/codeql/variant-analyses": false,
		"POST api.github.com/repos/a/b/pulls/1/codespaces": false, "POST api.github.com/repos/a/b/pulls/1/Codespaces": false,
		"PUT gitlab.com/api/v4/projects/1/repository/branches/main/unprotect": false, "PUT gitlab.com/api/v4/projects/1/repository/branches/main/protect": false,
		"PUT gitlab.com/api/v4/projects/1/repository/branches/main%2Funprotect": false, "PUT gitlab.com/api/v4/projects/1/repository/branches/main/unprotect.json": false,
		"DELETE gitlab.com/api/v4/projects/1/protected_branches/main": false, "DELETE gitlab.com/api/v4/projects/1/protected_tags/v1": false,
		"POST gitlab.com/api/v4/projects/1/merge_requests/1/approvals": false, "POST gitlab.com/api/v4/projects/1/merge_requests/1/approvals.json": false,
		"POST gitlab.com/api/v4/projects/1/merge_requests/1/approval_rules": false, "DELETE gitlab.com/api/v4/projects/1/merge_requests/1/approval_rules/1": false,
		"POST gitlab.com/api/v4/projects/1/merge_requests/1/status_check_responses": false, "PUT gitlab.com/api/v4/projects/1/merge_requests/1/reset_approvals": false,
		"POST gitlab.com/api/v4/projects/1/packages/protection/rules": false, "DELETE gitlab.com/api/v4/projects/1/packages/protection/rules/1": false,
		"PUT registry.npmjs.org/left-pad/-rev/1-a": false, "PUT registry.npmjs.org/@a%2fb/-rev/1-a": false, "DELETE registry.npmjs.org/left-pad/-rev/1-a": false,
		"DELETE registry.npmjs.org/left-pad/-/left-pad-1.0.0.tgz/-rev/1-a": false, "POST registry.npmjs.org/-/package/left-pad/access": false,
		"POST aiplatform.googleapis.com/v1/projects/p/locations/l/endpoints/1:setIamPolicy": false, "PATCH aiplatform.googleapis.com/v1/projects/p/locations/l/endpoints/1": false,
		"POST aiplatform.googleapis.com/v1/projects/p/locations/l/endpoints/1:deployModel": false, "POST aiplatform.googleapis.com/v1/projects/p/locations/l/endpoints": false,
		"POST aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/google/models/m:predict:setIamPolicy": false,
		"POST huggingface.co/api/organizations/a/b/tag/x":                                                          false,

		"PATCH api.github.com/repos/a/b/pulls/1": true, "POST api.github.com/repos/a/b/pulls/comments/1/reactions": true, "POST api.github.com/repos/a/b/pulls/1/comments/2/replies": true,
		"POST api.github.com/repos/a/b/pulls/1/requested_reviewers": true, "PUT api.github.com/repos/a/b/pulls/1/reviews/2/dismissals": true,
		"POST api.github.com/repos/a/b/actions/runs/1/rerun-failed-jobs": true, "DELETE api.github.com/repos/a/b/actions/runs/1": true,
		"POST api.github.com/repos/a/b/check-suites/1/rerequest": true, "PATCH api.github.com/repos/a/b/code-scanning/alerts/1": true,
		"PATCH api.github.com/repos/a/b/releases/1": true, "DELETE api.github.com/repos/a/b/git/refs/heads/x": true,
		"PUT gitlab.com/api/v4/projects/1/merge_requests/1/merge": true, "PUT gitlab.com/api/v4/projects/1/merge_requests/1": true,
		"POST gitlab.com/api/v4/projects/1/merge_requests/1/discussions/a/notes": true, "DELETE gitlab.com/api/v4/projects/1/repository/branches/a%2Fb": true,
		"POST gitlab.com/api/v4/projects/1/repository/files/lib%2Fa.rb": true, "POST gitlab.com/api/v4/projects/1/repository/commits/a/cherry_pick": true,
		"PUT gitlab.com/api/v4/projects/1/packages/generic/a/1/f": true, "PUT gitlab.com/api/v4/projects/1/packages/npm/@a%2fb": true,
		"POST aiplatform.googleapis.com/v1/projects/p/locations/l/endpoints/openapi/chat/completions": true,
		"POST aiplatform.googleapis.com/v1/projects/p/locations/l/endpoints/1:rawPredict":             true, "POST huggingface.co/api/datasets/a/b/discussions/1/comment": true,

		"GET api.github.com/user/keys": true, "HEAD api.github.com/user/keys": true, "POST api.github.com/repos/a/keys/issues": true, "POST api.github.com/graphql": true,
		"POST api.github.com/repos/a/b/pulls": true, "PUT api.github.com/repos/a/b/pulls/1/merge": true, "PUT api.github.com/repos/a/b/contents/x%20y/%C3%A4.txt": true,
		"POST api.github.com/repos/a/b/actions/workflows/ci.yml/dispatches": true, "POST uploads.github.com/repos/a/b/releases/1/assets": true,
		"POST github.com/a/keys.git/git-receive-pack": true, "POST github.com/a/b/git-upload-pack": true, "POST github.com/a/b.git/info/lfs/objects/batch": true,
		"POST gitlab.com/a/b.git/git-receive-pack": true, "POST gitlab.com/a/b/c/d.git/git-upload-pack": true, "POST gitlab.com/api/v4/projects/a%2Fb%2fc/merge_requests": true,
		"POST api.openai.com/v1/chat/completions": true, "POST api.openai.com/v1/responses": true, "PUT registry.npmjs.org/@a%2fb": true, "PUT registry.npmjs.org/left-pad": true,
		"POST generativelanguage.googleapis.com/v1beta/models/gemini-3-pro:streamGenerateContent": true, "POST upload.pypi.org/legacy/": true,
		"POST openrouter.ai/api/v1/chat/completions": true, "POST huggingface.co/api/models/a/b/commit/main": true, "POST router.huggingface.co/v1/chat/completions": true,
		"POST api.anthropic.com/v1/messages": true, "POST us-central1-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/google/models/m:generateContent": true,
		"POST foo.example/user/keys": true, "POST notgithub.com/user/keys": true,
	} {
		method, rest, _ := strings.Cut(place, " ")
		host, path, _ := strings.Cut(rest, "/")
		s := known{broker.Secret{Hosts: []string{host}}, nil}
		if why := s.mayGo(broker.Target{Host: host, Port: broker.HTTPSPort}, method, "/"+path); (why == "") != want {
			t.Errorf("%s: %q", place, why)
		}
	}
}

// What a profile says comes to the list of a known host, and is the list of another.
func TestAProfileSaysWhereElseAPlaceholderWrites(t *testing.T) {
	for place, want := range map[string]bool{
		"POST api.github.com/user/keys": true, "DELETE api.github.com/user/keys": false, "POST api.github.com/repos/a/b/hooks/1": true,
		"POST api.github.com/repos/a/b/issues": true, "POST api.github.com/repos/a/b/keys": false, "POST foo.example/other": false, "GET foo.example/other": true,
	} {
		method, rest, _ := strings.Cut(place, " ")
		host, path, _ := strings.Cut(rest, "/")
		s := known{broker.Secret{Hosts: []string{host}, Write: []broker.Path{broker.ParsePath("POST /user/keys"), broker.ParsePath("/repos/*/*/hooks/")}}, nil}
		if why := s.mayGo(broker.Target{Host: host, Port: broker.HTTPSPort}, method, "/"+path); (why == "") != want {
			t.Errorf("%s: %q", place, why)
		}
	}
}

// A request of GraphQL does what its document says.
func TestNoMutationMakesKeysOrLetsAnybodyIn(t *testing.T) {
	const json, form = "application/json; charset=utf-8", "application/x-www-form-urlencoded"
	document := func(text string) string {
		return `{"query":` + strings.ReplaceAll(fmt.Sprintf("%q", text), "\\ufeff", "\ufeff") + `,"variables":{"input":{}}}`
	}
	for name, tc := range map[string]struct {
		query, kind, body, told string
	}{
		"a question":                  {"", json, document(`query Q($input: Int = 3, $n: Int) { viewer { login repositories(first: $n) { id } } }`), ""},
		"a question by curl":          {"", form, document(`{ viewer { login } }`), ""},
		"gh's pull request":           {"", json, document(`mutation PullRequestCreate($input: CreatePullRequestInput!) { createPullRequest(input: $input) { pullRequest { id } } }`), ""},
		"a key's name in a text":      {"", json, document(`mutation { addComment(input: {body: "regenerateVerifiableDomainToken(input:"}) { id } }`), ""},
		"a project made public":       {"", json, document(`mutation { updateProjectV2(input: {public: true}) { clientMutationId } }`), "updateProjectV2"},
		"a team let in":               {"", json, document(`mutation { linkProjectV2ToTeam(input: {}) { clientMutationId } }`), "linkProjectV2ToTeam"},
		"recovery codes":              {"", json, document(`mutation M($input: X!) { regenerateEnterpriseIdentityProviderRecoveryCodes(input: $input) { id } }`), "regenerateEnterprise"},
		"by another name":             {"", json, document(`mutation { addComment: regenerateVerifiableDomainToken (input: {}) { id } }`), "regenerateVerifiable"},
		"behind a listed one":         {"", json, document("mutation { addComment(input: {}) { id } regenerateVerifiableDomainToken(\n# )\n,input\t: {}) { id } }"), "regenerateVerifiable"},
		"behind a mark of byte order": {"", json, document("mutation { regenerateVerifiableDomainToken(input\ufeff: {}) { id } }"), "regenerateVerifiable"},
		"behind another argument":     {"", json, document(`mutation { regenerateVerifiableDomainToken(a: [{input: 1}], b: "(", input: {}) { id } }`), "for a mutation"},
		"in a fragment":               {"", json, document(`mutation { ...f } fragment f on Mutation { x: regenerateVerifiableDomainToken(input: {}) { id } }`), "regenerateVerifiable"},
		"behind an empty text":        {"", json, document(`mutation { a(b: "") regenerateVerifiableDomainToken(input: {c: """ \""" """}) { id } }`), "regenerateVerifiable"},
		"in letters that are escaped": {"", json, `{"query":"mutation { \u0072egenerateVerifiableDomainToken(\u0069nput: {}) { id } }"}`, "regenerateVerifiable"},
		"a text without end":          {"", json, document("mutation { a(b: \"\n) regenerateVerifiableDomainToken(input: {}) { id } }"), "cannot be judged"},
		"signs of no document":        {"", json, document("mutation { \x0c }"), "cannot be judged"},
		"two documents":               {"", json, `{"query":"mutation { x(input: {}) }","query":"{ a }"}`, "cannot be judged"},
		"a list of documents":         {"", json, `[{"query":"{ a }"}]`, "cannot be judged"},
		"a document that is kept":     {"", json, `{"query":"{ a }","extensions":{"persistedQuery":{}}}`, "cannot be judged"},
		"none":                        {"", json, `{}`, "cannot be judged"},
		"something behind it":         {"", json, document(`{ a }`) + "{}", "cannot be judged"},
		"in the address":              {"?query=mutation", json, document(`{ a }`), "cannot be judged"},
		"a form":                      {"", form, `{"a":"&query=mutation { x }&"}`, "cannot be judged"},
		"a form that is JSON, too":    {"", form, document(`{ a }&query=mutation`), "cannot be judged"},
		"in parts":                    {"", "multipart/form-data; boundary=x", document(`{ a }`), "cannot be judged"},
		"a long one":                  {"", json, document(strings.Repeat(" ", mostDocument)), "cannot be judged"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			status, text, _ := w.send("POST", hub+"/graphql"+tc.query, tc.body, "Authorization", "Bearer "+w.placeholder("GH_TOKEN"), "Content-Type", tc.kind)
			if tc.told == "" {
				if status != http.StatusOK || w.last() == nil || w.bodies[0] != tc.body || w.last().Header.Get("Authorization") != "Bearer "+trueGitHub {
					t.Errorf("%d, %s; upstream heard %q", status, text, w.bodies)
				}
			} else if status != http.StatusForbidden || w.last() != nil || !strings.Contains(w.keeper.said(), tc.told) {
				t.Errorf("%d, %s; told %s", status, text, w.keeper.said())
			}
		})
	}
}

// tried asks for a place with the placeholder that is for its host.
func tried(name, place string) attempt {
	method, path, _ := strings.Cut(place, " ")
	a := attempt{do: asked(method, api+path, "{}", bearer("{LOGIN}")...), want: "403", reported: own}
	if strings.Contains(name, "GitHub") {
		a.do, a.reported = asked(method, hub+path, "{}", bearer("{GH}")...), notWriting
	}
	return a
}

var ending = map[string]attempt{
	"revoke the login":                asked("POST", tokens+"/revoke", `{"token":"{REFRESH}"}`).ends("200", ""),
	"revoke the login elsewhere":      asked("POST", api+"/v1/oauth/token/revoke", `{"token":"{REFRESH}"}`).ends("200", ""),
	"revoke the login, encoded":       asked("POST", tokens+"/%72evoke", `{"token":"{REFRESH}"}`).ends("403", "unknown way"),
	"revoke the login, two slashes":   asked("POST", "https://platform.claude.com//v1/oauth/token/revoke", `{"token":"{REFRESH}"}`).ends("403", "unknown way"),
	"renew as another client":         asked("POST", tokens, `{"grant_type":"refresh_token","refresh_token":"{REFRESH}","client_id":"41077d10"}`).ends("503", ""),
	"renew with what is no token":     asked("POST", tokens, `{"grant_type":"refresh_token","refresh_token":"sk-ant-ort01-none","client_id":"{CLIENT}"}`).ends("503", ""),
	"renew with an access token":      asked("POST", tokens, `{"grant_type":"refresh_token","refresh_token":"{LOGIN}","client_id":"{CLIENT}"}`).ends("503", ""),
	"renew as a form":                 asked("POST", tokens, `grant_type=refresh_token&refresh_token={REFRESH}`, "Content-Type", "application/x-www-form-urlencoded").ends("400", ""),
	"renew at another path":           asked("POST", tokens+"/", `{"grant_type":"refresh_token","refresh_token":"{REFRESH}"}`).ends("403", "unknown way"),
	"renew in capitals":               asked("POST", "https://platform.claude.com/v1/OAuth/Token", `{"grant_type":"refresh_token","refresh_token":"{REFRESH}"}`).ends("403", "unknown way"),
	"exchange the token for another":  asked("POST", tokens, `{"grant_type":"urn:ietf:params:oauth:grant-type:token-exchange","subject_token":"{LOGIN}"}`).ends("403", "neither a code nor"),
	"a client's own grant":            asked("POST", tokens, `{"grant_type":"client_credentials"}`).ends("403", "neither a code nor"),
	"what renews the login, as login": asked("GET", api+"/v1/models", "", bearer("{REFRESH}")...).ends("403", "does not belong"),
}

var elsewhere = map[string]attempt{
	"the login to GitHub":              asked("GET", hub+"/echo", "", bearer("{LOGIN}")...).ends("403", "not its own"),
	"GitHub's token to Anthropic":      asked("POST", api+"/v1/messages", "{}", bearer("{GH}")...).ends("403", "not its own"),
	"GitHub's token to another":        asked("GET", "https://foo.example:8443/echo", "", bearer("{GH}")...).ends("403", "not its own"),
	"a host at another port":           asked("GET", "https://api.github.com:8443/echo", "", bearer("{GH}")...).ends("EOF", ""),
	"a host at the usual port":         asked("GET", "https://foo.example/foo", "", "X-Foo-Token", "{FOO}").ends("EOF", ""),
	"another name in TLS":              written(hubTarget, "evil.example", hello("api.github.com")).ends("421", "not the name"),
	"another name in TLS and Host":     written(hubTarget, "evil.example", hello("evil.example")).ends("421", "not the name"),
	"no name in TLS":                   written(hubTarget, "", hello("api.github.com")).ends("421", "not the name"),
	"another Host":                     hosted(hello("evil.example")).ends("421", "not the name"),
	"another Host that is brokered":    hosted(hello("github.com")).ends("421", "not the name"),
	"Host in capitals":                 hosted(hello("API.github.com")).passes("200"),
	"Host with a dot":                  hosted(hello("api.github.com.")).passes("200"),
	"Host with two dots":               hosted(hello("api.github.com..")).ends("421", "not the name"),
	"Host with a dot, at another port": hosted(hello("API.github.com.:8443")).ends("421", "not the name"),
	"Host with a colon and no port":    hosted(hello("api.github.com:")).ends("421", "not the name"),
	"another Host in capitals":         hosted(hello("GitHub.com")).ends("421", "not the name"),
	"Host at another port":             hosted(hello("api.github.com:8443")).ends("421", "not the name"),
	"Host with a user":                 hosted(hello("api.github.com@evil.example")).ends("4", ""),
	"a user in :authority":             got("/echo", ":authority", "api.github.com@evil.example", "authorization", "Bearer {GH}").ends("", ""),
	"Host below":                       hosted(hello("x.api.github.com")).ends("421", "not the name"),
	"Host, in another alphabet":        written(hubTarget, "xn--pi-7kc.github.com", hello("xn--pi-7kc.github.com")).ends("421", "not the name"),
	"no Host":                          hosted("GET /echo HTTP/1.0\r\nAuthorization: Bearer {GH}\r\n\r\n").ends("421", "not the name"),
	"two Hosts":                        hosted("GET /echo HTTP/1.1\r\nHost: api.github.com\r\nHost: evil.example\r\nAuthorization: Bearer {GH}\r\n\r\n").ends("400", ""),
	"name in TLS in capitals":          written(hubTarget, "API.github.com", hello("api.github.com")).passes("200"),
	"another name in TLS in capitals":  written(hubTarget, "GitHub.com", hello("api.github.com")).ends("421", "not the name"),
	"a whole address as path":          hosted("GET https://evil.example/echo HTTP/1.1\r\nHost: api.github.com\r\nAuthorization: Bearer {GH}\r\n\r\n").ends("421", "not the name"),
	"the own address as path":          hosted("GET https://api.github.com/echo HTTP/1.1\r\nHost: api.github.com\r\nAuthorization: Bearer {GH}\r\n\r\n").ends("400", "for a proxy"),
	"a tunnel in the connection":       hosted("CONNECT api.github.com:443 HTTP/1.1\r\nHost: api.github.com\r\nAuthorization: Bearer {GH}\r\n\r\n").ends("400", "for a proxy"),
	"another :authority in HTTP/2":     got("/echo", ":authority", "evil.example", "authorization", "Bearer {GH}").ends("421", "not the name"),
	"another host beside :authority":   got("/echo", ":authority", "api.github.com", "host", "evil.example", "authorization", "Bearer {GH}").ends("400", "a header Host"),
	"a whole address as :path": {
		do:   got("https://evil.example/echo", ":authority", "api.github.com", "authorization", "Bearer {GH}"),
		want: "400", reported: "for a proxy", ended: true, // Go 1.27
	},
	"two :authority":                  got("/echo", ":authority", "api.github.com", ":authority", "evil.example", "authorization", "Bearer {GH}").ends("", ""),
	"CONNECT in HTTP/2":               framed(":method", "CONNECT", ":authority", "api.github.com", "authorization", "Bearer {GH}").ends("400", "for a proxy"),
	"a line break in an HTTP/2 value": got("/echo", ":authority", "api.github.com", "x-a", "b\r\nAuthorization: Bearer {GH}").ends("", ""),
	"a redirect to another host":      asked("GET", hub+"/redirect", "", bearer("{GH}")...).passes("302"),
}

var misplaced = map[string]attempt{
	"in the path":                    asked("GET", hub+"/echo/{GH}", "").ends("403", "in an address"),
	"in the query":                   asked("GET", hub+"/echo?access_token={GH}", "").ends("403", "in an address"),
	"in the query, encoded":          asked("GET", hub+"/echo?access_token={GH-ENCODED}", "").ends("403", "in an address"),
	"in the body":                    asked("POST", hub+"/echo", "token={GH}").ends("200", ""),
	"in a cookie":                    asked("GET", hub+"/echo", "", "Cookie", "t={GH}").ends("403", "does not belong"),
	"in another header":              asked("GET", hub+"/echo", "", "X-Other", "{GH}").ends("403", "does not belong"),
	"in the wrong one of two forms":  asked("POST", api+"/v1/messages", "{}", "X-Api-Key", "{LOGIN}").ends("403", "does not belong"),
	"a login as a password":          asked("POST", api+"/v1/messages", "{}", "Authorization", "Basic {LOGIN-PASSWORD}").ends("403", "does not belong"),
	"with another path in a header":  asked("POST", api+"/v1/messages", "{}", "Authorization", "Bearer {LOGIN}", "X-Original-URL", "/api/oauth/claude_cli/create_api_key").ends("403", "another path"),
	"with another method behind GET": asked("GET", hub+"/repos/a/b/actions/runners/registration-token", "", "Authorization", "Bearer {GH}", "X-Http-Method-Override", "POST").ends("403", notWriting),
	"with a method in the query":     asked("GET", hub+"/repos/a/b?x;%5Fmethod=DELETE", "", "Authorization", "Bearer {GH}").ends("403", notWriting),
	"with a method, underscores":     asked("GET", hub+"/repos/a/b/actions/runners/registration-token", "", "Authorization", "Bearer {GH}", "X_HTTP_Method_Override", "POST").ends("403", notWriting),
	"with a path, underscores":       asked("POST", api+"/v1/messages", "{}", "Authorization", "Bearer {LOGIN}", "X_Original-URL", "/api/oauth/claude_cli/create_api_key").ends("403", "another path"),
	"as a user's name":               asked("GET", hub+"/echo", "", "Authorization", "Basic {GH-USER}").ends("403", "does not belong"),
	"with more behind it":            asked("GET", hub+"/echo", "", "Authorization", "Bearer {GH} x").ends("403", "does not belong"),
	"by another scheme":              asked("GET", hub+"/echo", "", "Authorization", "Digest {GH}").ends("403", "does not belong"),
	"in one header twice":            asked("GET", hub+"/echo", "", "Authorization", "Bearer {GH}", "Authorization", "Bearer {GH}").ends("403", "stands twice"),
	"on two lines": {do: hosted(
		"GET /echo HTTP/1.1\r\nHost: api.github.com\r\nAuthorization: Bearer {GH-BEGIN}\r\n {GH-END}\r\nConnection: close\r\n\r\n")},
	"behind the body": {do: hosted(
		"POST /echo HTTP/1.1\r\nHost: api.github.com\r\nTransfer-Encoding: chunked\r\nTrailer: Authorization\r\nConnection: close\r\n\r\n0\r\nAuthorization: Bearer {GH}\r\n\r\n")},
	"two lengths of a body": {do: hosted(
		"POST /echo HTTP/1.1\r\nHost: api.github.com\r\nContent-Length: 4\r\nContent-Length: 60\r\n\r\nabcd" + hello("evil.example")), want: "400"},
	"a second request in a body": {do: hosted(
		"POST /echo HTTP/1.1\r\nHost: api.github.com\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n" + hello("evil.example"))},
	"an unknown coding of a body": {do: hosted(
		"POST /echo HTTP/1.1\r\nHost: api.github.com\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + hello("evil.example")), want: "501"},
	"credentials for a proxy":     asked("GET", hub+"/echo", "", "Proxy-Authorization", "Bearer {GH}").ends("40", "Proxy-Authorization"),
	"after the body is asked for": asked("POST", hub+"/echo", "token={GH}", "Authorization", "Bearer {GH}", "Expect", "100-continue").passes("200"),
	"before another protocol, in clear": {do: hosted(
		"GET /echo HTTP/1.1\r\nHost: api.github.com\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n" +
			"Authorization: Bearer {GH}\r\n\r\n"), want: "200", sent: true},
	"as a header of the connection alone": {
		do: hosted(
			"GET /echo HTTP/1.1\r\nHost: api.github.com\r\nConnection: Authorization, close\r\nAuthorization: Bearer {GH}\r\n\r\n"),
		want: "200", sent: true,
	},
	"in a header that looks like it": asked("GET", hub+"/echo", "", "Authorization_", "Bearer {GH}").ends("403", "does not belong"),
	"in a header with a blank behind its name": {do: hosted(
		"GET /echo HTTP/1.1\r\nHost: api.github.com\r\nAuthorization : Bearer {GH}\r\n\r\n"), want: "400"},
	"in another's forwarded header":        asked("GET", hub+"/echo", "", "X-Forwarded-Authorization", "Bearer {GH}").ends("403", "does not belong"),
	"beside what the agent brought itself": asked("GET", hub+"/echo", "", "Authorization", "Bearer mine", "Authorization", "Bearer {GH}").ends("403", "stands twice"),
	"in pieces of a header in HTTP/2":      continued(2, "authorization", "Bearer {GH}").passes("200"),
	"behind a flood of pieces":             {do: continued(200_000, "authorization", "Bearer {GH}")},
	"in a header without end in HTTP/2": {do: func(w *world) string {
		return got("/echo", ":authority", "api.github.com", "authorization", "Bearer {GH}", "x", strings.Repeat("a", 2*maxHeader))(w)
	}},
	"changed by one letter": {do: func(w *world) string {
		p := []byte(w.placeholder("GH_TOKEN"))
		p[len(p)-1] ^= 1
		return asked("GET", hub+"/echo", "", bearer(string(p))...)(w)
	}, want: "200"},
	"of another launch": {do: func(w *world) string {
		return asked("GET", hub+"/echo", "", bearer(broker.NewKey().Placeholder("GH_TOKEN", trueGitHub))...)(w)
	}, want: "200"},
}

var comingBack = map[string]attempt{
	"an echo in the body":                            asked("GET", hub+"/echo", "", bearer("{GH}")...).passes("200"),
	"an echo of a password":                          asked("GET", hub+"/echo", "", "Authorization", "Basic {GH-PASSWORD}").passes("200"),
	"an echo behind the body":                        asked("GET", hub+"/trailer", "", bearer("{GH}")...).passes("200"),
	"an echo behind the body that was not announced": asked("GET", hub+"/unannounced", "", bearer("{GH}")...).passes("200"),
	"an echo ahead of the answer":                    hosted(strings.Replace(hello("api.github.com"), "/echo", "/early", 1)).passes("200"),
	"an echo in another alphabet": {do: func(w *world) string {
		text := asked("GET", hub+"/echo", "", "Authorization", "Bearer {GH}", "Accept-Charset", "utf-16", "Accept_Charset", "utf-16")(w)
		if h := w.last().Header; len(h["Accept-Charset"])+len(h["Accept_charset"]) > 0 {
			w.t.Error("another alphabet was asked for")
		}
		return text
	}, want: "200", sent: true},
	"an echo in packed messages": {do: func(w *world) string {
		text := asked("POST", hub+"/echo", "", "Authorization", "Bearer {GH}", "Grpc-Accept-Encoding", "gzip", "Connect-Accept-Encoding", "gzip")(w)
		if h := w.last().Header; h.Get("Grpc-Accept-Encoding")+h.Get("Connect-Accept-Encoding") != "" {
			w.t.Errorf("packed messages were asked for: %v", h)
		}
		return text
	}, want: "200", sent: true},
	"an echo that is packed, and says it second": {
		do:   asked("GET", hub+"/packed-twice", "", "Authorization", "Bearer {GH}"),
		want: "502", reported: "packed", sent: true,
	},
	"an echo that is packed": {
		do:   asked("GET", hub+"/packed", "", "Authorization", "Bearer {GH}", "Accept-Encoding", "gzip"),
		want: "502", reported: "packed", sent: true,
	},
	"an echo in frames of HTTP/2": {do: func(w *world) string {
		text := hosted("GET /echo HTTP/1.1\r\nHost: api.github.com\r\nAuthorization: Bearer {GH}\r\n" +
			"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n")(w)
		if w.last().Header.Get("Upgrade") != "" {
			w.t.Error("another protocol was asked for")
		}
		return text
	}, want: "200", sent: true},
	"an echo in pieces": {do: func(w *world) string {
		text := asked("GET", hub+"/echo", "", "Authorization", "Bearer {GH}", "Range", "bytes=0-60")(w)
		if w.last().Header.Get("Range") != "" {
			w.t.Error("a piece of the answer was asked for")
		}
		return text
	}, want: "200", sent: true},
}

const backslashes = "POST /v1/messages\\..\\..\\api\\oauth\\claude_cli\\create_api_key HTTP/1.1\r\n" +
	"Host: api.anthropic.com\r\nAuthorization: Bearer {LOGIN}\r\nContent-Length: 0\r\n\r\n"

func hello(host string) string {
	return "GET /echo HTTP/1.1\r\nHost: " + host + "\r\nAuthorization: Bearer {GH}\r\nConnection: close\r\n\r\n"
}

// Promise: no login, no API key, no token of git's.
func TestNoAttemptGetsASecretOutOrDestroysIt(t *testing.T) {
	count := 0
	making := map[string]attempt{
		"make an API key, backslashes": written(apiTarget, apiTarget.Host, backslashes).ends("403", own),
	}
	for name, place := range keyMaking {
		making[name] = tried(name, place)
	}
	for subject, attempts := range map[string]map[string]attempt{
		"key making": making, "ending": ending, "elsewhere": elsewhere, "misplaced": misplaced, "coming back": comingBack,
	} {
		for name, a := range attempts {
			count++
			t.Run(subject+"/"+name, func(t *testing.T) {
				w := newWorld(t)
				seen := a.do(w)
				if canaryIn(seen) {
					t.Errorf("a true secret is seen inside: %s", seen)
				}
				if a.ended && strings.Contains(seen, "RST_STREAM") {
					a.want, a.reported = "RST_STREAM", ""
				}
				if !strings.Contains(seen, a.want) {
					t.Errorf("seen: %s\nwant %q", seen, a.want)
				}
				if said := w.keeper.said(); a.reported == "" && said != "[]" || !strings.Contains(said, a.reported) {
					t.Errorf("told: %s; want %q", said, a.reported)
				}
				w.nothingWent(t, a.sent)
				if w.grants != 0 {
					t.Error("the token endpoint was asked")
				}
			})
		}
	}
	t.Logf("%d attempts", count)
}

// nothingWent wants no true secret to have reached a server, but in a header
// of its own host where that is said.
func (w *world) nothingWent(t *testing.T, own bool) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, r := range w.requests {
		if canaryIn(r.RequestURI) || canaryIn(w.bodies[i]) || canaryIn(fmt.Sprint(r.Trailer)) {
			t.Errorf("a true secret is in %s %s\n%s", r.Method, r.RequestURI, w.bodies[i])
		}
		if canaryIn(fmt.Sprint(r.Header)) && !own {
			t.Errorf("a true secret went to %s%s: %v", r.Host, r.RequestURI, r.Header)
		}
		if r.URL.Path == "/v1/oauth/token/revoke" {
			t.Error("a login was revoked")
		}
	}
}

// got is a request of HTTP/2 for a path, with more fields.
func got(path string, fields ...string) way {
	return framed(append([]string{":method", "GET", ":scheme", "https", ":path", path}, fields...)...)
}

// framed is an attempt by one HTTP/2 request with fields in pairs, in order.
func framed(fields ...string) way {
	return func(w *world) string {
		c := tls.Client(w.connect(hubTarget), &tls.Config{ServerName: hubTarget.Host, RootCAs: w.roots, NextProtos: []string{"h2"}})
		must.Do(w.t, c.SetDeadline(time.Now().Add(20*time.Second))) // it only bounds a hang
		_, err := io.WriteString(c, http2.ClientPreface)
		must.Do(w.t, err)
		f := http2.NewFramer(c, c)
		must.Do(w.t, f.WriteSettings())
		must.Do(w.t, f.WriteHeaders(http2.HeadersFrameParam{
			StreamID: 1, BlockFragment: encoded(w, fields...), EndHeaders: true, EndStream: true,
		}))
		return readFrames(f)
	}
}

// continued is a request of HTTP/2 whose head comes in pieces: it is cut at its
// end, after so many pieces of a field that is filling.
func continued(pieces int, fields ...string) way {
	return func(w *world) string {
		c := tls.Client(w.connect(hubTarget), &tls.Config{ServerName: hubTarget.Host, RootCAs: w.roots, NextProtos: []string{"h2"}})
		must.Do(w.t, c.SetDeadline(time.Now().Add(20*time.Second))) // it only bounds a hang
		_, err := io.WriteString(c, http2.ClientPreface)
		must.Do(w.t, err)
		f := http2.NewFramer(c, c)
		must.Do(w.t, f.WriteSettings())
		block := encoded(w, append([]string{":method", "GET", ":scheme", "https", ":path", "/echo", ":authority", "api.github.com"}, fields...)...)
		cut := len(block) - 9
		must.Do(w.t, f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block[:cut], EndStream: true}))
		more := encoded(w, "x-filling", strings.Repeat("a", 100))
		for range pieces - 2 {
			if f.WriteContinuation(1, false, more) != nil {
				break // it has closed the connection
			}
		}
		_ = f.WriteContinuation(1, true, block[cut:])
		return readFrames(f)
	}
}

func encoded(w *world, fields ...string) []byte {
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	fill := w.filler()
	for i := 0; i < len(fields); i += 2 {
		must.Do(w.t, e.WriteField(hpack.HeaderField{Name: fields[i], Value: fill.Replace(fields[i+1])}))
	}
	return block.Bytes()
}

func readFrames(f *http2.Framer) string {
	var seen strings.Builder
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return seen.String() + err.Error()
		}
		switch frame := frame.(type) {
		case *http2.MetaHeadersFrame:
			fmt.Fprintln(&seen, frame.Fields)
		case *http2.DataFrame:
			seen.Write(frame.Data())
		case *http2.RSTStreamFrame:
			return seen.String() + fmt.Sprint(frame)
		}
		if frame.Header().StreamID == 1 && frame.Header().Flags.Has(http2.FlagDataEndStream) {
			return seen.String()
		}
	}
}

// A code that anybody gave makes a login of this instance. Neither its tokens
// nor the user's are seen inside, and the user's stays what it is.
func TestAStrangersCodeMakesALoginOfTheInstanceAlone(t *testing.T) {
	for name, tc := range map[string]struct {
		body string
		kept int
	}{
		"Claude's own client": {`{"grant_type":"authorization_code","code":"c","client_id":"` + broker.Client + `"}`, 1},
		"the console's":       {`{"grant_type":"authorization_code","code":"c","client_id":"41077d10"}`, 0},
		"setup-token":         {`{"grant_type":"authorization_code","code":"c","client_id":"` + broker.Client + `","expires_in":9}`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			status, text, _ := w.send("POST", tokens, tc.body)
			if status != 200 || canaryIn(text) {
				t.Errorf("status %d, %s", status, text)
			}
			if len(w.keeper.kept) != tc.kept || tc.kept > 0 && w.keeper.kept[0].Access != strangerAccess+"1" {
				t.Errorf("kept %+v", w.keeper.kept)
			}
			if access, _, _ := w.broker.login(); (access == trueAccess) != (tc.kept == 0) {
				t.Errorf("the login of this session is %q", access)
			}
			_, access, _ := strings.Cut(text, `"access_token":"`)
			access, _, _ = strings.Cut(access, `"`)
			if status, text, _ := w.send("POST", api+"/v1/messages", "{}", bearer(access)...); status != 200 || canaryIn(text) {
				t.Errorf("status %d, %s", status, text)
			}
			if got := w.last().Header.Get("Authorization"); got != "Bearer "+strangerAccess+"1" {
				t.Errorf("upstream got %q", got)
			}
			if status, _, _ := w.send("POST", api+"/api/oauth/claude_cli/create_api_key", "{}", bearer(access)...); status != 403 {
				t.Errorf("a key was made: %d", status)
			}
		})
	}
}

// The user's own secrets leave no fewer logins to an agent, and an agent cannot add logins without end.
func TestASessionKeepsSoManyLoginsOfAnyNumberOfSecrets(t *testing.T) {
	w := newWorld(t, func(c *broker.Config) {
		for i := range 40 {
			c.Secrets = append(c.Secrets, broker.Secret{Name: fmt.Sprint("MORE", i), Value: fmt.Sprint("CANARY-more-", i), Hosts: []string{"foo.example:8443"}})
		}
	})
	logIn := func() (status int, text, access string) {
		status, text, _ = w.send("POST", tokens, `{"grant_type":"authorization_code","code":"c","client_id":"41077d10"}`)
		_, access, _ = strings.Cut(text, `"access_token":"`)
		access, _, _ = strings.Cut(access, `"`)
		return status, text, access
	}
	for i := range mostLogins {
		status, text, access := logIn()
		if status != 200 || canaryIn(text) {
			t.Fatalf("login %d: %d, %s", i+1, status, text)
		}
		status, text, _ = w.send("POST", api+"/v1/messages", "{}", bearer(access)...)
		if want := fmt.Sprint("Bearer ", strangerAccess, i+1); status != 200 || w.last().Header.Get("Authorization") != want {
			t.Fatalf("login %d: %d, %s; upstream got %q", i+1, status, text, w.last().Header.Get("Authorization"))
		}
	}
	if said := w.keeper.said(); said != "[]" {
		t.Errorf("told %s", said)
	}
	status, text, access := logIn()
	if status != http.StatusForbidden || access != "" || canaryIn(text) || !strings.Contains(text, "start another session") {
		t.Errorf("one login more: %d, %s", status, text)
	}
	if !strings.Contains(w.keeper.said(), "a login beyond the 32") {
		t.Errorf("the user is told %s", w.keeper.said())
	}
}

// What a server proves wrongly, it is sent nothing.
func TestAServerWithABadCertificateIsSentNothing(t *testing.T) {
	now := time.Now()
	for name, change := range map[string]func(*x509.Certificate){
		"expired":          func(c *x509.Certificate) { c.NotAfter = now.Add(-time.Minute) },
		"not valid yet":    func(c *x509.Certificate) { c.NotBefore = now.Add(time.Hour) },
		"of another name":  func(c *x509.Certificate) { c.DNSNames = []string{"evil.example"} },
		"of no server":     func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} },
		"of a wide domain": func(c *x509.Certificate) { c.DNSNames = []string{"*.com"} },
	} {
		t.Run(name, func(t *testing.T) {
			key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
			must.Do(t, err)
			template := &x509.Certificate{
				SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), DNSNames: []string{"api.github.com"},
				IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
			}
			change(template)
			der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
			must.Do(t, err)
			w := newWorld(t, func(c *broker.Config) { c.Roots = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}) })
			w.upstream.TLS.Certificates = []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}
			status, text, _ := w.send("GET", hub+"/echo", "", bearer(w.placeholder("GH_TOKEN"))...)
			if status != http.StatusBadGateway || w.last() != nil || !strings.Contains(w.keeper.said(), "not verified") {
				t.Errorf("%d, %s; told %s", status, text, w.keeper.said())
			}
		})
	}
}

// The authority of a launch is good for its own names, for nobody else's.
func TestTheAuthorityIsBoundToItsNames(t *testing.T) {
	a, err := broker.NewAuthority([]string{"api.github.com"}, time.Now())
	must.Do(t, err)
	block, _ := pem.Decode(a.Certificate)
	certificate, err := x509.ParseCertificate(block.Bytes)
	must.Do(t, err)
	if !certificate.PermittedDNSDomainsCritical || len(certificate.PermittedDNSDomains) != 1 || !certificate.MaxPathLenZero {
		t.Errorf("it is good for %q", certificate.PermittedDNSDomains)
	}
}

// through is the proxy of tier full, and a client that knows its password.
func through(t *testing.T, w *world) (address string, dialled *[]string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
	t.Cleanup(func() { l.Close() })
	dialled = new([]string)
	var mu sync.Mutex // both families are asked for at once
	outward := NewOutward(broker.Proxies{}, nil)
	outward.dialer.Resolver = &net.Resolver{PreferGo: true, Dial: func(_ context.Context, _, address string) (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		*dialled = append(*dialled, address)
		return nil, errors.New("no names here")
	}}
	go NewProxy(w.broker, "password", outward).Serve(l) //nolint:errcheck // until the test ends
	return l.Addr().String(), dialled
}

func (w *world) clientThrough(t testing.TB, proxy string) *http.Client {
	return &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{
		Proxy: http.ProxyURL(parsed(t, proxy)), TLSClientConfig: &tls.Config{RootCAs: w.roots}, ForceAttemptHTTP2: true,
	}}
}

// A host is the same in capitals and with a dot at its end. Whatever the client wrote, the server is asked for the
// host that the secret is for.
func TestTheProxyLeadsToTheBroker(t *testing.T) {
	for _, host := range []string{"api.github.com", "API.GitHub.com", "api.github.com.", "API.github.com.:443"} {
		w := newWorld(t)
		address, dialled := through(t, w)
		r, err := http.NewRequest("GET", "https://"+host+"/repos", nil)
		must.Do(t, err)
		r.Header.Set("Authorization", "Bearer "+w.placeholder("GH_TOKEN"))
		in, err := w.clientThrough(t, "http://claudebox:password@"+address).Do(r)
		if err != nil {
			t.Errorf("%s: %v; dialled %q", host, err, *dialled)
			continue
		}
		body, _ := io.ReadAll(in.Body)
		in.Body.Close()
		got := w.last()
		if got == nil || got.Header.Get("Authorization") != "Bearer "+trueGitHub || got.Host != "api.github.com" || canaryIn(string(body)) {
			t.Errorf("%s: %s: %s; told %s", host, in.Status, body, w.keeper.said())
		}
	}
}

func TestOtherHostsAreNotLedToTheBroker(t *testing.T) {
	w := newWorld(t)
	address, _ := through(t, w)
	for _, host := range []string{"x.api.github.com", "api.github.com.evil.example", "api.github.com..", "API.GitHub.com:8443", "GitLab.com"} {
		if _, err := w.clientThrough(t, "http://claudebox:password@"+address).Get("https://" + host + "/repos"); err == nil || !strings.Contains(err.Error(), "cannot be resolved") {
			t.Errorf("%s: %v", host, err)
		}
	}
	if w.last() != nil {
		t.Error("a request went through")
	}
}

func TestTheProxyIsForItsSandboxAlone(t *testing.T) {
	w := newWorld(t)
	address, _ := through(t, w)
	for _, user := range []string{"", "claudebox:wrong@", "other:password@", "claudebox@"} {
		_, err := w.clientThrough(t, "http://"+user+address).Get(hub + "/repos")
		if err == nil || !strings.Contains(err.Error(), "Proxy Authentication Required") {
			t.Errorf("%q: %v", user, err)
		}
	}
	if w.last() != nil {
		t.Error("a request went through")
	}
}

func TestAPlaceholderInClearIsStoppedAtTheProxy(t *testing.T) {
	w := newWorld(t)
	address, dialled := through(t, w)
	for _, host := range []string{"http://api.github.com/echo", "http://evil.example/echo"} {
		r, err := http.NewRequest("GET", host, nil)
		must.Do(t, err)
		r.Header.Set("Authorization", "Bearer "+w.placeholder("GH_TOKEN"))
		in, err := w.clientThrough(t, "http://claudebox:password@"+address).Do(r)
		must.Do(t, err)
		in.Body.Close()
		if in.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %s", host, in.Status)
		}
	}
	if said := w.keeper.said(); len(*dialled) > 0 || strings.Count(said, "without TLS") != 2 || !strings.Contains(said, "evil.example") {
		t.Errorf("dialled %q, told %s", *dialled, said)
	}
}

func TestHostsThatAreNotBrokeredPassUnopened(t *testing.T) {
	w := newWorld(t)
	address, _ := through(t, w)
	// The upstream plays a host that is not brokered: its own address.
	client := w.clientThrough(t, "http://claudebox:password@"+address)
	client.Transport.(*http.Transport).TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	r, err := http.NewRequest("GET", "https://"+w.upstream.Listener.Addr().String()+"/echo", nil)
	must.Do(t, err)
	github := w.placeholder("GH_TOKEN")
	r.Header.Set("Authorization", "Bearer "+github)
	in, err := client.Do(r)
	must.Do(t, err)
	in.Body.Close()
	if got := w.last().Header.Get("Authorization"); got != "Bearer "+github {
		t.Errorf("upstream got %q", got)
	}
}

// A proxy of the user's that repeats a request, with the password in it, in what it answers itself.
func TestTheProxysPasswordIsInNoAnswer(t *testing.T) {
	w := newWorld(t)
	const pair = "corp-user:CANARY-proxy-password"
	encoded := base64.StdEncoding.EncodeToString([]byte(pair))
	var sent string
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if sent = r.Header.Get("Proxy-Authorization"); r.URL.Path == "/good" {
			fmt.Fprint(w, "a page")
			return
		}
		if r.URL.Path == "/hint" {
			w.Header().Set("Link", sent)
			w.WriteHeader(http.StatusEarlyHints)
			w.Header().Del("Link")
		}
		status := map[string]int{"/moved": 302, "/missing": 404, "/hint": 403}[r.URL.Path]
		switch {
		case strings.EqualFold(r.Method, http.MethodTrace):
			status = http.StatusOK
		case status == 0:
			status = http.StatusServiceUnavailable
		}
		if r.Method != http.MethodConnect {
			w.Header().Set("Trailer", "X-Last")
		}
		w.WriteHeader(status)
		fmt.Fprintf(w, "%s %s\r\n%v", r.Method, r.RequestURI, r.Header)
		w.Header().Set("X-Last", sent)
	}))
	defer upstream.Close()
	ask := func(user, method, address string) (text string) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must.Do(t, err)
		defer l.Close()
		by := strings.Replace(upstream.URL, "http://", "http://"+user, 1)
		go NewProxy(w.broker, "password", NewOutward(broker.Proxies{HTTP: by, HTTPS: by}, byPeer)).Serve(l) //nolint:errcheck // until l is closed
		c, err := net.Dial("tcp", l.Addr().String())
		must.Do(t, err)
		defer c.Close()
		must.Do(t, c.SetDeadline(time.Now().Add(20*time.Second))) // it only bounds a hang
		fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: any.example\r\nMax-Forwards: 0\r\nConnection: close\r\n"+
			"Proxy-Authorization: Basic %s\r\n\r\n", method, address, base64.StdEncoding.EncodeToString([]byte("claudebox:password")))
		answer, err := io.ReadAll(c)
		must.Do(t, err)
		return string(answer)
	}
	for _, tc := range [][2]string{
		{"TRACE", "http://any.example/"},
		{"trace", "http://any.example/"},
		{"GET", "http://any.example/moved"},
		{"GET", "http://any.example/missing"},
		{"GET", "http://any.example/hint"},
		{"POST", "http://any.example/down"},
		{"CONNECT", "any.example:443"},
	} {
		text := ask(pair+"@", tc[0], tc[1])
		if strings.Contains(text, encoded) || canaryIn(text) || !strings.HasPrefix(text, "HTTP/1.1 ") {
			t.Errorf("%v: %s", tc, text)
		}
	}
	if text := ask(pair+"@", "GET", "http://any.example/good"); !strings.HasSuffix(text, "a page") || sent != "Basic "+encoded {
		t.Errorf("a page by this proxy: %s; sent %q", text, sent)
	}
	if text := ask("", "GET", "http://any.example/missing"); !strings.Contains(text, "GET http://any.example/missing") {
		t.Errorf("an answer by a proxy without a password: %s", text)
	}
}

// A proxy with a password, and a gateway, that the judge takes for a stranger.
func TestNothingIsSentToAStranger(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
	defer l.Close()
	address := l.Addr().String()
	objects := func(context.Context, broker.Connection) error { return errors.New("a stranger") }
	_, err = NewOutward(broker.Proxies{HTTPS: "http://u:p@" + address}, objects).Dial(t.Context(), broker.Target{Host: "any.example", Port: 443})
	if !errors.As(err, new(strangerError)) {
		t.Errorf("the proxy: %v", err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://gateway.example/", nil)
	must.Do(t, err)
	_, err = newTransport(nil, nil, map[string]string{"gateway.example": address}, objects).RoundTrip(r)
	if !errors.As(err, new(strangerError)) {
		t.Errorf("the gateway: %v", err)
	}
	for range 2 {
		c, err := l.Accept()
		must.Do(t, err)
		if got, err := io.ReadAll(c); err != nil || len(got) > 0 {
			t.Errorf("sent: %q, %v", got, err)
		}
		c.Close()
	}
}
