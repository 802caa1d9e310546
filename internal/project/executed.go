package project

import (
	"path"
	"slices"
	"strings"

	"claudebox/internal/diag"
)

const whyExecuted = "the host's tools execute it"

// executedNames are the files and folders at a project's root that tools of
// the host execute, or take orders from, without being asked (sandbox.md,
// "Files the host executes"; git's own are in gitguard.go).
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
// and is reported: read-only it would stop `git switch` half-way.
func (o *opener) executed() error {
	found, err := o.found()
	if err != nil {
		return err
	}
	var tracked map[string]bool
	if !o.Strict && len(found) > 0 {
		tracked = o.tracked(found)
	}
	g := guard{o, o.tree}
	for _, rel := range found {
		if tracked[rel] {
			o.Reported = append(o.Reported, rel)
			continue
		}
		if err := g.existing(rel, whyExecuted); err != nil {
			return err
		}
	}
	return nil
}

// found lists those of the named places that exist, in order.
func (o *opener) found() ([]string, error) {
	names := slices.Concat(executedNames, o.alsoExecuted)
	for _, glob := range o.Protect {
		matches, err := o.tree.glob(glob)
		if err != nil {
			return nil, &diag.Error{Op: "look for " + glob, Err: err, Remedy: "make the pattern in protect narrower"}
		}
		names = append(names, matches...)
	}
	slices.Sort(names)
	var found []string
	for _, rel := range slices.Compact(names) {
		what, err := o.tree.look(rel)
		if err != nil {
			return nil, guard{o, o.tree}.failed(rel, err)
		}
		if what.kind != absent && what.kind != special {
			found = append(found, rel)
		}
	}
	return found, nil
}

// globLimit bounds the entries that the globs of one profile line may look
// at.
const globLimit = 200_000

// glob lists what a pattern matches below the folder: "*" and its like within
// a component, "**" over any number of them. Links and .git are not entered.
func (f *folder) glob(pattern string) ([]string, error) {
	left := globLimit
	return f.globBelow(".", strings.Split(strings.Trim(pattern, "/"), "/"), &left)
}

func (f *folder) globBelow(at string, parts []string, left *int) ([]string, error) {
	if len(parts) == 0 {
		return []string{at}, nil
	}
	if !strings.ContainsAny(parts[0], `*?[\`) {
		return f.globBelow(path.Join(at, parts[0]), parts[1:], left)
	}
	what, err := f.look(at)
	if err != nil || what.kind != dir {
		return nil, err
	}
	names, err := f.names(at, *left)
	if err != nil {
		return nil, err
	}
	*left -= len(names)
	var all []string
	for _, name := range names {
		matches, err := f.globEntry(at, name, parts, left)
		if err != nil {
			return nil, err
		}
		all = append(all, matches...)
	}
	return all, nil
}

// globEntry matches one entry of the folder at against a pattern whose first
// part has a wildcard.
func (f *folder) globEntry(at, name string, parts []string, left *int) ([]string, error) {
	if parts[0] != "**" {
		if ok, err := path.Match(parts[0], name); err != nil || !ok {
			return nil, err
		}
		return f.globBelow(path.Join(at, name), parts[1:], left)
	}
	if name == ".git" {
		return nil, nil
	}
	if len(parts) == 1 {
		return []string{path.Join(at, name)}, nil
	}
	here, err := f.globEntry(at, name, parts[1:], left)
	if len(parts) > 1 && !strings.ContainsAny(parts[1], `*?[\`) {
		here = nil
		if name == parts[1] {
			here, err = f.globBelow(path.Join(at, name), parts[2:], left)
		}
	}
	if err != nil {
		return nil, err
	}
	deeper, err := f.globBelow(path.Join(at, name), parts, left)
	return append(here, deeper...), err
}
