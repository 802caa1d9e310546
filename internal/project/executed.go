package project

import (
	"slices"

	"claudebox/internal/beneath"
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
// and is reported: read-only it would stop `git switch` half-way. What git or
// claudebox reads as configuration never does: it takes hold by itself.
func (o *opener) executed() error {
	for _, file := range o.Orders {
		if file = canonicalOr(file); o.contains(file) {
			o.configuration = append(o.configuration, relative(o.Path, file))
		}
	}
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
		if tracked[rel] && !slices.Contains(o.configuration, rel) {
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
	names := slices.Concat(executedNames, o.alsoExecuted, o.configuration)
	for _, pattern := range o.Protect {
		matches, err := o.tree.Glob(pattern)
		if err != nil {
			return nil, &diag.Error{Op: "look for " + pattern, Err: err, Remedy: "make the pattern in protect narrower"}
		}
		names = append(names, matches...)
	}
	slices.Sort(names)
	var found []string
	for _, rel := range slices.Compact(names) {
		what, err := o.tree.Look(rel)
		if err != nil {
			return nil, guard{o, o.tree}.failed(rel, err)
		}
		if what.Kind != beneath.Absent && what.Kind != beneath.Special {
			found = append(found, rel)
		}
	}
	return found, nil
}
