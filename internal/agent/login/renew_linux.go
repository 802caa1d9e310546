package login

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/agent/object"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/secret/broker"
)

// TokenEndpoint renews logins.
const TokenEndpoint = "https://platform.claude.com/v1/oauth/token"

// patienceRenewal is how long a renewal may take, with the wait for whoever
// renews at the same time.
const patienceRenewal = 90 * time.Second

// atOnce is how many logins of a session that were refused are renewed at once. An
// agent can bring a server to refuse a good one: further ones wait, see [again].
const atOnce = 3

var errEnded = errors.New("it has ended")

// Renew renews the login under Claude Code's own locks, unless it turns out to
// be a new one by then. refused is an access token that its server did not take;
// empty: the login runs out. It returns when the new one is told.
func (g *Guard) Renew(ctx context.Context, refused string) error {
	g.renewing.Lock()
	defer g.renewing.Unlock()
	g.mu.Lock()
	g.follow()
	from, now, done := g.from, g.now, g.done
	due := g.wait() <= 0
	if !due && refused == now.access && (g.refused < atOnce || time.Since(g.renewed) > again) {
		g.refused++
		due = true
	}
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
		g.mu.Lock()
		defer g.mu.Unlock()
		g.note("your login cannot be renewed: there is no room for it in %s: %v", from.dir.Path(), err)
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
	demand := map[string]string{
		"grant_type": "refresh_token", "refresh_token": now.refresh, "client_id": cmp.Or(now.client, broker.Client),
	}
	if now.scope != "" {
		demand["scope"] = now.scope
	}
	return object.Encode(demand)
}

// What a server of HTTP answers with (RFC 9110, section 15).
const fine, badRequest = 200, 400

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
	case err == nil && status == badRequest && said.Error == "invalid_grant":
		return login{}, errEnded
	case err != nil || status != fine:
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
		folder := f.dir.Path()
		if l.beside, err = beneath.Open(filepath.Dir(folder)); err == nil {
			lock, err = claimWaiting(ctx, l.beside, filepath.Base(folder)+".lock")
		}
		if err != nil {
			l.release()
			return nil, err
		}
		l.list = append(l.list, lock)
	}
	go l.keep()
	return l, nil
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

// Claude Code's locks beside its credentials. Each is a folder: who makes it
// has it, and one that was not touched for a time belongs to somebody who died
// (the npm package proper-lockfile).
const (
	refreshLock = ".oauth_refresh.lock" // held while a login is renewed
	writeLock   = ".storage-write.lock" // held while credentials are written
	// A third, named like the folder, lies beside it: see [locks].
)

// held is a lock of ours.
type held struct {
	dir   *beneath.Folder
	name  string
	stamp beneath.Stamp
}

// claim takes a lock; nil when another holds it.
func claim(dir *beneath.Folder, name string) (*held, error) {
	const mode = 0o755
	err := dir.Mkdir(name, mode)
	if errors.Is(err, fs.ErrExist) && !isHeld(dir, name) && dir.Remove(name) == nil {
		err = dir.Mkdir(name, mode)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	what, err := dir.Look(name)
	return &held{dir, name, what.Stamp}, err
}

// isHeld reports whether somebody who lives holds a lock.
func isHeld(dir *beneath.Folder, name string) bool {
	stale := time.Minute
	if name == writeLock {
		stale = 15 * time.Second
	}
	what, err := dir.Look(name)
	return err != nil || what.Kind == beneath.Dir && time.Since(time.Unix(0, what.Stamp.Change)) < stale
}

// release gives a lock back, unless it was taken from us meanwhile.
func (h *held) release() {
	if what, err := h.dir.Look(h.name); err == nil && what.Stamp.Ino == h.stamp.Ino {
		_ = h.dir.Remove(h.name) // what stays goes stale
	}
}

var errBusy = errors.New("another program has held its lock for long")

// claimWaiting takes a lock, waiting for it as long as ctx allows. Claude Code
// holds the one of writing for milliseconds.
func claimWaiting(ctx context.Context, dir *beneath.Folder, name string) (*held, error) {
	const pause = 20 * time.Millisecond
	for {
		lock, err := claim(dir, name)
		if lock != nil || err != nil {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, errBusy
		case <-time.After(pause):
		}
	}
}

// whileWriting does something under the lock of a folder's credentials. It
// waits up to the given time.
func whileWriting(dir *beneath.Folder, patience time.Duration, do func() error) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	lock, err := claimWaiting(ctx, dir, writeLock)
	if err != nil {
		return err
	}
	defer lock.release()
	return do()
}
