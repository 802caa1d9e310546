package shape

import (
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// scalar reads a scalar by its kind. The text is what the file says, not what
// YAML makes of it: 1.10 stays 1.10.
func (d *decoder) scalar(s *Shape, n *yaml.Node, what string) (Value, bool) {
	if n.Kind != yaml.ScalarNode {
		return d.mismatch(s, n, what)
	}
	if strings.ContainsRune(n.Value, 0) {
		d.addf(n, "", "%s: the text holds a NUL character", what)
		return Value{}, false
	}
	v := Value{Place: d.place(n), Shape: s, Text: n.Value}
	if !s.takes(n) {
		return d.mismatch(s, n, what)
	}
	switch s.Kind {
	case Word:
		return v, d.word(s, n, what)
	case Number:
		return v, d.number(s, n, what)
	case Flag:
		v.Text = strings.ToLower(n.Value)
		return v, true
	}
	return v, d.obeys(s.Rule, n, what)
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
	remedy := s.Former[n.Value]
	if near := Nearest(n.Value, s.Words); remedy == "" && near != "" {
		remedy = "write " + near
	}
	d.addf(n, remedy, "%s: unknown word %s; expected %s", what, Quote(n.Value), either(s.Words))
	return false
}

// number takes plain decimal only: YAML 1.1 reads 0755 as 493, and 1_000 as
// 1000, which nobody means.
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

// obeys judges a text, or the key of a table, by its rule.
func (d *decoder) obeys(rule *Rule, n *yaml.Node, what string) bool {
	fault := rule.Check(n.Value)
	if fault != nil {
		d.addf(n, fault.Remedy, "%s: %s", what, fault.Message)
	}
	return fault == nil
}

// mismatch reports a value of the wrong kind.
func (d *decoder) mismatch(s *Shape, n *yaml.Node, what string) (Value, bool) {
	d.addf(n, s.remedyFor(n), "%s: expected %s, found %s", what, s.expected(), found(n))
	return Value{}, false
}

// yesNo is what YAML 1.1 took a word for, and 1.2 takes for text; "" when it
// took it for text as well.
func yesNo(text string) string {
	switch strings.ToLower(text) {
	case "yes", "on", "y":
		return "true"
	case "no", "off", "n":
		return "false"
	}
	return ""
}

// remedyFor names what to write in the place of n, where that can be told.
func (s *Shape) remedyFor(n *yaml.Node) string {
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

// found says what n is, as errors show it. Text is not shown: it may be a
// secret in the wrong place.
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

// maxShown is how many bytes of a file's text an error shows.
const maxShown = 60

// clip cuts text so that an error stays readable.
func clip(text string) string {
	if len(text) <= maxShown {
		return text
	}
	return strings.ToValidUTF8(text[:maxShown], "") + "…"
}

// Quote clips and quotes text, with control characters escaped.
func Quote(text string) string { return strconv.Quote(clip(text)) }
