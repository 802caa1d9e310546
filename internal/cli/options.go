package cli

import (
	"errors"
	"fmt"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/session"
)

// options are claudebox's own words of a command line.
type options struct {
	session.Options
	Check, Help, Version bool
}

// launchFlag is one flag that claudebox claims.
type launchFlag struct {
	Name, Short, Value string // Value names what is expected; empty: a switch
	Usage              string
	Anywhere           bool // claimed behind the agent's first word too
	Set                func(*options, string)
}

// launchFlags are all of claudebox's flags for a launch. Those that widen the
// sandbox count only before the first word of the agent, so that a prompt
// pasted into a script cannot widen it.
var launchFlags = []launchFlag{
	{
		Name: "profile", Short: "P", Value: "NAME|FILE", Usage: "profile to launch by",
		Set: func(o *options, v string) { o.Profile = v },
	},
	{
		Name: "network", Value: "TIER", Usage: "network tier: full, inet, allow or none",
		Set: func(o *options, v string) { o.Network = v },
	},
	{
		Name: "plan", Value: "FILE", Usage: "launch exactly by this plan file",
		Set: func(o *options, v string) { o.Plan = v },
	},
	{
		Name: "mount-ro", Value: "HOST[:INSIDE]", Usage: "mount a file or folder read-only",
		Set: func(o *options, v string) { o.MountRO = append(o.MountRO, v) },
	},
	{
		Name: "mount-rw", Value: "HOST[:INSIDE]", Usage: "mount a file or folder read-write",
		Set: func(o *options, v string) { o.MountRW = append(o.MountRW, v) },
	},
	{
		Name: "publish", Value: "[HOST:]INSIDE", Usage: "let this host reach a port inside, at 127.0.0.1",
		Set: func(o *options, v string) { o.Publish = append(o.Publish, v) },
	},
	{
		Name: "network-log", Value: "FILE", Usage: "write each connection and refusal to a file",
		Set: func(o *options, v string) { o.NetworkLog = v },
	},
	{
		Name: "yes", Short: "y", Usage: "launch without asking", Anywhere: true,
		Set: func(o *options, _ string) { o.Yes = true },
	},
	{
		Name: "dry-run", Usage: "print the launch, run nothing, change nothing", Anywhere: true,
		Set: func(o *options, _ string) { o.DryRun = true },
	},
	{
		Name: "check", Usage: "check what a launch needs, run nothing", Anywhere: true,
		Set: func(o *options, _ string) { o.Check = true },
	},
	{
		Name: "no-report", Usage: "say nothing when the session ends", Anywhere: true,
		Set: func(o *options, _ string) { o.NoReport = true },
	},
	{
		Name: "report-json", Value: "FILE", Usage: "write what the session changed to a file",
		Set: func(o *options, v string) { o.ReportJSON = v },
	},
	{
		Name: "claudebox-help", Usage: "help about claudebox, not the agent",
		Set: func(o *options, _ string) { o.Help = true },
	},
	{
		Name: "claudebox-version", Usage: "claudebox's version, not the agent's",
		Set: func(o *options, _ string) { o.Version = true },
	},
}

// split divides a command line into claudebox's options and the agent's
// words. A "--" ends claudebox's; behind words of the agent it is the agent's. It fails on a flag without its value,
// and on a widening flag behind the agent's first word.
func split(args []string) (options, error) {
	var o options
	if len(args) == 1 {
		switch args[0] {
		case "-h", "--help":
			o.Help = true
			return o, nil
		case "--version":
			o.Version = true
			return o, nil
		}
	}
	for len(args) > 0 {
		if args[0] == "--" {
			if len(o.Words) == 0 {
				args = args[1:]
			}
			o.Words = append(o.Words, args...)
			break
		}
		used, err := o.take(args)
		if err != nil {
			return options{}, &diag.Error{Op: "read the command line", Err: err, Remedy: "see `claudebox --help`"}
		}
		args = args[used:]
	}
	return o, nil
}

// take claims the first of args, or gives it to the agent. It returns how
// many words were used.
func (o *options) take(args []string) (int, error) {
	flag, value, inline := findFlag(args[0])
	switch {
	case flag == nil:
		if near := nearFlag(args[0]); near != "" {
			name, _, _ := strings.Cut(args[0], "=")
			return 0, fmt.Errorf("there is no %s: say %s, or put `--` before it to give it to the agent", name, near)
		}
		o.Words = append(o.Words, args[0])
		return 1, nil
	case !flag.Anywhere && len(o.Words) > 0:
		return 0, errors.New(args[0] + " must stand before the agent's first word (" + o.Words[0] +
			"); put `--` before that word to give " + args[0] + " to the agent")
	case flag.Value == "":
		if inline {
			return 0, errors.New("--" + flag.Name + " takes no value")
		}
		flag.Set(o, "")
		return 1, nil
	case inline:
		flag.Set(o, value)
		return 1, nil
	case len(args) < 2:
		return 0, errors.New(args[0] + " needs a value: " + flag.Value)
	}
	flag.Set(o, args[1])
	return 2, nil
}

// nearFlag is the flag that a word was probably meant to be, empty for none:
// one that is mistyped must not leave the sandbox wider than was asked.
func nearFlag(word string) string {
	name, _, _ := strings.Cut(word, "=")
	for _, f := range launchFlags {
		if strings.HasPrefix(name, "-") && oneEdit(name, "--"+f.Name) {
			return "--" + f.Name
		}
	}
	return ""
}

// findFlag looks a word up among claudebox's flags; "--name=value" counts.
func findFlag(word string) (flag *launchFlag, value string, inline bool) {
	name, value, inline := strings.Cut(word, "=")
	for i := range launchFlags {
		f := &launchFlags[i]
		if name == "--"+f.Name || f.Short != "" && word == "-"+f.Short {
			return f, value, inline
		}
	}
	return nil, "", false
}
