package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"claudebox/internal/diag"
	"claudebox/internal/profile/shape"
)

// commands make claudebox's own commands, by name.
var commands = map[string]func(System) *cobra.Command{
	"plan":       newPlanCommand,
	"check":      newCheckCommand,
	"shell":      newShellCommand,
	"profile":    newProfileCommand,
	"allow":      newAllowCommand,
	"allow-host": newAllowHostCommand,
	"instance":   newInstanceCommand,
	"login":      newLoginCommand,
	"deny":       newDenyCommand,
	"why":        newWhyCommand,
	"version":    newVersionCommand,
}

// cobraCommands are those that cobra brings, and that need the whole tree.
var cobraCommands = []string{"help", "completion", cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd}

// isCommand reports whether a first word is a command. Any other word that
// claudebox does not claim is the agent's.
func isCommand(word string) bool {
	return commands[word] != nil || slices.Contains(cobraCommands, word)
}

// runCommand runs one command. Only that one is built, as building all costs
// a tenth of a millisecond.
func runCommand(args []string, sys System) error {
	root := newRoot(sys)
	if make, ok := commands[args[0]]; ok {
		root.AddCommand(make(sys))
	} else {
		addAll(root, sys)
	}
	if strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		root.ValidArgsFunction = completeCommands
		completeFlags(root, sys)
	}
	root.SetArgs(args)
	return root.Execute()
}

func addAll(root *cobra.Command, sys System) {
	for _, make := range commands {
		root.AddCommand(make(sys))
	}
}

// Tree is every command with its flags, for the manual.
func Tree() *cobra.Command {
	root := newRoot(System{})
	addAll(root, System{})
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	if c, _, err := root.Find([]string{"completion"}); err == nil {
		c.Use, c.Long = "completion bash|fish|powershell|zsh", "Print the completion script of a shell. "+
			"Those of bash, fish and zsh come with claudebox where Nix installs it."
	}
	return root
}

const rootLong = `Claudebox runs Claude Code, or another coding agent, with full permissions
inside a bubblewrap sandbox. A profile says what the agent may have; its
packages are pinned store paths; what you are shown is what runs.

Words that are not claudebox's own go to the agent, in order. Behind -- all
words are the agent's.`

const rootExample = `  claudebox                          start the agent in this folder
  claudebox -P work --continue       profile work; --continue is the agent's
  claudebox -y -p "fix the tests"    without asking; -p is the agent's
  claudebox plan                     what would run, and why
  claudebox shell -- make test       the same sandbox, another program`

// newRoot is the command `claudebox` itself. It documents the flags of a
// launch; split reads them, as cobra has no way to leave unknown ones alone.
func newRoot(sys System) *cobra.Command {
	root := &cobra.Command{
		Use:           "claudebox [flags] [agent words…]",
		Short:         "Run a coding agent in a pinned sandbox",
		Long:          rootLong,
		Example:       rootExample,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE:          func(_ *cobra.Command, args []string) error { return run(args, sys) },
	}
	root.SetIn(sys.Stdin)
	root.SetOut(sys.Stdout)
	root.SetErr(sys.Stderr)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return &diag.Error{Op: "read the command line", Err: err, Remedy: "see `" + c.CommandPath() + " --help`"}
	})
	addLaunchFlags(root.Flags())
	return root
}

// misused is an error in the words of a command.
func misused(c *cobra.Command, format string, args ...any) error {
	return diag.Errorf("read the command line", "see `"+c.CommandPath()+" --help`", format, args...)
}

// noWords refuses words behind a command that takes none.
func noWords(c *cobra.Command, words []string) error {
	if len(words) == 0 {
		return nil
	}
	return misused(c, "%s takes no word, but got %q", c.CommandPath(), words[0])
}

// oneWord refuses words behind the first.
func oneWord(c *cobra.Command, words []string) error {
	if len(words) <= 1 {
		return nil
	}
	return misused(c, "%s takes one word, but got %q as well", c.CommandPath(), words[1])
}

// newGroup is a command that only groups others. Alone it shows its help.
func newGroup(use, short, long string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Long: long, Args: cobra.ArbitraryArgs}
	c.AddCommand(commands...)
	c.RunE = func(_ *cobra.Command, words []string) error {
		if len(words) == 0 {
			return c.Help()
		}
		var known []string
		for _, sub := range c.Commands() {
			known = append(known, sub.Name())
		}
		remedy := "use one of " + strings.Join(known, ", ")
		if near := shape.Nearest(words[0], known); near != "" {
			remedy = "use " + c.CommandPath() + " " + near
		}
		return diag.Errorf("read the command line", remedy, "%s has no command %q", c.CommandPath(), words[0])
	}
	return c
}

func newVersionCommand(sys System) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print claudebox's version",
		Args:  noWords,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(sys.Stdout, "claudebox", Version)
			return err
		},
	}
}
