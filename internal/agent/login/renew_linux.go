package login

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"claudebox/internal/agent/object"
	"claudebox/internal/secret/broker"
)

// TokenEndpoint is the URL where logins are renewed.
const TokenEndpoint = "https://platform.claude.com/v1/oauth/token"

// patienceRenewal is how long a renewal may take, including the wait for another program that renews at the same
// time.
const patienceRenewal = 90 * time.Second

// atOnce is how many times in a session a login that a server refused is renewed at once. An agent can bring a server
// to refuse a good login, so later renewals wait until [again] has passed since the last one.
const atOnce = 3

var errEnded = errors.New("it has ended")

// Renew renews the login under Claude Code's own locks. It does nothing if the renewal is not due, or if another
// program has renewed the login before Renew got the locks. refused is the access token that a server refused; empty:
// the login is about to expire. Renew returns after the new login was passed to tell, see [Guard.Begin]. It fails if
// there is no login that can be renewed.
func (g *Guard) Renew(ctx context.Context, refused string) error {
	g.renewing.Lock()
	defer g.renewing.Unlock()
	g.mu.Lock()
	if g.done { // its folders are closed
		g.mu.Unlock()
		return errEnded
	}
	g.follow()
	from, now, unwritten := g.from, g.now, g.unwritten
	due := g.wait() <= 0
	if !due && refused == now.access && (g.refused < atOnce || time.Since(g.renewed) > again) {
		g.refused++
		due = true
	}
	g.mu.Unlock()
	switch {
	case from == nil || !now.good() || now.refresh == "":
		return errEnded
	case !due && unwritten == nil:
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patienceRenewal) // the broker sets none, and Close waits for the end
	defer cancel()
	return whileRenewing(ctx, from, func() error {
		if err := g.writeAgain(); err != nil || !due {
			return err
		}
		if found := from.read(); found.fault != nil || !found.same(now.login) {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.follow()
			return found.fault
		}
		return g.ask(ctx, from, now)
	})
}

// ask sends the refresh token of now to the token endpoint, and stores the renewed login in the file from. A refresh
// token works once, so ask reserves the disk space for its successor first.
func (g *Guard) ask(ctx context.Context, from *file, now reading) error {
	free, err := from.reserve(len(now.content))
	if err != nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.note("your login cannot be renewed: there is no room for it in %s: %v", from.dir.Path(), err)
		return err
	}
	status, answer, err := g.askTokens(ctx, renewalRequest(now))
	free()
	if err != nil {
		return err
	}
	next, err := judge(status, answer, now.login, time.Now())
	g.mu.Lock()
	defer g.mu.Unlock()
	if errors.Is(err, errEnded) {
		g.dead = now.login
		g.reload()
		g.tellNow()
		g.note("your Claude login has ended: log in anew, with `claude /login` outside")
	}
	if err != nil {
		return err
	}
	if from.renew(now, next) != nil { // the new login must not be lost: the old one no longer works
		g.unwritten = &renewal{from, now, next}
		g.now.login = next
	} else {
		g.reload()
	}
	g.renewed = time.Now()
	g.tellNow()
	g.schedule()
	return nil
}

// renewal is a login that was renewed.
type renewal struct {
	in   *file
	was  reading // what the file held
	next login
}

// writeAgain writes a renewed login that could not be written before, if there is one. It is called with renewing
// held.
func (g *Guard) writeAgain() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.unwritten == nil {
		return nil
	}
	if err := g.unwritten.in.renew(g.unwritten.was, g.unwritten.next); err != nil {
		return err
	}
	g.unwritten = nil
	g.follow()
	return nil
}

// renewalRequest returns the body of the request that renews a login (RFC 6749, section 6).
func renewalRequest(now reading) []byte {
	demand := map[string]string{
		"grant_type": "refresh_token", "refresh_token": now.refresh, "client_id": cmp.Or(now.client, broker.Client),
	}
	if now.scope != "" {
		demand["scope"] = now.scope
	}
	return object.Encode(demand)
}

// Status codes of HTTP (RFC 9110, section 15).
const statusOK, badRequest = 200, 400

// judge reads the answer of the token endpoint (RFC 6749, sections 5.1 and 5.2). It returns was with the
// tokens and dates that the answer gives, or [errEnded] if the login cannot be renewed any more.
func judge(status int, answer []byte, was login, now time.Time) (login, error) {
	var said struct {
		Access  string  `json:"access_token"`
		Refresh string  `json:"refresh_token"`
		Expires float64 `json:"expires_in"`
		Ends    float64 `json:"refresh_token_expires_in"`
		Error   string  `json:"error"`
	}
	err := json.Unmarshal(answer, &said)
	switch {
	case err == nil && status == badRequest && said.Error == "invalid_grant":
		return login{}, errEnded
	case err != nil || status != statusOK:
		return login{}, fmt.Errorf("the token endpoint answers with status %d", status)
	case said.Access == "" || !isToken(said.Access) || !isToken(said.Refresh):
		return login{}, errors.New("the token endpoint answers with no token")
	}
	next := was
	next.access, next.expires = said.Access, now.Add(time.Duration(said.Expires)*time.Second).UnixMilli()
	if said.Refresh != "" {
		next.refresh = said.Refresh
	}
	if said.Ends > 0 {
		next.ends = now.Add(time.Duration(said.Ends) * time.Second).UnixMilli()
	}
	return next, nil
}

// reserve takes disk space for a file of size bytes, and some more, until free is called. On a full disk a renewed
// login would be lost, and the old one no longer works.
func (f *file) reserve(size int) (free func(), err error) {
	const more = 16 << 10
	name := "." + f.name + ".room"
	filling := make([]byte, size+more)
	_, _ = rand.Read(filling) // random bytes, so that no file system compresses them
	free = func() { _ = f.dir.Remove(name) }
	free() // what a killed process left
	return free, f.dir.Create(name, filling, privateFile)
}

// renew writes next, the renewed login, to the file. was is what the file held before the renewal: if it holds another
// login by now, as somebody has logged in anew, it stays as it is.
func (f *file) renew(was reading, next login) error {
	return whileWriting(f.dir, patience, func() error {
		found := f.read()
		if found.fault != nil {
			return found.fault
		}
		if found.refresh != was.refresh && found.refresh != "" {
			return nil
		}
		content, err := renewed(found.content, next, time.Now())
		if err != nil {
			return err
		}
		return f.dir.Replace(f.name, content, privateFile)
	})
}
