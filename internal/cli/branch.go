package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"claudebox/internal/agent/state"
	"claudebox/internal/diag"
	"claudebox/internal/session/kept"
)

const branchLong = `A session with --branch NAME works on a checkout of its own. It is kept until
you remove it; what the agent commits is on your branch NAME.`

func newBranchCommand(sys System) *cobra.Command {
	var format string
	list := sys.prints("list", "List the branches that sessions work on", "", noWords,
		func([]string) (string, error) { return listBranches(sys, format) })
	list.Flags().StringVar(&format, "format", "text", "text or json")
	var stat bool
	diff := sys.prints("diff NAME", "Show what is new on a branch, with what is not committed", "", words(1),
		func(words []string) (string, error) {
			return sys.ofBranch(func(b kept.Branches) ([]byte, error) { return b.Diff(words[0], stat) })
		})
	diff.Flags().BoolVar(&stat, "stat", false, "only how much of each file")
	show := sys.prints("show NAME FILE", "Show a file of a branch as it is now", "", words(2),
		func(words []string) (string, error) {
			return sys.ofBranch(func(b kept.Branches) ([]byte, error) { return b.Show(words[0], words[1]) })
		})
	var force bool
	remove := &cobra.Command{
		Use: "remove NAME…", Short: "Remove what is kept of branches; your own branches stay", Args: words(-1),
		RunE: func(_ *cobra.Command, names []string) error { return removeBranches(sys, names, force) },
	}
	remove.Flags().BoolVar(&force, "force", false, "also what did not cross to your repository")
	for _, c := range []*cobra.Command{diff, show, remove} {
		c.ValidArgsFunction = completeBranches(sys)
	}
	return newGroup("branch", "List, read and remove branches that sessions work on", branchLong,
		list, diff, show, remove)
}

// words refuses another number of words; -1: none.
func words(count int) cobra.PositionalArgs {
	return func(c *cobra.Command, words []string) error {
		if count < 0 && len(words) > 0 || len(words) == count {
			return nil
		}
		return misused(c, "write %s", strings.TrimSuffix(c.UseLine(), " [flags]"))
	}
}

func completeBranches(sys System) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return kept.BranchNames(sys.Caller()), cobra.ShellCompDirectiveNoFileComp
	}
}

// ofBranch returns a text of an agent's, which on a terminal shows its control characters.
func (sys System) ofBranch(ask func(kept.Branches) ([]byte, error)) (string, error) {
	b, err := kept.FindBranches(sys.Caller())
	if err != nil {
		return "", err
	}
	text, err := ask(b)
	if err != nil || !isTerminal(sys.Stdout) {
		return string(text), err
	}
	var seen strings.Builder
	for line := range strings.Lines(string(text)) {
		seen.WriteString(diag.Visible(strings.TrimSuffix(line, "\n")) + "\n")
	}
	return seen.String(), nil
}

func listBranches(sys System, format string) (string, error) {
	if err := knownFormat(format, "list the branches"); err != nil {
		return "", err
	}
	b, err := kept.FindBranches(sys.Caller())
	if err != nil {
		return "", err
	}
	list, lines, err := b.List()
	for _, line := range lines {
		diag.Note(sys.Stderr, line)
	}
	switch {
	case err != nil:
		return "", err
	case format == "json":
		return jsonText(append([]kept.Branch{}, list...))
	case len(list) == 0:
		fmt.Fprintln(sys.Stderr, "No session works on a branch here: `claudebox --branch NAME` begins one.")
		return "", nil
	}
	rows, now := [][]string{{"BRANCH", "STATE", "AHEAD", "BEHIND", "SIZE", "LAST USED"}}, time.Now()
	for _, k := range list {
		rows = append(rows, []string{
			diag.Visible(k.Name), stateOf(k), fmt.Sprint(k.Ahead), fmt.Sprint(k.Behind), state.ShowSize(k.Bytes),
			state.ShowAge(k.LastUsed, now),
		})
	}
	return table(rows), nil
}

func stateOf(k kept.Branch) string {
	switch {
	case k.Running:
		return "running"
	case k.Killed:
		return "killed"
	case k.Removed:
		return "removed"
	}
	return "kept"
}

func removeBranches(sys System, names []string, force bool) error {
	b, err := kept.FindBranches(sys.Caller())
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := b.Remove(name, force); err != nil {
			return err
		}
		fmt.Fprintln(sys.Stdout, "removed the checkout of "+diag.Visible(name)+"; your branches stay")
	}
	return nil
}
