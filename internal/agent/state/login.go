package state

import (
	"cmp"
	"os"
	"path"

	"claudebox/internal/agent/agenthome"
	"claudebox/internal/agent/login"
	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
)

// findLogin finds the user's login. None is no fault: the user logs in inside
// (AUTH-02). With an API key it is not used, for Claude Code warns about both.
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
	if c.now == nil || c.req.Post == nil {
		return nil
	}
	if what, err := c.now.Look(login.MadeName); err == nil && what.Kind == beneath.Regular {
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

// TakeLogin makes a login that was made inside the user's.
func (in *Instance) TakeLogin() error {
	users := cmp.Or(in.Login.File, path.Join(in.req.UserHome, agentHome, login.FileName))
	if err := login.Take(in.Dir, users); err != nil {
		return diag.Wrap("use the login outside that was made inside", err, "log in inside with `/login`")
	}
	return nil
}

// keepOutside puts placeholders of the login that counts inside.
func (in *Instance) keepOutside() (err error) {
	if in.req.Post == nil {
		return nil
	}
	users := ""
	if in.Login.Outside {
		users = in.Login.File
	}
	if in.guard, err = login.NewGuard(in.Dir, users, in.req.Key, in.req.Post); err != nil {
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

// endLogin ends what keeps the login outside.
func (in *Instance) endLogin() {
	if in.guard != nil {
		in.Ended = append(in.Ended, in.guard.Close()...)
		in.MadeLogin = in.guard.Kept()
		in.guard = nil
	}
}
