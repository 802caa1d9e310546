package profile

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"claudebox/internal/diag/spelling"
)

// ProjectFile is the name of the profile that a project may have at its root, and ProjectYML another for the same.
// ToolsFile lists packages only, one a line. They may grant more only as far as the user allowed it, see package trust.
const (
	ProjectFile = ".claudebox.yaml"
	ProjectYML  = ".claudebox.yml"
	ToolsFile   = ".claudebox/tools.txt"
)

// projectFiles are the paths that a project's own profile may have, from the project's root.
var projectFiles = []string{ProjectFile, ProjectYML, ToolsFile}

// ProjectFileOf returns which of a project's own profiles a file is, by its path; [ProjectFile] if it is none.
func ProjectFileOf(file string) string {
	for _, rel := range projectFiles {
		if file == rel || strings.HasSuffix(file, "/"+rel) {
			return rel
		}
	}
	return ProjectFile
}

// IsProjectRule reports whether a reason names a line of a project's own profile, as [Origin.Rule] writes it.
func IsProjectRule(why string) bool {
	return slices.ContainsFunc(projectFiles, func(rel string) bool { return strings.HasPrefix(why, rel+":") })
}

// documents are endings of files that hold settings, without the dot. A name without any is among them.
var documents = []string{
	"yaml", "yml", "json", "jsonc", "json5", "toml", "ini", "conf", "config", "cfg", "nix", "rc", "",
}

// IsMisnamed reports whether a name at a project's root is probably meant for its profile, which has another name: with
// another ending, in capitals, without the dot, or with a letter or two wrong. What an editor leaves beside it is not.
// A profile that is passed over in silence would leave the sandbox wider than it says.
func IsMisnamed(name string) bool {
	low := strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(name))
	bare, dotted := strings.CutPrefix(low, ".")
	stem, ending, _ := strings.Cut(bare, ".")
	switch {
	case name == ProjectFile, name == ProjectYML, strings.HasSuffix(name, "~"), strings.HasPrefix(name, ".#"):
		return false
	case stem == "claudebox" && !dotted: // a program may be called so
		return slices.Contains(documents[:6], ending)
	case stem == "claudebox" && spelling.Distance(low, ProjectFile, 1) <= 1: // .claudebox.yam
		return true
	case stem == "claudebox", stem == "claudeboxrc":
		return slices.Contains(documents, ending)
	}
	const edits = 2
	return spelling.Distance(low, ProjectFile, edits) <= edits || spelling.Distance(low, ProjectYML, edits) <= edits
}

// IsMisnamedAs reports whether the name of a file, which is not that of the profile called name, is probably meant for
// it: it has another ending, or capitals.
func IsMisnamedAs(name, file string) bool {
	stem, ending, found := strings.Cut(strings.ToLower(file), ".")
	return found && stem == strings.ToLower(name) && ending != "" && slices.Contains(documents, ending)
}

// IsMisplaced is [IsMisnamed] for a name in the folder of [ToolsFile].
func IsMisplaced(name string) bool {
	low := strings.ToLower(name)
	stem, ending, _ := strings.Cut(strings.TrimPrefix(low, "."), ".")
	switch {
	case ".claudebox/"+name == ToolsFile:
		return false
	case slices.Contains([]string{"tools", "tool", "packages", "package"}, stem):
		return ending == "txt" || slices.Contains(documents, ending)
	}
	return slices.Contains([]string{"claudebox", "profile", "default", "config", "settings"}, stem) &&
		slices.Contains(documents, ending)
}

// OfTools writes a list of packages, one a line, with comments behind "#", as a profile. Its lines keep their numbers.
func OfTools(list []byte) []byte {
	var b bytes.Buffer
	b.WriteString("packages: [ ")
	for line := range bytes.Lines(list) {
		name, comment, commented := strings.Cut(string(line), " #")
		if trimmed := strings.TrimSpace(string(line)); strings.HasPrefix(trimmed, "#") {
			name, comment, commented = "", trimmed[1:], true
		}
		if name = strings.TrimSpace(name); name != "" {
			b.WriteString(strconv.Quote(name) + ",")
		}
		if commented {
			b.WriteString(" #" + strings.TrimRight(comment, "\r\n"))
		}
		b.WriteByte('\n')
	}
	b.WriteString("]\n")
	return b.Bytes()
}
