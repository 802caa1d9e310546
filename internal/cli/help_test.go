package cli

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// A first word that is no command is the agent's, so each must be known.
func TestEveryCommandIsKnown(t *testing.T) {
	names := []string{cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd}
	for _, c := range Tree().Commands() {
		names = append(names, c.Name())
	}
	for _, name := range names {
		if words, _ := findCommand([]string{name}); words == nil {
			t.Errorf("%s is given to the agent", name)
		}
	}
	for _, name := range []string{"fix", ""} {
		if words, near := findCommand([]string{name}); words != nil || near != "" {
			t.Errorf("%q of the agent's is taken for a command", name)
		}
	}
}

// A line that is too long for a terminal is broken in the middle of a word.
func TestHelpFitsATerminal(t *testing.T) {
	const columns = 80
	var each func(c *cobra.Command)
	each = func(c *cobra.Command) {
		if c.Name() == "completion" {
			return // cobra's own words
		}
		c.InitDefaultHelpFlag()
		for line := range strings.Lines(c.Long + "\n" + c.UsageString()) {
			if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > columns {
				t.Errorf("%s: %s", c.CommandPath(), line)
			}
		}
		for _, below := range c.Commands() {
			each(below)
		}
	}
	each(Tree())
}
