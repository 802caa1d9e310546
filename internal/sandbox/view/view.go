package view

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/plan"
	"claudebox/internal/sandbox/launch"
)

// View is the file system of a sandbox, as far as its mounts tell. Paths are absolute and as inside, if not said
// otherwise. A path is looked at when it is asked about first. It is for one goroutine.
type View struct {
	Path    []string // the folders of PATH
	Home    string   // what "~" stands for
	Project string   // what CLAUDE_PROJECT_DIR stands for
	Dir     string   // the current folder
	// Brings reports whether something that is known only inside, as a dev shell, may bring a program; nil: nothing.
	Brings func(program string) bool
	// Mountable returns the flag that brings a file or folder of the host inside, or why a launch would refuse it.
	Mountable func(name string) (flag string, fault error)
	// Yours says how a program of the user's own, in a folder of a PATH, comes inside; empty: there is none of that
	// name. No PATH is the host's.
	Yours func(program, search string) (remedy string)

	own      string                   // the PATH of what is started with one of its own
	extends  bool                     // that PATH has the folders of the one inside, too
	around   *View                    // of what is not; nil: it is that
	followed map[string]followed      // by path, see [View.Resolve]
	links    map[string]string        // see [View.Link]
	mounts   map[string]*launch.Mount // by destination
	above    map[string]bool          // folders that a destination lies in
	closure  []string
}

// Of makes the view of these mounts. closure are the store paths of a mount of kind closure.
func Of(mounts []launch.Mount, closure []string) *View {
	v := &View{
		followed: map[string]followed{}, links: map[string]string{}, closure: closure,
		mounts: make(map[string]*launch.Mount, len(mounts)), above: map[string]bool{"/": true},
	}
	for i := range mounts {
		v.mounts[mounts[i].Destination] = &mounts[i]
		v.liesIn(mounts[i].Destination)
	}
	return v
}

// Again is the same view for another goroutine. The links of both are all known.
func (v *View) Again() *View {
	again := *v
	again.followed = map[string]followed{}
	return &again
}

// liesIn notes the folders that a path lies in.
func (v *View) liesIn(name string) {
	for dir := path.Dir(name); !v.above[dir]; dir = path.Dir(dir) {
		v.above[dir] = true
	}
}

// Link adds a link that will be there when the sandbox starts.
func (v *View) Link(name, text string) {
	v.links[name] = text
	v.liesIn(name)
	clear(v.followed)
}

// followed is where a path leads, and what is there, or why it leads nowhere.
type followed struct {
	end  string
	info fs.FileInfo
	err  error
}

// Resolve follows all links of a path. It fails with [fs.ErrNotExist] if nothing is there.
func (v *View) Resolve(name string) (end string, info fs.FileInfo, err error) {
	at, known := v.followed[name]
	if !known {
		at = v.follow(name)
		v.followed[name] = at
	}
	return at.end, at.info, at.err
}

// follow is Resolve by what is known of the folder that a path lies in.
func (v *View) follow(name string) (f followed) {
	dir, last := "/", name
	if path.IsAbs(name) && name == path.Clean(name) && name != "/" {
		if dir, _, f.err = v.Resolve(path.Dir(name)); f.err != nil {
			return f
		}
		last = path.Base(name)
	}
	f.end, f.err = beneath.Follow(v, dir, last, func(_ string, met fs.FileInfo, _ bool) error {
		f.info = met
		return nil
	})
	if f.err == nil && f.info == nil {
		f.info, f.err = v.Lstat("/")
	}
	return f
}

// Over returns the mount over what the project has at a path; nil: there is none.
func (v *View) Over(name string) *launch.Mount {
	for ; name != v.Project && pathname.Below(name, v.Project); name = path.Dir(name) {
		if v.mounts[name] != nil {
			return v.mounts[name]
		}
	}
	return nil
}

// Has reports whether something is at a path.
func (v *View) Has(name string) bool {
	_, _, err := v.Resolve(name)
	return err == nil
}

// OnHost returns the file of the host that is seen at a path without links; empty if there is none.
func (v *View) OnHost(name string) string {
	for dir := name; ; dir = path.Dir(dir) {
		m := v.mounts[dir]
		switch {
		case m == nil && dir == "/":
			return ""
		case m == nil:
			continue
		case m.Kind == plan.Bind || m.Kind == plan.ROBind:
			return path.Join(m.Source, strings.TrimPrefix(name, dir))
		case m.Kind == plan.Closure && pathname.BelowAny(name, v.closure):
			return name
		}
		return ""
	}
}

// Lstat describes what is at a path, without following a link there.
func (v *View) Lstat(name string) (fs.FileInfo, error) {
	missing := &fs.PathError{Op: "lstat", Path: name, Err: fs.ErrNotExist}
	if _, is := v.links[name]; is {
		return entry{name: name, mode: fs.ModeSymlink | 0o777}, nil
	}
	m := v.mounts[name]
	switch {
	case m == nil && v.above[name]:
		return entry{name: name, mode: fs.ModeDir | 0o755}, nil
	case m == nil:
	case m.Kind == plan.Symlink:
		return entry{name: name, mode: fs.ModeSymlink | 0o777}, nil
	case m.Kind == plan.File || m.Kind == plan.ROData:
		mode, _ := strconv.ParseUint(m.Mode, 8, 9)
		return entry{name: name, mode: fs.FileMode(mode)}, nil
	case m.Kind != plan.Bind && m.Kind != plan.ROBind:
		return entry{name: name, mode: fs.ModeDir | 0o755}, nil
	default:
		if info, err := os.Lstat(m.Source); err == nil {
			return info, nil
		}
		return entry{name: name, mode: fs.ModeDir | 0o755}, nil // of the instance, and not made yet
	}
	if at := v.OnHost(name); at != "" {
		return os.Lstat(at)
	}
	if rest, is := strings.CutPrefix(name, "/dev/"); is && slices.Contains(devices, rest) && v.mounts["/dev"] != nil {
		return entry{name: name, mode: fs.ModeDevice | 0o666}, nil
	}
	return nil, missing
}

// devices are those of bwrap's /dev.
var devices = []string{"null", "zero", "full", "random", "urandom", "tty", "ptmx", "stdin", "stdout", "stderr"}

// Readlink returns the text of a link.
func (v *View) Readlink(name string) (string, error) {
	if text, is := v.links[name]; is {
		return text, nil
	}
	if m := v.mounts[name]; m != nil && m.Kind == plan.Symlink {
		return m.Source, nil
	}
	return os.Readlink(v.OnHost(name))
}

// entry describes what claudebox makes.
type entry struct {
	name string
	mode fs.FileMode
}

func (e entry) Name() string       { return path.Base(e.name) }
func (e entry) Size() int64        { return 0 }
func (e entry) Mode() fs.FileMode  { return e.mode }
func (e entry) ModTime() time.Time { return time.Time{} }
func (e entry) IsDir() bool        { return e.mode.IsDir() }
func (e entry) Sys() any           { return nil }
