package login

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/secret/broker"
)

// Origin says where a login in an agent's home comes from.
type Origin int

const (
	None Origin = iota // there is none
	Lent               // it is the user's, or was renewed from it
	Own                // it was made inside
)

// Inside tells whose login is in an instance: instance is the folder that holds
// the agent's .claude. What cannot be read in there counts as the user's while
// the record says that one was lent.
func Inside(instance *beneath.Folder) Origin {
	var was record
	content, err := instance.Read(RecordName, maxRecord)
	if err == nil {
		_ = json.Unmarshal(content, &was)
	}
	home, err := instance.Sub(agentHome)
	if err != nil {
		return None
	}
	defer home.Close()
	what, err := home.Look(FileName)
	switch {
	case err == nil && what.Kind == beneath.Absent:
		return None
	case was.Base == "":
		if found := read(home, FileName); found.good() {
			return Own
		}
		return None
	}
	if found := read(home, FileName); found.fault == nil && !found.good() {
		return None
	}
	return Lent
}

// Withdraw takes the user's login out of an instance. What else lies in the
// agent's credentials stays, as far as it can be read. A login that the agent
// made stays too: ask [Inside] first.
func Withdraw(instance *beneath.Folder) error {
	failed := func(err error) error {
		return &diag.Error{
			Op: "take your login out of " + instance.Join(agentHome), Err: diag.Cause(err),
			Remedy: "remove " + instance.Join(agentHome+"/"+FileName),
		}
	}
	home, err := instance.Sub(agentHome)
	if err != nil {
		return failed(err)
	}
	defer home.Close()
	if err := strip(home); err != nil {
		return failed(err)
	}
	if err := instance.Remove(RecordName); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return failed(err)
	}
	return nil
}

// strip removes the login from the agent's credentials.
func strip(home *beneath.Folder) error {
	found := read(home, FileName)
	var file object
	if json.Unmarshal(found.content, &file) == nil {
		if delete(file, keyOf); len(file) > 0 {
			content, err := encode(file)
			if err != nil {
				return err
			}
			return home.Replace(FileName, content, privateFile)
		}
	}
	err := home.Remove(FileName)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, unix.ENOTEMPTY):
		return home.Rename(FileName, FileName+".inside-"+rand.Text())
	}
	return err
}

// Adopt takes a login that was made inside, by an older version, out of the
// agent's credentials, and keeps it as the instance's own. Placeholders are no
// login.
func Adopt(instance *beneath.Folder, key broker.Key) error {
	home, err := instance.Sub(agentHome)
	if err != nil {
		return err
	}
	defer home.Close()
	found := read(home, FileName)
	key, err = instanceKey(instance, key)
	if err != nil {
		return err
	}
	if !found.good() || key.In(broker.ClaudeLogin, found.access) || found.refresh == "" {
		return nil
	}
	var file object
	if err := json.Unmarshal(found.content, &file); err != nil {
		return errNotJSON
	}
	content, err := encode(object{keyOf: file[keyOf]})
	if err != nil {
		return err
	}
	if err := instance.Create(MadeName, content, privateFile); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
