package state

import (
	"os"
	"path"
	"slices"
	"strings"

	"claudebox/internal/agent/agenthome"
	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/secret/leak"
)

// namedFiles are the files of the user's own folder of Claude Code that enter because what enters names them: the
// imports of CLAUDE.md, and the scripts of hooks and of the status line. They are read-only inside, and links in the
// agent's home lead to them.
func (c *comparison) namedFiles() error {
	wanted := map[string]bool{}
	inSettings, err := c.namedInSettings()
	if err != nil {
		return nil //nolint:nilerr // it is read again, and reported, by [comparison.files]
	}
	for _, rel := range inSettings {
		c.admit(rel, "", wanted)
	}
	memory, _, err := c.req.readOwn(c.req.Own("CLAUDE.md"))
	if err == nil {
		c.followImports(memory, ".", 1, wanted)
	}
	for _, rel := range c.known.Named {
		if !wanted[rel] {
			if err := c.importLink(rel, namedRoot+rel, false); err != nil {
				return err
			}
		}
	}
	c.known.Named = nil
	for rel := range wanted {
		c.known.Named = append(c.known.Named, rel)
	}
	slices.Sort(c.known.Named)
	for _, dir := range foldersOf(c.known.Named) {
		what, err := c.there(path.Join(agentHome, dir))
		if err == nil && what.Kind != beneath.Dir {
			c.makeFolder(path.Join(agentHome, dir), what.Kind != beneath.Absent)
		}
	}
	for _, rel := range c.known.Named {
		if err := c.importLink(rel, namedRoot+rel, true); err != nil {
			return err
		}
	}
	return nil
}

// namedInSettings are the files of the user's own folder that its settings name, as an earlier launch read them if they
// are the same.
func (c *comparison) namedInSettings() ([]string, error) {
	const name = "settings.json"
	real, _, err := c.req.find(c.req.Own(name))
	if err != nil {
		return nil, err
	}
	was := &c.known.Commands
	if inputs := hashInputs(recordForm+c.req.Own(name)+"\n"+c.req.UserHome+"\n", []string{real}); was.Inputs != inputs {
		content, _, err := c.req.readOwn(c.req.Own(name))
		if err != nil {
			return nil, err
		}
		*was = commands{inputs, c.req.Named(content)}
	}
	return was.Files, nil
}

// foldersOf lists the folders that files lie in, each once and before those in it.
func foldersOf(files []string) (folders []string) {
	for _, file := range files {
		for dir := path.Dir(file); dir != "."; dir = path.Dir(dir) {
			folders = append(folders, dir)
		}
	}
	slices.Sort(folders)
	return slices.Compact(folders)
}

// namedRoot is where named files are mounted inside.
const namedRoot = importRoot + "/own/"

// followImports admits what a memory file in a folder of the user's own imports, and what that imports. What lies
// elsewhere is left out, if nothing else brings it: only that inside can be asked.
func (c *comparison) followImports(memory []byte, folder string, depth int, wanted map[string]bool) {
	for _, name := range agenthome.Imports(memory) {
		at := name
		switch rest, ofHome := strings.CutPrefix(name, "~/"); {
		case ofHome:
			at = path.Join(c.req.UserHome, rest)
		case !path.IsAbs(name):
			at = c.req.Own(path.Join(folder, name))
		}
		info, err := os.Stat(at)
		if err != nil || !info.Mode().IsRegular() {
			continue // no import outside, either
		}
		rel, own := strings.CutPrefix(at, c.req.Own(".")+"/")
		first, _, _ := strings.Cut(rel, "/")
		switch {
		case !own:
			c.outside = append(c.outside, Import{Source: at, At: name})
			continue
		case slices.Contains(agenthome.Folders, first) || wanted[rel] || depth > agenthome.DeepestImport:
			continue
		}
		if content := c.admit(rel, name, wanted); content != nil {
			c.followImports(content, path.Dir(rel), depth+1, wanted)
		}
	}
}

// private are files and folders of Claude Code's own with what was said and done in all projects.
var private = []string{
	".credentials.json", ".claude.json", "settings.json", "settings.local.json", "history.jsonl", "projects",
	"sessions", "todos", "tasks", "plans", "shell-snapshots", "session-env", "file-history", "paste-cache", "backups",
	"debug", "ide", "statsig", "telemetry", "local", "cache", "CLAUDE.md", "keybindings.json",
}

// admit lets a file of the user's own enter, and returns its content; nil: it does not enter. importedAs is what names
// it in a memory file; empty: a command does.
func (c *comparison) admit(rel, importedAs string, wanted map[string]bool) (content []byte) {
	kind, what := "script", "your ~/.claude/"+rel
	if importedAs != "" {
		kind, what = "import", "the import @"+importedAs+" of your CLAUDE.md"
	}
	secret := ""
	leave := func(reason string) {
		text := what + " does not enter: " + reason
		c.Left = append(c.Left, diag.Left{Kind: kind, Text: text, Red: secret != ""})
	}
	first, _, _ := strings.Cut(rel, "/")
	if slices.Contains(private, first) || path.Clean(rel) != rel || strings.HasPrefix(rel, "../") {
		if importedAs != "" {
			leave("it is private")
		}
		return nil
	}
	real, why, err := c.req.find(c.req.Own(rel))
	if err == nil && real != "" {
		content, err = beneath.ReadIn(path.Dir(real), path.Base(real), fileLimit)
	}
	secret = leak.Text(string(content))
	switch {
	case why != "":
		leave("it " + strings.TrimPrefix(why, c.req.Own(rel)+" does not enter: "))
	case err != nil:
		leave(diag.Cause(err).Error())
	case real == "":
	case len(wanted) == agenthome.MostImports:
		leave("there are too many")
	case secret != "":
		leave("it holds what looks like " + secret)
	default:
		wanted[rel] = true
		c.Imports = append(c.Imports, Import{Source: real, Destination: namedRoot + rel, At: rel, File: true})
		return append(content, '\n')
	}
	return nil
}
