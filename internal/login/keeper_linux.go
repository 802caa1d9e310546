package login

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/beneath"
	"claudebox/internal/diag"
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
	watch  *os.File    // inotify(7); nil while nothing is watched
	lent   *held       // the user's lock, held while the agent renews
	mirror *held       // the agent's lock, held while somebody else renews
	done   bool
}

// record is what is remembered between two comparisons.
type record struct {
	Base    string        `json:"base"`    // sum of the login that both had last
	Expires int64         `json:"expires"` // of its access token, milliseconds since 1970
	Host    beneath.Stamp `json:"host"`    // of the files that were compared
	Inside  beneath.Stamp `json:"inside"`
}

// Examine looks at a user's file before a launch. It tells whether it is to be
// lent; a note tells why nothing enters of a file that is there.
func Examine(host string) (found bool, note string, err error) {
	dir, err := beneath.Open(filepath.Dir(host))
	if err != nil {
		return false, "", unreadable(host, err)
	}
	defer dir.Close()
	switch r := read(dir, filepath.Base(host)); {
	case errors.Is(r.fault, fs.ErrPermission):
		return false, "", unreadable(host, r.fault)
	case r.fault != nil:
		return false, fmt.Sprintf("your login %s does not enter: %v", host, r.fault), nil
	case !r.there:
		return false, "", nil
	case unix.Access(dir.Path(), unix.W_OK) != nil:
		return false, fmt.Sprintf("your login %s does not enter: its folder cannot be written, and a renewed login could not come back", host), nil
	case !r.good():
		return true, fmt.Sprintf("your login %s has ended: log in anew, outside or inside", host), nil
	default:
		return true, "", nil
	}
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

func unreadable(name string, err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	remedy := "look at " + name + "; when it is moved away you log in anew"
	if errors.Is(err, fs.ErrPermission) {
		remedy = "make it yours again: `chown $USER " + name + " && chmod 600 " + name + "`"
	}
	return &diag.Error{Op: "read your login " + name, Err: err, Remedy: remedy}
}

// Lend brings both files together before a launch. Where nothing has changed
// since the last time it reads one small file.
func (k *Keeper) Lend() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.sync(atLaunch)
}

// unchanged tells whether both files are those that were compared last.
func (k *Keeper) unchanged() bool {
	was := k.readRecord()
	host, err := k.host.Look(k.name)
	if err != nil || host.Stamp == (beneath.Stamp{}) {
		return false
	}
	inside, err := k.inside.Look(FileName)
	return err == nil && host.Stamp == was.Host && inside.Stamp == was.Inside
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

// read looks at a file before it reads it: a stamp that is older than the
// content costs a comparison, one that is newer would hide a change.
func read(dir *beneath.Folder, name string) (r reading) {
	what, err := dir.Look(name)
	if err != nil {
		return reading{fault: err}
	}
	r.stamp = what.Stamp
	r.content, r.fault = dir.Read(name, maxFile)
	if errors.Is(r.fault, fs.ErrNotExist) {
		r.fault = nil
		return r
	}
	if r.fault == nil {
		r.login, r.there, r.fault = parse(r.content)
	}
	return r
}

// round does one step, and tells whether another has to follow.
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

// give puts the user's login inside. An agent that keeps its own lock only
// harms itself.
func (k *Keeper) give(host, inside reading) error {
	content, err := lend(host.content, inside.content)
	if err != nil {
		return err
	}
	write := func() error {
		if what, err := k.inside.Look(FileName); err == nil && what.Kind == beneath.Dir {
			if err := k.inside.Rename(FileName, FileName+".inside-"+rand.Text()); err != nil {
				return err
			}
		}
		return k.inside.Replace(FileName, content, privateFile)
	}
	if err = whileWriting(k.inside, patienceInside, write); errors.Is(err, errBusy) {
		err = write()
	}
	if err != nil {
		return &diag.Error{Op: "lend your login", Err: err, Remedy: "look at " + k.inside.Join(FileName)}
	}
	return nil
}

// take brings a login that was renewed inside to the user.
func (k *Keeper) take(host, inside reading, was record) error {
	err := whileWriting(k.host, patience, func() error {
		if now := read(k.host, k.name); now.sum() != host.sum() {
			return errors.New("it has changed meanwhile")
		}
		content, err := renew(host.content, inside.login, time.Now())
		if err != nil {
			return err
		}
		return k.host.Replace(k.name, content, privateFile)
	})
	if err != nil {
		return &diag.Error{
			Op: "bring the login that was renewed inside to " + k.place.Host, Err: err,
			Remedy: "it is kept inside, and the next start tries again; or log in anew with `claude /login`",
		}
	}
	k.note("your login was renewed inside; %s has the new one", k.place.Host)
	if early := time.Until(time.UnixMilli(was.Expires)); early > usual && host.good() {
		k.note("the login was renewed %s before it ran out; if nobody did `/login` inside, do it outside", early.Round(time.Minute))
	}
	return nil
}

// usual is how long before the end Claude Code renews at most, and some more.
const usual = 10 * time.Minute

// maxNotes is how much of a session's renewals is told; an agent could make
// any number.
const maxNotes = 4

func (k *Keeper) note(format string, words ...any) {
	text := fmt.Sprintf(format, words...)
	if len(k.notes) < maxNotes && !slices.Contains(k.notes, text) {
		k.notes = append(k.notes, text)
	}
}

// sameAccount compares whose logins these are, as far as the files say. An
// agent can write there what it likes; this is for a user who logged in inside
// as somebody else.
func (k *Keeper) sameAccount(host, inside login) bool {
	if inside.account == "" || host.account == "" {
		host.account, host.organization = accountOf(os.ReadFile(k.place.Accounts))
		inside.account, inside.organization = accountOf(k.inside.Read(".claude.json", maxAccounts))
	}
	differs := func(a, b string) bool { return a != "" && b != "" && a != b }
	return !differs(host.account, inside.account) && !differs(host.organization, inside.organization)
}

// accountOf reads whose login Claude Code noted in its .claude.json.
func accountOf(content []byte, err error) (account, organization string) {
	var file struct {
		OAuthAccount struct {
			AccountUUID      string `json:"accountUuid"`
			OrganizationUUID string `json:"organizationUuid"`
		} `json:"oauthAccount"`
	}
	if err != nil || json.Unmarshal(content, &file) != nil {
		return "", ""
	}
	return file.OAuthAccount.AccountUUID, file.OAuthAccount.OrganizationUUID
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
