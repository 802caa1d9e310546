package cli

import (
	"cmp"
	"encoding/json"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"claudebox/internal/diag"
	"claudebox/internal/host"
	"claudebox/internal/plan"
	"claudebox/internal/plan/diff"
	"claudebox/internal/profile/shape"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/session"
	"claudebox/internal/session/planning"
)

const planLong = `Print what a launch in this folder would be, without launching.

Formats text, argv and sh show the launch, bound to this host and folder; json
and yaml show the plan, which is portable. Each is made from the very value
that a launch runs. No secret is printed: host variables are named.

--pinned prints a plan to keep, as json, and fetches every package of it;
` + "`claudebox --plan FILE`" + ` launches by it.

A plan travels: ` + "`nix copy --to CACHE $(claudebox plan --store-paths)`" + ` brings
what it needs to a binary cache; a launch by the file fetches from there.

--diff tells, as text or json, what changed since a plan that was kept:
packages by version, variables, mounts, network, settings; what widens the
sandbox is marked.`

// planOptions are the flags and words of `claudebox plan`.
type planOptions struct {
	*options
	format, diff                      string // diff: file of another plan
	pinned, schema, all, sizes, paths bool
}

func newPlanCommand(sys System) *cobra.Command {
	var o planOptions
	c := sys.prints("plan [flags] [-- agent words…]", "Print the resolved launch", planLong, nil,
		func(words []string) (string, error) {
			o.Words = words
			return planText(sys, o)
		})
	c.Example = planExample
	o.options = addLaunchFlags(c.Flags(), planFlags...)
	c.Flags().StringVar(&o.format, "format", "text", "text, json, yaml, argv or sh")
	c.Flags().BoolVar(&o.pinned, "pinned", false, "print a plan to keep; packages are fetched")
	c.Flags().BoolVar(&o.all, "all", false, "as text: what every sandbox has, too")
	c.Flags().BoolVar(&o.sizes, "sizes", false, "as text: size of each package and its closure")
	c.Flags().BoolVar(&o.paths, "store-paths", false, "print the store paths it needs, fetched")
	c.Flags().StringVar(&o.diff, "diff", "", "print what changed since the plan in `FILE`")
	c.Flags().BoolVar(&o.schema, "schema", false, "print the JSON Schema of plan files")
	return c
}

const planExample = `  claudebox plan                                   what would run, and why
  claudebox plan --pinned >plan.json               a plan to keep
  claudebox --plan plan.json                       launch by it
  claudebox plan --store-paths                     what it needs of the store
  claudebox plan --diff plan.json                  what changed since
  claudebox plan --plan new.json --diff old.json   from one file to the other`

// planText returns what `claudebox plan` prints. It checks the flags before it
// makes a plan, which is portable, or a launch, which is of this host and folder.
func planText(sys System, o planOptions) (string, error) {
	const op = "print the plan"
	if o.pinned && o.format == "text" {
		o.format = "json"
	}
	switch {
	case o.schema:
		return string(plan.Schema()), nil
	case o.paths:
		return storePaths(sys, o)
	case (o.all || o.sizes) && (o.format != "text" || o.diff != ""):
		return "", diag.Errorf(op, "leave it out, or use --format text", "--all and --sizes are for the plan as text")
	case o.diff != "":
		return planDiff(sys, o)
	case o.format == "json" || o.format == "yaml":
		p, err := o.plan(sys)
		if err != nil || o.format == "json" {
			return string(p.Encode()), err
		}
		text, err := shape.OfJSON(p.Encode())
		return string(text), err
	case o.pinned:
		return "", diag.Errorf(op, "use --format json or yaml", "no plan is kept as %s", o.format)
	case slices.Contains([]string{"text", "argv", "sh"}, o.format):
		return bound(sys, o)
	}
	return "", diag.Errorf(op, "use text, json, yaml, argv or sh", "there is no format %q", o.format)
}

func (o planOptions) plan(sys System) (plan.Plan, error) {
	return planning.Plan(sys.Caller(), o.Options, planning.Purpose{Look: !o.pinned, Keep: o.pinned})
}

// storePaths lists what to give to `nix copy` for a machine that is to launch the plan: these paths, with
// all that they refer to, are all that the plan needs of the store.
func storePaths(sys System, o planOptions) (string, error) {
	if o.format != "text" || o.diff != "" || o.all || o.sizes {
		return "", diag.Errorf("print the plan's store paths", "leave the other flags out",
			"--store-paths has a form of its own")
	}
	p, err := planning.Plan(sys.Caller(), o.Options, planning.Purpose{})
	return strings.Join(p.Roots(), "\n") + "\n", err
}

// bound returns the launch as text, as bwrap's words, or as a script.
func bound(sys System, o planOptions) (string, error) {
	s, err := session.Prepare(sys.Caller(), o.Options, planning.Purpose{Look: true})
	if err != nil {
		return "", err
	}
	defer s.Close()
	switch o.format {
	case "argv":
		return s.Launch.Argv()
	case "sh":
		return script(s.Launch)
	}
	v := viewOn(sys.Stdout, s.Facts)
	if o.sizes {
		if v.Sizes, err = s.Sizes(); err != nil {
			return "", err
		}
	}
	if o.all {
		return v.Whole(s.Launch), nil
	}
	return v.Plan(s.Launch), nil
}

// planDiff prints what changed from the plan in a file to the one that a launch
// would follow now. The old one need not fit this machine any more.
func planDiff(sys System, o planOptions) (string, error) {
	src, err := os.ReadFile(o.diff)
	if err != nil {
		return "", diag.Wrap("read plan "+o.diff, err, "name a file that `claudebox plan --pinned` has written")
	}
	before, err := plan.Decode(o.diff, src)
	if err != nil {
		return "", err
	}
	after, err := o.plan(sys)
	if err != nil {
		return "", err
	}
	changes := diff.Of(before, after)
	switch o.format {
	case "json":
		return jsonText(changes)
	case "text":
		facts, err := host.Detect()
		return viewOn(sys.Stdout, facts).Diff(changes, o.diff, cmp.Or(o.Plan, "profile "+after.Profile)), err
	}
	return "", diag.Errorf("print the difference", "use --format text or json", "there is none as %q", o.format)
}

func script(l launch.Launch) (string, error) {
	if l.OwnNetwork() {
		return "", diag.Errorf("print the launch as a script", "use `--format argv`",
			"tier %s and ports need more than bwrap", l.Tier)
	}
	return l.Script()
}

// jsonText renders one value for programs to read.
func jsonText(v any) (string, error) {
	text, err := json.MarshalIndent(v, "", "  ")
	return string(text) + "\n", err
}
