package cli

import (
	"cmp"
	"slices"

	"github.com/spf13/pflag"
)

// addFlag declares one of claudebox's own flags to cobra: for help, man pages
// and completion, and for the commands that take them as well.
func addFlag(flags *pflag.FlagSet, f launchFlag, o *options) {
	flags.VarP(&flagValue{flag: f, options: o}, f.Name, f.Short, f.Usage)
	if f.Value == "" {
		flags.Lookup(f.Name).NoOptDefVal = "true"
	}
}

// Flags of a launch that commands take as well.
var (
	planFlags  = []string{"profile", "network", "plan", "mount-ro", "mount-rw", "publish"}
	shellFlags = append([]string{"yes", "dry-run", "no-report", "report-json", "network-log"}, planFlags...)
)

// addLaunchFlags declares flags of a launch to a command, and returns the
// options they are collected in.
func addLaunchFlags(flags *pflag.FlagSet, names []string) *options {
	o := &options{}
	for _, f := range launchFlags {
		if slices.Contains(names, f.Name) {
			addFlag(flags, f, o)
		}
	}
	return o
}

// flagValue is a flag of the table as pflag wants it.
type flagValue struct {
	flag    launchFlag
	options *options
	text    string
}

func (v *flagValue) String() string { return v.text }

// Type is what help shows for the value; pflag shows none for "bool".
func (v *flagValue) Type() string { return cmp.Or(v.flag.Value, "bool") }

func (v *flagValue) Set(text string) error {
	v.text = text
	v.flag.Set(v.options, text)
	return nil
}
