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

// longestList is how many paths an answer of the daemon may name.
const longestList = 1 << 14

// askTime bounds one question. A garbage collection on the host holds answers
// up.
const askTime = time.Minute

// Errors that end the use of the host's store for a session.
var (
	ErrCollected = errors.New("was collected on the host while this sandbox relied on it; start a new session")
	errTooMany   = fmt.Errorf("this sandbox has asked for more than %d store paths of the host; start a new session",
		maxKnown)
)

// Host asks the daemon, over one connection that is made when it is first
// needed. What it calls valid is a root of the garbage collector until Host's
// process ends. Its methods may be called from several goroutines.
type Host struct {
	// Dial connects to the daemon.
	Dial func() (*nixdaemon.Client, error)
	// Known is the list of paths that are roots, a line each. It is read when a
	// connection is made, and what becomes a root is written to its end.
	Known *os.File
	// Only are the paths that there are, where the sandbox sees no others; nil:
	// all of the store.
	Only map[string]bool
	// Lost is called when nothing is answered any more, with [ErrCollected]. May be
	// nil.
	Lost func()

	heavy  sync.Mutex // held while a long answer is made and sent
	mu     sync.Mutex
	client *nixdaemon.Client
	roots  map[hash]struct{}
	lost   error // why nothing is answered any more; nil: all is well
}

// hash stands for a store path, of which there may be many.
type hash [20]byte

func hashOf(path string) hash {
	sum := sha256.Sum256([]byte(path))
	return hash(sum[:])
}

// alone waits until no other long answer is under way, and gives what ends this
// one.
func (h *Host) alone() (done func()) {
	h.heavy.Lock()
	return h.heavy.Unlock
}

// Valid gives those of the paths that are in the host's store, and holds them.
func (h *Host) Valid(paths []string) (valid []string, err error) {
	err = h.ask(func(ctx context.Context, c *nixdaemon.Client) error {
		valid, err = h.hold(ctx, c, h.seen(paths))
		return err
	})
	return valid, err
}

// Info tells of a path; nil: it is not valid.
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

// Referrers gives the valid paths that refer to one.
func (h *Host) Referrers(path string) ([]string, error) {
	return h.related(path, (*nixdaemon.Client).QueryReferrers)
}

// Derivers gives the valid derivations that have a path as an output.
func (h *Host) Derivers(path string) ([]string, error) {
	return h.related(path, (*nixdaemon.Client).QueryValidDerivers)
}

// question is one about a path that a list of paths answers.
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

// seen leaves out what the sandbox does not see.
func (h *Host) seen(paths []string) []string {
	if h.Only == nil {
		return paths
	}
	return slices.DeleteFunc(slices.Clone(paths), func(path string) bool { return !h.Only[path] })
}

// Prepare holds what the list names. Its error is [ErrCollected] when some of
// that is gone.
func (h *Host) Prepare() error {
	return h.ask(func(context.Context, *nixdaemon.Client) error { return nil })
}

// ask puts a question to the daemon, once more where the connection was lost.
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
		h.client = nil // its roots went with it
	}
	if h.client == nil {
		if err := h.connect(ctx); err != nil {
			return err
		}
	}
	return question(ctx, h.client)
}

// connect makes a connection and holds by it what an earlier one held.
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

// A daemon that was restarted is there again after a while.
const (
	restartTries = 60
	restartWait  = time.Second
)

// holdAgain waits for the end of a connection, and holds by another one what it
// held: nobody may ask for anything for hours.
func (h *Host) holdAgain(wait func()) {
	wait()
	for range restartTries {
		if err := h.Prepare(); err == nil || errors.Is(err, ErrCollected) {
			return
		}
		time.Sleep(restartWait)
	}
}

// holdKnown holds all that the list names.
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

// holdAll makes roots of paths that are all to be there.
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

// hold gives those of the paths that are valid, and makes roots of them: what is
// a root already stays valid. A path is asked for before it becomes a root, as
// the daemon keeps a note of every root, and after, since it may be gone by then.
func (h *Host) hold(ctx context.Context, c *nixdaemon.Client, paths []string) ([]string, error) {
	var held, others []string
	for _, path := range paths {
		if _, is := h.roots[hashOf(path)]; is {
			held = append(held, path)
		} else {
			others = append(others, path)
		}
	}
	if len(others) == 0 {
		return held, nil
	}
	valid, err := c.QueryValidPaths(ctx, others)
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

// note writes down what is a root from now on, before anybody is told of it.
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

// without gives those of all that are not in some.
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
