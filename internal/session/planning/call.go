// Package planning makes a plan of what is asked for: a [Call] says who asks, for what and where; a [Planner] finds or
// makes the plan of it; and a [Keeper] keeps the plan's store paths from garbage collection while a session lives.
package planning

import (
	"cmp"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/host"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/cachefile"
	"claudebox/internal/linux/smallfile"
	"claudebox/internal/nix/storepath"
	"claudebox/internal/plan"
	"claudebox/internal/profile"
	"claudebox/internal/profile/profiledir"
	"claudebox/internal/sandbox/launch"
)

// Caller describes the program that asks for a session.
type Caller struct {
	Stderr   io.Writer  // for warnings and the progress of what takes long
	Terminal bool       // Stderr is a terminal
	Columns  func() int // width of a line of Stderr in characters; 0: unlimited
	Manifest string     // the manifest's file; it may not exist
	Version  string     // of claudebox
}

// Options are the words of the command line, apart from claudebox's commands.
type Options struct {
	Profile, Plan, Network string   // a name or file; a file; a tier. Empty: not given
	Branch, From           string   // work on a checkout of this branch; where a new one begins
	NoBranch               bool     // work in the project, whatever the profile says
	WithChanges            bool     // it begins with what is not committed
	With                   []string // what is copied there besides
	MountRO, MountRW       []string // HOST[:INSIDE]
	Publish                []string // ports inside that this host may reach
	Record                 string   // file for what happens, empty: none
	NetworkLog             string   // file for the connections and refusals of tiers inet and allow; empty: none
	NoDevshell             bool     // without the project's dev shell
	Refresh                bool     // the dev shell is evaluated again
	Yes                    bool     // start without asking
	NoReport               bool     // say nothing when the session ends
	ReportJSON             string   // file for the report at the end; empty: none
	Words                  []string // for the agent, in order
	Called                 string   // the agent's program as an editor named it, see [agent.Called]; empty: none did
}

// Purpose says what a session is made for.
type Purpose struct {
	Look    bool     // nothing may be made or fetched, but for caches
	Ask     bool     // of a look: the Nix daemon is asked whether what is missing can be had
	Dry     bool     // not even caches may be written
	Command []string // run this instead of the agent
	Keep    bool     // the plan is made to be saved, and may be for another machine
}

// Call is one request for a session: who asks, for what, and where. It is all that a session is made of besides
// files. It is complete when [CallOf] returns it, and never changes.
type Call struct {
	Facts   host.Facts
	Caller  Caller
	Options Options
	Purpose Purpose
	Folders profiledir.Folders
	Heeded  []syscall.Signal // see [launch.Heeded]
	Build   string           // state of the running program, which every cache depends on; empty: unknown
}

// NewCall makes a call of what this process knows of its user, folder and host. It returns an error for options of
// which one would silently take the place of another.
func NewCall(c Caller, o Options, why Purpose) (Call, error) {
	facts, err := host.Detect()
	return CallOf(c, o, why, facts), cmp.Or(err, o.judge(), profiledir.JudgeHome(facts))
}

// CallOf makes the call of given facts.
func CallOf(c Caller, o Options, why Purpose, facts host.Facts) Call {
	made := Call{
		Facts: facts, Caller: c, Options: o, Purpose: why, Folders: profiledir.FoldersOf(facts, c.Manifest),
		Heeded: launch.Heeded(), Build: cachefile.State("/proc/self/exe"),
	}
	if !cachefile.Exists(made.Build) {
		made.Build = ""
	}
	return made
}

// Ref is the profile that was asked for.
func (c Call) Ref() string {
	return cmp.Or(c.Options.Profile, c.Facts.Env.Value("CLAUDEBOX_PROFILE", profile.Default))
}

// FullRef is [Call.Ref], of a file its absolute path.
func (c Call) FullRef() string {
	if ref := c.Ref(); !profile.IsFile(ref) {
		return ref
	}
	return beneath.Real(c.Files().Absolute(c.Ref(), diag.Position{}))
}

// Files gives access to the profiles on this host.
func (c Call) Files() profiledir.Files { return profiledir.New(c.Facts, c.Caller.Manifest) }

// NamedPath reports whether a word names a path of the host, and returns that path made absolute. A word with a
// slash, or with "~" at its beginning, does; so does one that exists in the current folder.
func (c Call) NamedPath(word string) (string, bool) {
	path := c.Facts.Absolute(word)
	if strings.HasPrefix(word, "~") || strings.Contains(word, "/") {
		return path, true
	}
	_, err := os.Lstat(path)
	return path, err == nil
}

// AllowHost is the command, in backticks, that adds hosts to the list of the session's profile; empty where there is
// none, as a flag gives the tier or the plan.
func (c Call) AllowHost(hosts string) string {
	switch {
	case c.Options.Network != "" || c.Options.Plan != "":
		return ""
	case c.Options.Profile != "":
		hosts += " -P " + launch.Quote(c.Options.Profile)
	}
	return "`claudebox allow-host " + hosts + "`"
}

// OnBranch reports whether the agent works on a branch, in a checkout of its own.
func (o Options) OnBranch(p plan.Plan) bool {
	return o.Branch != "" || p.Workspace == profile.WorkspaceBranch && !o.NoBranch
}

// tierOnBranch is the network tier of a session on a branch whose plan has the host's network, and which no flag gives
// one: each has a network of its own, so that servers of several do not collide.
func tierOnBranch(o Options, p plan.Plan) plan.Plan {
	if !o.OnBranch(p) || o.Network != "" || p.Network.Tier != profile.TierFull {
		return p
	}
	return p.WithTier(launch.InternetTier)
}

// Looking is the Purpose of who starts nothing, [Asking] that of a check.
var Looking, Asking = Purpose{Look: true}, Purpose{Look: true, Ask: true}

// judge returns an error if --network names an unknown tier, or if one flag would silently take the place of another,
// which could be the narrower wish.
func (o Options) judge() error {
	if o.Plan != "" && o.Profile != "" {
		return diag.Errorf("launch by --plan "+o.Plan+" and --profile "+o.Profile,
			"leave one of them out; a plan is made by a profile with `claudebox plan --pinned -P "+o.Profile+"`",
			"a plan says all that a profile does, so only one of them could count")
	}
	if o.Branch == "" && (o.From != "" || o.WithChanges || len(o.With) > 0) {
		return diag.Errorf("read --from, --with and --with-changes", "name one with --branch",
			"they are for a session on a branch")
	}
	if o.Branch != "" && o.NoBranch {
		return diag.Errorf("read --branch and --no-branch", "leave one of them out", "only one of them could count")
	}
	switch o.Network {
	case "", profile.TierFull, profile.TierInet, profile.TierAllow, profile.TierNone:
		return nil
	}
	return diag.Errorf("read --network", "use full, inet, allow or none", "there is no tier %q", o.Network)
}

// Flake returns the store path that claudebox was built from; empty if it is not known or no longer there.
func (c Caller) Flake() string {
	const longest = 4 << 10
	text, err := smallfile.Read(filepath.Join(filepath.Dir(c.Manifest), "flake"), longest)
	if err != nil {
		return ""
	}
	flake := strings.TrimSpace(string(text))
	if storepath.Check(flake) != nil || unix.Access(filepath.Join(flake, "flake.nix"), unix.R_OK) != nil {
		return ""
	}
	return flake
}
