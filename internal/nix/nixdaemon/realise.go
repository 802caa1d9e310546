package nixdaemon

import (
	"context"
	"errors"
	"slices"
	"strings"
)

const nowhere = "it is not in the store, and no binary cache has it"

// Realise fetches or builds each target ("PATH", "DRV!OUTPUT,…" with the outputs
// sorted) and returns, by target, the reason for each that is not available. The error
// is for what concerns all targets.
//
// A daemon stops at the first failure and leaves the rest undecided, since
// its keep-going setting is the administrator's (see the package's comment on
// SetOptions). So the undecided targets are requested again, until none is left.
// When a request decides none, each of its targets is requested alone: a daemon up to 2.26
// answers the whole call with an error when one derivation is for another system.
func (c *Client) Realise(ctx context.Context, targets []string) (failed map[string]error, err error) {
	missing, err := c.QueryMissing(ctx, targets)
	if err != nil {
		return nil, err
	}
	failed = map[string]error{}
	var pending []string
	for _, target := range targets {
		path, _, _ := strings.Cut(target, "!")
		if slices.Contains(missing.Unknown, path) { // it would only stop the others
			failed[target] = &DaemonError{nowhere, notesFor(nowhere, path, missing.Notes)}
			continue
		}
		pending = append(pending, target)
	}
	for requests := [][]string{pending}; len(requests) > 0; requests = requests[1:] {
		request := requests[0]
		if len(request) == 0 {
			continue
		}
		undecided, reason, err := c.realiseSome(ctx, request, failed)
		switch {
		case err != nil:
			return nil, err
		case len(undecided) < len(request):
			requests = append(requests, undecided)
		case len(request) == 1:
			failed[request[0]] = reason
		default:
			requests = slices.AppendSeq(requests, slices.Chunk(request, 1))
		}
	}
	return failed, nil
}

// realiseSome requests targets once, adds to failed the reasons for those that are not available, and returns those
// that are undecided. reason is why, if all of them are.
func (c *Client) realiseSome(ctx context.Context, targets []string, failed map[string]error) (
	undecided []string, reason, err error,
) {
	results, err := c.BuildPaths(ctx, targets)
	var refused *DaemonError
	if errors.As(err, &refused) && c.Alive() == nil {
		return targets, refused, nil
	}
	for _, result := range results {
		if result.Undecided() {
			undecided, reason = append(undecided, result.Target), result.Err()
		} else if err := result.Err(); err != nil {
			failed[result.Target] = err
		}
	}
	return undecided, reason, err
}
