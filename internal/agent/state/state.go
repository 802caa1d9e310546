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

// Request is what [Look] is asked for. All paths are absolute. Look sets the Host field itself, by Kind.
type Request struct {
	agenthome.Request
	Later   bool     // the files of the agent's home are looked at by [Instance.Furnish]
	UID     int      // the user who must own the instance
	Kind    Kind     // of the agent's home
	Root    string   // the project's canonical root
	Caches  []string // folders that the cache must hold, by name
	Folders []string // further folders of the instance that are mounted, below it
	// AskTokens is set if the user's Claude login is used; its tokens stay outside then, see [login.Guard].
	// nil: the login is not used.
	AskTokens login.AskTokens
	Key       broker.Key // makes the placeholders, if the instance has no key yet

	realUserHome string // UserHome with all links resolved; set by Look, which resolves those of Home, too
}

// Instance is the state of one project. [Look] describes in it what is there, and [Instance.Prepare] makes the rest.
type Instance struct {
	ID  string // 16 hex digits, or "shared"
	Dir string // its folder
	draft
	Ended     []string // what became of the login and the conversations, for people; set by Close
	MadeLogin bool     // a login was made inside, in this session; set by Close

	*held
}

// Import is a folder or file of the user's that the agent may read.
type Import struct {
	Source      string // canonical, on the host
	Destination string // inside
	At          string // the link in the agent's home that leads there, as in [agenthome.File]; empty: there is none
	Own         string // of a folder, the user's path of it, with links
	Kind        string // of a folder, what lies in it
	File        bool   // it is a file, and holds no secret
	Writable    bool   // the agent may write as well: conversations, with [Host]
}

// Link is the path inside of the link that leads to the import. home is the user's home.
func (i Import) Link(home string) string {
	if rest, beside := strings.CutPrefix(i.At, agenthome.Beside); beside {
		return path.Join(home, rest)
	}
	return path.Join(home, agentHome, i.At)
}

// draft is what an instance should be, and what is missing of that.
type draft struct {
	Imports []Import    // folders to mount, which links in the agent's home lead to
	Left    []diag.Left // what of the user's does not enter
	Notes   []string    // for people
	Mended  []string    // modes of claudebox's own folders that were put right
	Makes   []string    // what Prepare would make or change, for people
	Login   Login       // what becomes of the user's login

	outside []Import // what a memory imports from elsewhere: Source, and At as it is written there

	exists bool
	known  record
	steps  []step
}

// held is an instance that this process uses, or is about to use. Copies of an Instance share it.
type held struct {
	place
	approval approvals       // to be written by Prepare; nil: nothing new
	open     *beneath.Folder // its folder, from Prepare to Close
	live     *os.File        // locked as one in use
	guard    *login.Guard    // of the login, likewise; nil: there is none
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

// Folders are those with the folders of instances.
func Folders(home string) []string {
	return []string{path.Join(home, instances), path.Join(home, ephemeral)}
}

// Dir returns the folder of a kept instance below CLAUDEBOX_HOME, whether it exists or not. It fails for [Ephemeral],
// which has another folder each time.
func Dir(home string, kind Kind, root string) (string, error) {
	_, rel, err := Request{Kind: kind, Root: root}.place()
	if err == nil && kind == Ephemeral {
		err = diag.Errorf("find the instance of "+root, "use `state: project` in the profile",
			"with `state: ephemeral` it is made for each session and removed after it")
	}
	return path.Join(home, rel), err
}

// place returns an instance's name and its path below Home.
func (r Request) place() (id, rel string, err error) {
	id = ID(r.Root)
	switch r.Kind {
	case Project:
	case Shared:
		id = string(Shared)
	case Host:
		id += hostSuffix
	case Ephemeral:
		return id, path.Join(ephemeral, id+"-"+strings.ToLower(rand.Text()[:8])), nil
	default:
		return "", "", fmt.Errorf("bug: there is no `state: %s`", r.Kind)
	}
	return id, path.Join(instances, id), nil
}

// Look finds a project's instance and what is missing of it. It changes nothing but modes that keep the user out, or
// let others look in. An instance that is not what it should be (a link, somebody else's, writable by others) is
// refused with a remedy.
func Look(req Request) (Instance, error) {
	id, rel, err := req.place()
	if err != nil {
		return Instance{}, err
	}
	req.realUserHome, req.Host = beneath.LeadsOrClean(req.UserHome), req.Kind == Host
	req.Home = beneath.LeadsOrClean(req.Home) // the way to it is the user's own; below it no link is followed
	at := place{req: req, rel: rel, dir: path.Join(req.Home, rel)}
	in := Instance{ID: id, Dir: at.dir, held: &held{place: at}}
	in.draft, err = look(at)
	return in, err
}

// look compares what is there with what should be.
func look(at place) (draft, error) {
	dir, mended, err := at.find()
	if err != nil {
		return draft{}, err
	}
	found, err := lookInto(at, dir)
	found.Mended = mended
	return found, err
}

// Furnish looks at the files of the agent's home, once it is known what is inside: runs, sees, keyed and reaches are
// those of [agenthome.Request]. It is for a request that said Later.
func (in *Instance) Furnish(runs, sees, keyed, reaches func(word string) (reason string)) error {
	at := &in.held.place
	at.req.Runs, at.req.Sees, at.req.Keyed, at.req.Reaches, at.req.Later = runs, sees, keyed, reaches, false
	c := comparison{draft: in.draft, place: *at}
	if in.exists {
		dir, err := beneath.Open(at.dir)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return at.failed("open "+at.dir, err)
		}
		if err == nil {
			defer dir.Close()
			c.now = dir
		}
	}
	for _, of := range c.outside {
		if reason := sees(of.Source); reason != "" {
			text := "the import @" + of.At + " of your CLAUDE.md does not enter: " + reason
			c.Left = append(c.Left, diag.Left{Kind: "import", Text: text})
		}
	}
	err := c.files()
	in.draft = c.draft
	return err
}

// lookInto compares dir, the instance's folder, with what should be, and closes it; nil: there is none. Another
// process may remove the folder meanwhile. So an error is returned only if the folder is still there afterwards.
func lookInto(at place, dir *beneath.Folder) (d draft, err error) {
	if dir == nil {
		return compare(at, nil)
	}
	defer dir.Close()
	if err = at.judge(dir); err == nil {
		d, err = compare(at, dir)
	}
	if err != nil && !at.isStill(dir) {
		return compare(at, nil)
	}
	return d, err
}
