package state

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"claudebox/internal/agent/agenthome"
	"claudebox/internal/agent/login"
	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/secret/broker"
)

// Kind is how long an agent's home lives, and who shares it.
type Kind string

const (
	Project   Kind = "project"   // one per project, kept
	Shared    Kind = "shared"    // one for all projects, kept
	Ephemeral Kind = "ephemeral" // one per session, removed at its end
	Host      Kind = "host"      // one per project, kept, with the user's own conversations and history of it
)

// Request is what [Look] is asked for. All paths are absolute. Look says itself
// whether the agent works in the user's own state.
type Request struct {
	agenthome.Request
	UID     int      // who must own all of it
	Kind    Kind     // of the agent's home
	Root    string   // the project's canonical root (STATE-01)
	Caches  []string // folders that the cache must hold, by name
	Folders []string // further folders of the instance that are mounted, below it
	// Post asks for tokens: the user's Claude login is used, and stays outside, see
	// [login.Guard]. Nil: it is not used.
	Post login.Post
	Key  broker.Key // of the placeholders, where the instance has none yet

	homes homes // resolved by Look
}

// Instance is the state of one project. A value made by [Look] is what is
// there; [Instance.Prepare] makes the rest.
type Instance struct {
	ID  string // 16 hex digits, or "shared"
	Dir string // its folder
	draft
	Ended     []string // what became of the user's login when it ended, for people; from Close
	MadeLogin bool     // a login was made inside, in this session; from Close

	*work
}

// Import is a folder of the user's that the agent may read.
type Import struct {
	Source      string // canonical, on the host
	Destination string // inside
	Writable    bool   // conversations, with [Host]
}

// draft is what an instance should be, and what is missing of it.
type draft struct {
	Imports []Import // read-only binds that the links in the agent's home lead to
	Notes   []string // what of the user's settings does not enter, and why
	Makes   []string // what Prepare would make or change, for people
	Login   Login    // what becomes of the user's login

	exists        bool
	known         record
	writes        []write
	conversations []string // the user's folders that the agent writes its own to
}

// work is what Prepare needs to know; it is shared by copies of an Instance.
type work struct {
	held
	approval approvals    // noted before the instance was there
	guard    *login.Guard // of what stays outside, from Prepare to Close
}

// ID names the instance of a canonical root: 16 hex digits of its SHA-256.
func ID(root string) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(root)))[:16]
}

const (
	instances = "instances"
	ephemeral = "ephemeral"
	agentHome = ".claude"
	// An instance of kind Host has its own folder: links in it lead to what is
	// only there for this kind.
	hostSuffix = "-host"
	cacheName  = "cache"
	liveName   = "live"

	privateDir  = 0o700
	privateFile = 0o600
)

// Dir is the folder of a kept instance below CLAUDEBOX_HOME, whether it is there
// or not. It fails for [Ephemeral], which is another one each time.
func Dir(home string, kind Kind, root string) (string, error) {
	_, rel, err := Request{Kind: kind, Root: root}.place()
	if err == nil && kind == Ephemeral {
		err = diag.Errorf("find the instance of "+root, "use `state: project` in the profile",
			"with `state: ephemeral` it is made for each session and removed after it")
	}
	return path.Join(home, rel), err
}

// place gives an instance's name and its path below Home.
func (r Request) place() (id, rel string, err error) {
	id = ID(r.Root)
	switch r.Kind {
	case Project:
		return id, path.Join(instances, id), nil
	case Shared:
		return string(Shared), path.Join(instances, string(Shared)), nil
	case Host:
		return id + hostSuffix, path.Join(instances, id+hostSuffix), nil
	case Ephemeral:
		return id, path.Join(ephemeral, id+"-"+strings.ToLower(rand.Text()[:8])), nil
	}
	return "", "", diag.Errorf("prepare the agent's home", "use project, shared, ephemeral or host",
		"there is no `state: %s`", r.Kind)
}

// Look finds a project's instance and what is missing of it. It changes
// nothing. An instance that is not what it should be (a link, somebody
// else's, open to others) is refused with a remedy.
func Look(req Request) (Instance, error) {
	id, rel, err := req.place()
	if err != nil {
		return Instance{}, err
	}
	req.homes, req.Host = homes{canonical(req.UserHome), canonical(req.Home)}, req.Kind == Host
	req.Home = req.homes.state // the way to it is the user's own; below it no link is followed
	at := place{req: req, rel: rel, dir: path.Join(req.Home, rel)}
	in := Instance{ID: id, Dir: at.dir, work: &work{held: held{place: at}}}
	in.draft, err = look(at)
	return in, err
}

// look compares what is there with what should be.
func look(at place) (draft, error) {
	home, err := beneath.Open(at.req.Home)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return compare(at, nil)
	case err != nil:
		return draft{}, at.failed("open "+at.req.Home, err)
	}
	defer home.Close()
	switch dir, err := at.find(home); {
	case err != nil:
		return draft{}, err
	case dir != nil:
		return lookInto(at, dir)
	}
	return compare(at, nil)
}

// lookInto closes dir, the instance's folder. Nothing keeps others from removing
// it: what was found wrong counts when it is still there then.
func lookInto(at place, dir *beneath.Folder) (draft, error) {
	defer dir.Close()
	err := at.judge(dir)
	var d draft
	if err == nil {
		d, err = compare(at, dir)
	}
	if err == nil || at.isStill(dir) {
		return d, err
	}
	return compare(at, nil)
}
