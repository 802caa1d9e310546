package manual

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"claudebox/internal/profile/shape"
)

const aboutPlans = `A plan is a launch with everything in it pinned: store paths, mounts, variables and the network. It is JSON, with
its own digest in it, and holds no secret: variables of the host are named, not copied. The same inputs give the same
bytes.

` + "`claudebox plan --pinned`" + ` prints one, ` + "`claudebox --plan FILE`" + ` launches exactly by it, and
` + "`claudebox plan --diff FILE`" + ` tells what has changed since. The modules for NixOS and home-manager make one for each profile
when the system is built. One that was edited, is of another version or for another system, or names a store path that
is gone, is refused.

Some values are known only when a session starts, and stand in a plan as ` + "`${home}`, `${project}`, `${state}`" + ` and the
like.`

// schema is the part of JSON Schema that plans use.
type schema struct {
	Description string             `json:"description"`
	Type        any                `json:"type"`
	Enum        []any              `json:"enum"`
	Const       any                `json:"const"`
	Properties  map[string]*schema `json:"properties"`
	Required    []string           `json:"required"`
	Items       *schema            `json:"items"`
}

// Plan is claudebox-plan(5), from the JSON Schema of plans. What that leaves
// unsaid of a key that profiles have too is taken from their shape.
func Plan(source []byte, profile *shape.Shape) ([]byte, error) {
	var root schema
	if err := json.Unmarshal(source, &root); err != nil {
		return nil, fmt.Errorf("read the schema of plans: %w", err)
	}
	p := newPage("claudebox-plan", 5, "a pinned launch")
	p.section("description")
	p.text(aboutPlans)
	p.section("keys")
	p.properties("", &root, profile)
	p.section("see also")
	p.line(`.BR claudebox (1),` + "\n" + `.BR claudebox\-profile (5)`)
	return p.Bytes(), nil
}

func (p *page) properties(above string, s *schema, profile *shape.Shape) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		path, of, same := above+name, s.Properties[name], keyOf(profile, name)
		about := of.about()
		if about == "" && same != nil {
			about = same.Doc
		}
		p.entry("`"+path+"`", strings.TrimSpace(sentence(about)+" "+sentence(of.takes())))
		if of.Items != nil {
			path, of = path+"[]", of.Items
		}
		p.properties(path+".", of, same)
	}
}

// keyOf is the shape of the profile's key that a plan's is made of, or nil.
func keyOf(profile *shape.Shape, name string) *shape.Shape {
	if profile == nil {
		return nil
	}
	for _, key := range profile.Keys {
		if strings.EqualFold(strings.ReplaceAll(key.Name, "_", ""), name) {
			return key.Shape
		}
	}
	return nil
}

// about is what the source says of the type, without its name there.
func (s *schema) about() string {
	text := s.Description
	if text == "" && s.Items != nil {
		text = s.Items.Description
	}
	if _, rest, found := strings.Cut(text, " is "); found && !strings.Contains(text[:len(text)-len(rest)-4], " ") {
		return strings.ToUpper(rest[:1]) + rest[1:]
	}
	return text
}

func (s *schema) takes() string {
	switch {
	case len(s.Enum) > 0:
		words := make([]string, len(s.Enum))
		for i, word := range s.Enum {
			words[i] = fmt.Sprintf("`%v`", word)
		}
		return "one of " + strings.Join(words, ", ")
	case s.Const != nil:
		return fmt.Sprintf("`%v`", s.Const)
	case s.Items != nil:
		return "a list, each " + s.Items.takes()
	case s.Properties != nil:
		return "a mapping with the keys below"
	}
	return map[any]string{"string": "text", "boolean": "true or false", "integer": "a whole number"}[s.Type]
}
