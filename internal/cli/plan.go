package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"gopkg.in/yaml.v3"

	"claudebox/internal/diag"
	"claudebox/internal/launch"
	"claudebox/internal/plan"
	"claudebox/internal/resolve"
	"claudebox/internal/session"
)

const planLong = `Print what a launch in this folder would be, without launching.

Formats text, argv and sh show the launch, bound to this host and folder; json
and yaml show the plan, which is portable. Each is made from the very value
that a launch runs. No secret is printed: host variables are named.`

// planOptions are the words of `claudebox plan`.
type planOptions struct {
	*options
	format string
	pinned bool
}

func newPlanCommand(sys System) *cobra.Command {
	var o planOptions
	c := &cobra.Command{
		Use:   "plan [flags] [-- agent words…]",
		Short: "Print the resolved launch",
		Long:  planLong,
		RunE: func(_ *cobra.Command, words []string) error {
			o.Words = words
			return showPlan(sys, o)
		},
	}
	o.options = addLaunchFlags(c.Flags(), planFlags)
	c.Flags().StringVar(&o.format, "format", "text", "text, json, yaml, argv or sh")
	c.Flags().BoolVar(&o.pinned, "pinned", false, "print a plan file to keep: json, with every package fetched")
	return c
}

// planFormats render a launch, or the plan in it.
var planFormats = map[string]func(System, *session.Session) (string, error){
	"text": func(sys System, s *session.Session) (string, error) {
		return view(sys.Stdout, s.Facts).Plan(s.Launch), nil
	},
	"json": func(_ System, s *session.Session) (string, error) { return string(s.Launch.Plan.Encode()), nil },
	"yaml": func(_ System, s *session.Session) (string, error) { return planYAML(s.Launch.Plan) },
	"argv": func(_ System, s *session.Session) (string, error) { return s.Launch.Argv() },
	"sh":   func(_ System, s *session.Session) (string, error) { return script(s.Launch) },
}

func showPlan(sys System, o planOptions) error {
	if o.pinned {
		o.format = "json"
	}
	render, ok := planFormats[o.format]
	if !ok {
		return diag.Errorf("print the plan", "use text, json, yaml, argv or sh", "there is no format %q", o.format)
	}
	s, err := session.Prepare(sys.caller(), o.Options, session.Purpose{Look: !o.pinned})
	if err != nil {
		return err
	}
	defer s.Close()
	text, err := render(sys, s)
	if err != nil {
		return err
	}
	_, err = io.WriteString(sys.Stdout, text)
	return err
}

func script(l launch.Launch) (string, error) {
	if !slices.Contains([]string{"full", "none"}, l.Tier) {
		return "", diag.Errorf("print the launch as a script", "use `--format argv`",
			"tier %s needs more than bwrap", l.Tier)
	}
	return l.Script(plan.ToolPath(l.Plan, resolve.ToolBash))
}

// planYAML is the plan's JSON as YAML: the same keys in the same order.
func planYAML(p plan.Plan) (string, error) {
	var node yaml.Node
	if err := yaml.Unmarshal(p.Encode(), &node); err != nil {
		return "", fmt.Errorf("bug: JSON is YAML: %w", err)
	}
	blockStyle(&node)
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(&node); err != nil {
		return "", fmt.Errorf("bug: encode the plan as YAML: %w", err)
	}
	return b.String(), nil
}

// blockStyle drops the braces and quotes that the nodes remember from JSON.
func blockStyle(n *yaml.Node) {
	n.Style = 0
	for _, child := range n.Content {
		blockStyle(child)
	}
}

// jsonText is for machine-readable output that is one value.
func jsonText(v any) (string, error) {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return "", err
	}
	return strings.TrimRight(string(text), "\n") + "\n", nil
}
