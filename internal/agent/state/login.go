package state

import (
	"errors"
	"os"
	"path"

	"claudebox/internal/agent/agenthome"
	"claudebox/internal/agent/login"
	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/secret/broker"

	"golang.org/x/sys/unix"
)

// findLogin finds the user's login. None is no fault: the user logs in inside
// (AUTH-02). With an API key it is not used, for Claude Code warns about both.
// What older versions left inside is noted for [Instance.keepOutside].
func (in *Instance) findLogin(dir *beneath.Folder) error {
	may, why := in.req.Post != nil && in.req.APIKey == "", "it has no use for it"
	if in.req.APIKey != "" {
		why = "an API key enters instead"
	}
	found, err := in.usersLogin(may)
	if err != nil {
		return err
	}
	in.login = found
	in.Login = Login{File: found, Outside: may && found != "", Why: why}
	if in.Login.Outside {
		in.Login.Why = "agent claude"
	}
	if dir == nil {
		return nil
	}
	if login.LeftIn(dir) != login.Nothing {
		in.Notes = append(in.Notes, "a login that an earlier session left in the agent's home is taken out")
		in.Makes = append(in.Makes, path.Join(in.Dir, agentHome, login.FileName))
	}
	if what, err := dir.Look(login.MadeName); err == nil && what.Kind == beneath.Regular && in.req.Post != nil {
		in.Login.Made = true
		in.Notes = append(in.Notes, "a login that was made inside is used, and kept outside")
	}
	return nil
}

// Login is what becomes of the user's Claude login in a session.
type Login struct {
	File    string // of the user, canonical; empty: there is none
	Outside bool   // it is used inside, and stays outside
	Made    bool   // one that was made inside is there
	Why     string // by which rule it is used, or why it is not
}

// usersLogin is the file of the user's login; empty when there is none. When it is used,
// what a person should know of it is noted.
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
		if isLink(name) {
			// Claude Code outside has its locks beside the link, and puts a file in its place.
			note("your login " + name + " does not enter: it is a link; put " + real + " in its place")
			continue
		}
		found, text, err := login.Examine(real)
		if err != nil && may {
			return "", err
		}
		if note(text); !found {
			continue
		}
		return real, nil
	}
	return "", nil
}

func isLink(name string) bool {
	what, err := os.Lstat(name)
	return err == nil && what.Mode()&os.ModeSymlink != 0
}

// errInUse says that another session works with a login that should go.
var errInUse = errors.New("another session works there with your login")

// takeOut takes out what older versions left inside, unless a session of theirs
// works with it.
func (in *Instance) takeOut() error {
	if login.LeftIn(in.dir) == login.Nothing {
		return nil
	}
	if err := unix.Flock(int(in.live.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return &diag.Error{
			Op: "take your login out of " + in.Dir, Err: errInUse,
			Remedy: "end that session first",
		}
	}
	notes, err := login.TakeOut(in.loginPlace(in.Dir), in.newKey())
	in.Ended = append(in.Ended, notes...)
	if err != nil {
		return err
	}
	return unix.Flock(int(in.live.Fd()), unix.LOCK_SH)
}

// cleanName is the file that says that no instance has anything left of older
// versions.
const cleanName = "logins-outside"

// takeOutEverywhere takes out of all instances what older versions left, once. One
// that a session of theirs uses is left to the next launch.
func (in *Instance) takeOutEverywhere() {
	done := path.Join(in.req.Home, cleanName)
	if _, err := os.Lstat(done); err == nil {
		return
	}
	entries, err := os.ReadDir(path.Join(in.req.Home, instances))
	all := err == nil
	for _, e := range entries {
		at := path.Join(in.req.Home, instances, e.Name())
		if at == in.Dir || !e.IsDir() {
			continue
		}
		lock, free := claim(at)
		if !free {
			lock.Close()
			all = false
			continue
		}
		notes, err := login.TakeOut(in.loginPlace(at), broker.NewKey())
		in.Ended = append(in.Ended, notes...)
		all = all && err == nil
		lock.Close()
	}
	if all {
		_ = os.WriteFile(done, nil, privateFile) // else the next launch looks again
	}
}

// TakeLogin makes a login that was made inside the user's.
func (in *Instance) TakeLogin() error {
	users := in.login
	if users == "" {
		users = path.Join(in.req.UserHome, agentHome, login.FileName)
	}
	if err := login.Take(in.Dir, users); err != nil {
		return &diag.Error{Op: "use the login outside that was made inside", Err: diag.Cause(err), Remedy: "log in inside with `/login`"}
	}
	return nil
}

func (in *Instance) newKey() broker.Key {
	if in.req.Key != nil {
		return in.req.Key
	}
	return broker.NewKey()
}

// keepOutside takes what older versions left inside out, and puts placeholders of
// the login that counts in its place.
func (in *Instance) keepOutside() error {
	in.takeOutEverywhere()
	if err := in.takeOut(); err != nil || in.req.Post == nil {
		return err
	}
	home := in.loginPlace(in.Dir)
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

func (in *Instance) loginPlace(dir string) login.Place {
	return login.Place{Host: in.login, Accounts: path.Join(in.req.UserHome, ".claude.json"), Instance: dir}
}

// endLogin ends what keeps the login outside.
func (in *Instance) endLogin() {
	if in.guard != nil {
		in.Ended = append(in.Ended, in.guard.Close()...)
		in.MadeLogin = in.guard.Kept()
		in.guard = nil
	}
}
