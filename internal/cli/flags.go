package cli

import (
	"cmp"
	"errors"
	"slices"

	"github.com/spf13/pflag"
)

// planFlags decide what the sandbox is; plan, why and check take them. shellFlags are all that shell takes.
var (
	planFlags  = []string{"profile", "network", "plan", "mount-ro", "mount-rw", "publish"}
	shellFlags = append([]string{"yes", "dry-run", "no-report", "report-json", "network-log"}, planFlags...)
)

// addLaunchFlags declares the named launch flags (without names: all) and returns the options that parsing fills.
func addLaunchFlags(flags *pflag.FlagSet, names ...string) *options {
	o := &options{}
	for _, f := range o.flags() {
		if len(names) > 0 && !slices.Contains(names, f.name) {
			continue
		}
		flags.VarP(&flagValue{flag: f}, f.name, f.short, f.usage)
		if f.value == "" {
			flags.Lookup(f.name).NoOptDefVal = "true"
		}
	}
	return o
}

// flagValue is a flag of a launch as pflag wants it.
type flagValue struct {
	flag launchFlag
	text string
}

func (v *flagValue) String() string { return v.text }

// Type is what help shows for the value; pflag shows none for "bool".
func (v *flagValue) Type() string { return cmp.Or(v.flag.value, "bool") }

func (v *flagValue) Set(text string) error {
	if v.flag.value == "" && text != "true" {
		return errors.New("it takes no value")
	}
	v.text = text
	v.flag.set(text)
	return nil
}
