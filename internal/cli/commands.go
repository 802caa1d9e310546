package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"claudebox/internal/diag"
	"claudebox/internal/host"
	"claudebox/internal/profile/profiledir"
	"claudebox/internal/profile/shape"
)

// ownCommands are claudebox's own commands, by name.
func ownCommands(sys System) []*cobra.Command {
	return []*cobra.Command{
		newAllowCommand(sys), newAllowHostCommand(sys), newCheckCommand(sys), newDenyCommand(sys),
		newDevshellCommand(sys), newBranchCommand(sys), newGitCommand(sys),
		newInstanceCommand(sys), newLoginCommand(sys), newPlanCommand(sys), newProfileCommand(sys),
		newShellCommand(sys), newVersionCommand(sys), newWatchCommand(sys), newWhyCommand(sys),
	}
}

// cobraCommands are the commands that cobra adds.
var cobraCommands = []string{"help", "completion", cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd}

func runCommand(args []string, sys System) error {
	root := newRoot(sys)
	root.SetArgs(args)
	return root.Execute()
}

// Tree returns the command `claudebox` with every command and flag, for the manual.
func Tree() *cobra.Command {
	root := newRoot(System{})
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
words are the agent's; behind its first word so are -h, -v and their long forms.
The path of the agent's program, as editors name it to a process wrapper, says
that the agent is wanted, and all words behind it are the agent's.`

const rootExample = `  claudebox                          start the agent in this folder
  claudebox -P work --continue       profile work; --continue is the agent's
  claudebox -y -p "fix the tests"    without asking; -p is the agent's
  claudebox plan                     what would run, and why
  claudebox shell -- make test       the same sandbox, another program`

// newRoot is the command `claudebox` itself, with all others. It documents the
// flags of a launch; split reads them, as cobra has no way to leave unknown ones
// alone.
func newRoot(sys System) *cobra.Command {
	root := &cobra.Command{
		Use: "claudebox [flags] [agent words…]", Short: "Run a coding agent in a pinned sandbox",
		Long: rootLong, Example: rootExample, SilenceErrors: true, SilenceUsage: true, Args: cobra.ArbitraryArgs,
		RunE:              func(_ *cobra.Command, args []string) error { return run(args, sys) },
		ValidArgsFunction: completeCommands,
	}
	root.SetIn(sys.Stdin)
	root.SetOut(sys.Stdout)
	root.SetErr(sys.Stderr)
	root.SetFlagErrorFunc(unknownFlag)
	addLaunchFlags(root.Flags())
	root.AddCommand(ownCommands(sys)...)
	root.InitDefaultCompletionCmd()
	if c, _, err := root.Find([]string{"completion"}); err == nil {
		onlyGroups(c)
	}
	root.InitDefaultHelpCmd()
	if c, _, err := root.Find([]string{"help"}); err == nil {
		c.Args = func(_ *cobra.Command, words []string) error {
			at, rest, err := root.Find(words)
			if err != nil {
				at, rest = root, words
			}
			if len(rest) == 0 {
				return nil
			}
			return wrongCommand(at, rest[0])
		}
	}
	readyFlags(root, sys)
	return root
}

// wrongCommand is the error for a word that is none of a command's own commands.
func wrongCommand(c *cobra.Command, word string) error {
	var known []string
	for _, sub := range c.Commands() {
		known = append(known, sub.Name())
	}
	remedy := "use one of " + strings.Join(known, ", ")
	if near := shape.Nearest(word, known); near != "" {
		remedy = "use " + c.CommandPath() + " " + near
	} else if c.Root() == c {
		remedy = "see `claudebox --help`"
	}
	return diag.Errorf("read the command line", remedy, "%s has no command %q", c.CommandPath(), word)
}

// unknownFlag is the error for the flags of a command: one that is not there is compared with those that are.
func unknownFlag(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near := shape.Nearest(unknown.GetSpecifiedName(), names); near != "" {
			return diag.Errorf("read the command line", "use --"+near, "%w", err)
		}
	}
	return misused(c, "%w", err)
}

// misused makes an error about the words of a command.
func misused(c *cobra.Command, format string, args ...any) error {
	return diag.Errorf("read the command line", "see `"+c.CommandPath()+" --help`", format, args...)
}

// noWords returns an error for a command that takes no words and got one.
func noWords(c *cobra.Command, words []string) error {
	if len(words) > 0 {
		return misused(c, "%s takes no word, but got %q", c.CommandPath(), words[0])
	}
	return nil
}

// oneWord returns an error for a command that takes one word at most and got more.
func oneWord(c *cobra.Command, words []string) error {
	if len(words) > 1 {
		return misused(c, "%s takes one word, but got %q as well", c.CommandPath(), words[1])
	}
	return nil
}

// prints makes a command that prints what do returns. If do fails, nothing is printed.
func (sys System) prints(use, short, long string, words cobra.PositionalArgs, do func(words []string) (string, error),
) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: long, Args: words,
		RunE: func(_ *cobra.Command, words []string) error { return sys.print(do(words)) },
	}
}

// print prints what a command says, unless it failed.
func (sys System) print(said string, err error) error {
	if err == nil {
		_, err = io.WriteString(sys.Stdout, said)
	}
	return err
}

// newGroup makes a command that only groups others. Alone it shows its help.
func newGroup(use, short, long string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Long: long}
	c.AddCommand(commands...)
	onlyGroups(c)
	return c
}

// onlyGroups has a command show its help alone, and refuse any word that is none of its commands.
func onlyGroups(c *cobra.Command) {
	c.Args = cobra.ArbitraryArgs
	c.RunE = func(_ *cobra.Command, words []string) error {
		if len(words) == 0 {
			return c.Help()
		}
		return wrongCommand(c, words[0])
	}
}

func newVersionCommand(sys System) *cobra.Command {
	return sys.prints("version", "Print claudebox's version", "", noWords,
		func([]string) (string, error) { return "claudebox " + Version + "\n", nil })
}

// readyFlags registers the completions for the flags of a command and of those below it, and has those that take a
// value refuse an empty one, and a second one.
func readyFlags(c *cobra.Command, sys System) {
	tiers := cobra.FixedCompletions([]string{
		"full\tyour network", "inet\tthe internet, without private networks", "allow\tthe listed hosts",
		"none\tloopback only",
	}, cobra.ShellCompDirectiveNoFileComp)
	for name, complete := range map[string]cobra.CompletionFunc{
		"profile": completeProfiles(sys), "network": tiers, "format": completeFormats,
		"branch": completeBranches(sys),
	} {
		if c.Flags().Lookup(name) != nil {
			c.RegisterFlagCompletionFunc(name, complete) // fails only where it was done before
		}
	}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if f.NoOptDefVal == "" {
			var what string
			what, f.Usage = pflag.UnquoteUsage(f) // completions show it as it is
			f.Value = &filled{Value: f.Value, what: what}
		}
	})
	for _, sub := range c.Commands() {
		readyFlags(sub, sys)
	}
}

// filled is a flag's value that may not be empty: in a script that is a variable which is not set. It may not be given
// twice, either, see [launchFlag.set].
type filled struct {
	pflag.Value
	what  string
	given string
}

// Type is what help shows for the value.
func (f *filled) Type() string { return f.what }

// Set keeps a text that is not empty. pflag hands on the "=" of a short flag that nothing follows.
func (f *filled) Set(text string) error {
	_, judges := f.Value.(launchFlag)
	switch {
	case text == "" || text == "=":
		return errors.New("it needs a value: " + f.what)
	case !judges && f.given != "" && f.given != text:
		return fmt.Errorf("it is given twice, as %q and as %q", f.given, text)
	}
	f.given = text
	return f.Value.Set(text)
}

// completeCommands completes commands after claudebox's own flags, where cobra does not look for them.
func completeCommands(c *cobra.Command, words []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	switch {
	case len(words) > 0: // the agent's
		return nil, cobra.ShellCompDirectiveDefault
	case c.Flags().NFlag() == 0:
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var list []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && strings.HasPrefix(sub.Name(), toComplete) {
			list = append(list, sub.Name()+"\t"+sub.Short)
		}
	}
	return list, cobra.ShellCompDirectiveDefault
}

func completeProfiles(sys System) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		facts, err := host.Detect()
		if err != nil {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return profiledir.New(facts, sys.Manifest).Names(), cobra.ShellCompDirectiveDefault
	}
}

// completeFormats reads the formats out of the flag's own help: "text, json or sh".
func completeFormats(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	usage := strings.ReplaceAll(c.Flags().Lookup("format").Usage, " or ", ", ")
	return strings.Split(usage, ", "), cobra.ShellCompDirectiveNoFileComp
}

// planFlags decide what the sandbox is; plan, why and check take them. shellFlags are all that shell takes.
var (
	planFlags = []string{
		"profile", "network", "plan", "mount-ro", "mount-rw", "publish", "branch", "no-branch", "from", "with",
		"with-changes",
	}
	shellFlags = append([]string{
		"yes", "dry-run", "no-report", "report-json", "network-log", "record", "no-devshell",
	}, planFlags...)
)

// addLaunchFlags declares the named launch flags (without names: all) and returns the options that parsing fills.
func addLaunchFlags(flags *pflag.FlagSet, names ...string) *options {
	o := &options{}
	for _, f := range o.flags() {
		if len(names) > 0 && !slices.Contains(names, f.name) || f.name == "help" { // which is cobra's
			continue
		}
		flags.VarP(f, f.name, f.short, f.usage)
		if f.value == "" {
			flags.Lookup(f.name).NoOptDefVal = "true"
		}
	}
	return o
}

// String makes a launchFlag a [pflag.Value]. It is empty, as no flag has a default.
func (f launchFlag) String() string { return "" }

// Type is what help shows for the value; pflag shows none for "bool".
func (f launchFlag) Type() string { return cmp.Or(f.value, "bool") }

// Set keeps the value that pflag has read. For a switch that must be "true".
func (f launchFlag) Set(text string) error {
	if f.value == "" && text != "true" {
		return errors.New("it takes no value")
	}
	return f.set(text)
}
