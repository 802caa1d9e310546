package nixdaemon

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// Store is a connection that is made when it is first needed: a launch whose
// paths are all there never pays for one. It is not made anew when it breaks,
// since the pins are lost then.
//
// Keep it open until the sandbox runs (and then for as long as nothing else
// holds the paths), and close it.
type Store struct {
	Socket  string
	Options Options

	mu     sync.Mutex
	client *Client
}

// Client gives the connection, made now if there is none yet.
func (s *Store) Client(ctx context.Context) (*Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != nil {
		return s.client, nil
	}
	client, err := Dial(ctx, s.Socket, s.Options)
	if err != nil {
		return nil, err
	}
	s.client = client
	return client, nil
}

// Close lets go of everything pinned. Without a connection it does nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client == nil {
		return nil
	}
	return s.client.Close()
}

// Pin keeps paths from the garbage collector until Close, and gives those
// that are valid, sorted.
func (s *Store) Pin(ctx context.Context, paths []string) ([]string, error) {
	client, err := s.Client(ctx)
	if err != nil {
		return nil, err
	}
	return client.Pin(ctx, paths)
}

// AddIndirectRoots is [Client.AddIndirectRoots].
func (s *Store) AddIndirectRoots(ctx context.Context, links []string) error {
	client, err := s.Client(ctx)
	if err != nil {
		return err
	}
	return client.AddIndirectRoots(ctx, links)
}

// Missing predicts what [Store.Realise] would do.
func (s *Store) Missing(ctx context.Context, targets []string) (Missing, error) {
	wanted, err := parseAll(targets)
	if err != nil {
		return Missing{}, explain(queryMissing.does, err)
	}
	client, err := s.Client(ctx)
	if err != nil {
		return Missing{}, err
	}
	return client.QueryMissing(ctx, wanted)
}

func parseAll(targets []string) ([]DerivedPath, error) {
	wanted := make([]DerivedPath, len(targets))
	for i, target := range targets {
		var err error
		if wanted[i], err = ParseDerivedPath(target); err != nil {
			return nil, err
		}
	}
	return wanted, nil
}

// Realise fetches or builds each target ("PATH", "DRV!OUTPUT,…") and says
// why for each that cannot be had. The error is for what concerns them all.
func (s *Store) Realise(ctx context.Context, targets []string) (map[string]error, error) {
	wanted, err := parseAll(targets)
	if err != nil {
		return nil, explain(buildPathsWithResults.does, err)
	}
	client, err := s.Client(ctx)
	if err != nil {
		return nil, err
	}
	missing, err := client.QueryMissing(ctx, wanted)
	if err != nil {
		return nil, err
	}
	r := &realisation{client, map[string]error{}}
	var pending []wish
	for i, target := range wanted {
		if slices.Contains(missing.Unknown, target.Path) { // it would only stop the others
			r.failed[targets[i]] = &DaemonError{nowhere, notesFor(nowhere, target.Path, missing.Notes)}
			continue
		}
		pending = append(pending, wish{targets[i], target})
	}
	for err == nil && len(pending) > 0 {
		pending, err = r.round(ctx, pending)
	}
	if err != nil {
		return nil, err
	}
	return r.failed, nil
}

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
