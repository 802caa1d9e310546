package nixuse

import (
	"context"
	"errors"
	"io"
	"os"

	"claudebox/internal/diag"
	"claudebox/internal/nix/inside"
	"claudebox/internal/nix/nixdaemon"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/sandbox/storetree"
)

// Store is the sandbox's own store while a session runs, and the filter between the sandbox and the host's
// daemon. The zero value has neither.
type Store struct {
	slot   *inside.Slot
	filter *inside.Filter
}

// Open prepares the sandbox's store in dir, and the filter's socket. If another session has taken dir since the launch
// was bound, [launch.ErrAgain] matches the error: the next one gets another folder, and says so.
func (n *Store) Open(l launch.Launch, dir string, store *nixdaemon.Client, tell io.Writer,
	lost func(string),
) (err error) {
	n.slot, err = inside.Open(dir)
	if errors.Is(err, inside.ErrBusy) {
		return diag.Wrap("prepare the Nix store inside", launch.Again(err), "start again")
	}
	if err != nil {
		return err
	}
	for _, note := range n.slot.Notes {
		diag.Note(tell, note)
	}
	var only []string
	if l.Plan.Nix.Store == "closure" {
		only = l.Closure
		if err := n.slot.Lay(only, storetree.Points); err != nil {
			return &diag.Error{Op: "prepare the Nix store inside", Err: err}
		}
	}
	n.filter, err = inside.Listen(inside.Request{
		Dir: dir, Known: n.slot.Known, Only: only,
		Dial: func(ctx context.Context) (*os.File, error) {
			return nixdaemon.Connect(ctx, store.Socket, store.Options.Local)
		},
		Lost: func(why string) {
			lost("Nix inside does no more in this session: " + why + "; start a new one")
		},
	})
	return err
}

// Begin starts the filter, for the sandbox of bwrap, in the background. A filter that cannot be confined
// serves nobody, and the error is printed: so nothing has to wait for it.
func (n *Store) Begin(bwrap int, tell io.Writer) {
	if filter := n.filter; filter != nil {
		go func() {
			if err := filter.Begin(bwrap); err != nil {
				diag.Print(tell, err)
			}
		}()
	}
}

// Close ends the filter and releases the store.
func (n *Store) Close() {
	if n.filter != nil {
		n.filter.Close()
	}
	if n.slot != nil {
		n.slot.Close()
	}
}
