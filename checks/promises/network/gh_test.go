//go:build lab

package network_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"claudebox/checks/promises/network/world"
)

const trueToken = "ghp_TrueTrueTrueTrueTrueTrueTrueTrue0123"

// github is what gh asks, as GitHub answers it. It notes what it was asked with.
type github struct {
	mu    sync.Mutex
	asked []string
}

func (g *github) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	g.asked = append(g.asked, r.Method+" "+r.Host+r.URL.Path+" "+r.Header.Get("Authorization"))
	g.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("X-Oauth-Scopes", "repo, read:org")
	switch said := map[string]any{"login": "octo"}; {
	case r.Header.Get("Authorization") != "token "+trueToken && r.Header.Get("Authorization") != "Bearer "+trueToken:
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"message": "Bad credentials"}`)
	case r.URL.Path == "/graphql" && strings.Contains(string(body), "createIssue"):
		_, _ = io.WriteString(w, `{"data": {"createIssue": {"issue": {"id": "I", "url": "https://github.com/o/r/issues/7"}}}}`)
	case r.URL.Path == "/graphql" && strings.Contains(string(body), "createPullRequest"):
		_, _ = io.WriteString(w, `{"data": {"createPullRequest": {"pullRequest": {"id": "P", "url": "https://github.com/o/r/pull/8"}}}}`)
	case r.URL.Path == "/graphql" && strings.Contains(string(body), "repository("):
		_, _ = io.WriteString(w, `{"data": {"repository": {"id": "R", "name": "r", "owner": {"login": "o"}, "hasIssuesEnabled": true,
			"viewerPermission": "ADMIN", "defaultBranchRef": {"name": "main"}, "pullRequests": {"nodes": []}, "issueTemplates": []}}}`)
	case r.URL.Path == "/graphql" && strings.Contains(string(body), "viewer"):
		_ = json.NewEncoder(w).Encode(map[string]any{"data": map[string]any{"viewer": said}})
	case r.URL.Path == "/echo":
		_ = json.NewEncoder(w).Encode(r.Header)
	default:
		_ = json.NewEncoder(w).Encode(said)
	}
}

// The real gh works with a token that it does not have, and that no other host
// gets from it.
func TestGHWorksWithATokenThatStaysOutside(t *testing.T) {
	t.Parallel()
	for _, tier := range []string{"full", "inet", "allow"} {
		t.Run(tier, func(t *testing.T) {
			t.Parallel()
			w := world.New(t)
			u := newUser(t, w)
			g := &github{}
			u.trusting(t, site(t, w, g, "api.github.com", "github.com"))
			u.env = append(u.env, "GH_TOKEN="+trueToken)
			more := "secrets: [{env: GH_TOKEN, hosts: [github.com, api.github.com]}]\ncompat: off"
			flags := u.in(t, tier, more)
			if tier == "allow" {
				flags = u.allowing(t, "github.com, api.github.com, good.test", more, `nix: {daemon: "off"}`)
			}
			for _, lay := range withDebian("clients/usr/bin/gh:/opt/gh") {
				flags = append(flags, "--mount-ro", laid(t, lay))
			}
			got := run(t, u.reported(t, `
				/opt/gh api user --jq .login
				/opt/gh api graphql -f query='{viewer{login}}' --jq .data.viewer.login
				/opt/gh auth status 2>&1 | grep -o 'Logged in to github.com account octo'
				/opt/gh api echo --jq '.Authorization[0]'
				echo "token $(/opt/gh auth token)"
				/opt/gh api -X POST repos/o/r/actions/runners/registration-token 2>&1 | grep -o 'was stopped on its way to api.github.com' || true
				curl -sS -H "Authorization: token $GH_TOKEN" https://good.test/ # which may ask GitHub with it
			`, flags...))
			lines := strings.Split(strings.TrimSpace(got.stdout), "\n")
			if want := []string{"octo", "octo", "Logged in to github.com account octo"}; got.status != 0 || len(lines) != 7 || !slices.Equal(lines[:3], want) {
				t.Fatalf("%+v", got)
			}
			// What GitHub shows is a placeholder again, which is all that gh has.
			if !strings.HasPrefix(lines[3], "token ghp_xxxcbx") || !strings.HasPrefix(lines[4], "token ghp_xxxcbx") || strings.Contains(got.stdout, trueToken) {
				t.Errorf("%q", lines)
			}
			if lines[5] != "was stopped on its way to api.github.com" || !strings.Contains(got.stderr, "the placeholder of GH_TOKEN was sent to api.github.com") {
				t.Errorf("%q\n%s", lines[5], got.stderr)
			}
			if lines[6] != `{"message": "Bad credentials"}` {
				t.Errorf("by a second hop: %s", lines[6])
			}
			for _, asked := range g.asked {
				if strings.Contains(asked, "registration-token") || strings.Contains(asked, "good.test") == strings.Contains(asked, trueToken) {
					t.Errorf("asked: %s", asked)
				}
			}
		})
	}
}

// The real gh makes issues and pull requests, by GraphQL and REST. It ends no key and makes no token.
func TestGHWritesWhereWorkNeedsItOnly(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	u := newUser(t, w)
	g := &github{}
	u.trusting(t, site(t, w, g, "api.github.com", "github.com"))
	u.env = append(u.env, "GH_TOKEN="+trueToken)
	flags := u.in(t, "inet", "secrets: [{env: GH_TOKEN, hosts: [github.com, api.github.com]}]\ncompat: off")
	for _, lay := range withDebian("clients/usr/bin/gh:/opt/gh") {
		flags = append(flags, "--mount-ro", laid(t, lay))
	}
	got := run(t, u.reported(t, `
		/opt/gh issue create -R o/r -t title -b body
		/opt/gh pr create -R o/r -H o:branch -B main -t title -b body
		/opt/gh api repos/o/r/issues/7/comments -f body=x --jq .login
		stopped() { "$@" 2>&1 | grep -o 'was stopped on its way' || true; }
		stopped /opt/gh api -X DELETE user/keys/1
		stopped /opt/gh api -X PUT repos/o/r/collaborators/evil
		stopped /opt/gh api graphql -f query='mutation { regenerateVerifiableDomainToken(input: {id: "x"}) { clientMutationId } }'
	`, flags...))
	const no = "was stopped on its way"
	want := []string{"https://github.com/o/r/issues/7", "https://github.com/o/r/pull/8", "octo", no, no, no}
	if lines := strings.Split(strings.TrimSpace(got.stdout), "\n"); !slices.Equal(lines, want) {
		t.Errorf("%q\n%s", lines, got.stderr)
	}
	for _, asked := range g.asked {
		if strings.Contains(asked, "/user/keys") || strings.Contains(asked, "collaborators") {
			t.Errorf("asked: %s", asked)
		}
	}
}
