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
	*Client
	wanted  []DerivedPath
	reasons []error // by index of wanted
}

const nowhere = "it is not in the store, and no binary cache has it"

func (w *realisation) run(ctx context.Context) error {
	pending, err := w.sortOut(ctx)
	for err == nil && len(pending) > 0 {
		pending, err = w.round(ctx, pending)
	}
	return err
}

// sortOut gives the indices of what can be tried. What is nowhere to be had
// would only stop the others.
func (w *realisation) sortOut(ctx context.Context) ([]int, error) {
	missing, err := w.QueryMissing(ctx, w.wanted)
	if err != nil {
		return nil, err
	}
	var pending []int
	for i, target := range w.wanted {
		if slices.Contains(missing.Unknown, target.Path) {
			w.reasons[i] = &DaemonError{nowhere, notesFor(nowhere, target.Path, missing.Notes)}
			continue
		}
		pending = append(pending, i)
	}
	return pending, nil
}

// round asks for all that is pending, and gives what is undecided.
func (w *realisation) round(ctx context.Context, pending []int) ([]int, error) {
	targets := make([]DerivedPath, len(pending))
	for n, i := range pending {
		targets[n] = w.wanted[i]
	}
	results, err := w.BuildPaths(ctx, targets)
	var refused *DaemonError
	switch {
	case errors.As(err, &refused) && w.Alive() == nil:
		return w.oneByOne(ctx, pending, refused)
	case err != nil:
		return nil, err
	}
	var undecided []int
	for n, r := range results {
		if r.Undecided() {
			undecided = append(undecided, pending[n])
			continue
		}
		w.reasons[pending[n]] = r.Err()
	}
	if len(undecided) == len(pending) {
		return w.oneByOne(ctx, pending, results[0].Err())
	}
	return undecided, nil
}

// oneByOne finds out who is to blame when the answer does not tell: a daemon
// up to 2.26 answers the whole call with an error when one derivation is for
// another system.
func (w *realisation) oneByOne(ctx context.Context, pending []int, reason error) ([]int, error) {
	if len(pending) == 1 {
		w.reasons[pending[0]] = reason
		return nil, nil
	}
	for alone := range slices.Chunk(pending, 1) {
		if _, err := w.round(ctx, alone); err != nil {
			return nil, err
		}
	}
	return nil, nil
}
