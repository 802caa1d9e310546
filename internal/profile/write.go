package profile

import (
	_ "embed"
	"strconv"
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

// WithHosts is the text of a profile with more hosts at the head of its own list
// for tier allow. Nothing else is changed, comments included. It is false where
// there is no such list. The caller reads the result again, to see whether it is
// what was meant: YAML can be written in more ways than this knows.
func WithHosts(src []byte, hosts []string) ([]byte, bool) {
	read, _ := shape.Decode(&shape.Document{}, src, schema, "profile")
	list := read.Get("network").Get("allow").Items
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
	if strings.HasSuffix(strings.TrimRight(before, " "), "-") { // an entry a line
		between = "\n" + before
	}
	for _, host := range hosts {
		before += quotedHost(host, rest) + between
	}
	lines[at.Line-1] = before + rest
	return []byte(strings.Join(lines, "")), true
}

// quotedHost writes a host as its neighbour is written; one with a wildcard
// would be taken for an alias without quotes.
func quotedHost(host, neighbour string) string {
	if strings.HasPrefix(neighbour, `"`) || strings.HasPrefix(host, "*") {
		return strconv.Quote(host)
	}
	return host
}
