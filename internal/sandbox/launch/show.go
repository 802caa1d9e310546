package launch

import (
	"encoding/base64"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"claudebox/internal/diag"
	"claudebox/internal/plan"
	"claudebox/internal/sandbox/storetree"
)

// Argv returns the launch as text for people: bwrap and its options, one on each line,
// then a description of each descriptor. Instead of the values of host variables it
// shows their names.
func (l Launch) Argv() (string, error) {
	lines, descriptors, err := l.Words()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(Quote(l.Bwrap) + "\n")
	for _, line := range lines {
		b.WriteString(shown(line) + "\n")
	}
	b.WriteString("-- " + quoteAll(l.Command) + "\n")
	fmt.Fprintf(&b, "# %d: bwrap's report\n", StatusDescriptor)
	for i, d := range descriptors {
		fmt.Fprintf(&b, "# %d: %s\n", FirstDescriptor+i, d)
	}
	l.showGate(&b, FirstDescriptor+len(descriptors))
	if l.OwnNetwork() {
		for _, line := range l.networkShown() {
			b.WriteString("# " + line + "\n")
		}
	}
	for n, layer := range l.layers() {
		fmt.Fprintf(&b, "# %s: an overlay of %s, with what is written in %s\n", storetree.LayerPlace(n),
			Quote(layer.Lower), Quote(layer.Above))
	}
	if l.hasTree() {
		b.WriteString("# " + l.treeShown() + "\n")
	}
	return b.String(), nil
}

// showGate writes what bwrap waits for at its gate, and what claudebox mounts meanwhile,
// as the bwrap options for the same mounts. next is the number of the gate's descriptor.
func (l Launch) showGate(b *strings.Builder, next int) {
	fmt.Fprintf(b, "# %d: %s, which bwrap gets when all is there\n", next,
		Descriptor{Name: seccompFilter, Data: l.Seccomp})
	fmt.Fprintf(b, "# %d: bwrap has set up all but the mounts below, which claudebox makes then\n", next+1)
	for _, m := range l.Mounts {
		if !l.lays(m) {
			continue
		}
		kind, source := string(m.Kind), Quote(m.Source)
		if m.Kind == plan.ROData {
			kind, source = "ro-bind-data", fmt.Sprintf("(made, %d bytes)", len(m.Data))
		}
		fmt.Fprintf(b, "#   --%s %s %s\n", kind, source, Quote(m.Destination))
	}
}

// networkShown returns lines that describe how a sandbox's own network is connected.
func (l Launch) networkShown() []string {
	var list []string
	switch l.Tier {
	case InternetTier:
		list = append(list, "its network ends in a process of claudebox's outside, which dials what is on the internet")
	case ListedTier:
		list = append(list, "its network ends in a process of claudebox's outside, which dials these hosts by "+
			"their names: "+strings.Join(l.Plan.Network.Hosts(), " "))
		if l.Plan.Network.Via != "" {
			list = append(list, "it has the proxy "+l.Plan.Network.Via+" connect to them")
		}
	}
	if len(l.Plan.Network.In) > 0 {
		list = append(list, "of this host, 127.0.0.1 leads inside at: "+portList(l.Plan.Network.In))
	}
	if len(l.Plan.Network.Out) > 0 {
		list = append(list, "inside, 127.0.0.1 leads to this host at: "+portList(l.Plan.Network.Out))
	}
	return list
}

// String describes a descriptor without its content.
func (d Descriptor) String() string {
	switch {
	case d.Path != "":
		return Quote(d.Path)
	case d.Follows != "":
		return d.Follows + ", a copy that follows it"
	}
	return fmt.Sprintf("%s, made, %d bytes", Quote(d.Name), len(d.Data))
}

func shown(line Line) string {
	list := make([]string, len(line))
	for i, w := range line {
		list[i] = Quote(w.Text)
		if w.Variable != "" {
			list[i] = `"${` + w.Variable + `-}"`
		}
	}
	return strings.Join(list, " ")
}

func quoteAll(list []string) string {
	quoted := make([]string, len(list))
	for i, s := range list {
		quoted[i] = Quote(s)
	}
	return strings.Join(quoted, " ")
}

// Quote quotes s as one word of bash, on one line. Invisible characters are escaped: the
// name of a folder may contain a line break, after which the shell would run the rest,
// or escape sequences for the terminal.
func Quote(s string) string {
	switch {
	case !isSeen(s):
		return quoteUnseen(s)
	case s != "" && strings.IndexFunc(s, isShellSpecial) < 0:
		return s
	}
	return diag.Quote(s)
}

// quoteUnseen quotes s as bash's $'…' (bash(1), "Quoting"), with the bytes of invisible
// characters as \xHH.
func quoteUnseen(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == '\'' || r == '\\':
			b.WriteString(`\` + s[:size])
		case isSeen(s[:size]):
			b.WriteString(s[:size])
		default:
			for _, c := range []byte(s[:size]) {
				fmt.Fprintf(&b, `\x%02x`, c)
			}
		}
		s = s[size:]
	}
	return "$'" + b.String() + "'"
}

// isSeen reports whether text is valid UTF-8 of printable characters only: without
// control characters, and without those that reverse or hide others.
func isSeen(s string) bool {
	return diag.Visible(s) == s && !strings.Contains(s, "\t")
}

func isShellSpecial(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
		strings.ContainsRune("-_./:=,+@%", r))
}

const (
	scriptEnd = "CLAUDEBOX_SCRIPT"
	fileEnd   = "CLAUDEBOX_FILE"
)

// Script returns the launch as a shell script that starts bwrap with the same options
// and descriptors. It works for tiers full and none, which need nothing but bwrap. It
// runs in bash, as dash has no descriptors above 9. One thing is missing in it: the
// Landlock domain that closes abstract sockets in tier full.
func (l Launch) Script() (string, error) {
	lines, descriptors, err := l.byWords().Words()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "#!/bin/sh\n# A launch of claudebox, by hand: profile %s, project %s.\n", Quote(l.Plan.Profile),
		Quote(l.Project))
	fmt.Fprintf(&b, "exec %s /dev/fd/9 \"$@\" 9<<'%s'\n%s", Quote(l.Bash), scriptEnd, closeInherited)
	coreutils := path.Dir(l.Setting.Env)
	fmt.Fprintf(&b, "[[ -d %s ]] || { echo 'claudebox was never launched here: the agent has no home' >&2; "+
		"exit 125; }\n", Quote(l.State))
	b.WriteString(standIns(l.StandIns, coreutils))
	for i, d := range descriptors {
		b.WriteString(redirect(FirstDescriptor+i, d, path.Join(coreutils, "base64")))
	}
	fmt.Fprintf(&b, "exec %d>/dev/null\nexec %d< <(printf '%%s\\0'", StatusDescriptor, ArgsDescriptor)
	for _, line := range lines {
		b.WriteString(" \\\n  " + shown(line))
	}
	become := "exec "
	if len(l.StandIns) > 0 {
		become = "" // the shell stays, to remove the stand-ins at the end
	}
	fmt.Fprintf(&b, ")\n%s%s -i %s %s\n%s\n", become, Quote(l.Setting.Env), Quote(l.Bwrap),
		quoteAll(l.commandLine()[1:]), scriptEnd)
	return b.String(), nil
}

// closeInherited is bash code that closes the descriptors inherited from the caller, as
// a launch does, except the one that bash reads the script from.
const closeInherited = `for fd in /proc/$$/fd/*; do
  [[ ${fd##*/} == [012] || $fd -ef /dev/fd/9 ]] || eval "exec ${fd##*/}>&-"
done
exec 9<&-
`

// standIns returns bash code that creates the stand-ins which do not exist yet, and
// removes them when the script ends.
func standIns(list []StandIn, coreutils string) string {
	if len(list) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "made=()\ntrap '%s -df -- \"${made[@]}\"' EXIT\n", path.Join(coreutils, "rm"))
	for _, s := range list {
		make := ": >" + Quote(s.Path)
		if s.Dir {
			make = path.Join(coreutils, "mkdir") + " " + Quote(s.Path)
		}
		fmt.Fprintf(&b, "[[ -e %s ]] || { %s && made=(%s \"${made[@]}\"); }\n", Quote(s.Path), make, Quote(s.Path))
	}
	return b.String()
}

// redirect returns bash code that opens one descriptor: on a path, on text as a
// here-document, or on other data in base64. decoder is the path of base64.
func redirect(number int, d Descriptor, decoder string) string {
	text := string(d.Data)
	switch {
	case d.Path != "":
		return fmt.Sprintf("exec %d<%s\n", number, Quote(d.Path))
	case d.Follows != "":
		return fmt.Sprintf("exec %d<%s\n", number, Quote(d.Follows))
	case isPlainText(text):
		return fmt.Sprintf("exec %d<<'%s' # %s\n%s%s\n", number, fileEnd, Quote(d.Name), text, fileEnd)
	}
	return fmt.Sprintf("exec %d< <(%s -d <<< %s) # %s\n", number, Quote(decoder),
		Quote(base64.StdEncoding.EncodeToString(d.Data)), Quote(d.Name))
}

func isPlainText(s string) bool {
	return strings.HasSuffix(s, "\n") && isSeen(strings.NewReplacer("\n", "", "\t", "").Replace(s)) &&
		!strings.Contains(s, fileEnd) && !strings.Contains(s, scriptEnd)
}
