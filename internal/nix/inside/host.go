package inside

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"claudebox/internal/nix/nixdaemon"
)

// maxKnown bounds how many paths of the host one session may hold as roots.
const maxKnown = 1 << 16

// longestList is how many elements a list in the daemon's answer may have.
const longestList = 1 << 14

// askTime bounds one query. A garbage collection on the host delays
// answers.
const askTime = time.Minute

// Errors that end the use of the host's store for a session.
var (
	ErrCollected = errors.New("was collected on the host while this sandbox relied on it; start a new session")
	errTooMany   = fmt.Errorf("this sandbox has asked for more than %d store paths of the host; start a new session",
		maxKnown)
)

// Host asks the daemon, over one connection that is made when it is first
// needed. Every path that it calls valid is a root of the garbage collector until Host's
// process ends. Its methods may be called from several goroutines.
type Host struct {
	// Dial connects to the daemon.
	Dial func() (*nixdaemon.Client, error)
	// Known is the list of paths that are roots, one per line. It is read when a
	// connection is made, and new roots are appended.
	Known *os.File
	// Only are the paths that the sandbox sees: all others are reported as not valid.
	// Nil: it sees the whole store.
	Only map[string]bool
	// Missing is called with paths that are not valid before that is answered: a client may make them now. May be nil.
	Missing func(paths []string)
	// Lost is called when Host stops answering because of [ErrCollected]. May be
	// nil.
	Lost func()

	heavy  sync.Mutex // held while a long answer is made
	mu     sync.Mutex
	client *nixdaemon.Client
	roots  map[hash]struct{}
	lost   error // why Host stopped answering; nil: it answers
}

// hash identifies a store path and takes less memory: there may be many.
type hash [20]byte

func hashOf(path string) hash {
	sum := sha256.Sum256([]byte(path))
	return hash(sum[:])
}

// waitTurn waits until no other long answer is in progress; the caller calls done after its
// own.
func (h *Host) waitTurn() (done func()) {
	h.heavy.Lock()
	return h.heavy.Unlock
}

// Valid returns those of the paths that are in the host's store, and makes them roots.
func (h *Host) Valid(paths []string) (valid []string, err error) {
	err = h.ask(func(ctx context.Context, c *nixdaemon.Client) error {
		valid, err = h.hold(ctx, c, h.seen(paths))
		return err
	})
	return valid, err
}

// Info returns the daemon's record of a path; nil if the path is not valid.
func (h *Host) Info(path string) (info *nixdaemon.PathInfo, err error) {
	err = h.ask(func(ctx context.Context, c *nixdaemon.Client) error {
		info = nil
		valid, err := h.hold(ctx, c, h.seen([]string{path}))
		if err != nil || len(valid) == 0 {
			return err
		}
		if info, err = c.QueryPathInfo(ctx, path); err == nil && info != nil && h.Only != nil && !h.Only[info.Deriver] {
			info.Deriver = ""
		}
		return err
	})
	return info, err
}

// Referrers returns the valid paths that refer to path.
func (h *Host) Referrers(path string) ([]string, error) {
	return h.related(path, (*nixdaemon.Client).QueryReferrers)
}

// Derivers returns the valid derivations that have path as an output.
func (h *Host) Derivers(path string) ([]string, error) {
	return h.related(path, (*nixdaemon.Client).QueryValidDerivers)
}

// question asks the daemon about a path; the answer is a list of paths.
type question func(*nixdaemon.Client, context.Context, string) ([]string, error)

func (h *Host) related(path string, q question) (list []string, err error) {
	if len(h.seen([]string{path})) == 0 {
		return nil, nil
	}
	err = h.ask(func(ctx context.Context, c *nixdaemon.Client) error {
		list, err = q(c, ctx, path)
		list = h.seen(list)
		return err
	})
	return list, err
}

// seen returns those of paths that the sandbox sees.
func (h *Host) seen(paths []string) []string {
	if h.Only == nil {
		return paths
	}
	return slices.DeleteFunc(slices.Clone(paths), func(path string) bool { return !h.Only[path] })
}

// Prepare connects and makes roots of the listed paths. The error is [ErrCollected] if one
// of them is gone.
func (h *Host) Prepare() error {
	return h.ask(func(context.Context, *nixdaemon.Client) error { return nil })
}

// ask runs question with a connection, and once more with a new one if the connection was lost.
func (h *Host) ask(question func(context.Context, *nixdaemon.Client) error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	err := h.try(ctx, question)
	if errors.Is(err, nixdaemon.ErrBroken) {
		err = h.try(ctx, question)
	}
	if errors.Is(err, ErrCollected) && h.lost == nil {
		h.lost = err
		if h.Lost != nil {
			h.Lost()
		}
	}
	return err
}

func (h *Host) try(ctx context.Context, question func(context.Context, *nixdaemon.Client) error) error {
	if h.lost != nil {
		return h.lost
	}
	if h.client != nil && h.client.Alive() != nil {
		h.client.Close()
		h.client = nil // its roots ended with the connection
	}
	if h.client == nil {
		if err := h.connect(ctx); err != nil {
			return err
		}
	}
	return question(ctx, h.client)
}

// connect makes a connection and pins on it all the paths that are listed.
func (h *Host) connect(ctx context.Context) error {
	c, err := h.Dial()
	if err != nil {
		return err
	}
	wait, err := c.Watch()
	if err == nil {
		err = h.holdKnown(ctx, c)
	}
	if err != nil {
		c.Close()
		return err
	}
	h.client = c
	go h.holdAgain(wait)
	return nil
}

// How often, and how far apart, to try again: a daemon that is being restarted needs a while.
const (
	restartTries = 60
	restartWait  = time.Second
)

// holdAgain waits for the end of a connection and then makes a new one, with the same roots.
// It does not wait for the next query, which may come hours later.
func (h *Host) holdAgain(wait func()) {
	wait()
	for range restartTries {
		if err := h.Prepare(); err == nil || errors.Is(err, ErrCollected) {
			return
		}
		time.Sleep(restartWait)
	}
}

// holdKnown makes roots of all listed paths.
func (h *Host) holdKnown(ctx context.Context, c *nixdaemon.Client) error {
	h.roots = map[hash]struct{}{}
	batch := make([]string, 0, atOnce)
	for path, err := range Known(h.Known) {
		if err != nil {
			return err
		}
		if batch = append(batch, path); len(batch) == atOnce {
			if err := h.holdAll(ctx, c, batch); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	return h.holdAll(ctx, c, batch)
}

// holdAll makes roots of paths. If one of them is not valid, the error is [ErrCollected].
func (h *Host) holdAll(ctx context.Context, c *nixdaemon.Client, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	valid, err := c.Pin(ctx, paths)
	if err != nil {
		return err
	}
	if gone := without(paths, valid); len(gone) > 0 {
		return fmt.Errorf("%s %w", gone[0], ErrCollected)
	}
	for _, path := range paths {
		h.roots[hashOf(path)] = struct{}{}
	}
	return nil
}

// hold returns those of the paths that are valid, and makes roots of them: a path that
// is a root already stays valid. A path is queried before it is made a root, because
// the daemon keeps a note of every root, and again after, since it may be gone by then.
func (h *Host) hold(ctx context.Context, c *nixdaemon.Client, paths []string) ([]string, error) {
	var held, others []string
	for _, path := range paths {
		if _, ok := h.roots[hashOf(path)]; ok {
			held = append(held, path)
		} else {
			others = append(others, path)
		}
	}
	if len(others) == 0 {
		return held, nil
	}
	valid, err := c.QueryValidPaths(ctx, others)
	if err == nil && h.Missing != nil && len(valid) < len(others) {
		h.Missing(without(others, valid))
	}
	if err != nil || len(valid) == 0 {
		return held, err
	}
	if len(h.roots)+len(valid) > maxKnown {
		return nil, errTooMany
	}
	pinned, err := c.Pin(ctx, valid)
	if err != nil {
		return nil, err
	}
	return append(held, pinned...), h.note(pinned)
}

// note adds paths that are now roots to the list, before any client is told about them.
func (h *Host) note(paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	if _, err := h.Known.WriteString(strings.Join(paths, "\n") + "\n"); err != nil {
		return fmt.Errorf("write down which store paths are used: %w", err)
	}
	for _, path := range paths {
		h.roots[hashOf(path)] = struct{}{}
	}
	return nil
}

// without returns the elements of all that are not in some.
func without(all, some []string) []string {
	listed := make(map[string]bool, len(some))
	for _, path := range some {
		listed[path] = true
	}
	var rest []string
	for _, path := range all {
		if !listed[path] {
			rest = append(rest, path)
		}
	}
	return rest
}
