package launch

import (
	"path"
	"slices"
	"strconv"

	"claudebox/internal/diag"
	"claudebox/internal/plan"
)

// maxWords is how many words bwrap takes, its own limit (MAX_ARGS in
// bubblewrap.c). Past it bwrap stops half-way with a message of its own.
const maxWords = 9000

// Word is one word of bwrap's command line.
type Word struct {
	Text     string
	Variable string // the host variable whose value Text is, never to be shown; empty: may be shown
}

// Descriptor is a file that bwrap is started with. Its number is its place in
// the list, counted from [FirstDescriptor].
type Descriptor struct {
	Name  string // for people: "passwd", "/home/u/project"
	Path  string // opened; empty: Data is handed over
	Above Place  // must exist as the same kind of file before anything is mounted on it
	Data  []byte
	// Follows is the host's file that Data is a copy of and is kept equal to.
	// Such a copy is the file Name in Folder, as bwrap mounts only what has a
	// name.
	Follows, Folder string
}

// Descriptors that every launch has. The words themselves go through the
// first, so that nothing of them can be read in /proc/PID/cmdline; bwrap
// says through the second whether it came as far as the agent.
const (
	ArgsDescriptor   = 3
	StatusDescriptor = 4
	FirstDescriptor  = 5
)

// Line is the words of bwrap's command line that belong together: an option
// with its arguments, the modifiers before it included.
type Line []Word

// words collects bwrap's words and the descriptors they name.
type words struct {
	lines       []Line
	descriptors []Descriptor
}

// add begins a line.
func (w *words) add(text ...string) {
	w.lines = append(w.lines, nil)
	w.more(text...)
}

// more goes on with the line.
func (w *words) more(text ...string) {
	last := &w.lines[len(w.lines)-1]
	*last = slices.Grow(*last, len(text))
	for _, t := range text {
		*last = append(*last, Word{Text: t})
	}
}

// descriptor hands a file over and returns the word that names it.
func (w *words) descriptor(d Descriptor) string {
	w.descriptors = append(w.descriptors, d)
	return strconv.Itoa(FirstDescriptor + len(w.descriptors) - 1)
}

// Words renders the launch as bwrap's options and descriptors. It is a pure
// function: what it returns is what runs and what is shown. The command is
// not among them: bwrap takes it from its command line only, see
// [Launch.commandLine]. It fails when bwrap would not take so many words.
func (l Launch) Words() ([]Line, []Descriptor, error) {
	w := &words{lines: make([]Line, 0, len(l.Env)+len(l.Mounts)+20), descriptors: make([]Descriptor, 0, len(l.Mounts))}
	w.add(namespaces...)
	if l.Tier == "none" && !l.OwnNetwork() {
		w.add("--unshare-net")
	}
	w.add("--hostname", l.Hostname)
	w.add("--json-status-fd", strconv.Itoa(StatusDescriptor))
	if !l.gated() {
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
	if l.gated() {
		w.gate(l)
	}
	if n := count(w.lines); n > maxWords {
		return nil, nil, diag.Errorf("start bwrap", "mount whole folders instead of single files",
			"%d words are needed for %d mounts; bwrap takes %d", n, len(l.Mounts), maxWords)
	}
	return w.lines, w.descriptors, nil
}

// commandLine is what bwrap is executed with. Of the launch it shows the
// agent and its words, which /proc/PID/cmdline of the agent shows anyway.
func (l Launch) commandLine() []string {
	return append([]string{"bwrap", "--args", strconv.Itoa(ArgsDescriptor), "--"}, l.Command...)
}

const seccompFilter = "seccomp filter"

func count(lines []Line) int {
	n := 0
	for _, line := range lines {
		n += len(line)
	}
	return n
}

// namespaces are the words of every launch (SAND-16). A new session would
// protect from terminal injection as well, but cost Ctrl-C and resize: the
// seccomp filter does it instead.
var namespaces = []string{
	"--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
	"--disable-userns", "--cap-drop", "ALL", "--die-with-parent",
}

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
		w.more("--ro-bind-data", w.descriptor(Descriptor{Name: m.Source, Data: m.Data, Above: m.Above}), m.Destination)
	case plan.Bind, plan.ROBind:
		w.bind(m, state)
	case plan.Symlink:
		w.more("--symlink", m.Source, m.Destination)
	}
}

// bind hands the source over as a descriptor when a user or an agent could
// have changed it since it was checked: what was checked is what is mounted.
func (w *words) bind(m Mount, state string) {
	if m.Upper != "" {
		w.more("--overlay-src", m.Source)
		w.more("--overlay", path.Join(m.Upper, "upper"), path.Join(m.Upper, "work"), m.Destination)
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
	d := Descriptor{Name: m.Source, Path: m.Source, Above: m.Above}
	w.more("--"+string(m.Kind)+"-fd", w.descriptor(d), m.Destination)
}
