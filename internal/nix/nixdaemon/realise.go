package nixdaemon

import (
	"context"
	"errors"
	"slices"
	"strings"
)

// Realise fetches or builds each target ("PATH", "DRV!OUTPUT,…" with the outputs
// sorted) and returns, by target, the reason for each that is not available. The error
// is for what concerns all targets.
func (c *Client) Realise(ctx context.Context, targets []string) (map[string]error, error) {
	missing, err := c.QueryMissing(ctx, targets)
	if err != nil {
		return nil, err
	}
	r := &realisation{c, map[string]error{}}
	var pending []string
	for _, target := range targets {
		path, _, _ := strings.Cut(target, "!")
		if slices.Contains(missing.Unknown, path) { // it would only stop the others
			r.failed[target] = &DaemonError{nowhere, notesFor(nowhere, path, missing.Notes)}
			continue
		}
		pending = append(pending, target)
	}
	for err == nil && len(pending) > 0 {
		pending, err = r.round(ctx, pending)
	}
	if err != nil {
		return nil, err
	}
	return r.failed, nil
}

// realisation has targets fetched or built, and collects the reason for each that
// is not available.
//
// A daemon stops at the first failure and leaves the rest undecided, since
// its keep-going setting is the administrator's (see the package's comment on
// SetOptions). So the undecided targets are requested again, until none is left.
type realisation struct {
	client *Client
	failed map[string]error // by target
}

const nowhere = "it is not in the store, and no binary cache has it"

// round requests all pending targets, and returns those that are undecided.
func (r *realisation) round(ctx context.Context, pending []string) (undecided []string, err error) {
	results, err := r.client.BuildPaths(ctx, pending)
	var refused *DaemonError
	switch {
	case errors.As(err, &refused) && r.client.Alive() == nil:
		return nil, r.oneByOne(ctx, pending, refused)
	case err != nil:
		return nil, err
	}
	for _, result := range results {
		if result.Undecided() {
			undecided = append(undecided, result.Target)
		} else if reason := result.Err(); reason != nil {
			r.failed[result.Target] = reason
		}
	}
	if len(undecided) == len(pending) {
		return nil, r.oneByOne(ctx, pending, results[0].Err())
	}
	return undecided, nil
}

// oneByOne requests each target alone, to find the one that fails when the answer
// does not name it: a daemon up to 2.26 answers the whole call with an error when one
// derivation is for another system.
func (r *realisation) oneByOne(ctx context.Context, pending []string, reason error) error {
	if len(pending) == 1 {
		r.failed[pending[0]] = reason
		return nil
	}
	for alone := range slices.Chunk(pending, 1) {
		if _, err := r.round(ctx, alone); err != nil {
			return err
		}
	}
	return nil
}
