package session

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"claudebox/internal/agent/object"
	"claudebox/internal/agent/toml"
	"claudebox/internal/diag"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/sandbox/launch"
)

// versionFiles are the files of version managers, and the tool whose version they say; empty: they name several.
var versionFiles = [...]struct{ file, tool string }{
	{".nvmrc", "node"},
	{".node-version", "node"},
	{".python-version", "python"},
	{".ruby-version", "ruby"},
	{".go-version", "go"},
	{".java-version", "java"},
	{".terraform-version", "terraform"},
	{"rust-toolchain", "rust"},
	{"rust-toolchain.toml", "rust"},
	{".tool-versions", ""},
	{"mise.toml", ""},
	{".mise.toml", ""},
	{".config/mise.toml", ""},
	{".prototools", ""},
	{".sdkmanrc", ""},
	{"package.json", ""},
}

// programOf are the programs of tools that are called otherwise.
var programOf = map[string]string{
	"nodejs": "node", "python": "python3", "golang": "go", "rust": "cargo", "maven": "mvn", "awscli": "aws",
	"github-cli": "gh", "ripgrep": "rg", "neovim": "nvim", "erlang": "erl", "postgres": "psql",
}

// versions says which versions the project asks of a version manager that are not inside: none is there to bring them.
func (in leads) versions() (made launch.Part) {
	var reasons []string
	wants := map[string][]string{} // by why they are not inside
	dir, _ := pathname.Cut(in.project.Dir, in.project.Path)
	for again := true; again; dir = path.Dir(dir) {
		again = dir != "" && dir != "."
		for _, of := range versionFiles {
			file := path.Join(dir, of.file)
			for _, asked := range versionsOf(of.file, of.tool, in.read(file)) {
				tool, version, _ := strings.Cut(asked, " ")
				reason := in.lacksVersion(path.Base(tool), version)
				if wants[reason] == nil {
					reasons = append(reasons, reason)
				}
				wants[reason] = append(wants[reason], asked+" ("+file+")")
			}
		}
	}
	for _, reason := range reasons {
		if reason != "" {
			made.LeaveAll("tool version", "the project asks for ALL: "+diag.Visible(reason), wants[reason])
		}
	}
	return made
}

// versionsOf lists what a file asks for, each "TOOL VERSION".
func versionsOf(file, tool string, content []byte) (list []string) {
	if file == "package.json" {
		return enginesOf(content)
	}
	if strings.HasSuffix(file, ".toml") || file == ".prototools" || strings.Contains(string(content), "[toolchain]") {
		root, _ := toml.Parse(content) // what is none asks for nothing
		if chain, is := root["toolchain"].(map[string]any); is {
			return []string{fmt.Sprint(tool, " ", chain["channel"])}
		}
		tools, _ := root["tools"].(map[string]any)
		if file == ".prototools" {
			tools = root
		}
		for name, value := range tools {
			if several, is := value.([]any); is && len(several) > 0 {
				value = several[0]
			}
			if table, is := value.(map[string]any); is {
				value = table["version"]
			}
			if value == nil { // a table of settings
				continue
			}
			list = append(list, fmt.Sprint(name[strings.LastIndexByte(name, ':')+1:], " ", value))
		}
		slices.Sort(list)
		return list
	}
	for line := range strings.Lines(string(content)) {
		line, _, _ = strings.Cut(line, "#")
		switch words := strings.Fields(strings.Replace(line, "=", " ", 1)); {
		case len(words) == 0:
		case tool != "":
			return []string{tool + " " + words[0]}
		case len(words) > 1:
			list = append(list, words[0]+" "+words[1])
		}
	}
	return list
}

// enginesOf lists what a package.json asks to be run by. Its editors are none of it.
func enginesOf(content []byte) (list []string) {
	asks := object.Parse(content)
	engines := object.As[map[string]string](asks["engines"])
	manager, _, _ := strings.Cut(object.As[string](asks["packageManager"]), "+")
	if manager != "" {
		list = append(list, strings.Replace(manager, "@", " ", 1))
	}
	for _, name := range [...]string{"node", "bun", "deno", "npm", "pnpm", "yarn"} {
		if engines[name] != "" && !strings.HasPrefix(manager, name+"@") {
			list = append(list, name+" "+engines[name])
		}
	}
	return list
}

// lacksVersion says why a version of a tool is not inside; empty: it is, but for the last number, or that is not known.
func (in leads) lacksVersion(tool, version string) string {
	program := tool
	if programOf[tool] != "" {
		program = programOf[tool]
	}
	if reason := in.inside.Program(program); reason != "" {
		return reason
	}
	at, _, err := in.inside.Resolve(in.inside.Find(program))
	_, name, isStore := strings.Cut(at, "/nix/store/")
	version = strings.TrimPrefix(version, "v")
	if err != nil || !isStore || version == "" || strings.Trim(version, "0123456789.") != "" {
		return ""
	}
	name, _, _ = strings.Cut(name, "/")
	_, name, _ = strings.Cut(name, "-")
	if numbers := strings.SplitN(version, ".", 3); len(numbers) > 2 {
		version = strings.Join(numbers[:2], ".")
	}
	if strings.Contains(name+".", "-"+version+".") {
		return ""
	}
	return "inside it is " + name + "; other versions are packages of other names, as nodejs_20 or python312"
}
