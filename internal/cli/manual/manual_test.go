// Package manual has the manual pages made by a test, from what the program itself
// goes by: the commands and their flags, the shape of a profile, the schema of a
// plan. Nothing of it is in the program.
//
// The pages are in the language of man(7), which groff and mandoc both read. A
// page is a function of its arguments.
package manual

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"claudebox/checks/kit/golden"
	"claudebox/checks/kit/must"
	"claudebox/internal/cli"
	"claudebox/internal/plan"
	"claudebox/internal/profile"
)

// TestThePagesAreFresh compares what lies in docs with what the program's
// tables say now.
func TestThePagesAreFresh(t *testing.T) {
	for name, want := range pages(t) {
		golden.Compare(t, filepath.Join("../../../docs", name), want)
	}
}

func pages(t *testing.T) map[string][]byte {
	t.Helper()
	starter, err := profile.Starter("work")
	must.Do(t, err)
	plans, err := Plan(plan.Schema(), profile.Schema())
	must.Do(t, err)
	return map[string][]byte{
		"man/claudebox.1":         Command(cli.Tree()),
		"man/claudebox-profile.5": Profile(profile.Schema(), starter),
		"man/claudebox-plan.5":    plans,
		"profile.md":              ProfilePage(profile.Schema(), starter),
	}
}

func TestTextThatRoffWouldMistake(t *testing.T) {
	root := &cobra.Command{
		Use: "demo", Short: `a \ and a "quote"`, Run: func(*cobra.Command, []string) {},
		Long: "It's in\n.profile, at ~/x^y, or - `.so`.\n\n  .literal\n\nunpaired ` tick",
	}
	root.Flags().StringP("file", "f", "", "the `NAME` to read")
	page := string(Command(root))
	for _, want := range []string{
		`demo \- a \e and a \(dqquote\(dq`,
		`It\(aqs in .profile, at \(ti/x\(hay, or \- \fB.so\fR.`,
		"\n\\&.literal\n",
		"unpaired \\(ga tick",
		`\fB\-f\fR, \fB\-\-file\fR NAME` + "\nThe NAME to read.",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
}

func TestALineThatBeginsWithADotIsNoRequest(t *testing.T) {
	root := &cobra.Command{Use: "demo", Short: "x", Long: strings.Repeat("word ", 15) + ".so /etc/passwd"}
	for line := range strings.Lines(string(Command(root))) {
		if strings.HasPrefix(line, ".so") {
			t.Errorf("the page would read another file: %q", line)
		}
	}
}

func TestEveryCommandAndFlagIsToldOf(t *testing.T) {
	root := cli.Tree()
	page := string(Command(root))
	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" && !f.Hidden && !strings.Contains(page, strings.ReplaceAll("--"+f.Name, "-", `\-`)) {
				t.Errorf("%s --%s is in no page", c.CommandPath(), f.Name)
			}
		})
		for _, sub := range c.Commands() {
			if !sub.Hidden && sub.Name() != "help" && !strings.Contains(page, ".SS \""+strings.ReplaceAll(sub.CommandPath(), "-", `\-`)) && c.Name() != "completion" {
				t.Errorf("%s is in no page", sub.CommandPath())
			}
			if c.Name() != "completion" {
				visit(sub)
			}
		}
	}
	visit(root)
}

func TestAPlanSchemaThatIsNone(t *testing.T) {
	if _, err := Plan([]byte("["), nil); err == nil {
		t.Error("no error")
	}
}
