package profile

import (
	_ "embed"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/profile/shape"
)

//go:embed starter.yaml
var starterYAML string

// Starter is the text of a new profile of that name: every key with its
// default or an example, most of them commented out. It fails when the name
// is not one for a profile.
func Starter(name string) ([]byte, error) {
	if fault := profileName.Check(name); fault != nil {
		return nil, diag.Errorf("make a profile", fault.Remedy, "%s", fault.Message)
	}
	return []byte(strings.Replace(starterYAML, "\nname: NAME\n", "\nname: "+quoted(name)+"\n", 1)), nil
}

// quoted keeps a name such as 2024 or true from being read as no text.
func quoted(name string) string {
	if shape.Matches("^[A-Za-z]", name) && name != "true" && name != "false" && name != "null" {
		return name
	}
	return `"` + name + `"`
}
