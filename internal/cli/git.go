package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"claudebox/internal/diag"
	"claudebox/internal/session/kept"
	"claudebox/internal/session/planning"
)

const gitLong = `Your git folders do not enter a sandbox: the agent has its own, and commits
cross while a session runs. This command hands over what still waits, also
after a session that was killed, and says what cannot cross as it stands.`

const gitExample = `  claudebox git             what waits, for each repository of the project
  claudebox git take fix    your branch fix becomes the agent's
  claudebox git drop fix    the agent goes on from your fix; its commits go`

func newGitCommand(sys System) *cobra.Command {
	var o planning.Options
	var format string
	c := sys.prints("git", "Say what waits between your git folders and the agent's", gitLong, noWords,
		func([]string) (string, error) { return gitPlaces(sys, o, format) })
	c.Example = gitExample
	c.Flags().StringVar(&format, "format", "text", "text or json")
	c.PersistentFlags().StringVarP(&o.Profile, "profile", "P", "", "the profile `NAME|FILE` that sessions here use")
	choose := func(use, short string, choice kept.Choice) {
		c.AddCommand(sys.prints(use, short, "", words(1), func(words []string) (string, error) {
			after, err := kept.Choose(sys.Caller(), o, words[0], choice)
			if err != nil {
				return "", err
			}
			return placeText(after, ""), nil
		}))
	}
	choose("take BRANCH", "Make your branch what the agent's is, where both moved it", kept.Take)
	choose("drop BRANCH", "Make the agent's branch what yours is, where both moved it", kept.Drop)
	return c
}

func gitPlaces(sys System, o planning.Options, format string) (string, error) {
	if err := knownFormat(format, "say what waits"); err != nil {
		return "", err
	}
	list, err := kept.Git(sys.Caller(), o)
	switch {
	case err != nil:
		return "", err
	case format == "json":
		return jsonText(append([]kept.GitPlace{}, list...))
	case len(list) == 0:
		fmt.Fprintln(sys.Stderr, "There is no git repository here.")
		return "", nil
	}
	never := " no session has worked here"
	if len(kept.BranchNames(sys.Caller())) > 0 {
		never += "; there were some on branches: `claudebox branch list`"
	}
	var b strings.Builder
	for _, place := range list {
		b.WriteString(placeText(place, never))
	}
	return b.String(), nil
}

// placeText says how one repository stands; never is for one in which no session has worked.
func placeText(place kept.GitPlace, never string) string {
	var b strings.Builder
	said := ""
	switch {
	case place.Never:
		said = never
	case len(place.Waits) == 0:
		said = " nothing waits, the agent has what you have"
	}
	b.WriteString(diag.Name(strings.TrimSuffix(place.Outer, "/.git")) + ":" + said + "\n")
	for _, wait := range place.Waits {
		fmt.Fprintf(&b, "  %s: %s\n", diag.Visible(wait.About), diag.Visible(wait.Text))
		if wait.Branch == "" {
			continue
		}
		about := diag.Visible(wait.About)
		fmt.Fprintf(&b, "    both         on your %s, `%s`; or have the agent rebase onto user/%s\n",
			about, diag.Command("git merge", wait.Branch), about)
		fmt.Fprintf(&b, "    the agent's  `%s`\n", diag.Command("claudebox git take", wait.About))
		fmt.Fprintf(&b, "    yours        `%s`\n", diag.Command("claudebox git drop", wait.About))
	}
	for _, folder := range place.Broken {
		b.WriteString("  set aside, as the agent broke it, or yours was made anew: " + diag.Name(folder) + "\n")
	}
	return b.String()
}
