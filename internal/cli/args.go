package cli

import (
	"errors"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/session"
)

// options are claudebox's own words of a command line.
type options struct {
	session.Options
	check, help, version bool
}

// ownFlag is one flag that claudebox claims.
type ownFlag struct {
	name, short, value string // value names what is expected; empty: a switch
	usage              string
	anywhere           bool // claimed behind the agent's first word too
	set                func(*options, string)
}

// ownFlags are all of claudebox's flags for a launch. Those that widen the
// sandbox count only before the first word of the agent, so that a prompt
// pasted into a script cannot widen it.
var ownFlags = []ownFlag{
	{
		name: "profile", short: "P", value: "NAME|FILE", usage: "profile to launch by",
		set: func(o *options, v string) { o.Profile = v },
	},
	{
		name: "network", value: "TIER", usage: "network tier: full, inet, allow or none",
		set: func(o *options, v string) { o.Network = v },
	},
	{
		name: "plan", value: "FILE", usage: "launch exactly by this plan file",
		set: func(o *options, v string) { o.Plan = v },
	},
	{
		name: "mount-ro", value: "HOST[:INSIDE]", usage: "mount a file or folder read-only",
		set: func(o *options, v string) { o.MountRO = append(o.MountRO, v) },
	},
	{
		name: "mount-rw", value: "HOST[:INSIDE]", usage: "mount a file or folder read-write",
		set: func(o *options, v string) { o.MountRW = append(o.MountRW, v) },
	},
	{
		name: "publish", value: "PORT", usage: "let this host reach a port inside, at 127.0.0.1",
		set: func(o *options, v string) { o.Publish = append(o.Publish, v) },
	},
	{
		name: "network-log", value: "FILE", usage: "tier allow: write each decision to a file",
		set: func(o *options, v string) { o.NetworkLog = v },
	},
	{
		name: "yes", short: "y", usage: "launch without asking", anywhere: true,
		set: func(o *options, _ string) { o.Yes = true },
	},
	{
		name: "dry-run", usage: "print the launch, run nothing, change nothing", anywhere: true,
		set: func(o *options, _ string) { o.DryRun = true },
	},
	{
		name: "check", usage: "check what a launch needs, run nothing", anywhere: true,
		set: func(o *options, _ string) { o.check = true },
	},
	{
		name: "no-report", usage: "say nothing when the session ends", anywhere: true,
		set: func(o *options, _ string) { o.NoReport = true },
	},
	{
		name: "report-json", value: "FILE", usage: "write what the session changed to a file",
		set: func(o *options, v string) { o.ReportJSON = v },
	},
	{
		name: "claudebox-help", usage: "help about claudebox, not the agent",
		set: func(o *options, _ string) { o.help = true },
	},
	{
		name: "claudebox-version", usage: "claudebox's version, not the agent's",
		set: func(o *options, _ string) { o.version = true },
	},
}

// split divides a command line into claudebox's options and the agent's
// words. It fails on a flag without its value and on a widening flag behind
// the agent's first word.
func split(args []string) (options, error) {
	var o options
	if len(args) == 1 {
		switch args[0] {
		case "-h", "--help":
			o.help = true
			return o, nil
		case "--version":
			o.version = true
			return o, nil
		}
	}
	for len(args) > 0 {
		if args[0] == "--" {
			o.Words = append(o.Words, args[1:]...)
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
		o.Words = append(o.Words, args[0])
		return 1, nil
	case !flag.anywhere && len(o.Words) > 0:
		return 0, errors.New(args[0] + " must stand before the agent's first word (" + o.Words[0] +
			"); put `--` before that word to give " + args[0] + " to the agent")
	case flag.value == "":
		if inline {
			return 0, errors.New("--" + flag.name + " takes no value")
		}
		flag.set(o, "")
		return 1, nil
	case inline:
		flag.set(o, value)
		return 1, nil
	case len(args) < 2:
		return 0, errors.New(args[0] + " needs a value: " + flag.value)
	}
	flag.set(o, args[1])
	return 2, nil
}

// findFlag looks a word up among claudebox's flags; "--name=value" counts.
func findFlag(word string) (flag *ownFlag, value string, inline bool) {
	name, value, inline := strings.Cut(word, "=")
	for i := range ownFlags {
		f := &ownFlags[i]
		if name == "--"+f.name || f.short != "" && word == "-"+f.short {
			return f, value, inline
		}
	}
	return nil, "", false
}
