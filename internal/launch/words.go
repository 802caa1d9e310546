package launch

import (
	"strconv"

	"claudebox/internal/diag"
	"claudebox/internal/plan"
)

// maxWords is how many words bwrap takes, its own limit (MAX_ARGS in
// bubblewrap.c). Past it bwrap stops half-way with a message of its own.
const maxWords = 9000

// Word is one word of bwrap's command line.
type Word struct {
	Text   string
	Secret string // name of the host variable whose value Text is; empty: may be shown
}

// Descriptor is a file that bwrap is started with. Its number is its place in
// the list, counted from [FirstDescriptor].
type Descriptor struct {
	Name  string // for people: "passwd", "/home/u/project"
	Path  string // opened; empty: Data is handed over
	Root  string // Path is opened beneath this folder, no link followed
	Above Place  // must exist as the same kind of file before anything is mounted on it
	Data  []byte
}

// Descriptors that every launch has. The words themselves go through the
// first, so that nothing of them can be read in /proc/PID/cmdline; bwrap
// tells through the second whether it came as far as the agent.
const (
	ArgsDescriptor   = 3
	StatusDescriptor = 4
	FirstDescriptor  = 5
)

// words collects bwrap's words and the descriptors they name.
type words struct {
	list        []Word
	descriptors []Descriptor
}

func (w *words) add(text ...string) {
	for _, t := range text {
		w.list = append(w.list, Word{Text: t})
	}
}

// descriptor hands a file over and returns the word that names it.
func (w *words) descriptor(d Descriptor) string {
	w.descriptors = append(w.descriptors, d)
	return strconv.Itoa(FirstDescriptor + len(w.descriptors) - 1)
}

// Words renders the launch as bwrap's words and descriptors. It is a pure
// function: what it returns is what runs and what is shown. It fails when
// bwrap would not take so many words.
func (l Launch) Words() ([]Word, []Descriptor, error) {
	w := &words{}
	w.add(namespaces...)
	if l.Tier == "none" {
		w.add("--unshare-net")
	}
	w.add("--hostname", l.Hostname, "--json-status-fd", strconv.Itoa(StatusDescriptor), "--clearenv")
	for _, v := range l.Env {
		w.setenv(v)
	}
	if len(l.Seccomp) > 0 {
		w.add("--seccomp", w.descriptor(Descriptor{Name: "seccomp filter", Data: l.Seccomp}))
	}
	for _, m := range l.Mounts {
		w.mount(m)
	}
	for _, path := range l.ReadOnly {
		w.add("--remount-ro", path)
	}
	w.add("--chdir", l.Dir, "--")
	w.add(l.Command...)
	if len(w.list) > maxWords {
		return nil, nil, diag.Errorf("start bwrap", "mount whole folders instead of single files",
			"%d words are needed for %d mounts; bwrap takes %d", len(w.list), len(l.Mounts), maxWords)
	}
	return w.list, w.descriptors, nil
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
	w.add("--setenv", v.Name)
	value := Word{Text: v.Value}
	if v.From == plan.FromHost {
		value.Secret = v.Name
	}
	w.list = append(w.list, value)
}

func (w *words) mount(m Mount) {
	if m.Mode != "" {
		w.add("--perms", m.Mode)
	}
	if m.Size > 0 {
		w.add("--size", strconv.FormatInt(m.Size, 10))
	}
	switch m.Kind {
	case plan.Tmpfs, plan.Proc, plan.Dev, plan.Dir:
		w.add("--"+string(m.Kind), m.Destination)
	case plan.File:
		w.add("--file", w.descriptor(Descriptor{Name: m.Source, Data: m.Data}), m.Destination)
	case plan.ROData:
		w.add("--ro-bind-data", w.descriptor(Descriptor{Name: m.Source, Data: m.Data}), m.Destination)
	case plan.Bind, plan.ROBind:
		w.bind(m)
	case plan.Symlink:
		w.add("--symlink", m.Source, m.Destination)
	}
}

// bind hands the source over as a descriptor when a user or an agent could
// have changed it since it was checked: what was checked is what is mounted.
func (w *words) bind(m Mount) {
	if !m.Open {
		w.add("--"+string(m.Kind), m.Source, m.Destination)
		return
	}
	d := Descriptor{Name: m.Source, Path: m.Source, Root: m.Root, Above: m.Above}
	w.add("--"+string(m.Kind)+"-fd", w.descriptor(d), m.Destination)
}
