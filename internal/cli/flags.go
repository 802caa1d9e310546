package cli

import (
	"github.com/spf13/pflag"
)

// addFlag declares one of claudebox's own flags to cobra: for help, man pages
// and completion, and for the commands that take them as well.
func addFlag(flags *pflag.FlagSet, f ownFlag) {
	flags.VarP(&flagValue{flag: f}, f.name, f.short, f.usage)
	if f.value == "" {
		flags.Lookup(f.name).NoOptDefVal = "true"
	}
}

// addLaunchFlags declares to a command the flags that decide about a launch,
// and returns the options they are collected in.
func addLaunchFlags(flags *pflag.FlagSet) *options {
	o := &options{}
	for _, f := range ownFlags {
		switch f.name {
		case "profile", "network", "plan", "mount-ro", "mount-rw":
			flags.VarP(&flagValue{flag: f, options: o}, f.name, f.short, f.usage)
		}
	}
	return o
}

// flagValue is a flag of the table as pflag wants it.
type flagValue struct {
	flag    ownFlag
	options *options
	text    string
}

func (v *flagValue) String() string { return v.text }
func (v *flagValue) Type() string   { return v.flag.value }

func (v *flagValue) Set(text string) error {
	v.text = text
	if v.options != nil {
		v.flag.set(v.options, text)
	}
	return nil
}
