package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"claudebox/internal/diag"
	"claudebox/internal/host"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/profile"
	"claudebox/internal/profile/profiledir"
	"claudebox/internal/session/planning"
)

const profileLong = `A profile says what the agent may have: packages, network, variables, mounts.

Profiles are YAML files. A name is looked up in $CLAUDEBOX_HOME/profiles
(~/.claudebox/profiles), $XDG_CONFIG_HOME/claudebox/profiles,
/etc/claudebox/profiles, and among those claudebox was built with; what holds a
slash or ends in .yaml, .yml or .json is a file.`

func newProfileCommand(sys System) *cobra.Command {
	// with returns run with the facts of the host and its profiles filled in.
	with := func(run func(host.Facts, profiledir.Files, []string) (string, error)) func([]string) (string, error) {
		return func(refs []string) (string, error) {
			facts, err := host.Detect()
			if err = cmp.Or(err, profiledir.JudgeHome(facts)); err != nil {
				return "", err
			}
			return run(facts, profiledir.New(facts, sys.Manifest), refs)
		}
	}
	show := sys.prints("show [NAME|FILE]", "Print a profile with all it extends, and where each value was said", "",
		oneWord, with(func(facts host.Facts, files profiledir.Files, refs []string) (string, error) {
			ref := append(refs, facts.Env.Value("CLAUDEBOX_PROFILE", profile.Default))[0] // or the one named
			shown, warnings, err := profile.Show(ref, files, true)
			diag.Warn(sys.Stderr, warnings...)
			return string(shown), err
		}))
	validate := sys.prints("validate [NAME|FILE…]", "Report every problem of the named profiles, or of all", "",
		nil, with(func(_ host.Facts, files profiledir.Files, refs []string) (string, error) {
			return "", validateProfiles(sys, files, refs)
		}))
	show.ValidArgsFunction, validate.ValidArgsFunction = completeProfiles(sys), completeProfiles(sys)
	return newGroup("profile", "List, show, write and check profiles", profileLong, show, validate,
		sys.prints("list", "List the profiles and plans that can be named", "", noWords,
			with(func(_ host.Facts, files profiledir.Files, _ []string) (string, error) {
				return listProfiles(files), nil
			})),
		sys.prints("init [NAME|FILE]", "Write a commented profile to start from", "", oneWord,
			with(func(_ host.Facts, files profiledir.Files, refs []string) (string, error) {
				return initProfile(sys, files, append(refs, profile.Default)[0])
			})),
		sys.prints("schema", "Print the JSON Schema of profiles, for editors", "", noWords,
			func([]string) (string, error) { return string(profile.JSONSchema()), nil }))
}

func listProfiles(files profiledir.Files) string {
	rows := [][]string{{"NAME", "FILE", "DESCRIPTION"}}
	for _, entry := range files.List() {
		file := diag.Visible(profile.Tilde(files.Home, entry.File))
		rows = append(rows, []string{diag.Visible(entry.Name), file, describe(files, entry)})
	}
	return table(rows)
}

// describe is what the list says of a profile: its own words, or why it does not count.
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

// validateProfiles reports the problems of all profiles in one run.
func validateProfiles(sys System, files profiledir.Files, refs []string) error {
	if len(refs) == 0 {
		refs = files.Names()
	}
	var all diag.Problems
	for _, ref := range refs {
		prof, warnings, err := profile.Load(ref, files)
		diag.Warn(sys.Stderr, warnings...)
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

// lookUp returns [diag.Problems] for the packages of a valid profile that do not exist.
// If they cannot be looked up, it prints that and returns nil.
func lookUp(sys System, ref string, prof profile.Profile) error {
	err := planning.CheckPackages(sys.Caller(), prof)
	var problems diag.Problems
	if err == nil || errors.As(err, &problems) {
		return err
	}
	diag.Note(sys.Stderr, "the packages of "+ref+" were not looked up: "+err.Error())
	return nil
}

// initProfile writes a new profile and prints its file.
func initProfile(sys System, files profiledir.Files, ref string) (string, error) {
	name, file := ref, filepath.Join(files.Own(), ref+profile.Extensions[0])
	if profile.IsFile(ref) {
		file = files.Absolute(ref, diag.Position{})
		name = profile.NameOf(file)
	}
	text, err := profile.Starter(name)
	if err != nil {
		return "", err
	}
	if !profile.IsFile(ref) {
		if err := refuseToHide(files, ref, file); err != nil {
			return "", err
		}
		if err := os.MkdirAll(files.Own(), 0o700); err != nil {
			remedy := "name a file: claudebox profile init ./" + name + ".yaml"
			return "", &diag.Error{Op: "make the folder of profiles", Err: err, Remedy: remedy}
		}
	}
	if err := writeNew(file, text); err != nil {
		return "", err
	}
	if ref == profile.Default {
		diag.Note(sys.Stderr, "every launch that names no other profile uses it")
	} else {
		diag.Note(sys.Stderr, "start with it: claudebox -P "+cmp.Or(diag.Word(ref), "FILE"))
	}
	return file + "\n", nil
}

// refuseToHide returns an error for a new profile that would be found before one of the same
// name that the user has elsewhere. The built-in one may be hidden.
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
	case errors.Is(err, os.ErrNotExist):
		folder := cmp.Or(diag.Word(filepath.Dir(file)), "FOLDER")
		return diag.Wrap("write "+file, err, "make its folder first: mkdir -p "+folder)
	case err != nil:
		return diag.Wrap("write "+file, err, "name a file in a folder of yours")
	}
	return nil
}
