package state

import (
	"cmp"
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
func (c *comparison) findLogin() error {
	may, why := c.req.Post != nil && c.req.APIKey == "", "it has no use for it"
	if c.req.APIKey != "" {
		why = "an API key enters instead"
	}
	found, err := c.usersLogin(may)
	if err != nil {
		return err
	}
	c.Login = Login{File: found, Outside: may && found != "", Why: why}
	if c.Login.Outside {
		c.Login.Why = "agent claude"
	}
	if c.now == nil {
		return nil
	}
	if login.LeftIn(c.now) != login.Nothing {
		c.Notes = append(c.Notes, "a login that an earlier session left in the agent's home is taken out")
		c.Makes = append(c.Makes, path.Join(c.dir, agentHome, login.FileName))
	}
	if what, err := c.now.Look(login.MadeName); err == nil && what.Kind == beneath.Regular && c.req.Post != nil {
		c.Login.Made = true
		c.Notes = append(c.Notes, "a login that was made inside is used, and kept outside")
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
func (c *comparison) usersLogin(may bool) (string, error) {
	note := func(text string) {
		if may && text != "" {
			c.Notes = append(c.Notes, text)
		}
	}
	for _, name := range agenthome.LoginFiles(c.req.Request) {
		real, why, err := c.req.find(name)
		switch {
		case why != "":
			note("your login " + why)
			continue
		case err != nil && !may:
			return "", nil
		case err != nil:
			return "", c.failed("look at your login "+name, err)
		case real == "":
			continue
		}
		if what, err := os.Lstat(name); err == nil && what.Mode()&os.ModeSymlink != 0 {
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

// cleanName is the file that says that no instance has anything left of older
// versions.
const cleanName = "logins-outside"

// takeOutEverywhere takes out of all instances but one what older versions left,
// once. An instance that a session of theirs uses is left to the next launch.
func (r Request) takeOutEverywhere(but, users string) (notes []string) {
	done := path.Join(r.Home, cleanName)
	if _, err := os.Lstat(done); err == nil {
		return nil
	}
	entries, err := os.ReadDir(path.Join(r.Home, instances))
	all := err == nil
	for _, e := range entries {
		at := path.Join(r.Home, instances, e.Name())
		if at == but || !e.IsDir() {
			continue
		}
		lock, free := claim(at)
		if free {
			said, err := login.TakeOut(r.loginPlace(at, users), broker.NewKey())
			notes, free = append(notes, said...), err == nil
		}
		all = all && free
		lock.Close()
	}
	if all {
		_ = os.WriteFile(done, nil, privateFile) // else the next launch looks again
	}
	return notes
}

// TakeLogin makes a login that was made inside the user's.
func (in *Instance) TakeLogin() error {
	users := cmp.Or(in.Login.File, path.Join(in.req.UserHome, agentHome, login.FileName))
	if err := login.Take(in.Dir, users); err != nil {
		return diag.Wrap("use the login outside that was made inside", err, "log in inside with `/login`")
	}
	return nil
}

func (r Request) newKey() broker.Key {
	if r.Key != nil {
		return r.Key
	}
	return broker.NewKey()
}

// keepOutside takes what older versions left inside out, and puts placeholders of
// the login that counts in its place.
func (in *Instance) keepOutside() error {
	users := in.Login.File
	in.Ended = append(in.Ended, in.req.takeOutEverywhere(in.Dir, users)...)
	if login.LeftIn(in.open) != login.Nothing { // then no session of theirs may work with it
		if err := unix.Flock(int(in.live.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			return diag.Errorf("take your login out of "+in.Dir, "end that session first",
				"another session works there with your login")
		}
		notes, err := login.TakeOut(in.req.loginPlace(in.Dir, users), in.req.newKey())
		in.Ended = append(in.Ended, notes...)
		if err == nil {
			err = unix.Flock(int(in.live.Fd()), unix.LOCK_SH)
		}
		if err != nil {
			return err
		}
	}
	if in.req.Post == nil {
		return nil
	}
	if !in.Login.Outside {
		users = ""
	}
	guard, err := login.NewGuard(in.req.loginPlace(in.Dir, users), in.req.Key, in.req.Post)
	if err != nil {
		return err
	}
	in.guard = guard
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

// loginPlace is where an instance and the user's file of a login are.
func (r Request) loginPlace(dir, users string) login.Place {
	return login.Place{Host: users, Accounts: path.Join(r.UserHome, ".claude.json"), Instance: dir}
}

// endLogin ends what keeps the login outside.
func (in *Instance) endLogin() {
	if in.guard != nil {
		in.Ended = append(in.Ended, in.guard.Close()...)
		in.MadeLogin = in.guard.Kept()
		in.guard = nil
	}
}
