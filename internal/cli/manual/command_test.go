package manual

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Command is claudebox(1): the tree of commands and their flags.
func Command(root *cobra.Command) []byte {
	p := newPage(root.Name(), 1, root.Short)
	p.section("synopsis")
	p.line(`.B "%s"`, escape(root.UseLine()))
	walk(root, func(c *cobra.Command) {
		if c != root && (c.Runnable() && !c.HasSubCommands() || c.Name() == "completion") {
			p.line(".br\n"+`.B "%s"`, escape(c.UseLine()))
		}
	})
	p.section("description")
	p.text(root.Long)
	p.section("options")
	p.flags(root)
	p.section("commands")
	walk(root, func(c *cobra.Command) {
		if c != root {
			p.command(c)
		}
	})
	p.section("examples")
	p.example(root.Example)
	for _, part := range reference {
		p.section(part.title)
		for _, it := range part.entries {
			p.entry(it.term, it.meaning)
		}
	}
	p.section("see also")
	p.line(`.BR claudebox\-profile (5),` + "\n" + `.BR claudebox\-plan (5),` + "\n" + `.BR bwrap (1)`)
	return p.Bytes()
}

// walk visits the commands that a person is told of, parents first. What cobra
// has to say of each shell is in its own help.
func walk(c *cobra.Command, visit func(*cobra.Command)) {
	visit(c)
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && c.Name() != "completion" {
			walk(sub, visit)
		}
	}
}

func (p *page) command(c *cobra.Command) {
	p.subsection(c.UseLine())
	if c.Long == "" {
		p.text(sentence(c.Short))
	} else {
		p.text(c.Long)
	}
	p.flags(c)
	if c.Example != "" {
		p.line(".PP")
		p.example(c.Example)
	}
}

func (p *page) flags(c *cobra.Command) {
	c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		term := "`--" + f.Name + "`"
		if f.Shorthand != "" {
			term = "`-" + f.Shorthand + "`, " + term
		}
		value, usage := pflag.UnquoteUsage(f)
		if value == "string" {
			value = strings.ToUpper(f.Name)
		}
		if value != "" {
			term += " " + value
		}
		p.entry(term, sentence(usage))
	})
}

type entry struct{ term, meaning string }

// reference is what is said of no flag and no command.
var reference = []struct {
	title   string
	entries []entry
}{
	{"environment", []entry{
		{"`CLAUDEBOX_PROFILE`", "The profile when no `--profile` is given; else `default`."},
		{"`CLAUDEBOX_EXTRA_ENV`", "Names of variables, with commas, that may pass in this one session."},
		{"`CLAUDEBOX_HOME`", "Where sessions, profiles and plans of your own are kept; else `~/.claudebox`."},
		{"`NO_COLOR`", "Text without colour, when it is set to anything."},
		{"`PAGER`", "`cat` prints the details at the question; else the pinned less shows them, which runs nothing."},
		{"`TERM`", "Where it is empty or `dumb` there is neither colour nor a pager."},
	}},
	{"files", []entry{
		{
			"`~/.claudebox/profiles`, `$XDG_CONFIG_HOME/claudebox/profiles`, `/etc/claudebox/profiles`",
			"Profiles by name, the first of a name counts. The folder `plans` beside each holds pinned plans, which " +
				"count before a profile of the same place.",
		},
		{"`~/.claudebox/instances`", "What the agent keeps of each project between sessions."},
	}},
	{"exit status", []entry{
		{"`125`", "Claudebox itself refused or failed."},
		{"`126`", "The agent cannot be run."},
		{"`127`", "The agent was not found."},
		{"anything else", "The agent's own; 128 and the signal's number when a signal ended it."},
	}},
}
