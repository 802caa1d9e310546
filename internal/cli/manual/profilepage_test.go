package manual

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"claudebox/internal/profile/shape"
)

const profilePage = `# A profile, key by key

A profile is a YAML file that says what an agent may have. claudebox looks for ` + "`-P NAME`" + ` in ` + "`~/.claudebox/profiles/NAME.yaml`" + `.

` + "```console" + `
$ claudebox profile init work        # writes one to start from
$ claudebox profile validate work    # names each fault, with line and column
$ claudebox -P work                  # starts by it
` + "```" + `

A profile builds on those that ` + "`extends`" + ` names. Later ones win, itself last. Lists append, and mappings are joined.
A list or mapping that is tagged ` + "`!replace`" + ` drops what was said before.

A project can bring a profile of its own, ` + "`.claudebox.yaml`" + `. It can only tighten, until you have allowed it with ` + "`claudebox allow`" + `.

Editors know the keys by ` + "`claudebox profile schema`" + `.
`

// ProfilePage is docs/profile.md: every key of a profile with an example, as the starter has it.
func ProfilePage(root *shape.Shape, starter []byte) []byte {
	var page strings.Builder
	page.WriteString(profilePage)
	for _, key := range root.Keys {
		fmt.Fprintf(&page, "\n## `%s`\n\n%s\n\n```yaml\n%s```\n", key.Name, strings.Join(facts(key.Shape, key.Required), " "),
			exampleOf(key, string(starter)))
		below := rows(key.Name, key.Shape)
		if len(below) > 0 {
			page.WriteString("\n| key | it says | it takes |\n| --- | --- | --- |\n" + strings.Join(below, ""))
		}
	}
	return []byte(page.String())
}

// rows are lines of a table: the keys below one.
func rows(path string, s *shape.Shape) (list []string) {
	if s.Kind == shape.List || s.Kind == shape.Table {
		path, s = path+"[]", s.Elem
	}
	cell := strings.NewReplacer("|", "\\|", "\n", " ")
	for _, key := range s.Keys {
		at := path + "." + key.Name
		what := takes(key.Shape)
		switch {
		case key.Required:
			what += "; required"
		case key.Shape.DefaultText() != "":
			what += "; when unsaid: `" + key.Shape.DefaultText() + "`"
		}
		list = append(list, fmt.Sprintf("| `%s` | %s | %s |\n", at, cell.Replace(key.Shape.Doc), cell.Replace(what)))
		list = append(list, rows(at, key.Shape)...)
	}
	return list
}

// exampleOf is what the starter has of a key, without the signs of a comment; else the key with a value that it takes.
func exampleOf(key shape.Key, starter string) string {
	lines := regexp.MustCompile(`(?m)^#?` + key.Name + `:.*\n(?:#? {2,}.*\n)*`).FindString(starter)
	if lines == "" {
		value := strings.Join(append(examplesOf(key.Shape), key.Shape.DefaultText()), "\n")
		value, _, _ = strings.Cut(cmp.Or(value, "true"), "\n")
		return key.Name + ": " + value + "\n"
	}
	return regexp.MustCompile(`(?m)^#`).ReplaceAllString(lines, "")
}
