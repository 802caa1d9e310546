package login

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
)

// FileName is Claude Code's file of credentials, in the user's ~/.claude and
// in the agent's.
const FileName = ".credentials.json"

// RecordName is the file beside the agent's home, out of its reach, that says
// what was lent. Without one nothing was.
const RecordName = "login"

const (
	agentHome   = ".claude"
	maxRecord   = 4 << 10  // bytes
	maxFile     = 1 << 20  // bytes
	maxAccounts = 64 << 20 // bytes, of .claude.json
	privateFile = 0o600

	// A writer dies or is done before its lock goes stale.
	patience = 16 * time.Second
	// An agent may hold the lock of its own folder as long as it likes.
	patienceInside = time.Second
)

// Place says where a login is and where it is lent to. All paths are absolute.
type Place struct {
	Host     string // the user's file, canonical
	Accounts string // the user's .claude.json, which says whose it is
	Instance string // folder that holds the agent's .claude, canonical
}

// Keeper keeps an agent's copy of the user's login and the login itself equal.
type Keeper struct {
	place    Place
	host     *beneath.Folder // that holds the user's file
	name     string          // of the user's file in it
	inside   *beneath.Folder // the agent's home
	instance *beneath.Folder

	mu     sync.Mutex // of what is below: the watch has a goroutine of its own
	notes  []string
	first  *time.Timer // until the watch begins
	later  *time.Timer // until a login that was made inside is whole
	watch  *os.File    // inotify(7); nil while nothing is watched
	lent   *held       // the user's lock, held while the agent renews
	mirror *held       // the agent's lock, held while somebody else renews
	done   bool
}

// Open opens the folders of a place. Close the keeper.
func Open(place Place) (*Keeper, error) {
	k := &Keeper{place: place, name: filepath.Base(place.Host)}
	var err error
	if k.host, err = beneath.Open(filepath.Dir(place.Host)); err != nil {
		return nil, unreadable(place.Host, err)
	}
	if k.instance, err = beneath.Open(place.Instance); err == nil {
		k.inside, err = k.instance.Sub(agentHome)
	}
	if err != nil {
		k.closeFolders()
		return nil, &diag.Error{Op: "lend your login", Err: err}
	}
	return k, nil
}

func (k *Keeper) closeFolders() {
	for _, f := range []*beneath.Folder{k.host, k.instance, k.inside} {
		if f != nil {
			f.Close()
		}
	}
}

// Lend brings both files together before a launch. Where nothing has changed
// since the last time it reads one small file.
func (k *Keeper) Lend() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.sync(atLaunch)
}

// unchanged reports whether both files are those that were compared last.
func (k *Keeper) unchanged() bool {
	was := k.readRecord()
	host, err := k.host.Look(k.name)
	if err != nil || host.Stamp == (beneath.Stamp{}) {
		return false
	}
	inside, err := k.inside.Look(FileName)
	return err == nil && host.Stamp == was.Host && inside.Stamp == was.Inside
}

// rounds bound how often a comparison begins anew. One step makes both files
// equal, the next finds that they are; a third is for what changed meanwhile.
const rounds = 3

// sync compares both files and does what [decide] says, until nothing is left
// to do. All claudeboxes of this user do so one after the other.
func (k *Keeper) sync(when moment) error {
	if k.unchanged() {
		return nil
	}
	lock, err := k.host.OpenDir(".")
	if err != nil {
		return unreadable(k.place.Host, err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return &diag.Error{Op: "lock " + k.host.Path(), Err: err}
	}
	for range rounds {
		if again, err := k.round(when); err != nil || !again {
			return err
		}
	}
	return nil
}

// round does one step, and reports whether another has to follow.
func (k *Keeper) round(when moment) (again bool, err error) {
	was, host, inside := k.readRecord(), read(k.host, k.name), read(k.inside, FileName)
	if errors.Is(host.fault, fs.ErrPermission) {
		return false, unreadable(k.place.Host, host.fault)
	}
	next := record{Base: was.Base, Expires: was.Expires, Host: host.stamp, Inside: inside.stamp}
	switch decide(host, inside, was.Base, when, func() bool { return k.sameAccount(host.login, inside.login) }) {
	case give:
		return true, k.give(host, inside)
	case take:
		return true, k.take(host, inside, was)
	case agree:
		next.Base, next.Expires = host.sum(), host.expires
	case refuse:
		k.note("the login inside is another account's now; it stays inside, and yours is as it was")
		next.Base, next.Expires = "", 0
	case rest:
		if host.fault != nil || inside.fault != nil {
			return false, nil
		}
	}
	return false, k.saveRecord(next)
}

// Close brings both files together for the last time, gives back what locks
// there are, and says what happened to the login. It is for when the agent
// has ended.
func (k *Keeper) Close() (notes []string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer k.closeFolders()
	k.stop()
	err = k.sync(running)
	k.lent.release()
	k.mirror.release()
	return k.notes, err
}

// record is what is remembered between two comparisons.
type record struct {
	Base    string        `json:"base"`    // sum of the login that both had last
	Expires int64         `json:"expires"` // of its access token, milliseconds since 1970
	Host    beneath.Stamp `json:"host"`    // of the files that were compared
	Inside  beneath.Stamp `json:"inside"`
}

func (k *Keeper) readRecord() (r record) {
	content, err := k.instance.Read(RecordName, maxRecord)
	if err != nil || json.Unmarshal(content, &r) != nil {
		return record{} // then a login inside is the agent's own, and stays
	}
	return r
}

func (k *Keeper) saveRecord(r record) error {
	content, err := encode(r)
	if err == nil {
		err = k.instance.Replace(RecordName, append(content, '\n'), privateFile)
	}
	return err
}
