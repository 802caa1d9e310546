package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"claudebox/internal/diag"
	"claudebox/internal/host"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/profile"
	"claudebox/internal/profile/profiledir"
	"claudebox/internal/session"
)

const profileLong = `A profile says what the agent may have: packages, network, variables, mounts.

Profiles are YAML files. A name is looked up in $CLAUDEBOX_HOME/profiles
(~/.claudebox/profiles), $XDG_CONFIG_HOME/claudebox/profiles,
/etc/claudebox/profiles, and among those claudebox was built with; what holds a
slash or ends in .yaml, .yml or .json is a file.`

func newProfileCommand(sys System) *cobra.Command {
	show := &cobra.Command{
		Use:   "show [NAME|FILE]",
		Short: "Print a profile with all it extends, and where each value was said",
		Args:  oneWord,
		RunE: withProfiles(sys, func(facts host.Facts, files profiledir.Files, refs []string) error {
			refs = append(refs, facts.Env.Value("CLAUDEBOX_PROFILE", profile.Default))
			return showProfile(sys, files, refs[0])
		}),
		ValidArgsFunction: completeProfiles(sys),
	}
	validate := &cobra.Command{
		Use:   "validate [NAME|FILE…]",
		Short: "Report every problem of profiles, of all there are by default",
		RunE: withProfiles(sys, func(_ host.Facts, files profiledir.Files, refs []string) error {
			if len(refs) == 0 {
				refs = files.Names()
			}
			return validateProfiles(sys, files, refs)
		}),
		ValidArgsFunction: completeProfiles(sys),
	}
	return newGroup("profile", "List, show, write and check profiles", profileLong, show, validate,
		&cobra.Command{
			Use:   "list",
			Short: "List the profiles and plans that can be named",
			Args:  noWords,
			RunE: withProfiles(sys, func(_ host.Facts, files profiledir.Files, _ []string) error {
				return listProfiles(sys.Stdout, files)
			}),
		},
		&cobra.Command{
			Use:   "init [NAME|FILE]",
			Short: "Write a commented profile to start from",
			Args:  oneWord,
			RunE: withProfiles(sys, func(_ host.Facts, files profiledir.Files, refs []string) error {
				return initProfile(sys, files, append(refs, profile.Default)[0])
			}),
		},
		&cobra.Command{
			Use:   "schema",
			Short: "Print the JSON Schema of profiles, for editors",
			Args:  noWords,
			RunE: func(*cobra.Command, []string) error {
				_, err := sys.Stdout.Write(profile.JSONSchema())
				return err
			},
		})
}

// withProfiles hands a command the places where profiles lie.
func withProfiles(sys System, do func(host.Facts, profiledir.Files, []string) error,
) func(*cobra.Command, []string) error {
	return func(_ *cobra.Command, words []string) error {
		facts, err := host.Detect()
		if err != nil {
			return err
		}
		return do(facts, profiledir.New(facts, sys.Manifest), words)
	}
}

func listProfiles(w io.Writer, files profiledir.Files) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tFILE\tDESCRIPTION")
	for _, entry := range files.List() {
		file := profile.Tilde(files.Home, entry.File)
		fmt.Fprintf(table, "%s\t%s\t%s\n", diag.Visible(entry.Name), diag.Visible(file), describe(files, entry))
	}
	return table.Flush()
}

// describe is what the list says of a profile: its own words, or why it does
// not count.
func describe(files profiledir.Files, entry profiledir.Entry) string {
	switch {
	case entry.Behind != "":
		return "(shadowed by " + diag.Visible(profile.Tilde(files.Home, entry.Behind)) + ")"
	case entry.Plan:
		return "(a pinned plan)"
	}
	ref := entry.File
	if ref == profile.BuiltIn {
		ref = profile.Default
	}
	p, _, err := profile.Load(ref, files)
	if err != nil {
		return "(has problems: claudebox profile validate " + entry.Name + ")"
	}
	return diag.Visible(p.Description)
}

func showProfile(sys System, files profiledir.Files, ref string) error {
	shown, warnings, err := profile.Show(ref, files, true)
	for _, warning := range warnings {
		diag.Warn(sys.Stderr, warning)
	}
	if err != nil {
		return err
	}
	_, err = sys.Stdout.Write(shown)
	return err
}

// validateProfiles reports the problems of all profiles in one run.
func validateProfiles(sys System, files profiledir.Files, refs []string) error {
	var all diag.Problems
	for _, ref := range refs {
		prof, warnings, err := profile.Load(ref, files)
		for _, warning := range warnings {
			diag.Warn(sys.Stderr, warning)
		}
		if err == nil {
			err = lookUp(sys, ref, prof)
		}
		var problems diag.Problems
		switch {
		case err == nil:
			fmt.Fprintln(sys.Stdout, diag.Visible(ref)+": valid")
		case errors.As(err, &problems):
			all = append(all, problems...)
		default:
			all = append(all, diag.Problem{ // a file that cannot be read is one problem among others
				Position: diag.Position{File: ref}, Message: err.Error(), Remedy: diag.Remedy(err),
			})
		}
	}
	if len(all) > 0 {
		return all
	}
	return nil
}

// lookUp reports the packages of a valid profile that there are none of. Where
// they cannot be looked up, that is said.
func lookUp(sys System, ref string, prof profile.Profile) error {
	err := session.LookUp(sys.Caller(), prof)
	var problems diag.Problems
	if err == nil || errors.As(err, &problems) {
		return err
	}
	diag.Note(sys.Stderr, "the packages of "+ref+" were not looked up: "+err.Error())
	return nil
}

// initProfile writes a new profile and prints its file.
func initProfile(sys System, files profiledir.Files, ref string) error {
	name, file := ref, filepath.Join(files.Own(), ref+profile.Extensions[0])
	if profile.IsFile(ref) {
		file = files.Absolute(ref, diag.Position{})
		name = profile.NameOf(file)
	}
	text, err := profile.Starter(name)
	if err != nil {
		return err
	}
	if !profile.IsFile(ref) {
		if err := refuseToHide(files, ref, file); err != nil {
			return err
		}
		if err := os.MkdirAll(files.Own(), 0o700); err != nil {
			return &diag.Error{
				Op: "make the folder of profiles", Err: err,
				Remedy: "name a file: claudebox profile init ./" + name + ".yaml",
			}
		}
	}
	if err := writeNew(file, text); err != nil {
		return err
	}
	if ref == profile.Default {
		diag.Note(sys.Stderr, "every launch goes by it that names no other profile")
	} else {
		diag.Note(sys.Stderr, "launch by it: claudebox -P "+ref)
	}
	_, err = fmt.Fprintln(sys.Stdout, file)
	return err
}

// refuseToHide refuses a new profile that would come before one of the same
// name that the user has elsewhere. The built-in one is there to be hidden.
func refuseToHide(files profiledir.Files, name, file string) error {
	for _, e := range files.List() {
		if e.Name == name && e.File != file && e.File != profile.BuiltIn {
			return diag.Errorf("write "+file, "edit that one, choose another name, or name the file to write",
				"it would hide the profile %s", e.File)
		}
	}
	return nil
}

// writeNew makes a file with its whole content, or none. It never replaces one.
func writeNew(file string, content []byte) error {
	at, err := beneath.Canonical(filepath.Dir(file))
	var folder *beneath.Folder
	if err == nil {
		folder, err = beneath.Open(at)
	}
	if err == nil {
		defer folder.Close()
		err = folder.Create(filepath.Base(file), content, 0o644)
	}
	switch {
	case errors.Is(err, os.ErrExist):
		return diag.Errorf("write "+file, "edit it, or choose another name", "the file exists already")
	case err != nil:
		return diag.Wrap("write "+file, err, "")
	}
	return nil
}
