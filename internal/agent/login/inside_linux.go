package login

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/agent/object"
	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/secret/broker"
)

// giveInside replaces any login in the credentials of the agent's home by placeholders of now. If now has no login, or
// one that has ended, it leaves none there.
func giveInside(home *beneath.Folder, key broker.Key, now reading) error {
	put := func() error { return putLogin(home, placeholders(key, now)) }
	err := whileWriting(home, patienceInside, put)
	if errors.Is(err, errBusy) {
		err = put() // an agent that holds its own lock for long only harms itself
	}
	if err != nil {
		remedy := "move " + home.Join(FileName) + " away: the project then starts afresh"
		return &diag.Error{Op: "put a placeholder of your login inside", Err: err, Remedy: remedy}
	}
	return nil
}

// insideFor is for how long, from now, the placeholders say that they are good. Longer times were not tried.
const insideFor = 10 * 24 * time.Hour

// shownKeys are the keys of a login whose values enter the sandbox as they are: they say whose
// login it is and what it may do, and are no secret.
var shownKeys = []string{"scopes", "subscriptionType", "rateLimitTier", "accountUuid", "organizationUuid"}

// placeholders returns a login as the agent sees it; nil: it sees none.
func placeholders(key broker.Key, now reading) json.RawMessage {
	if !now.good() {
		return nil
	}
	access, refresh := broker.LoginPlaceholders(key)
	shown := object.Object{}
	shown.Set("accessToken", access)
	shown.Set("refreshToken", refresh)
	shown.Set("expiresAt", time.Now().Add(insideFor).UnixMilli())
	login := object.Of(object.Of(now.content)[loginKey])
	for _, key := range shownKeys {
		if value, ok := login[key]; ok {
			shown[key] = value
		}
	}
	return object.Encode(shown)
}

// putLogin replaces the login in the agent's credentials; nil removes it. Other keys stay, if the file can be read. A
// file without any key is removed, and a folder in its place is removed or renamed.
func putLogin(home *beneath.Folder, login json.RawMessage) error {
	all := object.Of((&file{home, FileName}).read().content)
	delete(all, loginKey)
	if login != nil {
		all[loginKey] = login
	}
	what, err := home.Look(FileName)
	if len(all) == 0 || err == nil && what.Kind == beneath.Dir {
		err := home.Remove(FileName)
		if errors.Is(err, unix.ENOTEMPTY) {
			err = home.Rename(FileName, FileName+".inside-"+rand.Text())
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		if err != nil || len(all) == 0 {
			return err
		}
	}
	return home.Replace(FileName, object.Encode(all), privateFile)
}
