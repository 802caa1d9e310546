package account_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"claudebox/checks/kit/account"
	"claudebox/checks/kit/must"
)

// client goes through the account's proxy and trusts its certificate.
func client(t *testing.T, a *account.Account) *http.Client {
	t.Helper()
	proxy := httptest.NewServer(a)
	t.Cleanup(proxy.Close)
	at, err := url.Parse(proxy.URL)
	must.Do(t, err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(a.Roots())
	transport := &http.Transport{Proxy: http.ProxyURL(at), TLSClientConfig: &tls.Config{RootCAs: roots}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func start(t *testing.T, next http.Handler) *account.Account {
	t.Helper()
	a, err := account.Start("the-code", time.Hour, next)
	must.Do(t, err)
	t.Cleanup(a.Close)
	return a
}

func demand(t *testing.T, c *http.Client, body string) (status int, tokens map[string]any) {
	t.Helper()
	answer, err := c.Post("https://platform.claude.com/v1/oauth/token", "application/json", strings.NewReader(body))
	must.Do(t, err)
	defer answer.Body.Close()
	must.Do(t, json.NewDecoder(answer.Body).Decode(&tokens))
	return answer.StatusCode, tokens
}

func TestTokensAreGivenOncePerSecret(t *testing.T) {
	a := start(t, http.NotFoundHandler())
	c := client(t, a)
	code := `{"grant_type": "authorization_code", "code": "the-code"}`
	refresh := `{"grant_type": "refresh_token", "refresh_token": "sk-ant-ort01-refresh-1"}`
	for i, tc := range []struct {
		body   string
		status int
		access any
	}{
		{code, http.StatusOK, account.Access(1)},
		{code, http.StatusBadRequest, nil},
		{refresh, http.StatusOK, account.Access(3)},
		{refresh, http.StatusBadRequest, nil},
		{`{"grant_type": "refresh_token"}`, http.StatusBadRequest, nil},
		{`{"grant_type": "password", "code": "x"}`, http.StatusBadRequest, nil},
		{`{`, http.StatusBadRequest, nil},
	} {
		status, tokens := demand(t, c, tc.body)
		if status != tc.status || tokens["access_token"] != tc.access {
			t.Errorf("demand %d: %d, %v; want %d, %v", i+1, status, tokens, tc.status, tc.access)
		}
	}
	want := []bool{true, false, true, false, false, false}
	var got []bool
	for _, grant := range a.Grants() {
		got = append(got, grant.OK)
	}
	if !slices.Equal(got, want) {
		t.Errorf("grants %v; want %v", got, want)
	}
}

func TestOwnerIsKnown(t *testing.T) {
	answer, err := client(t, start(t, http.NotFoundHandler())).Get("https://api.anthropic.com/api/oauth/profile")
	must.Do(t, err)
	defer answer.Body.Close()
	var profile struct{ Account struct{ Email string } }
	if err := json.NewDecoder(answer.Body).Decode(&profile); err != nil || profile.Account.Email != account.Owner {
		t.Errorf("%+v, %v; want %s", profile, err, account.Owner)
	}
}

func TestOtherHostsAndPagesGoOn(t *testing.T) {
	var seen []string
	next := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Method+" "+r.Host+r.URL.Path)
		w.WriteHeader(http.StatusNotFound)
	})
	c := client(t, start(t, next))
	if answer, err := c.Get("https://example.org/"); err == nil {
		_ = answer.Body.Close()
		t.Errorf("example.org was reached: %s", answer.Status)
	}
	answer, err := c.Get("https://api.anthropic.com/elsewhere")
	must.Do(t, err)
	_ = answer.Body.Close()
	if want := []string{"CONNECT example.org:443", "GET api.anthropic.com/elsewhere"}; !slices.Equal(seen, want) {
		t.Errorf("seen %q; want %q", seen, want)
	}
}
