package cli

import (
	"maps"
	"os"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/diag/spelling"
)

// findCommand looks for a command behind claudebox's own flags and gives its
// words with the command first. Where the first word that is no flag is one
// edit away from a command, and neither a file nor the beginning of a sentence,
// near is that command.
func findCommand(args []string) (words []string, near string) {
	at := firstWord(args)
	if at == len(args) {
		return nil, ""
	}
	word := args[at]
	if isCommand(word) {
		takes := func(string) bool { return false }
		if make, ok := commands[word]; ok {
			flags := make(System{}).Flags()
			takes = func(name string) bool { return flags.Lookup(name) != nil }
		}
		return slices.Concat([]string{word}, dropUseless(args[:at], word, takes), args[at+1:]), ""
	}
	return nil, nearCommand(word, args[at+1:])
}

// firstWord is the place of the first word that is no flag of claudebox's; the
// number of words where there is none before "--".
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

// dropUseless takes away the switches that say nothing to a command that does
// not take them: it asks nothing, reports nothing, or runs nothing anyhow.
func dropUseless(own []string, command string, takes func(name string) bool) []string {
	return slices.DeleteFunc(slices.Clone(own), func(word string) bool {
		flag, _, _ := new(options).findFlag(word)
		if flag == nil || takes(flag.name) {
			return false
		}
		harmless := flag.name == "dry-run" && slices.Contains([]string{"plan", "check", "why"}, command)
		return harmless || flag.name == "yes" || flag.name == "no-report"
	})
}

// nearCommand is the command that a word was probably meant to be, empty for
// none. Behind a sentence's first word stand others; a file's name is meant.
func nearCommand(word string, behind []string) string {
	const sentence = 2 // plain words behind the first
	plain := 0
	for _, w := range behind {
		if strings.HasPrefix(w, "-") {
			break
		}
		plain++
	}
	if strings.HasPrefix(word, "-") || strings.ContainsAny(word, " \t\n") || plain >= sentence {
		return ""
	}
	if _, err := os.Lstat(word); err == nil {
		return ""
	}
	for _, command := range slices.Sorted(maps.Keys(commands)) {
		if oneEdit(word, command) {
			return command
		}
	}
	return ""
}

// oneEdit reports whether two words differ by one character that is missing,
// too much or another, or by two neighbours that have changed places.
func oneEdit(a, b string) bool { return spelling.Distance(a, b, 1) == 1 }

// meant asks whether a command was meant, and refuses what is not answered
// with yes: a mistyped command must not start an agent with it as its prompt.
func meant(args []string, near string) ([]string, error) {
	at := firstWord(args)
	right := slices.Clone(args)
	right[at] = near
	words, _ := findCommand(right)
	err := confirm("claudebox has no command "+args[at]+". Run `claudebox "+near+"`?", "")
	if err == nil {
		return words, nil
	}
	return nil, diag.Errorf("read the command line",
		"say `claudebox "+near+"` for the command, or `claudebox -- "+args[at]+"` to give the word to the agent",
		"%s is no command", args[at])
}
