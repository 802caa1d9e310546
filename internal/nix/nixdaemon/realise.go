package nixdaemon

import (
	"context"
	"errors"
	"slices"
)

// realisation has targets fetched or built, with a reason for each that
// cannot be had.
//
// A daemon stops at the first failure and leaves the rest undecided, since
// its keep-going setting is the administrator's (see the package's word on
// SetOptions). So the undecided are asked for again, until none is left.
type realisation struct {
	client *Client
	failed map[string]error // by [wish.asked]
}

// wish is a target, and the caller's word for it.
type wish struct {
	asked  string
	target DerivedPath
}

const nowhere = "it is not in the store, and no binary cache has it"

// round asks for all that is pending, and gives what is undecided.
func (r *realisation) round(ctx context.Context, pending []wish) (undecided []wish, err error) {
	targets := make([]DerivedPath, len(pending))
	for i, w := range pending {
		targets[i] = w.target
	}
	results, err := r.client.BuildPaths(ctx, targets)
	var refused *DaemonError
	switch {
	case errors.As(err, &refused) && r.client.Alive() == nil:
		return nil, r.oneByOne(ctx, pending, refused)
	case err != nil:
		return nil, err
	}
	for i, result := range results {
		if result.Undecided() {
			undecided = append(undecided, pending[i])
		} else if reason := result.Err(); reason != nil {
			r.failed[pending[i].asked] = reason
		}
	}
	if len(undecided) == len(pending) {
		return nil, r.oneByOne(ctx, pending, results[0].Err())
	}
	return undecided, nil
}

// oneByOne finds out who is to blame when the answer does not tell: a daemon
// up to 2.26 answers the whole call with an error when one derivation is for
// another system.
func (r *realisation) oneByOne(ctx context.Context, pending []wish, reason error) error {
	if len(pending) == 1 {
		r.failed[pending[0].asked] = reason
		return nil
	}
	for alone := range slices.Chunk(pending, 1) {
		if _, err := r.round(ctx, alone); err != nil {
			return err
		}
	}
	return nil
}
