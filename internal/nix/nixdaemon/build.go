package nixdaemon

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"claudebox/internal/nix/storepath"
)

// DerivedPath is something to fetch or build: a store path as it is (then
// Outputs is empty and nothing is built, also when Path is a derivation), or
// outputs of a derivation.
type DerivedPath struct {
	Path    string
	Outputs []string // "*" alone: all
}

// String is the form on the wire, "/nix/store/….drv!bin,out", with the outputs
// sorted as daemons up to 2.8 give it back. The command line's form with "^"
// makes every daemon hang up.
func (p DerivedPath) String() string {
	if len(p.Outputs) == 0 {
		return p.Path
	}
	return p.Path + "!" + strings.Join(slices.Sorted(slices.Values(p.Outputs)), ",")
}

// ParseDerivedPath reads the form on the wire, strictly.
func ParseDerivedPath(s string) (DerivedPath, error) {
	path, outputs, derived := strings.Cut(s, "!")
	p := DerivedPath{Path: path}
	if derived {
		p.Outputs = strings.Split(outputs, ",")
	}
	return p, p.check()
}

func (p DerivedPath) check() error {
	if err := storepath.Check(p.Path); err != nil {
		return err
	}
	if len(p.Outputs) > 0 && !strings.HasSuffix(p.Path, ".drv") {
		return fmt.Errorf("%q is not a derivation, so it has no outputs", p.Path)
	}
	if slices.ContainsFunc(p.Outputs, badOutput) && !slices.Equal(p.Outputs, []string{"*"}) {
		return fmt.Errorf("%q are not names of outputs", p.Outputs)
	}
	return nil
}

// badOutput reports whether no output can have a name: it becomes part of a store
// path's.
func badOutput(name string) bool {
	return storepath.CheckBase(strings.Repeat("0", 32)+"-"+name) != nil
}

// Status is how the work for one [DerivedPath] ended.
type Status uint64

// Statuses of Nix 2.8 to 2.34. Up to AlreadyValid, and for
// ResolvesToAlreadyValid, the path is there; 1 is one that was fetched.
const (
	Built                  Status = 0
	AlreadyValid           Status = 2
	MiscFailure            Status = 9
	ResolvesToAlreadyValid Status = 13
)

// OK reports whether the path is there.
func (s Status) OK() bool { return s <= AlreadyValid || s == ResolvesToAlreadyValid }

// BuildResult is the outcome for one [DerivedPath].
type BuildResult struct {
	Target  string // as asked, see [DerivedPath.String]
	Status  Status
	Message string            // why not; empty when it worked
	Notes   []string          // what the daemon logged about it, for a failure
	Outputs map[string]string // name → store path
}

// Undecided says that the daemon stopped, since something else failed, before
// it knew whether this could be had.
func (r BuildResult) Undecided() bool { return !r.Status.OK() && r.Message == "" }

// Err is why the path is not there; nil when it is.
func (r BuildResult) Err() error {
	if r.Status.OK() {
		return nil
	}
	message := cmp.Or(r.Message, fmt.Sprintf("it failed with status %d", r.Status))
	return &DaemonError{message, r.Notes}
}

// BuildPaths fetches or builds each target and pins what comes of it to the
// connection. A target that cannot be had is no error but a status; yet some
// daemons (a derivation for another system on 2.8 and 2.26) answer the whole
// call with an error. The results stand in the order of the targets.
//
// To cancel it is to end the connection, and the daemon then kills the
// builder within 0.2 s.
func (c *Client) BuildPaths(ctx context.Context, targets []DerivedPath) ([]BuildResult, error) {
	words, err := derivedWords(targets)
	if err != nil {
		return nil, explain(buildPathsWithResults.does, err)
	}
	var results []BuildResult
	r := request{op: buildPathsWithResults, slow: true, encode: func(e *encoder) {
		e.texts(words)
		e.uint(0) // normal mode: neither repair nor check
	}, decode: func(d *decoder) { results = list(d, c.decodeResult) }}
	if err := c.do(ctx, r); err != nil {
		return nil, err
	}
	// 2.8 sorts results. What a daemon left undecided, because something else
	// failed first, has status MiscFailure without a message up to 2.26, and no
	// result at all in 2.34.
	all := make([]BuildResult, len(words))
	for i, word := range words {
		all[i] = BuildResult{Target: word, Status: MiscFailure}
	}
	for _, r := range results {
		asked := false
		for i, word := range words {
			if word == r.Target {
				all[i], asked = r, true
			}
		}
		if !asked {
			return nil, explain(buildPathsWithResults.does,
				fmt.Errorf("%w: a result for %q, which was not asked for", ErrProtocol, r.Target))
		}
	}
	return all, nil
}

func derivedWords(targets []DerivedPath) ([]string, error) {
	words := make([]string, len(targets))
	for i, target := range targets {
		if err := target.check(); err != nil {
			return nil, err
		}
		words[i] = target.String()
	}
	return words, nil
}

func (c *Client) decodeResult(d *decoder) BuildResult {
	r := BuildResult{Target: d.text(), Status: Status(d.uint()), Message: Plain(d.text())}
	d.uint() // how often it was built
	d.bool() // whether the results differed
	d.uint() // when it began
	d.uint() // when it ended
	if c.info.Protocol >= sinceCPUTimes {
		for range 2 { // the user's time, and the system's
			if d.bool() {
				d.uint()
			}
		}
	}
	r.Outputs = realisations(d)
	if !r.Status.OK() {
		path, _, _ := strings.Cut(r.Target, "!")
		r.Notes = notesFor(r.Message, path, c.notes)
	}
	return r
}

// realisations reads "sha256:HASH!NAME" → JSON. The hash is of no use (2.35
// sends a dummy); the path in the JSON lacks the store folder.
func realisations(d *decoder) map[string]string {
	outputs := map[string]string{}
	for n := d.count(); n > 0 && d.err == nil; n-- {
		id, body := d.text(), d.text()
		_, name, _ := strings.Cut(id, "!")
		var r struct {
			OutPath string `json:"outPath"`
		}
		if err := json.Unmarshal([]byte(body), &r); d.err == nil &&
			(err != nil || storepath.CheckBase(r.OutPath) != nil) {
			d.protocolf("realisation of %q is %.80q", id, body)
		}
		outputs[name] = storepath.Dir + "/" + r.OutPath
	}
	return outputs
}

// Missing is what it would take to have a set of targets. It is a
// prediction: a fetch may still fail for a missing signature.
type Missing struct {
	WillBuild      []string // derivations
	WillSubstitute []string
	Unknown        []string
	DownloadSize   uint64   // bytes, compressed
	NARSize        uint64   // bytes, unpacked
	Notes          []string // what the daemon logged: why a cache could not be asked
}

// QueryMissing predicts what [Client.BuildPaths] would do.
func (c *Client) QueryMissing(ctx context.Context, targets []DerivedPath) (Missing, error) {
	words, err := derivedWords(targets)
	if err != nil {
		return Missing{}, explain(queryMissing.does, err)
	}
	var m Missing
	r := request{op: queryMissing, slow: true, encode: func(e *encoder) { e.texts(words) }, decode: func(d *decoder) {
		m = Missing{d.texts(), d.texts(), d.texts(), d.uint(), d.uint(), c.notes}
	}}
	return m, c.do(ctx, r)
}

// AddText adds a text to the store by its content and pins it to the
// connection. It may refer to paths that are there; references are sorted. A
// derivation is such a text, and anybody may add one.
func (c *Client) AddText(ctx context.Context, name, text string, references []string) (path string, err error) {
	r := request{op: addToStore, encode: func(e *encoder) {
		e.text(name)
		e.text("text:sha256")
		e.texts(references)
		e.bool(false)             // no repair
		e.uint(uint64(len(text))) // one frame, and the last
		e.buf.WriteString(text)
		e.uint(0)
	}, decode: func(d *decoder) {
		path = d.text()
		decodePathInfo(d, path)
	}}
	err = c.doPaths(ctx, references, r)
	return path, err
}
