package session

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/agent/agenthome"
	"claudebox/internal/agent/object"
	"claudebox/internal/diag"
	"claudebox/internal/linux/smallfile"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/session/program"
)

// cannotRun says which hooks, status line and servers of the project, and of the user's plugins, cannot run inside.
// Their files are as they are: Claude Code tries to run these.
func (in leads) cannotRun() (made launch.Part) {
	asks := agenthome.Request{Runs: in.inside.Program, Sees: in.sees, Reaches: in.reaches}
	look := func(whose string, content []byte, quiet bool) {
		for _, of := range agenthome.Commands(content) {
			if reason := asks.CannotRun(of); reason != "" {
				text := "the " + diag.Visible(of.Of) + " of " + whose + " cannot run: " + diag.Visible(reason)
				made.Left = append(made.Left, diag.Left{Kind: of.Kind, Text: text, Quiet: quiet})
			}
		}
	}
	for _, name := range configured {
		look("the project", in.read(name), true)
	}
	var installed struct {
		Plugins map[string][]struct{ InstallPath string }
	}
	own := filepath.Join(program.ConfigFolder(in.facts), "plugins")
	content, _ := smallfile.Read(filepath.Join(own, "installed_plugins.json"), fileLimit)
	if json.Unmarshal(content, &installed) != nil {
		return made // none
	}
	off, lists := in.switchedOff(), markets{}
	for _, plugin := range slices.Sorted(maps.Keys(installed.Plugins)) {
		if off[plugin] {
			continue
		}
		told, entry := made.Left, lists.listed(own, plugin)
		for _, at := range installed.Plugins[plugin] {
			for _, content := range append(pluginFiles(at.InstallPath), entry) {
				look("the plugin "+diag.Visible(plugin), content, false)
			}
		}
		made.Left = slices.Compact(append(told, made.Left[len(told):]...))
	}
	return made
}

// pluginFiles are the contents of the files in which a plugin says what it runs.
func pluginFiles(folder string) (contents [][]byte) {
	read := func(name string) []byte {
		content, _ := smallfile.Read(filepath.Join(folder, name), fileLimit) // most have few of them
		return content
	}
	manifest := read(".claude-plugin/plugin.json")
	contents = append(contents, manifest, read("hooks/hooks.json"), read(".mcp.json"), servers(read(".lsp.json")))
	for key, value := range object.Parse(manifest) {
		if file := object.As[string](value); strings.HasSuffix(file, ".json") && !strings.HasPrefix(file, "/") {
			content := read(file)
			if key == "lspServers" {
				content = servers(content)
			}
			contents = append(contents, content)
		}
	}
	return contents
}

// servers is a file of language servers alone as [agenthome.Commands] takes it.
func servers(content []byte) []byte {
	if content == nil {
		return nil
	}
	return slices.Concat([]byte(`{"lspServers":`), content, []byte("}"))
}

// markets are the lists of plugins that were read, by the names of their marketplaces.
type markets map[string][]object.Object

// listed is what the list of a plugin's marketplace says of it: some plugins have no other file. own is the user's
// folder of plugins.
func (m markets) listed(own, plugin string) []byte {
	name, market, _ := strings.Cut(plugin, "@")
	list, read := m[market]
	if !read {
		file := filepath.Join(own, "marketplaces", market, ".claude-plugin/marketplace.json")
		content, _ := smallfile.Read(file, fileLimit)
		list = object.As[[]object.Object](object.Parse(content)["plugins"])
		m[market] = list
	}
	for _, entry := range list {
		if object.As[string](entry["name"]) == name {
			return object.Encode(entry)
		}
	}
	return nil
}

// switchedOff are the plugins that the project's settings, or else the user's, switch off.
func (in leads) switchedOff() map[string]bool {
	off := map[string]bool{}
	users, _ := smallfile.Read(filepath.Join(program.ConfigFolder(in.facts), "settings.json"), fileLimit)
	for _, settings := range [][]byte{users, in.read(".claude/settings.json"), in.read(".claude/settings.local.json")} {
		for plugin, value := range object.Parse(object.Parse(settings)["enabledPlugins"]) {
			off[plugin] = string(value) == "false"
		}
	}
	return off
}
