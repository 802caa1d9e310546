package launch

import (
	"cmp"
	"path"
	"slices"
	"strconv"

	"claudebox/internal/diag"
	"claudebox/internal/plan"
	"claudebox/internal/sandbox/storetree"
)

// maxWords is how many arguments bwrap accepts (MAX_ARGS in bubblewrap.c). With
// more of them bwrap stops half-way with a message of its own.
const maxWords = 9000

// Word is one argument of bwrap.
type Word struct {
	Text     string
	Variable string // if Text is the value of a host variable, which must never be shown: the variable's name
}

// Descriptor is an open file that bwrap inherits. Its number is its index in the
// list plus [FirstDescriptor].
type Descriptor struct {
	Name  string // for people: "passwd", "/home/u/project"
	Path  string // file to open; empty: the descriptor has Data as its content
	Point Place  // the mount point on the host, which must exist, as a folder if Path is one; zero: none to check
	Data  []byte
	// Follows is the host's file that Data is a live copy of, see [follow]; empty: none.
	// The copy is the file Name in Folder.
	Follows, Folder string
}

// Descriptors that every launch has. bwrap reads its arguments from the first, so
// that they do not appear in /proc/PID/cmdline. To the second it reports whether
// it got as far as running the agent.
const (
	ArgsDescriptor   = 3
	StatusDescriptor = 4
	FirstDescriptor  = 5
)

// Line is one option of bwrap with its arguments, and with the modifiers before it
// (--perms, --size).
type Line []Word

// words collects bwrap's arguments and the descriptors that they refer to.
type words struct {
	lines       []Line
	descriptors []Descriptor
	alone       bool // see [Launch.alone]
	layers      int  // that were bound already
}

// add starts a new line.
func (w *words) add(text ...string) {
	w.lines = append(w.lines, nil)
	w.more(text...)
}

// more appends to the last line.
func (w *words) more(text ...string) {
	last := &w.lines[len(w.lines)-1]
	*last = slices.Grow(*last, len(text))
	for _, t := range text {
		*last = append(*last, Word{Text: t})
	}
}

// descriptor adds a descriptor and returns its number as an argument.
func (w *words) descriptor(d Descriptor) string {
	w.descriptors = append(w.descriptors, d)
	return strconv.Itoa(FirstDescriptor + len(w.descriptors) - 1)
}

// Words returns the launch as bwrap's options and descriptors. It is a pure
// function: what it returns is both run and shown. The agent's command is not
// included: bwrap takes it from its command line only, see [Launch.commandLine].
// Words returns an error if there are more options than bwrap accepts.
func (l Launch) Words() ([]Line, []Descriptor, error) {
	w := &words{
		alone: l.alone, lines: make([]Line, 0, len(l.Env)+len(l.Mounts)+20),
		descriptors: make([]Descriptor, 0, len(l.Mounts)),
	}
	w.add(namespaces...)
	if l.Tier == "none" && !l.OwnNetwork() {
		w.add("--unshare-net")
	}
	w.add("--hostname", Hostname)
	w.add("--json-status-fd", strconv.Itoa(StatusDescriptor))
	if l.alone {
		w.add("--seccomp", w.descriptor(Descriptor{Name: seccompFilter, Data: l.Seccomp}))
	}
	w.add("--clearenv")
	for _, v := range l.Env {
		w.setenv(v)
	}
	for _, m := range l.Mounts {
		if m.Kind == plan.Closure {
			w.closure(l, m)
			continue
		}
		if !l.lays(m) {
			w.mount(m, l.State)
		}
	}
	for _, path := range l.ReadOnly {
		w.add("--remount-ro", path)
	}
	w.add("--chdir", l.Dir)
	if !l.alone {
		w.gate()
	}
	n := 0
	for _, line := range w.lines {
		n += len(line)
	}
	if n > maxWords {
		return nil, nil, diag.Errorf("start bwrap", "mount whole folders instead of single files",
			"%d words are needed for %d mounts; bwrap takes %d", n, len(l.Mounts), maxWords)
	}
	return w.lines, w.descriptors, nil
}

// commandLine returns the argv that bwrap is executed with. The only part of the
// launch in it is the agent's command, which the agent's own /proc/PID/cmdline shows
// anyway.
func (l Launch) commandLine() []string {
	return append([]string{"bwrap", "--args", strconv.Itoa(ArgsDescriptor), "--"}, l.Command...)
}

// seccompFilter is the name of the filter's descriptor, for people.
const seccompFilter = "seccomp filter"

// namespaces are options of every launch. --new-session is not among
// them: it would prevent terminal injection, but break Ctrl-C and resizing. The
// seccomp filter prevents it instead. [Runner.Run] adds it in the background.
var namespaces = []string{
	"--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
	"--disable-userns", "--cap-drop", "ALL", "--die-with-parent",
}

// setenv adds the option that sets a variable.
func (w *words) setenv(v Variable) {
	if v.Name == "PWD" {
		return // bwrap sets it with --chdir
	}
	value := Word{Text: v.Value}
	if v.From == plan.FromHost {
		value.Variable = v.Name
	}
	w.lines = append(w.lines, Line{{Text: "--setenv"}, {Text: v.Name}, value})
}

// mount adds the option that makes a mount. state is the instance's folder.
func (w *words) mount(m Mount, state string) {
	w.add()
	if m.Mode != "" {
		w.more("--perms", m.Mode)
	}
	if m.Size > 0 {
		w.more("--size", strconv.FormatInt(m.Size, 10))
	}
	switch m.Kind {
	case plan.Tmpfs, plan.Proc, plan.Dev, plan.Dir:
		w.more("--"+string(m.Kind), m.Destination)
	case plan.File:
		w.more("--file", w.descriptor(Descriptor{Name: m.Source, Data: m.Data}), m.Destination)
	case plan.ROData:
		w.more("--ro-bind-data", w.descriptor(Descriptor{Name: m.Source, Data: m.Data, Point: m.Point}), m.Destination)
	case plan.Bind, plan.ROBind:
		w.bind(m, state)
	case plan.Symlink:
		w.more("--symlink", m.Source, m.Destination)
	}
}

// bind adds a bind mount or overlay. A source that a user or an agent could replace
// after it was checked is passed as a descriptor, so that exactly the checked file
// is mounted.
func (w *words) bind(m Mount, state string) {
	if m.Layer != "" && !w.alone {
		w.more("--"+string(m.Kind), storetree.LayerPlace(w.layers), m.Destination)
		w.layers++
		return
	}
	if above := cmp.Or(m.Upper, m.Layer); above != "" {
		w.more("--overlay-src", m.Source)
		w.more("--overlay", path.Join(above, "upper"), path.Join(above, "work"), m.Destination)
		return
	}
	if m.Follows != "" {
		d := Descriptor{Name: m.Source, Data: m.Data, Follows: m.Follows, Folder: state}
		w.more("--ro-bind-fd", w.descriptor(d), m.Destination)
		return
	}
	if !m.Open {
		w.more("--"+string(m.Kind), m.Source, m.Destination)
		return
	}
	d := Descriptor{Name: m.Source, Path: m.Source, Point: m.Point}
	w.more("--"+string(m.Kind)+"-fd", w.descriptor(d), m.Destination)
}
