package nixuse

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

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

// Open prepares the sandbox's store in dir, and the filter's socket. If another session has taken dir by now, it
// uses another folder. It returns the launch with the folder that is used.
func (n *Store) Open(l launch.Launch, dir string, store *nixdaemon.Client, tell io.Writer,
	lost func(string),
) (_ launch.Launch, err error) {
	n.slot, err = inside.Open(dir)
	if errors.Is(err, inside.ErrBusy) { // it was free when the launch was bound
		other, _ := inside.Choose(filepath.Dir(dir))
		l, dir = l.WithNixStore(dir, other), other
		n.slot, err = inside.Open(dir)
	}
	if err != nil {
		return l, err
	}
	for _, note := range n.slot.Notes {
		diag.Note(tell, note)
	}
	var only []string
	if l.Plan.Nix.Store == "closure" {
		only = l.Closure
		if err := n.slot.Lay(only, storetree.Points); err != nil {
			return l, &diag.Error{Op: "prepare the Nix store inside", Err: err}
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
	return l, err
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
