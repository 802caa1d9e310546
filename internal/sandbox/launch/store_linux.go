package launch

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/spawn"
	"claudebox/internal/sandbox/storetree"
)

// tree is what a launch whose closure is mounted as one tree hands to the
// stage that makes it. The zero tree is that of every other launch.
type tree struct {
	list   int      // of store paths
	said   *os.File // where the stage says how it went
	saying *os.File // its end
}

func (l Launch) newTree() (t tree, err error) {
	if !l.hasTree() {
		return tree{}, nil
	}
	if t.list, err = memfd("list of store paths", storetree.List(l.storeFolder(), l.Closure)); err != nil {
		return tree{}, err
	}
	if t.said, t.saying, err = os.Pipe(); err != nil {
		unix.Close(t.list)
		return tree{}, &diag.Error{Op: "start bwrap", Err: err}
	}
	return t, nil
}

// closeInside closes what the stage has got.
func (t tree) closeInside() {
	if t.saying != nil {
		unix.Close(t.list)
		t.saying.Close()
	}
}

// mounting starts bwrap by what makes the tree.
func (t tree) mounting(p spawn.Program) spawn.Program {
	if t.saying != nil {
		return storetree.Around(p, t.list, int(t.saying.Fd()))
	}
	return p
}

// await waits until the store that the agent sees is there.
func (t tree) await() error {
	if t.said == nil {
		return nil
	}
	defer t.said.Close()
	if err := storetree.Await(t.said); err != nil {
		return &diag.Error{
			Op: "mount the plan's closure", Err: err,
			Remedy: "make the plan anew; or use `nix: {store: full}`",
		}
	}
	return nil
}

// whyGone says why the stage ended without a word: with bwrap, which failed or
// was ended by a signal for claudebox, or alone. bwrap has been killed by then,
// if it was still there.
func (l Launch) whyGone(child *sandbox, gone error) error {
	err := child.wait(l.OwnPIDs)
	var exit *ExitError
	if errors.As(err, &exit) && exit.Code == 128+int(syscall.SIGKILL) && child.post.lastSignal() == 0 {
		return gone
	}
	return l.explain(err)
}

// hasTree reports whether the closure is mounted as one tree, which needs a pid
// namespace: it ends the stage that does it.
func (l Launch) hasTree() bool { return l.OwnPIDs && len(l.Closure) > 0 }

// OwnStore reports whether the sandbox has a Nix store of its own over what it
// sees of the host's.
func (l Launch) OwnStore() bool { return l.storeFolder() != "" }

// storeFolder is the folder of that store; empty: there is none.
func (l Launch) storeFolder() string {
	for _, m := range l.Mounts {
		if m.Upper != "" {
			return m.Upper
		}
	}
	return ""
}

// gated reports whether bwrap waits at a gate: for something that is made while
// it is at work or, by itself in a pid namespace, for the sign that claudebox
// lives, see [spawn.Start].
func (l Launch) gated() bool { return l.OwnPIDs || l.OwnNetwork() || l.rings() }

// byWords is the launch as words alone can do it: with a mount for each store
// path, and all mounts made by bwrap.
// A Nix store of the sandbox's own needs a process outside: by words there is
// none.
func (l Launch) byWords() Launch {
	l.OwnPIDs, l.Lay, l.Held = false, false, false
	var mounts []Mount
	upper := ""
	for _, m := range l.Mounts {
		if m.Upper != "" {
			m.Upper, upper = "", m.Upper
		}
		mounts = append(mounts, m)
	}
	l.Mounts = slices.DeleteFunc(mounts,
		func(m Mount) bool { return upper != "" && strings.HasPrefix(m.Source, upper+"/") })
	return l
}

// closure adds the words for the store paths that are mounted. bwrap makes
// read-only what is in the folder by then: the mounts are so already, and a store
// of the sandbox's own must not be.
func (w *words) closure(l Launch, m Mount) {
	switch {
	case l.hasTree() && m.Upper != "":
		w.add("--bind", storetree.Place, m.Destination)
	case l.hasTree():
		w.add("--ro-bind", storetree.Place, m.Destination)
	default:
		for _, path := range l.Closure {
			w.add("--ro-bind", path, path)
		}
	}
}

// treeShown says what comes to the folder that bwrap binds.
func (l Launch) treeShown() string {
	return fmt.Sprintf("%s: %d store paths are mounted there while bwrap waits: %s", storetree.Place, len(l.Closure),
		strings.Join(l.Closure, " "))
}
