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
	"claudebox/internal/sandbox/ask"
	"claudebox/internal/sandbox/storetree"
)

// tree has the descriptors for the stage (package storetree) that becomes bwrap, and mounts the closure as one tree.
// It is zero for a launch that needs no stage.
type tree struct {
	fills  bool // there is a tree; else the stage only mounts the /proc that bwrap needs
	list   int  // descriptor of the list of store paths, for the stage
	layers []storetree.Layer
	said   *os.File // read end of the pipe on which the stage reports success or an error
	saying *os.File // write end of that pipe, for the stage
}

// newTree returns the descriptors for the tree of a launch; the zero tree if it needs no stage.
func (l Launch) newTree() (t tree, err error) {
	var list []byte
	if t.fills = l.hasTree(); t.fills {
		list = storetree.List(l.storeFolder(), l.Closure)
	} else if showsProcess2() && len(l.layers()) == 0 {
		return tree{}, nil
	}
	t.layers = l.layers()
	if t.list, err = memfd("list of store paths", list); err != nil {
		return tree{}, err
	}
	if t.said, t.saying, err = os.Pipe(); err != nil {
		unix.Close(t.list)
		return tree{}, &diag.Error{Op: "start bwrap", Err: err}
	}
	return t, nil
}

// showsProcess2 reports whether /proc has a process 2. bwrap's child has this id in the pid
// namespace of bwrap's own, and bwrap looks it up in the /proc that it finds (bubblewrap 0.12,
// namespace_ids_read). If there is none bwrap fails: so in most containers, and where /proc is
// mounted with hidepid=. Otherwise it finds another process, but uses what it reads only for
// its report.
func showsProcess2() bool {
	fd, err := unix.Open("/proc/2/ns", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	unix.Close(fd)
	return true
}

// closeInside closes our copies of the descriptors that the stage has inherited.
func (t tree) closeInside() {
	if t.saying != nil {
		unix.Close(t.list)
		t.saying.Close()
	}
}

// mounting returns the program to start instead of p, which is bwrap: the stage that becomes bwrap, if one is needed.
func (t tree) mounting(p spawn.Program) spawn.Program {
	if t.saying != nil {
		return storetree.Around(p, t.list, int(t.saying.Fd()), t.layers)
	}
	return p
}

// await waits until the closure is mounted, or returns why it could not be. Without a tree it waits until the stage has
// become bwrap.
func (t tree) await() error {
	if t.said == nil {
		return nil
	}
	defer t.said.Close()
	err := storetree.Await(t.said)
	switch {
	case err == nil || !t.fills && errors.Is(err, storetree.ErrGone): // it is bwrap now, or ended: waiting for it says
		return nil
	case strings.HasPrefix(err.Error(), storetree.NoLayer):
		return &diag.Error{Op: "mount what is ignored", Err: err, Remedy: "run `claudebox check`"}
	case !t.fills || strings.HasPrefix(err.Error(), storetree.NoProc):
		return explainTrial(err, readSwitches())
	}
	return &diag.Error{
		Op: "mount the plan's closure", Err: err, Remedy: "make the plan anew; or use `nix: {store: full}`",
	}
}

// whyGone returns why the stage ended without a report. Either bwrap, which it ends
// with, failed or was ended by a signal for claudebox: then that is the error. Or it
// ended alone: then gone is returned. The caller has sent bwrap a KILL before.
func (l Launch) whyGone(child *sandbox, gone error) error {
	err := child.wait()
	var exit *ExitError
	if errors.As(err, &exit) && exit.Code == 128+int(syscall.SIGKILL) && child.post.lastSignal() == 0 {
		return gone
	}
	return l.explain(child, err)
}

// layers are those of the launch's mounts that have one, in order.
func (l Launch) layers() (list []storetree.Layer) {
	for _, m := range l.Mounts {
		if m.Layer != "" && !l.alone {
			list = append(list, storetree.Layer{Lower: m.Source, Above: m.Layer})
		}
	}
	return list
}

// hasTree reports whether the closure is mounted as one tree.
func (l Launch) hasTree() bool { return !l.alone && len(l.Closure) > 0 }

// OwnStore reports whether the sandbox has a Nix store of its own over what it
// sees of the host's.
func (l Launch) OwnStore() bool { return l.storeFolder() != "" }

// storeFolder returns the folder of the sandbox's own Nix store, or "" if it has none.
func (l Launch) storeFolder() string {
	for _, m := range l.Mounts {
		if m.Upper != "" {
			return m.Upper
		}
	}
	return ""
}

// byWords returns the launch in a form that bwrap's options alone can express: with
// one mount for each store path, and all mounts made by bwrap. It has no Nix store of
// its own, which needs a process outside.
func (l Launch) byWords() Launch {
	l.alone, l.Limited = true, false
	var mounts []Mount
	upper := ""
	for _, m := range l.Mounts {
		if m.Upper != "" {
			m.Upper, upper = "", m.Upper
		}
		mounts = append(mounts, m)
	}
	l.Mounts = slices.DeleteFunc(mounts, func(m Mount) bool { // nobody answers there
		return m.Destination == ask.Socket || upper != "" && strings.HasPrefix(m.Source, upper+"/")
	})
	return l
}

// closure adds the options for the store paths of the closure. With --ro-bind bwrap
// makes the folder and what is mounted in it by then read-only. The store paths are
// read-only anyway; a store of the sandbox's own must stay writable, hence --bind.
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

// treeShown describes, for the user, what is mounted in the folder that bwrap binds.
func (l Launch) treeShown() string {
	return fmt.Sprintf("%s: %d store paths are mounted there while bwrap waits: %s", storetree.Place, len(l.Closure),
		strings.Join(l.Closure, " "))
}
