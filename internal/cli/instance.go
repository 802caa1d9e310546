package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"claudebox/internal/agent/state"
	"claudebox/internal/diag"
	"claudebox/internal/host"
	"claudebox/internal/profile"
	"claudebox/internal/profile/profiledir"
	"claudebox/internal/session/kept"
	"claudebox/internal/session/planning"
)

const instanceLong = `An instance is what claudebox keeps for a project between sessions: the agent's
home with its history, settings and login, and the caches of package managers.
Worktrees of a repository share one.`

func newInstanceCommand(sys System) *cobra.Command {
	var format string
	list := sys.prints("list", "List what is kept, with its size and last use", "", noWords,
		func([]string) (string, error) { return listInstances(sys, format) })
	list.Flags().StringVar(&format, "format", "text", "text or json")
	return newGroup("instance", "List, find and remove what is kept for projects", instanceLong, list,
		sys.asks("path", "Print the folder that is kept for this project", "", kept.Folder),
		sys.prints("move ID", "Give this project what was kept for it where it was before", moveLong,
			cobra.ExactArgs(1), func(words []string) (string, error) {
				said, err := kept.Move(sys.Caller(), planning.Options{}, words[0])
				return said + "\n", err
			}),
		newInstancePruneCommand(sys),
		sys.asks("gc", "Collect the garbage of the Nix store inside this project's sandbox", collectLong,
			kept.CollectGarbage))
}

const moveLong = `An instance is found by the project's path. Where a project was moved, a launch
says so, with the ID of what was kept for it: its conversations, its history and
its caches. This gives them to the project at its new place.`

const collectLong = `Remove from the Nix store inside of this project what was built or fetched there
and no link in the project refers to. The host's store stays as it is.`

// asks makes a command that prints what ask returns about the project.
func (sys System) asks(use, short, long string, ask func(planning.Caller, planning.Options) (string, error),
) *cobra.Command {
	var o planning.Options
	c := sys.prints(use, short, long, noWords, func([]string) (string, error) {
		said, err := ask(sys.Caller(), o)
		return said + "\n", err
	})
	c.Flags().StringVarP(&o.Profile, "profile", "P", "", "the profile `NAME|FILE` that sessions here use")
	return c
}

// pruneOptions are the flags of `claudebox instance prune`.
type pruneOptions struct {
	gone, all, dryRun, yes bool
	olderThan, largerThan  string
}

const pruneLong = `Remove what is kept for projects: by default for those that are no longer
there. With several conditions all must hold. What a session uses is never
removed, and what will be is shown before you are asked. Where commits wait to
cross (see claudebox git) it stays, but for --all.`

const pruneExample = `  claudebox instance prune                         of projects that are gone
  claudebox instance prune --older-than 30d        not used for a month
  claudebox instance prune --larger-than 2G --dry-run`

func newInstancePruneCommand(sys System) *cobra.Command {
	var o pruneOptions
	c := &cobra.Command{
		Use: "prune", Short: "Remove what is kept for projects that are gone, or by age and size", Long: pruneLong,
		Example: pruneExample, Args: noWords,
		RunE: func(*cobra.Command, []string) error { return pruneInstances(sys, o) },
	}
	flags := c.Flags()
	flags.BoolVar(&o.gone, "gone", false, "only of projects that are no longer there")
	flags.StringVar(&o.olderThan, "older-than", "", "only what was not used for `AGE`: 12h, 30d, 4w")
	flags.StringVar(&o.largerThan, "larger-than", "", "only what takes more than `SIZE`: 500M, 2G")
	flags.BoolVar(&o.all, "all", false, "whatever is not in use")
	flags.BoolVar(&o.dryRun, "dry-run", false, "show what would be removed, remove nothing")
	flags.BoolVarP(&o.yes, "yes", "y", false, "remove without asking")
	return c
}

// criteria reads the conditions. Without any it selects what is missed least: the instances of projects that are gone.
func (o pruneOptions) criteria() (c state.Criteria, err error) {
	c.Gone = o.gone || !o.all && o.olderThan == "" && o.largerThan == ""
	if o.all && (o.gone || o.olderThan != "" || o.largerThan != "") {
		return c, diag.Errorf("read the command line", "leave --all out", "--all goes with no other condition")
	}
	if o.olderThan != "" {
		if c.OlderThan, err = state.ParseAge(o.olderThan); err != nil {
			return c, err
		}
	}
	if o.largerThan != "" {
		c.LargerThan, err = state.ParseSize(o.largerThan)
	}
	return c, err
}

// keptInstances lists what is kept, and prints what is odd about it.
func keptInstances(sys System) (home string, facts host.Facts, list []state.Kept, err error) {
	facts, err = host.Detect()
	if err = cmp.Or(err, profiledir.JudgeHome(facts)); err != nil {
		return "", facts, nil, err
	}
	home = profiledir.FoldersOf(facts, sys.Manifest).Home
	list, notes, err := state.List(home)
	for _, note := range notes {
		diag.Warn(sys.Stderr, diag.Problem{Message: note})
	}
	return home, facts, list, err
}

func listInstances(sys System, format string) (string, error) {
	if err := knownFormat(format, "list the instances"); err != nil {
		return "", err
	}
	_, facts, list, err := keptInstances(sys)
	switch {
	case err != nil:
		return "", err
	case format == "json":
		return jsonText(append([]state.Kept{}, list...))
	case len(list) == 0:
		fmt.Fprintln(sys.Stderr, "Nothing is kept yet.")
		return "", nil
	}
	return instanceTable(facts.Home, list), nil
}

// instanceTable has a line for each instance, and the total.
func instanceTable(home string, list []state.Kept) string {
	rows, now, total := [][]string{{"ID", "SIZE", "LAST USED", "PROJECT"}}, time.Now(), int64(0)
	for _, in := range list {
		total += in.Bytes
		size, used := state.ShowSize(in.Bytes), state.ShowAge(in.LastUsed, now)
		if in.More {
			size = "≥ " + size
		}
		if in.Live {
			used = "in use"
		}
		rows = append(rows, []string{diag.Visible(in.ID), size, used, projectOf(home, in)})
	}
	return table(append(rows, []string{"total", state.ShowSize(total)}))
}

func projectOf(home string, in state.Kept) string {
	root := ""
	if in.Root != "" {
		root = diag.Name(profile.Tilde(home, in.Root))
	}
	switch {
	case in.ID == string(state.Shared):
		return "(all with state: shared)"
	case root == "":
		return "(not known)"
	case in.Gone:
		return root + " (gone)"
	}
	return root
}

func pruneInstances(sys System, o pruneOptions) error {
	criteria, err := o.criteria()
	if err != nil {
		return err
	}
	home, facts, list, err := keptInstances(sys)
	if err != nil {
		return err
	}
	chosen := state.Choose(list, criteria, time.Now())
	if !o.all {
		chosen = slices.DeleteFunc(chosen, func(in state.Kept) bool {
			waits := !in.Gone && kept.HasWaiting(in.Dir)
			if waits {
				diag.Note(sys.Stderr, in.ID+" stays: something waits in its git folder; see `claudebox git` in "+
					projectOf(facts.Home, in)+", or pass --all")
			}
			return waits
		})
	}
	if len(chosen) == 0 {
		fmt.Fprintln(sys.Stderr, "There is nothing to remove.")
		return nil
	}
	shown := instanceTable(facts.Home, chosen)
	if o.dryRun {
		_, err = io.WriteString(sys.Stdout, shown)
		return err
	}
	if !o.yes {
		fmt.Fprint(sys.Stderr, shown)
		const question = "Remove these, with history, login and caches?"
		if err := confirm(question, "look at `--dry-run`, then pass `--yes`"); err != nil {
			return err
		}
	}
	return removeInstances(sys, home, chosen)
}

// removeInstances removes the chosen instances. It goes on after a failure, and prints each.
func removeInstances(sys System, home string, chosen []state.Kept) error {
	var failed []string
	var freed int64
	for _, in := range chosen {
		if err := state.Remove(home, in.ID); err != nil {
			diag.Print(sys.Stderr, err)
			failed = append(failed, in.ID)
			continue
		}
		if in.Gone {
			kept.Forget(home, in.Root)
		}
		freed += in.Bytes
	}
	fmt.Fprintf(sys.Stdout, "removed %d of %d, %s\n", len(chosen)-len(failed), len(chosen), state.ShowSize(freed))
	if len(failed) > 0 {
		return diag.Errorf("remove instances", "see above", "these are left: %s", strings.Join(failed, ", "))
	}
	return nil
}
