package state

import (
	"cmp"
	"os"
	"path"

	"claudebox/internal/agent/login"
	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
)

// findLogin sets c.Login to the user's login. It is no error if there is none: the user logs in inside.
// With an API key the login is not used, because Claude Code warns about having both. There are no notes on a login
// that is not used.
func (c *comparison) findLogin() error {
	found, notes, err := c.usersLogin()
	c.Login = Login{File: found, Why: "the agent has no use for it"}
	switch {
	case c.req.APIKey != "":
		c.Login.Why = "an API key enters instead"
	case c.req.AskTokens == nil:
	case err != nil:
		return err
	default:
		c.Notes = append(c.Notes, notes...)
		if found != "" {
			c.Login.Outside, c.Login.Why = true, "agent claude"
		}
	}
	if c.now == nil || c.req.AskTokens == nil {
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
	File    string // the user's credentials file, canonical; empty: there is none
	Outside bool   // it is used inside, and its tokens stay outside
	Made    bool   // the instance has a login that was made inside
	Why     string // by which rule it is used, or why it is not
}

// usersLogin returns the file of the user's login, in ~/.claude or else in CLAUDEBOX_HOME; empty: there is none.
// notes are for a user whose login is used, or would be.
func (c *comparison) usersLogin() (file string, notes []string, err error) {
	for _, folder := range []string{c.req.Own("."), c.req.Home} {
		name := path.Join(folder, login.FileName)
		real, why, err := c.req.find(name)
		switch {
		case why != "":
			notes = append(notes, "your login "+why)
			continue
		case err != nil:
			return "", nil, diag.Wrap("look at your login "+name, err,
				"make "+folder+" readable for you (chmod u+rwx "+folder+"), or move it away")
		case real == "":
			continue
		}
		if what, err := os.Lstat(name); err == nil && what.Mode()&os.ModeSymlink != 0 {
			// Claude Code outside makes its locks beside the link, and replaces the link by a file.
			notes = append(notes, "your login "+name+" does not enter: it is a link; put "+real+" in its place")
			continue
		}
		found, note, err := login.Examine(real)
		if err != nil {
			return "", nil, err
		}
		if note != "" {
			notes = append(notes, note)
		}
		if found {
			return real, notes, nil
		}
	}
	return "", notes, nil
}

// TakeLogin moves the login that was made inside to the user's own file: Claude Code outside uses it from then on.
func (in *Instance) TakeLogin() error {
	users := cmp.Or(in.Login.File, in.req.Own(login.FileName))
	if err := login.Take(in.Dir, users); err != nil {
		return diag.Wrap("use the login outside that was made inside", err, "log in inside with `/login`")
	}
	return nil
}

// keepOutside starts the guard of the login, and writes its placeholders inside. It does nothing if no login is used
// ([Request.AskTokens] is nil).
func (in *Instance) keepOutside() (err error) {
	if in.req.AskTokens == nil {
		return nil
	}
	users := ""
	if in.Login.Outside {
		users = in.Login.File
	}
	if in.guard, err = login.NewGuard(in.Dir, users, in.req.Key, in.req.AskTokens); err != nil {
		return err
	}
	if in.req.APIKey != "" {
		return in.guard.TakeOut() // Claude Code warns about having both
	}
	return in.guard.GiveInside()
}

// Guard returns the guard that keeps the login outside, from Prepare to Close; nil if there is none.
func (in *Instance) Guard() *login.Guard {
	if in.held == nil { // the zero Instance
		return nil
	}
	return in.guard
}

// endLogin closes the guard, and sets in.Ended and in.MadeLogin from it.
func (in *Instance) endLogin() {
	if in.guard != nil {
		in.Ended = append(in.Ended, in.guard.Close()...)
		in.MadeLogin = in.guard.Kept()
		in.guard = nil
	}
}
