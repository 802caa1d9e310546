package cli

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"claudebox/internal/cli/start"
)

// The small program knows the commands by their names alone.
func TestTheNamesOfCommandsAreKnownToTheSmallProgram(t *testing.T) {
	var names []string
	for _, c := range Tree().Commands() {
		names = append(names, c.Name())
	}
	names = append(names, cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd)
	slices.Sort(names)
	if known := slices.Sorted(slices.Values(start.Commands)); !slices.Equal(names, known) {
		t.Errorf("commands %q, known %q", names, known)
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
