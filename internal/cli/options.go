package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"claudebox/internal/diag"
	"claudebox/internal/diag/spelling"
	"claudebox/internal/session"
)

// options are claudebox's own flags of a command line, and the agent's words.
type options struct {
	session.Options
	Check, DryRun, Help, Version bool
}

// launchFlag is one flag that claudebox claims.
type launchFlag struct {
	name, short string
	value       string // what help calls its value; empty: it takes none
	usage       string
	anywhere    bool // claimed after the agent's first word, too
	to          any  // the field of options that it sets: a *string, *[]string or *bool
}

// Values of launchFlag.anywhere. A flag that widens the sandbox counts only before the
// agent's first word, so that a prompt pasted into a script cannot widen it.
const before, anywhere = false, true

// flags are all of claudebox's flags for a launch, which set fields of o.
func (o *options) flags() []launchFlag {
	return []launchFlag{
		{"profile", "P", "NAME|FILE", "profile to launch by", before, &o.Profile},
		{"network", "", "TIER", "network tier: full, inet, allow or none", before, &o.Network},
		{"plan", "", "FILE", "launch exactly by this plan file", before, &o.Plan},
		{"mount-ro", "", "HOST[:INSIDE]", "mount a file or folder read-only", before, &o.MountRO},
		{"mount-rw", "", "HOST[:INSIDE]", "mount a file or folder read-write", before, &o.MountRW},
		{"publish", "", "[HOST:]INSIDE", "let this host reach a port inside, at 127.0.0.1", before, &o.Publish},
		{"network-log", "", "FILE", "write each connection and refusal to a file", before, &o.NetworkLog},
		{"yes", "y", "", "launch without asking", anywhere, &o.Yes},
		{"dry-run", "", "", "print the launch, run nothing, change nothing", anywhere, &o.DryRun},
		{"check", "", "", "check what a launch needs, run nothing", anywhere, &o.Check},
		{"no-report", "", "", "say nothing when the session ends", anywhere, &o.NoReport},
		{"report-json", "", "FILE", "write what the session changed to a file", before, &o.ReportJSON},
		{"claudebox-help", "", "", "help about claudebox, not the agent", before, &o.Help},
		{"claudebox-version", "", "", "claudebox's version, not the agent's", before, &o.Version},
	}
}

func (f launchFlag) set(value string) {
	switch to := f.to.(type) {
	case *string:
		*to = value
	case *[]string:
		*to = append(*to, value)
	case *bool:
		*to = true
	}
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
// It fails on a flag without its value, and on a widening flag after the agent's first word.
func split(args []string) (options, error) {
	var o options
	if len(args) == 1 {
		switch args[0] {
		case "-h", "--help":
			o.Help = true
			return o, nil
		case "--version":
			o.Version = true
			return o, nil
		}
	}
	for len(args) > 0 {
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
	flag, value, inline := o.findFlag(args[0])
	switch {
	case flag == nil:
		if near := nearFlag(args[0]); near != "" {
			name, _, _ := strings.Cut(args[0], "=")
			return 0, fmt.Errorf("there is no %s: say %s, or put `--` before it to give it to the agent", name, near)
		}
		o.Words = append(o.Words, args[0])
		return 1, nil
	case !flag.anywhere && len(o.Words) > 0:
		return 0, fmt.Errorf("%[1]s must stand before the agent's first word (%[2]s); put `--` before that word to give "+
			"%[1]s to the agent", args[0], o.Words[0])
	case flag.value == "" && inline:
		return 0, fmt.Errorf("--%s takes no value", flag.name)
	case flag.value == "":
		flag.set("")
		return 1, nil
	}
	used := 1
	if !inline && len(args) > 1 {
		value, used = args[1], 2
	}
	if value == "" { // or given by a variable that is not set, which must not mean the default
		return 0, fmt.Errorf("%s needs a value: %s", strings.TrimSuffix(args[0], "="), flag.value)
	}
	flag.set(value)
	return used, nil
}

// nearFlag returns the flag that a word was probably meant to be; empty: none. A
// mistyped flag must not leave the sandbox wider than was asked.
func nearFlag(word string) string {
	name, _, _ := strings.Cut(word, "=")
	for _, f := range new(options).flags() {
		if strings.HasPrefix(name, "-") && oneEdit(name, "--"+f.name) {
			return "--" + f.name
		}
	}
	return ""
}

// findFlag looks a word up among claudebox's flags, also in the form "--name=value". flag is nil if it is none.
func (o *options) findFlag(word string) (flag *launchFlag, value string, inline bool) {
	name, value, inline := strings.Cut(word, "=")
	for _, f := range o.flags() {
		if name == "--"+f.name || f.short != "" && word == "-"+f.short {
			return &f, value, inline
		}
	}
	return nil, "", false
}

// findCommand looks for a command after claudebox's own flags, and returns its words
// with the command first; nil: there is none, and the words are the agent's. near is the
// command that the first word was probably meant to be, see [nearCommand].
func findCommand(args []string) (words []string, near string) {
	at := firstWord(args)
	if at == len(args) {
		return nil, ""
	}
	word, commands := args[at], ownCommands(System{}) // only to look up names and flags
	i := slices.IndexFunc(commands, func(c *cobra.Command) bool { return c.Name() == word })
	if i < 0 && !slices.Contains(cobraCommands, word) {
		return nil, nearCommand(word, args[at+1:], commands)
	}
	takes := func(name string) bool { return i >= 0 && commands[i].Flags().Lookup(name) != nil }
	return slices.Concat([]string{word}, dropUseless(args[:at], word, takes), args[at+1:]), ""
}

// firstWord returns the index of the first word that is no flag of claudebox's; len(args)
// if there is none before "--".
func firstWord(args []string) int {
	for at := 0; at < len(args); at++ {
		flag, _, inline := new(options).findFlag(args[at])
		switch {
		case args[at] == "--":
			return len(args)
		case flag == nil:
			return at
		case flag.value != "" && !inline:
			at++
		}
	}
	return len(args)
}

// dropUseless removes, from the flags before a command, switches that the command does not
// take because they would change nothing: it asks nothing, reports nothing or runs nothing.
func dropUseless(flags []string, command string, takes func(name string) bool) []string {
	return slices.DeleteFunc(slices.Clone(flags), func(word string) bool {
		flag, _, _ := new(options).findFlag(word)
		if flag == nil || takes(flag.name) {
			return false
		}
		harmless := flag.name == "dry-run" && slices.Contains([]string{"plan", "check", "why"}, command)
		return harmless || flag.name == "yes" || flag.name == "no-report"
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
