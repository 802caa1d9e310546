package project

import (
	"os"
	"path"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/gitconfig"
)

const whyExecuted = "the host's tools execute it"

// executedNames are the files and folders at a project's root that tools of
// the host execute, or take orders from, without being asked (sandbox.md,
// "Files the host executes"; git's own are in gitfolder.go).
var executedNames = []string{
	".envrc", ".envrc.local", ".direnv",
	".mcp.json", "CLAUDE.md", "AGENTS.md",
	".claude/settings.json", ".claude/settings.local.json",
	".claude/hooks", ".claude/commands", ".claude/agents", ".claude/skills",
	".vscode", ".idea", ".zed", ".cursor", ".devcontainer",
	".husky", ".pre-commit-config.yaml", "lefthook.yml",
	".git-blame-ignore-revs", ".gitmodules",
	".tool-versions", "mise.toml", ".mise.toml", "devenv.nix", ".nix",
	".nvim.lua", ".nvimrc", ".exrc", ".vimrc", ".lvimrc", ".dir-locals.el",
	".bashrc", ".profile", ".zshrc",
	".claudebox.yaml",
	".hg/hgrc", ".jj/repo/config.toml", ".sl/config",
}

// executed protects what is there of the built-in list, of the profile's
// globs and of what git's configuration names. A tracked file stays writable
// and is reported: read-only it would stop `git switch` half-way. What git or
// claudebox reads as configuration never does: it takes hold by itself.
func (o *opener) executed(found []string) error {
	g := guard{o, o.tree}
	for _, rel := range found {
		if !o.Strict && o.tracked.Has(rel) && !slices.Contains(o.configured, rel) {
			o.Reported = append(o.Reported, rel)
			continue
		}
		o.ReadOnly = append(o.ReadOnly, rel)
		if slices.ContainsFunc(o.pushed, func(name string) bool { return pathname.Below(name, rel) }) {
			o.note(false, rel+" stays read-only: it is in git's index because a session put it there")
		}
		if err := o.protectOne(g, rel); err != nil {
			return err
		}
	}
	return nil
}

// protectOne keeps a place as it is. Of what git includes in a configuration,
// and no index holds, a copy is seen that holds no secrets.
func (o *opener) protectOne(g guard, rel string) error {
	what, err := o.tree.Look(rel)
	if err == nil && what.Kind == beneath.Regular && slices.Contains(o.included, rel) && !o.tracked.Has(rel) {
		if content, err := o.tree.Read(rel, configLimit); err == nil {
			g.made(rel, gitconfig.Sanitise(content), whyConfig)
			return nil
		}
	}
	return g.existing(rel, whyExecuted)
}

// found lists those of the named places that exist, in order.
func (o *opener) found() ([]string, error) {
	for _, file := range o.Orders {
		if err := o.order(file); err != nil {
			return nil, err
		}
	}
	globs, err := o.matches("protect", o.Protect)
	if err != nil {
		return nil, err
	}
	if o.hideGlobs, err = o.matches("hide", anchored(o.Hide)); err != nil {
		return nil, err
	}
	names := slices.Concat(o.perhaps(executedNames), o.alsoExecuted, o.configured, globs)
	slices.Sort(names)
	var found []string
	for _, rel := range slices.Compact(names) {
		what, err := guard{o, o.tree}.look(rel)
		if err != nil {
			return nil, err
		}
		if what.Kind != beneath.Absent && what.Kind != beneath.Special {
			found = append(found, rel)
		}
	}
	return found, nil
}

// perhaps leaves out those of the places that cannot be there, by one listing of
// the root instead of a look at each. A folder may take capitals for the same,
// and more than that for names that are not plain (casefold in ext4(5)): such a
// listing tells nothing.
func (o *opener) perhaps(places []string) []string {
	const many = 100 // to compare them takes as long as the looks
	names, err := o.tree.Names(".", many)
	if err != nil || slices.ContainsFunc(names,
		func(name string) bool { return strings.ContainsFunc(name, notPlain) }) {
		return places
	}
	return slices.DeleteFunc(slices.Clone(places), func(place string) bool {
		first, _, _ := strings.Cut(place, "/")
		same := func(name string) bool { return len(name) == len(first) && strings.EqualFold(name, first) }
		return !slices.ContainsFunc(names, same)
	})
}

func notPlain(r rune) bool { return r <= ' ' || r >= '~' }

// matches lists what globs of the profile match.
func (o *opener) matches(key string, globs []string) (all []string, err error) {
	for _, pattern := range globs {
		matches, err := o.tree.Glob(pattern)
		if err != nil {
			return nil, &diag.Error{
				Op: "look for " + pattern, Err: err,
				Remedy: "make the pattern in " + key + " narrower",
			}
		}
		all = append(all, matches...)
	}
	return all, nil
}

// order protects a file of the project that claudebox itself takes orders
// from. One that is reached through a link in the project cannot be: the agent
// would exchange the link.
func (o *opener) order(file string) error {
	real, err := beneath.Canonical(file)
	if err != nil {
		real = canonicalOr(file)
	}
	if o.contains(real) {
		o.configured = append(o.configured, relative(o.Path, real))
	}
	if err == nil && real == path.Clean(file) {
		return nil // no link on the way
	}
	if link := o.linkOnTheWay(file); link != "" {
		return diag.Errorf("take orders from "+file, "name the file itself: "+real,
			"%s is a link in the project, which the agent could lead elsewhere", link)
	}
	return nil
}

// linkOnTheWay finds the first link of the project that a path leads through.
func (o *opener) linkOnTheWay(file string) string {
	const steps = 100
	at, rest := "/", strings.Split(path.Clean(file), "/")
	for n := 0; len(rest) > 0 && n < steps; n++ {
		next := path.Join(at, rest[0])
		rest = rest[1:]
		text, err := os.Readlink(next)
		if err != nil {
			at = next
			continue
		}
		if next != o.Path && o.contains(next) {
			return next
		}
		if path.IsAbs(text) {
			at = "/"
		}
		rest = append(strings.Split(text, "/"), rest...)
	}
	return ""
}
