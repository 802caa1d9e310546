package login

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/agent/object"
	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/watch"
	"claudebox/internal/secret/broker"
)

// Names of files in an instance's folder, beside the agent's home and out of its reach.
const (
	KeyName  = "placeholders" // the key that the instance's placeholders are made with
	MadeName = "made-login"   // a login that was made inside: the instance's own, until its user takes it
)

// Guard keeps a login outside while an agent uses it: it gives the agent placeholders instead of the tokens, and only
// it renews the login. Several guards, and Claude Code outside, share the user's file by its locks.
type Guard struct {
	askTokens AskTokens
	inside    *beneath.Folder // the agent's home
	made      *file           // for a login that was made inside; it lies in the instance's folder
	users     *file           // the user's credentials; nil: there are none
	key       broker.Key      // makes the instance's placeholders

	renewing sync.Mutex // held while a login is being renewed

	mu   sync.Mutex                 // guards the fields below
	now  reading                    // what was read from the file in from
	from *file                      // the file whose login is used: made or users; nil: nobody is logged in
	tell func(access, scope string) // gets each new login, see [Guard.Begin]
	dead login                      // the login that turned out to have ended; it is not used again

	// unwritten is a renewed login that could not be written to its file yet; nil: there is none. It is used as if the
	// file had it, and is written as soon as that can be done.
	unwritten *renewal

	renewed time.Time // when this guard renewed the login last
	refused int       // how many renewals were asked for because a server refused the login
	timer   *time.Timer
	watch   *watch.Watch
	notes   []string
	kept    bool // a login was made inside in this session
	done    bool // [Guard.Close] was called
}

// AskTokens sends a body to [TokenEndpoint], and returns the answer.
type AskTokens func(ctx context.Context, body []byte) (status int, answer []byte, err error)

// NewGuard returns the guard of a login, which it reads. instance is the folder of an instance, and users the canonical
// path of the user's credentials file; empty: there is none. key makes the instance's placeholders from now on, unless
// the instance has a key already. ask reaches the token endpoint. The caller closes the guard.
func NewGuard(instance, users string, key broker.Key, ask AskTokens) (*Guard, error) {
	g := &Guard{askTokens: ask}
	err := g.open(instance, users)
	if err == nil {
		g.key, err = instanceKey(g.made.dir, key)
	}
	if err != nil {
		g.closeFolders()
		remedy := "move " + instance + " away: the project then starts afresh"
		if diag.IsFull(err) {
			remedy = diag.MakeRoom
		}
		return nil, diag.Wrap("keep your login outside", err, remedy)
	}
	g.reload()
	return g, nil
}

// open opens the folders of the login's files.
func (g *Guard) open(instance, users string) error {
	own, err := beneath.Open(instance)
	if err != nil {
		return err
	}
	g.made = &file{own, MadeName}
	if g.inside, err = own.Sub(agentHome); err != nil || users == "" {
		return err
	}
	dir, err := beneath.Open(filepath.Dir(users))
	if err == nil {
		g.users = &file{dir, filepath.Base(users)}
	}
	return err
}

func (g *Guard) closeFolders() {
	if g.inside != nil {
		g.inside.Close()
	}
	for _, f := range []*file{g.made, g.users} {
		if f != nil {
			f.dir.Close()
		}
	}
}

// instanceKey returns the key of an instance's placeholders. If the instance has none yet, it stores key as that. All
// sandboxes of an instance share the agent's files, so they share the key.
func instanceKey(instance *beneath.Folder, key broker.Key) (broker.Key, error) {
	if err := instance.Create(KeyName, key, privateFile); err == nil || !errors.Is(err, fs.ErrExist) {
		return key, err
	}
	found, there := ReadKey(instance.Path())
	if !there {
		return nil, errors.New(KeyName + " is not what claudebox writes there")
	}
	return found, nil
}

// ReadKey reads the key in an instance's folder. there is false if there is none, or none of the right length.
func ReadKey(instance string) (key broker.Key, there bool) {
	const length = sha256.Size // of a [broker.Key], in bytes
	found, err := beneath.ReadIn(instance, KeyName, length)
	return broker.Key(found), err == nil && len(found) == length
}

// Key returns the key that the placeholders are made with.
func (g *Guard) Key() broker.Key { return g.key }

// Current returns the login for its broker: its access token, empty if nobody is logged in or the login has ended, and
// its scope. pending reports that the login is due for renewal; [Guard.Begin] will renew it.
func (g *Guard) Current() (access, scope string, pending bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.now.access, g.now.scope, g.now.good() && g.now.refresh != "" && g.wait() <= 0
}

// Kept reports whether a login was made inside in this session, and not given up ([Guard.Forget]).
func (g *Guard) Kept() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.kept
}

// reload sets from and now: to the login that was made inside if there is one, else to the user's.
func (g *Guard) reload() {
	g.from, g.now = nil, reading{}
	for _, f := range []*file{g.made, g.users} {
		if r := f.read(); r.fault == nil && r.there {
			g.from, g.now = f, r
			break
		}
	}
	if u := g.unwritten; u != nil && g.from == u.in && g.now.same(u.was.login) {
		g.now.login = u.next
	}
	if g.now.same(g.dead) {
		g.now.access = ""
	}
}

// Begin follows the login's files from now on, and calls tell with each new login. A login that has expired is
// renewed at once. Begin is called when the sandbox has been started. tell must not call the guard: its lock is held.
func (g *Guard) Begin(tell func(access, scope string)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tell = tell
	g.schedule()
	g.watch = watch.Start(watch.Request{
		Folders: g.folders, Events: unix.IN_DELETE | unix.IN_MOVED_TO | unix.IN_CLOSE_WRITE,
		See: func(file string) {
			name := path.Base(file)
			g.mu.Lock()
			defer g.mu.Unlock()
			if !g.done && (file == "" || name == MadeName || g.users != nil && name == g.users.name) {
				g.follow()
			}
		},
	})
}

// folders lists the folders of the login's files.
func (g *Guard) folders() []string {
	list := []string{g.made.dir.Path()}
	if g.users != nil {
		list = append(list, g.users.dir.Path())
	}
	return list
}

// follow reads the login once more, and passes it to tell if it is another one. If no login was usable before, it also
// writes the placeholders inside anew, as the agent may have emptied its file. It is called with the lock held.
func (g *Guard) follow() {
	was := g.now
	g.reload()
	if g.now.same(was.login) {
		return
	}
	if !was.good() && g.now.good() {
		_ = giveInside(g.inside, g.key, g.now) // on failure the agent keeps its old placeholders, which still work
	}
	g.tellNow()
	g.schedule()
}

// tellNow passes the login to tell. It is called with the lock held.
func (g *Guard) tellNow() {
	if g.tell != nil {
		g.tell(g.now.access, g.now.scope)
	}
}

// ahead is how long before its token expires a login is renewed. Claude Code outside would do so five minutes before;
// it finds the login renewed already.
const ahead = 10 * time.Minute

// wait returns how long it is until the login is due for renewal; 0 or less: it is due. Two renewals are at least
// [again] apart, even if a server says that its tokens expire sooner.
func (g *Guard) wait() time.Duration {
	if g.now.expires == 0 {
		return insideFor // the file does not say when it expires
	}
	left := time.Until(time.UnixMilli(g.now.expires)) - ahead
	return max(left, again-time.Since(g.renewed))
}

// schedule sets the timer for the next renewal, or for writing the last one, if there is a login that can be renewed.
func (g *Guard) schedule() {
	if g.timer != nil {
		g.timer.Stop()
	}
	if g.done || !g.now.good() || g.now.refresh == "" || g.now.expires == 0 {
		return
	}
	wait := g.wait()
	if g.unwritten != nil {
		wait = min(wait, again)
	}
	g.timer = time.AfterFunc(max(0, wait), g.renewNow)
}

// again is how long to wait between two renewals, and after a renewal that failed.
const again = time.Minute

// renewNow is called by the timer: it renews the login, and sets the timer again if that fails.
func (g *Guard) renewNow() {
	ctx, cancel := context.WithTimeout(context.Background(), patienceRenewal)
	defer cancel()
	err := g.Renew(ctx, "")
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil && !g.done && g.now.good() {
		g.timer.Stop() // set meanwhile, by what the renewal has done
		g.timer = time.AfterFunc(again, g.renewNow)
		g.tellNow() // the old login goes on, though a server may refuse it
	}
}

// GiveInside writes placeholders into the agent's credentials, and removes any other login there. Other keys stay.
func (g *Guard) GiveInside() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return giveInside(g.inside, g.key, g.now)
}

// TakeOut removes any login from the agent's credentials.
func (g *Guard) TakeOut() error { return giveInside(g.inside, g.key, reading{}) }

// Keep stores a login that was made inside. From now on the instance uses it instead of the user's, until [Take] makes
// it the user's.
func (g *Guard) Keep(made broker.Grant) error {
	if !isToken(made.Access) || !isToken(made.Refresh) {
		return errNotLogin
	}
	content := object.Encode(map[string]any{loginKey: map[string]any{
		"accessToken": made.Access, "refreshToken": made.Refresh, "expiresAt": made.Expires.UnixMilli(),
		"scopes": strings.Fields(made.Scope),
	}})
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.done { // Close has closed the folder, whose descriptor number may be another's by now
		return errEnded
	}
	if err := g.made.dir.Replace(MadeName, content, privateFile); err != nil {
		return err
	}
	g.reload()
	g.schedule()
	g.kept = true
	g.note("a login was made inside; it is kept outside, for this project alone (`claudebox login keep` makes it yours)")
	return nil
}

// Forget removes a login that was made inside. The user's stays as it is.
func (g *Guard) Forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.done || g.from != g.made {
		return
	}
	_ = g.made.dir.Remove(MadeName)
	g.kept = false
	g.from, g.now = nil, reading{}
	g.tellNow()
}

// maxNotes is how many notes one session keeps: an agent could cause any number of them.
const maxNotes = 4

// note keeps a note for [Guard.Close], each text once.
func (g *Guard) note(format string, words ...any) {
	if text := fmt.Sprintf(format, words...); len(g.notes) < maxNotes && !slices.Contains(g.notes, text) {
		g.notes = append(g.notes, text)
	}
}

// Close stops watching and renewing, waits for a renewal that is under way, and returns notes for the user on what
// became of the login.
func (g *Guard) Close() (notes []string) {
	g.mu.Lock()
	g.done = true
	if g.timer != nil {
		g.timer.Stop()
	}
	watched := g.watch
	g.mu.Unlock()
	watched.Close()
	g.renewing.Lock() // a renewal that has begun must end: the token that it used works once
	defer g.renewing.Unlock()
	lost := g.writeAgain()
	g.mu.Lock() // a Keep that has begun must end, too
	defer g.mu.Unlock()
	if u := g.unwritten; u != nil {
		const lostNote = "your renewed login could not be written to %s: %v; log in anew"
		g.notes = append(g.notes, fmt.Sprintf(lostNote, u.in.dir.Join(u.in.name), lost))
	}
	g.closeFolders()
	return g.notes
}
