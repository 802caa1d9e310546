package login

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
)

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
		k.note("the login was renewed %s before it ran out; if nobody did `/login` inside, do it outside",
			early.Round(time.Minute))
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
