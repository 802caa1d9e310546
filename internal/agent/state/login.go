package state

import (
	"errors"
	"os"
	"path"

	"claudebox/internal/agent/agenthome"
	"claudebox/internal/agent/login"
	"claudebox/internal/linux/beneath"
)

// findLogin finds the user's login. None is no fault: the user logs in inside
// (AUTH-02). None is lent when an API key enters, for Claude Code warns about
// both.
func (in *Instance) findLogin(*beneath.Folder) error {
	in.login = ""
	if !in.req.Lend || in.req.APIKey != "" {
		return nil
	}
	for _, name := range agenthome.LoginFiles(in.req.home()) {
		real, err := in.req.own(name)
		var foreign *foreignError
		switch {
		case errors.As(err, &foreign):
			in.Notes = append(in.Notes, "your login "+name+" does not enter: "+foreign.Error())
			continue
		case err != nil && missing(err):
			continue
		case err != nil:
			return in.failed("look at your login "+name, err)
		}
		found, note, err := login.Examine(real)
		if err != nil {
			return err
		}
		if note != "" {
			in.Notes = append(in.Notes, note)
		}
		if !found {
			continue
		}
		in.login = real
		if note == "" {
			in.Notes = append(in.Notes, "your login enters, with what renews it ("+real+"); one that is renewed inside is written back")
		}
		return nil
	}
	return nil
}

// lend brings the agent's copy of the login up to date.
func (in *Instance) lend() (err error) {
	if in.login == "" {
		return nil
	}
	if in.keeper, err = login.Open(in.loginPlace(in.Dir)); err != nil {
		return err
	}
	return in.keeper.Lend()
}

func (in *Instance) loginPlace(dir string) login.Place {
	return login.Place{Host: in.login, Accounts: path.Join(in.req.UserHome, ".claude.json"), Instance: dir}
}

// rescue takes the login from an instance that a killed session left.
func (in *Instance) rescue(dir string) error {
	if _, err := os.Lstat(path.Join(dir, login.RecordName)); in.login == "" || err != nil {
		return nil //nolint:nilerr // none was lent there
	}
	keeper, err := login.Open(in.loginPlace(dir))
	if err != nil {
		return err
	}
	_, err = keeper.Close()
	return err
}

// Follow keeps the agent's copy of the login and the user's equal until Close.
// It is called when the sandbox has been started.
func (in *Instance) Follow() {
	if in.work != nil && in.keeper != nil {
		in.keeper.Watch()
	}
}

// endLogin ends what Follow began: a login that was renewed inside is the
// user's from here on.
func (in *Instance) endLogin() (err error) {
	if in.keeper == nil {
		return nil
	}
	in.Ended, err = in.keeper.Close()
	in.keeper = nil
	return err
}
