package login

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"

	"claudebox/internal/agent/object"
	"claudebox/internal/linux/beneath"
)

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
	all := object.Object{}
	if len(found.content) > 0 && (json.Unmarshal(found.content, &all) != nil || all == nil) {
		return errNotJSON
	}
	all[keyOf] = object.Of(made.content)[keyOf]
	err = whileWriting(dir, patience, func() error { return dir.Replace(to.name, object.Encode(all), privateFile) })
	if err != nil {
		return err
	}
	return own.Remove(MadeName)
}

// ErrNoneMade says that no login was made inside.
var ErrNoneMade = errors.New("no login was made inside")
