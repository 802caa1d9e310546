package login

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
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

// Files of an instance, beside the agent's home and out of its reach.
const (
	KeyName  = "placeholders" // the key that makes the placeholders of the login in it
	MadeName = "made-login"   // a login that was made inside: its own, until its user takes it
)

// Guard keeps a login outside while an agent uses it: it gives the agent
// placeholders, and alone renews what stands behind them. Several guards, and
// Claude Code outside, meet at the user's file and its locks.
type Guard struct {
	post     Post
	instance *beneath.Folder
	inside   *beneath.Folder // the agent's home
	users    *file           // the user's; nil: there is none
	made     *file           // the instance's own
	key      broker.Key

	renewing sync.Mutex // held while a login is being renewed

	mu   sync.Mutex // of what is below
	now  reading    // of the file that counts
	from *file      // that one; nil: nobody is logged in
	tell func(access, scope string)
	dead string // sum of a login that cannot be renewed any more
	// When it was renewed last by this guard.
	renewed time.Time
	refused int // how often because its server refused it
	timer   *time.Timer
	watch   *watch.Watch
	notes   []string
	kept    bool // one was made inside
	done    bool
}

// file is a file of credentials.
type file struct {
	dir  *beneath.Folder
	name string
}

func (f *file) read() reading {
	if f == nil {
		return reading{}
	}
	return read(f.dir, f.name)
}

// Post asks the token endpoint.
type Post func(ctx context.Context, body []byte) (status int, answer []byte, err error)

// NewGuard opens the folder of an instance and that of the user's file (canonical;
// empty: there is none), and reads the login. key is the instance's where it has
// none yet. Close it.
func NewGuard(instance, users string, key broker.Key, post Post) (*Guard, error) {
	g := &Guard{post: post}
	err := g.open(instance, users)
	if err == nil {
		g.key, err = instanceKey(g.instance, key)
	}
	if err != nil {
		g.closeFolders()
		return nil, diag.Wrap("keep your login outside", err, "look at "+instance)
	}
	g.reload()
	return g, nil
}

func (g *Guard) open(instance, users string) (err error) {
	if g.instance, err = beneath.Open(instance); err != nil {
		return err
	}
	g.made = &file{g.instance, MadeName}
	if g.inside, err = g.instance.Sub(agentHome); err != nil || users == "" {
		return err
	}
	dir, err := beneath.Open(filepath.Dir(users))
	if err == nil {
		g.users = &file{dir, filepath.Base(users)}
	}
	return err
}

func (g *Guard) closeFolders() {
	for _, dir := range []*beneath.Folder{g.instance, g.inside} {
		if dir != nil {
			dir.Close()
		}
	}
	if g.users != nil {
		g.users.dir.Close()
	}
}

// instanceKey reads the key of an instance's placeholders, or gives it one. All
// sandboxes of an instance share the agent's files, so they share the key.
func instanceKey(instance *beneath.Folder, key broker.Key) (broker.Key, error) {
	if err := instance.Create(KeyName, key, privateFile); err == nil || !errors.Is(err, fs.ErrExist) {
		return key, err
	}
	found, there := asKey(instance.Read(KeyName, keyLen))
	if !there {
		return nil, errors.New(KeyName + " is not what claudebox writes there")
	}
	return found, nil
}

// ReadKey reads the key of the instance in a folder.
func ReadKey(instance string) (key broker.Key, there bool) {
	return asKey(beneath.ReadIn(instance, KeyName, keyLen))
}

const keyLen = sha256.Size // of a [broker.Key], in bytes

func asKey(found []byte, err error) (key broker.Key, there bool) {
	return broker.Key(slices.Clone(found)), err == nil && len(found) == keyLen
}

// Key makes the placeholders.
func (g *Guard) Key() broker.Key { return g.key }

// Current is the login as its broker is told of it; empty when there is none.
// pending reports that it has run out, and is renewed as soon as
// [Guard.Begin] is called.
func (g *Guard) Current() (access, scope string, pending bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.now.access, g.now.scope, g.now.good() && g.now.refresh != "" && g.wait() <= 0
}

// Made reports whether the login is one that was made inside.
func (g *Guard) Made() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.from == g.made
}

// Kept reports whether a login was made inside, and not given up.
func (g *Guard) Kept() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.kept
}

// reload reads the login that counts: the instance's own where there is one.
func (g *Guard) reload() {
	g.from, g.now = nil, reading{}
	for _, f := range []*file{g.made, g.users} {
		if r := f.read(); r.fault == nil && r.there {
			g.from, g.now = f, r
			break
		}
	}
	if g.dead != "" && g.dead == g.now.sum() {
		g.now.access = ""
	}
}

// Begin follows the login from now on, and gives each new one to tell; one
// that is pending no more at once. It is called when the sandbox has been
// started.
func (g *Guard) Begin(tell func(access, scope string)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tell = tell
	g.plan()
	g.watch = watch.Later(watch.Question{
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

func (g *Guard) folders() []string {
	list := []string{g.instance.Path()}
	if g.users != nil {
		list = append(list, g.users.dir.Path())
	}
	return list
}

// follow looks whether the login has changed, and passes a new one on. One that
// came back after it had ended is put inside anew: the agent may have emptied its
// file.
func (g *Guard) follow() {
	was := g.now
	g.reload()
	if g.now.sum() == was.sum() {
		return
	}
	if !was.good() && g.now.good() {
		_ = g.giveInside(g.now) // the agent has its old placeholders, which are good
	}
	g.tellNow()
	g.plan()
}

func (g *Guard) tellNow() {
	if g.tell != nil {
		g.tell(g.now.access, g.now.scope)
	}
}

// ahead is how long before its end a login is renewed. Claude Code outside
// does it five minutes before, and then finds it done.
const ahead = 10 * time.Minute

// wait is how long it is until the login has to be renewed. One that is said to
// be good for a moment only is not renewed all the time.
func (g *Guard) wait() time.Duration {
	if g.now.expires == 0 {
		return insideFor // it does not say
	}
	left := time.Until(time.UnixMilli(g.now.expires)) - ahead
	return max(left, again-time.Since(g.renewed))
}

// plan sets the time of the next renewal.
func (g *Guard) plan() {
	if g.timer != nil {
		g.timer.Stop()
	}
	if g.done || !g.now.good() || g.now.refresh == "" || g.now.expires == 0 {
		return
	}
	g.timer = time.AfterFunc(max(0, g.wait()), func() { _ = g.renewNow() })
}

// again is how long to wait after a renewal.
const again = time.Minute

// renewNow renews what runs out.
func (g *Guard) renewNow() error {
	ctx, cancel := context.WithTimeout(context.Background(), patienceRenewal)
	defer cancel()
	err := g.Renew(ctx, "")
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil && !g.done && g.now.good() {
		g.timer = time.AfterFunc(again, func() { _ = g.renewNow() })
		g.tellNow() // what there is, may it be refused
	}
	return err
}

// GiveInside writes placeholders into the agent's credentials, and takes out
// whatever else was logged in there. What lies beside a login stays.
func (g *Guard) GiveInside() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.giveInside(g.now)
}

// TakeOut takes whatever is logged in out of the agent's credentials.
func (g *Guard) TakeOut() error { return g.giveInside(reading{}) }

// insideFor is how long a login is said to be good inside: longer times were
// not tried.
const insideFor = 10 * 24 * time.Hour

// shownKeys are what of a login enters: they say what it may do, and are no
// secret.
var shownKeys = []string{"scopes", "subscriptionType", "rateLimitTier", "accountUuid", "organizationUuid"}

func (g *Guard) giveInside(now reading) error {
	put := func() error {
		var login json.RawMessage
		if now.good() {
			login = g.placeholders(now)
		}
		return putLogin(g.inside, login)
	}
	err := whileWriting(g.inside, patienceInside, put)
	if errors.Is(err, errBusy) {
		err = put() // an agent that keeps its own lock only harms itself
	}
	if err != nil {
		return &diag.Error{
			Op: "put a placeholder of your login inside", Err: err,
			Remedy: "look at " + g.inside.Join(FileName),
		}
	}
	return nil
}

// putLogin puts a login into the agent's credentials, and takes out what was
// logged in there; nil: none is. What lies beside a login stays, as far as it can
// be read.
func putLogin(home *beneath.Folder, login json.RawMessage) error {
	file := object.Of(read(home, FileName).content)
	if delete(file, keyOf); login != nil {
		file[keyOf] = login
	}
	if what, err := home.Look(FileName); len(file) == 0 || err == nil && what.Kind == beneath.Dir {
		err := home.Remove(FileName)
		if errors.Is(err, unix.ENOTEMPTY) {
			err = home.Rename(FileName, FileName+".inside-"+rand.Text())
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		if err != nil || len(file) == 0 {
			return err
		}
	}
	return home.Replace(FileName, object.Encode(file), privateFile)
}

func (g *Guard) placeholders(now reading) json.RawMessage {
	login := object.Of(object.Of(now.content)[keyOf])
	access, refresh := broker.LoginPlaceholders(g.key)
	shown := map[string]any{
		"accessToken": access, "refreshToken": refresh, "expiresAt": time.Now().Add(insideFor).UnixMilli(),
	}
	for _, key := range shownKeys {
		if value, ok := login[key]; ok {
			shown[key] = value
		}
	}
	return object.Encode(shown)
}

// Keep keeps a login that was made inside: it is the instance's own from now
// on, until [Take] makes it the user's.
func (g *Guard) Keep(made broker.Grant) error {
	if !isToken(made.Access) || !isToken(made.Refresh) {
		return errNotLogin
	}
	content := object.Encode(map[string]any{keyOf: map[string]any{
		"accessToken": made.Access, "refreshToken": made.Refresh, "expiresAt": made.Expires.UnixMilli(),
		"scopes": strings.Fields(made.Scope),
	}})
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.instance.Replace(MadeName, content, privateFile); err != nil {
		return err
	}
	g.reload()
	g.plan()
	g.kept = true
	g.note("a login was made inside; it is kept outside, for this project alone (`claudebox login keep` makes it yours)")
	return nil
}

// Forget gives up a login that was made inside. The user's stays what it is.
func (g *Guard) Forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.from != g.made {
		return
	}
	_ = g.instance.Remove(MadeName)
	g.kept = false
	g.from, g.now = nil, reading{}
	g.tellNow()
}

// maxNotes is how much is told of a session; an agent could do any number of
// things.
const maxNotes = 4

func (g *Guard) note(format string, words ...any) {
	if text := fmt.Sprintf(format, words...); len(g.notes) < maxNotes && !slices.Contains(g.notes, text) {
		g.notes = append(g.notes, text)
	}
}

// Close ends what [Guard.Begin] began, and says what became of the login.
func (g *Guard) Close() (notes []string) {
	g.mu.Lock()
	g.done = true
	if g.timer != nil {
		g.timer.Stop()
	}
	watched := g.watch
	g.mu.Unlock()
	watched.Close()
	g.renewing.Lock() // a renewal that has begun is brought to its end: what it used works once
	defer g.renewing.Unlock()
	g.closeFolders()
	return g.notes
}
