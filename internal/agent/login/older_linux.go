package login

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/secret/broker"
)

// Older versions put the user's login into the agent's home, and left one there
// that was made inside. What they left is taken out.

// RecordName is the file of older versions, beside the agent's home and out of its reach, that records which login was
// lent to the agent. Without one none was.
const RecordName = "login"

// Place names the files that [TakeOut] needs. All paths are absolute.
type Place struct {
	Host     string // the user's file, canonical; empty: there is none
	Accounts string // the user's .claude.json, which says whose it is
	Instance string // folder that holds the agent's .claude, canonical
}

// Left is what lies in an agent's home.
type Left int

const (
	Nothing Left = iota // placeholders at most
	Lent                // the user's login, or one that was renewed from it
	Own                 // one that was made inside, or an API key
)

// LeftIn says which kind of login, if any, lies in the agent's home of an instance.
func LeftIn(instance *beneath.Folder) Left {
	home, err := instance.Sub(agentHome)
	if err != nil {
		return Nothing
	}
	defer home.Close()
	found := read(home, FileName)
	key, there := keyIn(instance)
	placeholder := there && key.In(broker.ClaudeLogin, found.access)
	lent := lentIn(instance) != ""
	switch {
	case !placeholder && lent && (found.good() || found.fault != nil):
		return Lent
	case !placeholder && !lent && found.good(), hasKey(home):
		return Own
	}
	return Nothing
}

// lentIn returns the hash of the login that was lent; empty: none was.
func lentIn(instance *beneath.Folder) string {
	var was struct {
		Base string `json:"base"`
	}
	const most = 4 << 10
	content, err := instance.Read(RecordName, most)
	if err != nil || json.Unmarshal(content, &was) != nil {
		return ""
	}
	return was.Base
}

// TakeOut removes true logins and API keys from the agent's home. A lent login that was renewed inside is first written
// to the user's file; a login made inside is kept as the instance's own; an API key is dropped. What else lies in the
// agent's files stays, as far as it can be read. notes are for people.
func TakeOut(place Place, key broker.Key) (notes []string, err error) {
	instance, err := beneath.Open(place.Instance)
	if err != nil {
		return nil, err
	}
	defer instance.Close()
	left := LeftIn(instance)
	if left == Nothing {
		return nil, removed(instance, RecordName)
	}
	home, err := instance.Sub(agentHome)
	if err != nil {
		return nil, err
	}
	defer home.Close()
	if left == Lent {
		notes, err = bringBack(place, instance, home, key)
	} else {
		err = adopt(instance, home, key)
	}
	if err == nil {
		err = putLogin(home, nil)
	}
	if err == nil && hasKey(home) {
		notes = append(notes, "an API key that Claude Code made inside was removed from "+home.Path()+
			"; log in again to get another")
		err = stripKey(home)
	}
	if err == nil {
		err = removed(instance, RecordName)
	}
	if err != nil {
		return notes, diag.Wrap("take your login out of "+home.Path(), err, "remove "+home.Join(FileName))
	}
	return notes, nil
}

func removed(dir *beneath.Folder, name string) error {
	if err := dir.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// bringBack writes a login that was renewed inside to the user's file, unless theirs was renewed too. A login of
// another account is kept as the instance's own.
func bringBack(place Place, instance, home *beneath.Folder, key broker.Key) (notes []string, err error) {
	if place.Host == "" {
		return nil, nil // nobody is logged in: a logout is not undone
	}
	dir, err := beneath.Open(filepath.Dir(place.Host))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	users := &file{dir, filepath.Base(place.Host)}
	host, inside := users.read(), read(home, FileName)
	switch {
	case !isNewer(host, inside, lentIn(instance)):
		return nil, nil
	case !sameAccount(place, home, host.login, inside.login):
		return nil, adopt(instance, home, key)
	}
	if err := users.renew(host, inside.login); err != nil {
		return nil, err
	}
	return []string{"your login was renewed inside; " + place.Host + " has the new one"}, nil
}

// isNewer reports whether the login inside was renewed since it was lent (base: its hash then), while the user's file
// still has the lent one or one that no longer works.
func isNewer(host, inside reading, base string) bool {
	renewed := base != "" && inside.good() && inside.refresh != "" && inside.sum() != base
	// Claude Code outside may have been refused with what the one inside has used.
	return renewed && host.there && host.fault == nil && (!host.good() || host.sum() == base)
}

// sameAccount compares whose logins these are, as far as the files say. An agent
// can write there what it likes; this is for a user who logged in inside as
// somebody else.
func sameAccount(place Place, home *beneath.Folder, host, inside login) bool {
	const most = 64 << 20 // bytes, of .claude.json
	if inside.account == "" || host.account == "" {
		host.account, host.organization = accountOf(os.ReadFile(place.Accounts))
		inside.account, inside.organization = accountOf(home.Read(accountsName, most))
	}
	differs := func(a, b string) bool { return a != "" && b != "" && a != b }
	return !differs(host.account, inside.account) && !differs(host.organization, inside.organization)
}

const accountsName = ".claude.json"

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

// adopt keeps a login that was made inside as the instance's own. A placeholder is none.
func adopt(instance, home *beneath.Folder, key broker.Key) error {
	key, err := instanceKey(instance, key)
	if err != nil {
		return err
	}
	found := read(home, FileName)
	if !found.good() || found.refresh == "" || key.In(broker.ClaudeLogin, found.access) {
		return nil
	}
	content := mustEncode(object{keyOf: objectOf(found.content)[keyOf]})
	if err := instance.Create(MadeName, content, privateFile); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// putLogin puts a login into the agent's credentials, and takes out what was
// logged in there; nil: none is. What lies beside a login stays, as far as it can
// be read.
func putLogin(home *beneath.Folder, login json.RawMessage) error {
	file := objectOf(read(home, FileName).content)
	if delete(file, keyOf); login != nil {
		file[keyOf] = login
	}
	if what, err := home.Look(FileName); len(file) == 0 || err == nil && what.Kind == beneath.Dir {
		err := removed(home, FileName)
		if errors.Is(err, unix.ENOTEMPTY) {
			err = home.Rename(FileName, FileName+".inside-"+rand.Text())
		}
		if err != nil || len(file) == 0 {
			return err
		}
	}
	return home.Replace(FileName, mustEncode(file), privateFile)
}

// madeKey is where Claude Code keeps an API key that it has made.
const madeKey = "primaryApiKey"

func readAccounts(home *beneath.Folder) object {
	content, _ := home.Read(accountsName, maxFile)
	return objectOf(content)
}

func hasKey(home *beneath.Folder) bool { return !isNull(readAccounts(home)[madeKey]) }

// stripKey removes an API key that Claude Code made from .claude.json inside.
func stripKey(home *beneath.Folder) error {
	file := readAccounts(home)
	delete(file, madeKey)
	return home.Replace(accountsName, mustEncode(file), privateFile)
}

// Take moves the login that was made inside from an instance (a folder) to the user's credentials file. It takes Claude
// Code's locks.
func Take(instance, usersFile string) error {
	own, err := beneath.Open(instance)
	if err != nil {
		return err
	}
	defer own.Close()
	made := read(own, MadeName)
	switch {
	case made.fault != nil:
		return made.fault
	case !made.good():
		return ErrNoneMade
	}
	dir, err := beneath.Open(filepath.Dir(usersFile))
	if err != nil {
		return err
	}
	defer dir.Close()
	to := &file{dir, filepath.Base(usersFile)}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	locks, err := claimAll(ctx, to)
	if err != nil {
		return err
	}
	defer locks.release()
	found := to.read()
	all := object{}
	if len(found.content) > 0 && (json.Unmarshal(found.content, &all) != nil || all == nil) {
		return errNotJSON
	}
	all[keyOf] = objectOf(made.content)[keyOf]
	err = whileWriting(dir, patience, func() error { return dir.Replace(to.name, mustEncode(all), privateFile) })
	if err != nil {
		return err
	}
	return own.Remove(MadeName)
}

// ErrNoneMade says that no login was made inside.
var ErrNoneMade = errors.New("no login was made inside")
