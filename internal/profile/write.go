package profile

import (
	"cmp"
	_ "embed"
	"slices"
	"strconv"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/diag/pattern"
	"claudebox/internal/profile/shape"
)

//go:embed starter.yaml
var starterYAML string

// Starter returns the text of a new profile called name. It has every key with its
// default or an example, most of them commented out. It returns an error if name is
// not a valid profile name.
func Starter(name string) ([]byte, error) {
	if fault := profileName.Check(name); fault != nil {
		return nil, diag.Errorf("make a profile", "claudebox profile init "+validName(name), "%s", fault.Message)
	}
	return []byte(strings.Replace(starterYAML, "\nname: NAME\n", "\nname: "+quoted(name)+"\n", 1)), nil
}

// validName is a name that a profile can have, near to one that it cannot have.
func validName(name string) string {
	isBad := func(r rune) bool { return profileName.Check("a"+string(r)) != nil }
	name = strings.Join(strings.FieldsFunc(name, isBad), "-")
	const longest = 64
	return cmp.Or(strings.TrimLeft(name[:min(len(name), longest)], ".+_-"), "work")
}

// quoted returns name for use in YAML, in quotes if YAML could read it as
// something other than a string, such as 2024 or true.
func quoted(name string) string {
	words := []string{"true", "false", "null"} // of YAML's, also as True and TRUE
	if pattern.Expr("^[A-Za-z]").Matches(name) && !slices.Contains(words, strings.ToLower(name)) {
		return name
	}
	return `"` + name + `"`
}

// WithHosts returns the text of a profile with hosts inserted at the start of its
// own network.allow list, or another of network called key. Nothing else changes, comments included. It returns
// false if the profile has no such list. The caller must decode the result to check
// it: YAML can be written in more ways than this function handles.
func WithHosts(src []byte, key string, hosts []string) ([]byte, bool) {
	read, _ := shape.Decode(&shape.Document{}, src, schema, "profile")
	list := read.Get("network").Get(key).Items
	if len(list) == 0 {
		return nil, false
	}
	at, lines := list[0].Place, strings.SplitAfter(string(src), "\n")
	if at.Line < 1 || at.Line > len(lines) {
		return nil, false
	}
	line := []rune(lines[at.Line-1])
	if at.Column < 1 || at.Column > len(line) {
		return nil, false
	}
	before, rest := string(line[:at.Column-1]), string(line[at.Column-1:])
	between := ", "
	if strings.HasSuffix(strings.TrimRight(before, " "), "-") { // a block list: one entry on each line
		between = "\n" + before
	}
	for _, host := range hosts {
		before += quotedHost(host, rest) + between
	}
	lines[at.Line-1] = before + rest
	return []byte(strings.Join(lines, "")), true
}

// quotedHost returns host in quotes if next, the text of the entry after it, has quotes,
// or if host begins with * or [, which YAML would read as an alias or a list.
func quotedHost(host, next string) string {
	if strings.HasPrefix(next, `"`) || host[0] == '*' || host[0] == '[' {
		return strconv.Quote(host)
	}
	return host
}
