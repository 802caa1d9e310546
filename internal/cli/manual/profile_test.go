package manual

import (
	"fmt"
	"strings"

	"claudebox/internal/profile/shape"
)

const aboutProfiles = `A profile is a YAML file that says what a coding agent may have. A name is looked up as claudebox(1) says; what
holds a slash or ends in .yaml, .yml or .json is a file. Every fault is reported with its line and column, all of them
in one run, by ` + "`claudebox profile validate`" + `.

A profile builds on those that ` + "`extends`" + ` names: later ones win, itself last. Lists append, mappings are joined; a list or
mapping that is tagged ` + "`!replace`" + ` drops what was said before. A name is not inherited.`

// Profile is claudebox-profile(5): every key of a profile, and one to start from.
func Profile(root *shape.Shape, example []byte) []byte {
	p := newPage("claudebox-profile", 5, "what a coding agent may have")
	p.section("description")
	p.text(aboutProfiles)
	p.section("keys")
	p.keys("", root)
	p.section("example")
	p.example(string(example))
	p.section("see also")
	p.line(`.BR claudebox (1),` + "\n" + `.BR claudebox\-plan (5)`)
	return p.Bytes()
}

// keys writes the keys of a record, those inside others by their path.
func (p *page) keys(above string, s *shape.Shape) {
	for _, key := range s.Keys {
		p.key(above+key.Name, key)
	}
}

func (p *page) key(path string, key shape.Key) {
	s := key.Shape
	p.entry("`"+path+"`", strings.Join(facts(s, key.Required), " "))
	if s.Kind == shape.List || s.Kind == shape.Table {
		path, s = path+"[]", s.Elem
	}
	p.keys(path+".", s)
}

// facts are the sentences about one key.
func facts(s *shape.Shape, required bool) []string {
	said := []string{s.Doc, sentence(takes(s))}
	if examples := examplesOf(s); len(examples) > 0 {
		said = append(said, "For example `"+strings.Join(examples, "`, `")+"`.")
	}
	switch {
	case required:
		said = append(said, "Required.")
	case s.DefaultText() != "":
		said = append(said, "When unsaid: `"+s.DefaultText()+"`.")
	}
	return said
}

// takes says in words what a value may be.
func takes(s *shape.Shape) string {
	switch s.Kind {
	case shape.Flag:
		return "true or false"
	case shape.Number:
		return fmt.Sprintf("a whole number from %d to %d", s.Min, s.Max)
	case shape.Word:
		return "one of `" + strings.Join(s.Words, "`, `") + "`"
	case shape.List:
		if s.Single {
			return takes(s.Elem) + ", or a list of such"
		}
		return "a list, each " + takes(s.Elem)
	case shape.Table:
		return "a mapping of " + ruleName(s.Rule) + " to " + takes(s.Elem)
	case shape.Record:
		if s.ScalarKey != "" {
			return takes(s.Key(s.ScalarKey)) + ", or a mapping with the keys below"
		}
		return "a mapping with the keys below"
	}
	return ruleName(s.Rule)
}

func ruleName(r *shape.Rule) string {
	if r == nil {
		return "text"
	}
	return r.Name
}

func examplesOf(s *shape.Shape) []string {
	switch {
	case s.Rule != nil:
		return s.Rule.Examples
	case s.Kind == shape.List:
		return examplesOf(s.Elem)
	}
	return nil
}
