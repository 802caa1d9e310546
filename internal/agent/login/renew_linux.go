package login

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/secret/broker"
)

// TokenEndpoint renews logins.
const TokenEndpoint = "https://platform.claude.com/v1/oauth/token"

// patienceRenewal is how long a renewal may take, with the wait for whoever
// renews at the same time.
const patienceRenewal = 90 * time.Second

var (
	errEnded   = errors.New("it has ended")
	errTooLong = errors.New("another program has held its lock for long")
)

// Renew renews the login under Claude Code's own locks, unless it turns out to
// be a new one by then. refused is an access token that its server did not take;
// empty: the login runs out. It returns when the new one is told.
func (g *Guard) Renew(ctx context.Context, refused string) error {
	g.renewing.Lock()
	defer g.renewing.Unlock()
	g.mu.Lock()
	g.follow()
	from, now, done := g.from, g.now, g.done
	due := g.wait() <= 0 || refused == now.access && time.Since(g.renewed) > again
	g.mu.Unlock()
	switch {
	case done || from == nil || !now.good() || now.refresh == "":
		return errEnded
	case !due:
		return nil
	}
	locks, err := claimAll(ctx, from)
	if err != nil {
		return err
	}
	defer locks.release()
	if found := from.read(); found.fault != nil || found.sum() != now.sum() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.follow()
		return found.fault
	}
	return g.ask(ctx, from, now)
}

// ask shows what renews a login, which works once, and writes down what comes.
// Room for that is taken before.
func (g *Guard) ask(ctx context.Context, from *file, now reading) error {
	free, err := from.reserve(len(now.content))
	if err != nil {
		g.noteOnce("your login cannot be renewed: there is no room for it in %s: %v", from.dir.Path(), err)
		return err
	}
	status, answer, err := g.post(ctx, demandOf(now))
	free()
	if err != nil {
		return err
	}
	next, err := judge(status, answer, now.login, time.Now())
	g.mu.Lock()
	defer g.mu.Unlock()
	if errors.Is(err, errEnded) {
		g.dead = now.sum()
		g.reload()
		g.tellNow()
		g.note("your Claude login has ended: log in anew, with `claude /login` outside")
	}
	if err != nil {
		return err
	}
	if err := from.renew(now, next); err != nil {
		// The new one must not be lost: the old one is of no use any more.
		g.note("your renewed login could not be written to %s: %v", from.dir.Join(from.name), err)
		g.now.login = next
	} else {
		g.reload()
	}
	g.renewed = time.Now()
	g.tellNow()
	g.plan()
	return nil
}

func demandOf(now reading) []byte {
	client := now.client
	if client == "" {
		client = broker.Client
	}
	demand := map[string]string{"grant_type": "refresh_token", "refresh_token": now.refresh, "client_id": client}
	if now.scope != "" {
		demand["scope"] = now.scope
	}
	return mustEncode(demand)
}

// judge reads the answer of the token endpoint (RFC 6749, sections 5.1 and
// 5.2).
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
	case err == nil && status == http.StatusBadRequest && said.Error == "invalid_grant":
		return login{}, errEnded
	case err != nil || status != http.StatusOK:
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

// reserve takes the room that a renewed login needs, until free is called: a
// disk that is full then has lost the user's login.
func (f *file) reserve(size int) (free func(), err error) {
	const more = 16 << 10
	name := "." + f.name + ".room"
	filling := make([]byte, size+more)
	_, _ = rand.Read(filling) // so that no file system packs it
	free = func() { _ = f.dir.Remove(name) }
	free() // of one who was killed
	return free, f.dir.Create(name, filling, privateFile)
}

// renew writes a renewed login down, unless somebody has logged in anew.
func (f *file) renew(was reading, next login) error {
	return whileWriting(f.dir, patience, func() error {
		found := f.read()
		if found.fault != nil {
			return found.fault
		}
		if found.refresh != was.refresh && found.refresh != "" {
			return nil
		}
		content, err := renew(found.content, next, time.Now())
		if err != nil {
			return err
		}
		return f.dir.Replace(f.name, content, privateFile)
	})
}

// locks are those that Claude Code takes while it renews, in its order: one in
// its folder, and one beside it that older versions take.
type locks struct {
	list   []*held
	beside *beneath.Folder
	stop   chan struct{}
}

func claimAll(ctx context.Context, f *file) (*locks, error) {
	l := &locks{stop: make(chan struct{})}
	lock, err := claimWaiting(ctx, f.dir, refreshLock)
	if err != nil {
		return nil, err
	}
	l.list = append(l.list, lock)
	if f.name == FileName {
		err = l.claimBeside(ctx, f.dir.Path())
	}
	if err != nil {
		l.release()
		return nil, err
	}
	go l.keep()
	return l, nil
}

func (l *locks) claimBeside(ctx context.Context, folder string) (err error) {
	if l.beside, err = beneath.Open(filepath.Dir(folder)); err != nil {
		return err
	}
	lock, err := claimWaiting(ctx, l.beside, filepath.Base(folder)+besideSuffix)
	if err == nil {
		l.list = append(l.list, lock)
	}
	return err
}

// besideSuffix makes a folder's name that of the lock beside it.
const besideSuffix = ".lock"

func claimWaiting(ctx context.Context, dir *beneath.Folder, name string) (*held, error) {
	const pause = 50 * time.Millisecond
	for {
		lock, err := claim(dir, name)
		if lock != nil || err != nil {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, errTooLong
		case <-time.After(pause):
		}
	}
}

// keep keeps the locks from going stale.
func (l *locks) keep() {
	const touch = 5 * time.Second
	ticker := time.NewTicker(touch)
	defer ticker.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-ticker.C:
		}
		now := []unix.Timespec{{Nsec: unix.UTIME_NOW}, {Nsec: unix.UTIME_NOW}}
		for _, lock := range l.list {
			_ = unix.UtimesNanoAt(lock.dir.FD(), lock.name, now, unix.AT_SYMLINK_NOFOLLOW) // else it goes stale
		}
	}
}

func (l *locks) release() {
	close(l.stop)
	for i := len(l.list) - 1; i >= 0; i-- {
		l.list[i].release()
	}
	if l.beside != nil {
		l.beside.Close()
	}
}

// scopeOf is what a login may do, as the token endpoint says it.
func scopeOf(oauth object) string {
	var scopes []string
	_ = json.Unmarshal(oauth["scopes"], &scopes) // of another shape: none
	return strings.Join(scopes, " ")
}
