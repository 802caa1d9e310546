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
	if err := client.AddTempRoots(ctx, paths); err != nil {
		return nil, err
	}
	return client.QueryValidPaths(ctx, paths)
}

// Realise fetches or builds each target ("PATH", "DRV!OUTPUT,…") and says
// why for each that cannot be had. The error is for what concerns them all.
func (s *Store) Realise(ctx context.Context, targets []string) (map[string]error, error) {
	wanted := make([]DerivedPath, len(targets))
	for i, target := range targets {
		var err error
		if wanted[i], err = ParseDerivedPath(target); err != nil {
			return nil, explain(opBuildPathsWithResults.String(), err)
		}
	}
	client, err := s.Client(ctx)
	if err != nil {
		return nil, err
	}
	failed := map[string]error{}
	return failed, client.realise(ctx, wanted, failed)
}

// realise asks for all at once. A daemon up to 2.26 may answer for all with
// one error where only one target is at fault: then each is asked alone.
func (c *Client) realise(ctx context.Context, wanted []DerivedPath, failed map[string]error) error {
	results, err := c.BuildPaths(ctx, wanted)
	var refused *DaemonError
	switch {
	case errors.As(err, &refused) && len(wanted) == 1 && c.Alive() == nil:
		failed[wanted[0].String()] = refused
		return nil
	case errors.As(err, &refused) && c.Alive() == nil:
		for one := range slices.Chunk(wanted, 1) {
			if err := c.realise(ctx, one, failed); err != nil {
				return err
			}
		}
		return nil
	}
	for _, r := range results {
		if why := r.Err(); why != nil {
			failed[r.Target] = why
		}
	}
	return err
}
