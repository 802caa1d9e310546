package shape

import (
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// scalar decodes a scalar by its kind; it returns the zero Value after a problem.
// The value's text is that of the file, not YAML's reading of it: 1.10 stays 1.10.
func (d *decoder) scalar(s *Shape, n *yaml.Node, what string) Value {
	if n.Kind != yaml.ScalarNode {
		return d.mismatch(s, n, what)
	}
	if strings.ContainsRune(n.Value, 0) {
		d.addf(n, "", "%s: the text holds a NUL character", what)
		return Value{}
	}
	if !s.takes(n) {
		return d.mismatch(s, n, what)
	}
	v, right := Value{Place: d.place(n), Shape: s, Text: n.Value}, true
	switch s.Kind {
	case Word:
		right = d.word(s, n, what)
	case Number:
		right = d.number(s, n, what)
	case Flag:
		v.Text = strings.ToLower(n.Value)
	default:
		right = d.obeys(s.Rule, n, what)
	}
	if !right {
		return Value{}
	}
	return v
}

// takes reports whether the YAML type of a scalar is right for the kind.
func (s *Shape) takes(n *yaml.Node) bool {
	tag := n.ShortTag()
	switch s.Kind {
	case Flag:
		return tag == "!!bool"
	case Number:
		return tag == "!!int"
	case Scalar:
		return tag != "!!null"
	}
	return tag == "!!str"
}

func (d *decoder) word(s *Shape, n *yaml.Node, what string) bool {
	if slices.Contains(s.Words, n.Value) {
		return true
	}
	remedy := ""
	if near := Nearest(n.Value, s.Words); near != "" {
		remedy = "write " + near
	}
	d.addf(n, remedy, "%s: unknown word %s; expected %s", what, Quote(n.Value), either(s.Words))
	return false
}

// number reports whether n is a valid number. It accepts plain decimal only: YAML
// 1.1 reads 0755 as 493, and 1_000 as 1000, which nobody means.
func (d *decoder) number(s *Shape, n *yaml.Node, what string) bool {
	number, err := strconv.Atoi(n.Value)
	switch {
	case err != nil || strconv.Itoa(number) != n.Value:
		d.addf(n, "write it in decimal, without leading zeros", "%s: %s is not a plain number", what, clip(n.Value))
	case number < s.Min || number > s.Max:
		d.addf(n, "", "%s: %d is out of range; expected %d to %d", what, number, s.Min, s.Max)
	default:
		return true
	}
	return false
}

// obeys reports whether a text, or the key of a table, is valid by its rule, and notes the problem if not.
func (d *decoder) obeys(rule *Rule, n *yaml.Node, what string) bool {
	fault := rule.Check(n.Value)
	if fault != nil {
		d.addf(n, fault.Remedy, "%s: %s", what, fault.Message)
	}
	return fault == nil
}

// mismatch notes that a value has the wrong kind, and returns the zero Value.
func (d *decoder) mismatch(s *Shape, n *yaml.Node, what string) Value {
	d.addf(n, s.remedyFor(n), "%s: expected %s, found %s", what, s.expected(), found(n))
	return Value{}
}

// yesNo returns "true" or "false" for the words that are booleans in YAML 1.1 but
// text in YAML 1.2, such as yes and off; "" for any other text.
func yesNo(text string) string {
	switch strings.ToLower(text) {
	case "yes", "on", "y":
		return "true"
	case "no", "off", "n":
		return "false"
	}
	return ""
}

// remedyFor returns what to write in place of n, which has the wrong kind, or "" if it cannot guess.
func (s *Shape) remedyFor(n *yaml.Node) string {
	if n.Kind == yaml.SequenceNode && s.Kind == Table && len(n.Content) > 0 {
		if name, value, is := strings.Cut(n.Content[0].Value, "="); is && value != "" {
			return "write {" + clip(name) + ": …}"
		}
	}
	if n.Kind != yaml.ScalarNode {
		return ""
	}
	text, tag := n.Value, n.ShortTag()
	switch {
	case s.Kind == Flag && yesNo(text) != "":
		return "write " + yesNo(text)
	case s.Kind == Word && tag == "!!bool" && slices.Contains(s.Words, "off"):
		return "write off"
	case s.Kind == Scalar && tag == "!!null":
		return `write "" for an empty value, or remove the key`
	case s.Kind == Text && tag == "!!null" && text == "~":
		return "write ~/folder: `~` alone is YAML for nothing"
	case tag == "!!null":
		return "write a value, or remove the key"
	case s.Kind == Number && tag == "!!str" && strings.Trim(text, "0123456789") == "":
		return "remove the quotes"
	case s.Kind == Text && s.Rule.Check(text) == nil:
		return "quote it: " + Quote(text)
	case s.Kind == List && s.Elem.Kind.isScalar():
		return "write a list: [" + clip(text) + "]"
	}
	return ""
}

// found describes n for "found …" in errors. It does not show text, which may be
// a secret in the wrong place.
func found(n *yaml.Node) string {
	switch n.Kind {
	case yaml.SequenceNode:
		return "a list"
	case yaml.MappingNode:
		return "a mapping"
	case yaml.AliasNode:
		return "an alias"
	}
	switch tag := n.ShortTag(); tag {
	case "!!null":
		return "nothing"
	case "!!str":
		return "text"
	case "!!int", "!!float":
		return "the number " + clip(n.Value)
	case "!!bool":
		return "the truth value " + clip(n.Value)
	case "!!timestamp":
		return "the date " + clip(n.Value)
	default:
		return "a value of the type " + tag
	}
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// maxShown is how many bytes of a text from a file an error shows at most.
const maxShown = 60

// clip cuts text to maxShown bytes, so that an error stays readable.
func clip(text string) string {
	if len(text) <= maxShown {
		return text
	}
	return strings.ToValidUTF8(text[:maxShown], "") + "…"
}

// Quote cuts text to the length that errors show and quotes it as Go does.
func Quote(text string) string { return strconv.Quote(clip(text)) }
