package nixdaemon

import (
	"cmp"
	"context"
	"fmt"
	"strings"
)

// Status is how the work for one target ended.
type Status uint64

// Statuses of Nix 2.8 to 2.34. With a status up to AlreadyValid, or with
// ResolvesToAlreadyValid, the path is there; 1 means that it was fetched.
const (
	Built                  Status = 0
	AlreadyValid           Status = 2
	MiscFailure            Status = 9
	ResolvesToAlreadyValid Status = 13
)

// OK reports whether the path is there.
func (s Status) OK() bool { return s <= AlreadyValid || s == ResolvesToAlreadyValid }

// BuildResult is the outcome for one target.
type BuildResult struct {
	Target  string // as asked
	Status  Status
	Message string   // the reason of a failure; empty on success
	Notes   []string // for a failure: what the daemon logged about it
}

// Undecided reports whether the daemon stopped, because another target failed, before
// it knew whether this one is available.
func (r BuildResult) Undecided() bool { return !r.Status.OK() && r.Message == "" }

// Err returns why the path is not there; nil when it is.
func (r BuildResult) Err() error {
	if r.Status.OK() {
		return nil
	}
	message := cmp.Or(r.Message, fmt.Sprintf("it failed with status %d", r.Status))
	return &DaemonError{message, r.Notes}
}

// BuildPaths fetches or builds each target ("PATH", "DRV!OUTPUT,…" with the outputs
// sorted) and pins the resulting paths to the connection. A target that is not available is not an
// error: its result has a status. Some daemons, however, answer the whole call with an error (2.8
// and 2.26 for a derivation for another system). The results are in the order of the targets.
//
// Cancelling ctx ends the connection, and the daemon then kills the
// builder within 0.2 s.
func (c *Client) BuildPaths(ctx context.Context, targets []string) ([]BuildResult, error) {
	var results []BuildResult
	r := request{op: buildPathsWithResults, words: targets, encode: func(e *encoder) {
		e.texts(targets)
		e.uint(0) // normal mode: neither repair nor check
	}, decode: func(d *decoder) { results = list(d, c.stream.decodeResult) }}
	if err := c.do(ctx, r); err != nil {
		return nil, err
	}
	// 2.8 sorts results. A target left undecided, because another one
	// failed first, has status MiscFailure without a message up to 2.26, and no
	// result at all in 2.34.
	all := make([]BuildResult, len(targets))
	for i, target := range targets {
		all[i] = BuildResult{Target: target, Status: MiscFailure}
	}
	for _, r := range results {
		asked := false
		for i, target := range targets {
			if target == r.Target {
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

func (s *stream) decodeResult(d *decoder) BuildResult {
	r := BuildResult{Target: d.text(), Status: Status(d.uint()), Message: Plain(d.text())}
	d.uint() // how often it was built
	d.bool() // whether the results differed
	d.uint() // when it began
	d.uint() // when it ended
	if s.info.Protocol >= sinceCPUTimes {
		for range 2 { // the user's time, and the system's
			if d.bool() {
				d.uint()
			}
		}
	}
	for n := d.count(); n > 0 && d.err == nil; n-- { // outputs; their paths are in the derivation
		d.text()
		d.text()
	}
	if !r.Status.OK() {
		path, _, _ := strings.Cut(r.Target, "!")
		r.Notes = notesFor(r.Message, path, s.notes)
	}
	return r
}

// Missing is what it would take to get a set of targets. It is a
// prediction: a fetch may still fail for a missing signature.
type Missing struct {
	WillBuild      []string // derivations
	WillSubstitute []string
	Unknown        []string
	DownloadSize   uint64   // bytes, compressed
	NARSize        uint64   // bytes, unpacked
	Notes          []string // what the daemon logged: why a cache could not be reached
}

// QueryMissing predicts what [Client.BuildPaths] would do.
func (c *Client) QueryMissing(ctx context.Context, targets []string) (m Missing, err error) {
	err = c.do(ctx, request{op: queryMissing, words: targets, encode: func(e *encoder) {
		e.texts(targets)
	}, decode: func(d *decoder) {
		m = Missing{d.texts(), d.texts(), d.texts(), d.uint(), d.uint(), c.stream.notes}
	}})
	return m, err
}
