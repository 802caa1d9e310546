package shape_test

import (
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/diag"
	"claudebox/internal/profile/shape"
)

// house is a shape with every kind in it.
var house = shape.Shape{Kind: shape.Record, Keys: []shape.Key{
	{Name: "name", Required: true, Shape: &shape.Shape{Kind: shape.Text}},
	{Name: "colour", Shape: &shape.Shape{Kind: shape.Word, Words: []string{"white", "red"}}},
	{Name: "lit", Shape: &shape.Shape{Kind: shape.Flag, Default: "true"}},
	{Name: "rooms", Shape: &shape.Shape{Kind: shape.List, Elem: &shape.Shape{Kind: shape.Text}}},
	{Name: "doors", Shape: &shape.Shape{Kind: shape.Number, Min: 1, Max: 9}},
	{Name: "notes", Shape: &shape.Shape{Kind: shape.Table, Elem: &shape.Shape{Kind: shape.Scalar}}},
	{Name: "roof", Shape: &shape.Shape{Kind: shape.Record, ScalarKey: "form", Keys: []shape.Key{
		{Name: "form", Shape: &shape.Shape{Kind: shape.Word, Words: []string{"flat", "steep"}}},
		{Name: "tiles", Shape: &shape.Shape{Kind: shape.List, Elem: &shape.Shape{Kind: shape.Text}}},
	}}},
	{Name: "owner", Shape: &shape.Shape{Kind: shape.Record, Whole: true, ScalarKey: "name", Keys: []shape.Key{
		{Name: "name", Shape: &shape.Shape{Kind: shape.Text, Default: "nobody"}},
		{Name: "pets", Shape: &shape.Shape{Kind: shape.List, Elem: &shape.Shape{Kind: shape.Text}}},
	}}},
}}

// read reads a document whose syntax is right.
func read(t *testing.T, doc *shape.Document, src string) (shape.Value, diag.Problems) {
	t.Helper()
	return shape.Decode(doc, []byte(src), &house, "house")
}

// decode reads a document that must be right.
func decode(t *testing.T, name, src string) shape.Value {
	t.Helper()
	v, problems := read(t, &shape.Document{Name: name, File: name + ".yaml"}, src)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return v
}

func byName(at shape.Place) string { return at.Doc.Name }

// format writes a value with the document each part comes from.
func format(t *testing.T, v shape.Value) string {
	t.Helper()
	text, err := shape.Style{Origin: byName}.Document(&house, v)
	must.Do(t, err)
	return string(text)
}

func TestFormatWritesEveryKindWithItsOrigin(t *testing.T) {
	got := format(t, decode(t, "a", "roof: steep\nname: \"two\\nlines\"\nnotes: {n: 1.10, e: ''}\ndoors: 2\nrooms: [hall, '3']\nlit: FALSE"))
	const want = `name: "two\nlines" # a
colour: white # by default
lit: false # a
rooms:
  - hall # a
  - "3" # a
doors: 2 # a
notes:
  n: "1.10" # a
  e: "" # a
roof:
  form: steep # a
owner:
  name: nobody # by default
`
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestFormatHidesTheValuesOfNamedKeys(t *testing.T) {
	style := shape.Style{Origin: byName, Hide: func(key, _ string) bool { return key == "pin" }}
	text, err := style.Document(&house, decode(t, "a", "name: x\nnotes: {pin: 1234, cat: tom}"))
	if err != nil || strings.Contains(string(text), "1234") || !strings.Contains(string(text), "pin: "+shape.Hidden) ||
		!strings.Contains(string(text), "cat: tom") {
		t.Errorf("%v:\n%s", err, text)
	}
}

func TestMergeLaysOneDocumentOverAnother(t *testing.T) {
	const base = "name: x\nrooms: [hall]\nnotes: {a: 1, b: 1}\nroof: {form: steep, tiles: [clay]}\nowner: {name: ann, pets: [cat]}\n"
	for name, tc := range map[string]struct{ over, want string }{
		"a scalar is replaced":       {"doors: 3", "doors: 3 # b"},
		"a list is appended to":      {"rooms: [attic]", "rooms:\n  - hall # a\n  - attic # b"},
		"a tagged list is replaced":  {"rooms: !replace [attic]", "rooms:\n  - attic # b"},
		"a table is joined":          {"notes: {b: 2, c: 2}", "notes:\n  a: \"1\" # a\n  b: \"2\" # b\n  c: \"2\" # b"},
		"a tagged table is replaced": {"notes: !replace {c: 2}", "notes:\n  c: \"2\" # b\nroof"},
		"a record is joined":         {"roof: {tiles: [slate]}", "roof:\n  form: steep # a\n  tiles:\n    - clay # a\n    - slate # b"},
		"a record by its short form": {"roof: flat", "roof:\n  form: flat # b\n  tiles:\n    - clay # a"},
		"a whole record is replaced": {"owner: bob", "owner:\n  name: bob # b\n"},
		"an empty list adds nothing": {"rooms:", "rooms:\n  - hall # a\ndoors"},
		"what is not said stays":     {"", "lit: true # by default\nrooms:\n  - hall # a"},
	} {
		t.Run(name, func(t *testing.T) {
			below := decode(t, "a", base+"doors: 2")
			before := format(t, below)
			got := format(t, shape.Merge(below, decode(t, "b", "name: x\n"+tc.over)))
			if !strings.Contains(got, tc.want) {
				t.Errorf("got:\n%s\nwant in it:\n%s", got, tc.want)
			}
			if after := format(t, below); after != before {
				t.Errorf("the lower document was changed:\n%s", after)
			}
		})
	}
}

// Two documents on top of one must not write into one another's list.
func TestMergeSharesNothingBetweenResults(t *testing.T) {
	base := decode(t, "a", "name: x\nrooms: [hall, bath]")
	once := shape.Merge(base, decode(t, "b", "name: x\nrooms: [attic]"))
	left := shape.Merge(once, decode(t, "c", "name: x\nrooms: [left]"))
	shape.Merge(once, decode(t, "d", "name: x\nrooms: [right]"))
	if got := strings.Join(left.Get("rooms").Texts(), " "); got != "hall bath attic left" {
		t.Errorf("rooms: %s", got)
	}
}

func TestNearest(t *testing.T) {
	words := []string{"packages", "protect", "protect_mode", "network", "name", "env", "mcp"}
	for text, want := range map[string]string{
		"pakages": "packages", "package": "packages", "Packages": "packages", "netwrok": "network",
		"protekt": "protect", "protect_": "protect", "prot": "protect", "nam": "name", "nmae": "name",
		"ENV": "env", "x": "", "": "", "mounts": "", "zzzzzzzz": "", "mpc": "mcp",
	} {
		if got := shape.Nearest(text, words); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestPositionsCountCharacters(t *testing.T) {
	_, problems := read(t, &shape.Document{File: "f"}, "name: é\nrooms: [ü, 1]")
	if len(problems) != 1 || problems[0].Position.String() != "f:2:12" {
		t.Errorf("problems: %v", problems)
	}
}

func TestABrokenPartIsMarkedUpToTheTop(t *testing.T) {
	for name, src := range map[string]string{
		"an unknown key":        "name: x\nroof: {a: 1}",
		"a wrong item":          "name: x\nrooms: [1]",
		"a wrong value":         "name: x\nnotes: {a: [1]}",
		"a key that is missing": "doors: 1",
	} {
		v, problems := read(t, &shape.Document{File: "f"}, src)
		if !v.Broken || len(problems) != 1 {
			t.Errorf("%s: broken %t, problems %v", name, v.Broken, problems)
		}
	}
}
