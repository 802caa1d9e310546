package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"claudebox/internal/host"
	"claudebox/internal/profile/profiledir"
)

// completeFlags says what may follow the flags of a command and those below
// it. Only a shell that completes a line pays for it.
func completeFlags(c *cobra.Command, sys System) {
	tiers := cobra.FixedCompletions([]string{
		"full\tyour network", "inet\tthe internet, without private networks", "allow\tthe listed hosts",
		"none\tloopback only",
	}, cobra.ShellCompDirectiveNoFileComp)
	for name, complete := range map[string]cobra.CompletionFunc{
		"profile": completeProfiles(sys), "network": tiers, "format": completeFormats,
	} {
		if c.Flags().Lookup(name) != nil {
			c.RegisterFlagCompletionFunc(name, complete) // fails only where it was done before
		}
	}
	for _, sub := range c.Commands() {
		completeFlags(sub, sys)
	}
}

// completeCommands offers the commands behind claudebox's own flags, where cobra
// looks for none.
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

// completeFormats reads the formats out of the flag's own help: "text, json or
// sh".
func completeFormats(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	usage := strings.ReplaceAll(c.Flags().Lookup("format").Usage, " or ", ", ")
	return strings.Split(usage, ", "), cobra.ShellCompDirectiveNoFileComp
}
