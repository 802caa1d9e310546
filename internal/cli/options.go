package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"claudebox/internal/agent"
	"claudebox/internal/diag"
	"claudebox/internal/diag/spelling"
	"claudebox/internal/session/planning"
)

// options are claudebox's own flags of a command line, and the agent's words.
type options struct {
	planning.Options
	Check, DryRun, Help, Version bool
}

// launchFlag is one flag that claudebox claims.
type launchFlag struct {
	name, short string
	value       string // what help calls its value; empty: it takes none
	usage       string
	claimed     claim
	to          any // the field of options that it sets: a *string, *[]string or *bool
}

// claim says where a flag is claudebox's.
type claim int

// A flag that widens the sandbox counts only before the agent's first word, so that a prompt pasted into a script
// cannot widen it; behind that word it is refused, not passed on. One that is foremost is the agent's behind it.
const (
	before claim = iota
	anywhere
	foremost
)

// flags are all of claudebox's flags for a launch, which set fields of o.
func (o *options) flags() []launchFlag {
	return []launchFlag{
		{"profile", "P", "NAME|FILE", "profile to launch by", before, &o.Profile},
		{"network", "", "TIER", "network tier: full, inet, allow or none", before, &o.Network},
		{"branch", "", "NAME", "work on this branch, in a checkout of its own", before, &o.Branch},
		{"no-branch", "", "", "work in the project, whatever the profile says", before, &o.NoBranch},
		{"from", "", "REF", "where a new branch begins; else where you are", before, &o.From},
		{"with-changes", "", "", "begin the branch with what is not committed", before, &o.WithChanges},
		{"with", "", "PATH", "copy what is not in git to the branch, too", before, &o.With},
		{"plan", "", "FILE", "launch exactly by this plan file", before, &o.Plan},
		{"mount-ro", "", "HOST[:INSIDE]", "mount a file or folder read-only", before, &o.MountRO},
		{"mount-rw", "", "HOST[:INSIDE]", "mount a file or folder read-write", before, &o.MountRW},
		{"publish", "", "[HOST:]INSIDE", "let this host reach a port inside, at localhost", before, &o.Publish},
		{"network-log", "", "FILE", "write each connection and refusal to a file", before, &o.NetworkLog},
		{"record", "", "FILE", "write what happens in the session to a file", before, &o.Record},
		{"no-devshell", "", "", "without the project's dev shell", anywhere, &o.NoDevshell},
		{"yes", "y", "", "launch without asking", anywhere, &o.Yes},
		{"dry-run", "", "", "print the launch, run nothing, change nothing", anywhere, &o.DryRun},
		{"check", "", "", "check what a launch needs, run nothing", anywhere, &o.Check},
		{"no-report", "", "", "say nothing when the session ends", anywhere, &o.NoReport},
		{"report-json", "", "FILE", "write what the session changed to a file", before, &o.ReportJSON},
		{"help", "h", "", "help about claudebox", foremost, &o.Help},
		{"version", "v", "", "claudebox's version", foremost, &o.Version},
		{"claudebox-help", "", "", "help about claudebox, not the agent", before, &o.Help},
		{"claudebox-version", "", "", "claudebox's version, not the agent's", before, &o.Version},
	}
}

// set keeps a value. A flag of one value that is given two is an error: either could be the narrower wish.
func (f launchFlag) set(value string) error {
	switch to := f.to.(type) {
	case *string:
		if *to != "" && *to != value {
			return fmt.Errorf("--%s is given twice, as %q and as %q", f.name, *to, value)
		}
		*to = value
	case *[]string:
		*to = append(*to, value)
	case *bool:
		*to = true
	}
	return nil
}

// values are what was said for a flag that takes a value.
func (f launchFlag) values() []string {
	switch to := f.to.(type) {
	case *string:
		if *to != "" {
			return []string{*to}
		}
	case *[]string:
		return *to
	}
	return nil
}

// split divides a command line into claudebox's options and the agent's words. A "--"
// ends claudebox's options; one after a word of the agent is itself a word of the agent.
// An agent's program, as an editor calls a wrapper with it, ends them too. It fails on a flag without its value, and on
// a widening flag after the agent's first word.
func split(args []string) (options, error) {
	var o options
	for len(args) > 0 {
		if program, used := agent.Called(args); used > 0 && len(o.Words) == 0 {
			o.Called, o.Words = program, slices.Clone(args[used:])
			break
		}
		if args[0] == "--" {
			if len(o.Words) == 0 {
				args = args[1:]
			}
			o.Words = append(o.Words, args...)
			break
		}
		used, err := o.take(args)
		if err != nil {
			return options{}, &diag.Error{Op: "read the command line", Err: err, Remedy: "see `claudebox --help`"}
		}
		args = args[used:]
	}
	return o, nil
}

// take claims the first of args, or gives it to the agent. It returns how many words were used.
func (o *options) take(args []string) (int, error) {
	word := args[0]
	if near := nearFlag(word); near != "" {
		return 0, fmt.Errorf("there is no %s: say %s, or put `--` before it to give it to the agent", flagName(word), near)
	}
	found, used, err := o.readFlags(args)
	switch {
	case err != nil:
		return 0, err
	case used == 0 && joined(word) != "":
		return 0, fmt.Errorf("%s joins claudebox's %s with a flag that is not claudebox's: write them apart, or put "+
			"`--` before it to give it to the agent", word, joined(word))
	case used == 0, len(o.Words) > 0 && len(found) == 1 && found[0].flag.claimed == foremost:
		o.Words = append(o.Words, word)
		return 1, nil
	}
	for _, s := range found {
		if s.flag.claimed == before && len(o.Words) > 0 {
			return 0, fmt.Errorf("%[1]s must stand before the agent's first word (%[2]s); put `--` before that word to "+
				"give %[1]s to the agent", word, o.Words[0])
		}
		if err := s.flag.set(s.value); err != nil {
			return 0, err
		}
	}
	return used, nil
}

// setting is a flag with the value that it was given.
type setting struct {
	flag  launchFlag
	value string
}

// String returns the one spelling of a setting by which it is passed on.
func (s setting) String() string {
	if s.flag.value == "" {
		return "--" + s.flag.name
	}
	return "--" + s.flag.name + "=" + s.value
}

// readFlags reads the first of args as flags of claudebox's, in each spelling that pflag knows, which reads them behind
// a command: --name=value, --name value, -n=value, -nvalue, -n value, and switches before these in one word, as in
// "-yP value". used is the number of args that were read; 0: the first is the agent's. It fails on a value that is
// missing or too much, and on a word that goes on with a flag which is not claudebox's.
func (o *options) readFlags(args []string) (found []setting, used int, err error) {
	name, isLong := strings.CutPrefix(args[0], "--")
	if !isLong {
		return o.readShort(args)
	}
	name, value, inline := strings.Cut(name, "=")
	i := slices.IndexFunc(o.flags(), func(f launchFlag) bool { return f.name == name })
	if i < 0 {
		return nil, 0, nil
	}
	flag := o.flags()[i]
	if flag.value == "" && inline {
		return nil, 0, fmt.Errorf("--%s takes no value", name)
	}
	return flag.read(nil, args, value, inline)
}

// readShort is [options.readFlags] for a word with one dash.
func (o *options) readShort(args []string) (found []setting, used int, err error) {
	word := args[0]
	if !strings.HasPrefix(word, "-") {
		return nil, 0, nil
	}
	for at := 1; at < len(word); at++ {
		i := slices.IndexFunc(o.flags(), func(f launchFlag) bool { return f.short == word[at:at+1] })
		rest, inline := strings.CutPrefix(word[at+1:], "=")
		switch {
		case i < 0 && !slices.ContainsFunc(found, func(s setting) bool { return s.flag.claimed != foremost }):
			return nil, 0, nil
		case i < 0:
			return nil, 0, fmt.Errorf("%s joins claudebox's %s with a flag that is not claudebox's: write them apart",
				word, word[:2])
		case o.flags()[i].value != "":
			return o.flags()[i].read(found, args, rest, inline || rest != "")
		case inline:
			return nil, 0, fmt.Errorf("-%c takes no value", word[at])
		}
		found = append(found, setting{flag: o.flags()[i]})
	}
	return found, min(len(found), 1), nil
}

// read appends to found the setting of a flag, which is the last in the first of args. Its value is inline, in the same
// word, or the next one. An empty value, given by a variable that is not set, must not mean the default.
func (f launchFlag) read(found []setting, args []string, value string, inline bool) ([]setting, int, error) {
	used := 1
	switch {
	case f.value == "":
		return append(found, setting{flag: f}), used, nil
	case !inline && len(args) > 1:
		value, used = args[1], 2
	}
	if value == "" {
		return nil, 0, fmt.Errorf("%s needs a value: %s", strings.TrimSuffix(args[0], "="), f.value)
	}
	return append(found, setting{f, value}), used, nil
}

// joined returns the flag of claudebox's that a word has behind one or two flags of the agent's, as -cP has -P; empty:
// none. Which of them the next word belongs to cannot be known.
func joined(word string) string {
	isLetter := func(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
	for at := 1; at <= 3 && at < len(word) && word[0] == '-' && isLetter(word[at]); at++ {
		for _, f := range new(options).flags() {
			if f.short == word[at:at+1] && f.claimed != foremost && (f.value != "" || at == len(word)-1) {
				return "-" + f.short
			}
		}
	}
	return ""
}

// flagName is what stands before the value in a word that is like a flag.
func flagName(word string) string {
	name, _, _ := strings.Cut(word, "=")
	return name
}

// dashes are characters that a text shows in the place of two dashes, or of one.
var dashes = strings.NewReplacer("\u2014", "--", "\u2013", "--", "\u2212", "-", "\u2010", "-", "\u2011", "-")

// nearFlag returns the flag that a word was probably meant to be; empty: none, or the word is that flag. A
// mistyped flag must not leave the sandbox wider than was asked.
func nearFlag(word string) string {
	name := strings.ToLower(dashes.Replace(flagName(word)))
	if !strings.HasPrefix(name, "-") {
		return ""
	}
	for _, f := range new(options).flags() {
		if flagName(word) == "--"+f.name {
			return ""
		}
	}
	for _, f := range new(options).flags() {
		if f.claimed != foremost && f.isNear(name) {
			return "--" + f.name
		}
	}
	return ""
}

// isNear reports whether a name in small letters, with its dashes, is probably the flag's: with one dash, shortened,
// with its value in the same word, or mistyped. A word that begins with a short flag is not taken for a mistyped one.
func (f launchFlag) isNear(name string) bool {
	long := "--" + f.name
	if "-"+name == long || name == long {
		return true
	}
	if short, _ := utf8.DecodeRuneInString(name[1:]); short == 'p' || short == 'y' {
		return false
	}
	const least = len("--xyz")
	rest, longer := strings.CutPrefix(name, long)
	follows, _ := utf8.DecodeRuneInString(rest)
	edits := 1
	if len(f.name) >= len("network") {
		edits = 2
	}
	return longer && follows != '-' && !unicode.IsLetter(follows) && !unicode.IsDigit(follows) ||
		len(name) >= least && strings.HasPrefix(long, name) || spelling.Distance(name, long, edits) <= edits
}

// findCommand looks for a command after claudebox's own flags, and returns its words
// with the command first; nil: there is none, and the words are the agent's. near is the
// command that the first word was probably meant to be, see [nearCommand].
func findCommand(args []string) (words []string, near string) {
	flags, at := leading(args)
	if at == len(args) {
		return nil, ""
	}
	word, commands := args[at], ownCommands(System{}) // only to look up names and flags
	i := slices.IndexFunc(commands, func(c *cobra.Command) bool { return c.Name() == word })
	if i < 0 && !slices.Contains(cobraCommands, word) {
		return nil, nearCommand(word, args[at+1:], commands)
	}
	takes := func(name string) bool { return i >= 0 && commands[i].Flags().Lookup(name) != nil }
	words = []string{word}
	for _, s := range dropUseless(flags, word, takes) {
		words = append(words, s.String())
	}
	return append(words, args[at+1:]...), ""
}

// leading reads claudebox's flags at the beginning of args. It returns the index of the first word that is none;
// len(args) if there is none before "--", or if one of the flags is at fault.
func leading(args []string) (flags []setting, at int) {
	for at < len(args) {
		found, used, err := new(options).readFlags(args[at:])
		switch {
		case args[at] == "--" || err != nil:
			return nil, len(args)
		case used == 0:
			return flags, at
		}
		flags, at = append(flags, found...), at+used
	}
	return flags, at
}

// firstWord returns the index of the first word that is no flag of claudebox's, as [leading] does.
func firstWord(args []string) int {
	_, at := leading(args)
	return at
}

// dropUseless removes, from the flags before a command, switches that the command does not
// take because they would change nothing: it asks nothing, reports nothing or runs nothing.
func dropUseless(flags []setting, command string, takes func(name string) bool) []setting {
	return slices.DeleteFunc(flags, func(s setting) bool {
		if takes(s.flag.name) {
			return false
		}
		harmless := s.flag.name == "dry-run" && slices.Contains([]string{"plan", "check", "why"}, command)
		return harmless || s.flag.name == "yes" || s.flag.name == "no-report"
	})
}

// nearCommand returns the command that a word was probably meant to be; empty: none. A word
// with others after it begins a sentence, and the name of an existing file means that file.
func nearCommand(word string, rest []string, commands []*cobra.Command) string {
	isFlag := func(w string) bool { return strings.HasPrefix(w, "-") }
	isSentence := len(rest) >= 2 && !slices.ContainsFunc(rest[:2], isFlag)
	if isFlag(word) || strings.ContainsAny(word, " \t\n") || isSentence {
		return ""
	}
	if _, err := os.Lstat(word); err == nil {
		return ""
	}
	for _, command := range commands {
		if oneEdit(word, command.Name()) {
			return command.Name()
		}
	}
	return ""
}

// oneEdit reports whether two words differ by one character that is missing,
// too much or another, or by two neighbours that have changed places.
func oneEdit(a, b string) bool { return spelling.Distance(a, b, 1) == 1 }

// commandWords returns the words of the command that is called, the command first; nil: the
// agent is called. A mistyped command must not become an agent's prompt: the user is asked
// whether the nearest command was meant, and without a yes it is an error.
func commandWords(args []string) ([]string, error) {
	words, near := findCommand(args)
	if near == "" {
		return words, nil
	}
	at := firstWord(args)
	if confirm("claudebox has no command "+args[at]+". Run `claudebox "+near+"`?", "") != nil {
		return nil, diag.Errorf("read the command line",
			"say `claudebox "+near+"` for the command, or `claudebox -- "+args[at]+"` to give the word to the agent",
			"%s is no command", args[at])
	}
	words, _ = findCommand(slices.Concat(args[:at], []string{near}, args[at+1:]))
	return words, nil
}

// isLone reports whether all that the agent gets is a word that could be taken for a command of claudebox's.
func isLone(args, words []string) bool {
	return len(words) == 1 && !slices.Contains(args, "--") && !strings.HasPrefix(words[0], "-") &&
		strings.Trim(words[0], "abcdefghijklmnopqrstuvwxyz-") == ""
}
