package state

import (
	"errors"
	"os"
	"path"

	"claudebox/internal/agent/agenthome"
	"claudebox/internal/agent/login"
	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"golang.org/x/sys/unix"
)

// findLogin finds the user's login, and reports whether it enters. None is no
// fault: the user logs in inside (AUTH-02). None enters when an API key does, for
// Claude Code warns about both. A login that entered earlier and may not stay is
// noted for [Instance.withdraw].
func (in *Instance) findLogin(dir *beneath.Folder) error {
	in.Login, in.login, in.stale = Login{}, "", ""
	may, why := in.req.Lend && in.req.APIKey == "", "it has no use for it"
	if in.req.APIKey != "" {
		why = "an API key enters instead"
	}
	found, err := in.usersLogin(may)
	if err != nil {
		return err
	}
	in.login = found
	if in.req.Post != nil {
		in.Login = Login{File: found, Outside: may && found != "", Why: why}
		if in.Login.Outside {
			in.Login.Why = "agent claude"
		}
		if dir != nil {
			in.lookInside(dir)
		}
		return nil
	}
	if may && found != "" {
		in.Login = Login{File: found, Enters: true, Why: "agent claude"}
		return nil
	}
	inside := login.None
	if dir != nil {
		inside = login.Inside(dir)
	}
	if may {
		why = "you are not logged in outside any more"
	}
	if in.Login = (Login{File: found, Why: why}); inside == login.Lent {
		in.stale = why
		in.Notes = append(in.Notes, "the login that an earlier session had is taken out of the agent's home: "+why)
		in.Makes = append(in.Makes, path.Join(in.Dir, agentHome, login.FileName))
	}
	if inside == login.Own {
		in.Login.Made = true
		in.Notes = append(in.Notes, "a login that was made inside is in the agent's home")
	}
	return nil
}

// lookInside notes what older versions left inside, and a login that was made
// there.
func (in *Instance) lookInside(dir *beneath.Folder) {
	inside := login.Inside(dir)
	if inside == login.Lent {
		in.stale = "it stays outside from now on"
		in.Notes = append(in.Notes, "the login that an earlier session had is taken out of the agent's home: "+in.stale)
		in.Makes = append(in.Makes, path.Join(in.Dir, agentHome, login.FileName))
	}
	if what, err := dir.Look(login.MadeName); err == nil && what.Kind == beneath.Regular {
		in.Login.Made = true
		in.Notes = append(in.Notes, "a login that was made inside is used, and kept outside")
	}
}

// Login is what becomes of the user's Claude login in a session.
type Login struct {
	File    string // of the user, canonical; empty: there is none that could enter
	Enters  bool   // a copy is in the agent's home
	Outside bool   // it is used inside, and stays outside
	Made    bool   // one that was made inside is there
	Why     string // by which rule it enters, or why it does not
}

// usersLogin is the file of the user's login that could enter; empty when there
// is none. When it may, what a person should know of it is noted.
func (in *Instance) usersLogin(may bool) (string, error) {
	note := func(text string) {
		if may && text != "" {
			in.Notes = append(in.Notes, text)
		}
	}
	for _, name := range agenthome.LoginFiles(in.req.home()) {
		real, err := in.req.own(name)
		var foreign *foreignError
		switch {
		case errors.As(err, &foreign):
			note("your login " + name + " does not enter: " + foreign.Error())
			continue
		case err != nil && missing(err):
			continue
		case err != nil && !may:
			return "", nil
		case err != nil:
			return "", in.failed("look at your login "+name, err)
		}
		found, text, err := login.Examine(real)
		if err != nil && may {
			return "", err
		}
		if note(text); !found {
			continue
		}
		if text == "" && in.req.Post == nil {
			note("your login enters, with what renews it (" + real + "); one that is renewed inside is written back")
		}
		return real, nil
	}
	return "", nil
}

// errInUse says that another session works with a login that should go.
var errInUse = errors.New("another session works there with your login")

// withdraw takes a login out of the agent's home that may not stay there. One
// that was renewed there is brought to the user first, while they are logged in.
func (in *Instance) withdraw() error {
	if in.stale == "" {
		return nil
	}
	if err := unix.Flock(int(in.live.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return &diag.Error{
			Op: "take your login out of " + in.Dir + ": " + in.stale, Err: errInUse,
			Remedy: "end that session first",
		}
	}
	if in.login != "" {
		if err := in.rescue(in.Dir); err != nil {
			return err
		}
	}
	if err := login.Withdraw(in.dir); err != nil {
		return err
	}
	in.stale, in.login = "", ""
	return unix.Flock(int(in.live.Fd()), unix.LOCK_SH)
}

// lend brings the agent's copy of the login up to date.
func (in *Instance) lend() (err error) {
	if in.req.Post != nil {
		return in.keepOutside()
	}
	if err := in.unguard(); err != nil {
		return err
	}
	if err := in.withdraw(); err != nil || !in.Login.Enters {
		return err
	}
	if in.keeper, err = login.Open(in.loginPlace(in.Dir)); err != nil {
		return err
	}
	return in.keeper.Lend()
}

// keepOutside takes what older versions left inside out, brings to the user what
// was renewed there, and puts placeholders of the login that counts in its place.
func (in *Instance) keepOutside() error {
	home := in.loginPlace(in.Dir)
	switch login.Inside(in.dir) {
	case login.Lent:
		if err := in.withdraw(); err != nil {
			return err
		}
	case login.Own:
		if err := login.Adopt(in.dir, in.req.Key); err != nil {
			return err
		}
	}
	if !in.Login.Outside {
		home.Host = ""
	}
	var err error
	if in.guard, err = login.NewGuard(home, in.req.Key, in.req.Post); err != nil {
		return err
	}
	if in.req.APIKey != "" {
		return in.guard.TakeOut() // Claude Code warns about both
	}
	return in.guard.GiveInside()
}

// Guard keeps the login outside, from Prepare to Close; nil when none stays
// there.
func (in *Instance) Guard() *login.Guard {
	if in.work == nil {
		return nil
	}
	return in.guard
}

// unguard takes placeholders out of the agent's home, where the login is to
// enter as it is.
func (in *Instance) unguard() error {
	if _, err := os.Lstat(path.Join(in.Dir, login.KeyName)); err != nil {
		return nil //nolint:nilerr // there never were any
	}
	if err := unix.Flock(int(in.live.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return &diag.Error{Op: "lend your login to " + in.Dir, Err: errInUse, Remedy: "end that session first"}
	}
	if err := login.Withdraw(in.dir); err != nil {
		return err
	}
	if err := in.dir.Remove(login.KeyName); err != nil {
		return err
	}
	return unix.Flock(int(in.live.Fd()), unix.LOCK_SH)
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
	if in.guard != nil {
		in.Ended = in.guard.Close()
		in.guard = nil
	}
	if in.keeper == nil {
		return nil
	}
	in.Ended, err = in.keeper.Close()
	in.keeper = nil
	return err
}
