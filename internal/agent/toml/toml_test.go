package toml

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

const document = "model = \"gpt-5\" # which\r\n" + `
notify = ["a", 'b\n',
  "c", # the last
]
"quoted key".x.y = 1_000
at = 2026-11-27 05:00:00Z
hex = 0xff
half = -0.5
long = """
one \
   two "" \u00e9"""
'raw' = '''C:\x'''

[mcp_servers.fs]
command = "npx"
env = { A = "1", "B C" = true, }

[mcp_servers.fs.more]
x = []

[[rules]]
n = 1
[rules.of]
z = "z"
[[rules]]
n = 2
`

func TestADocumentIsReadAsItIs(t *testing.T) {
	want := `{"at":"2026-11-27 05:00:00Z","half":-0.5,"hex":255,"long":"one two \"\" é","mcp_servers":{"fs":{"command":"npx","env":{"A":"1","B C":true},"more":{"x":[]}}},"model":"gpt-5","notify":["a","b\\n","c"],"quoted key":{"x":{"y":1000}},"raw":"C:\\x","rules":[{"n":1,"of":{"z":"z"}},{"n":2}]}`
	root, err := Parse([]byte(document))
	got, _ := json.Marshal(root)
	if err != nil || string(got) != want {
		t.Errorf("%v\n%s, want\n%s", err, got, want)
	}
}

func TestWhatIsNoTOMLIsRefusedWithItsLine(t *testing.T) {
	for _, text := range []string{
		"a", "a =", "= 1", "a = 1 b = 2", "[a", "[[a]", `a = "b`, "a = 'b\n'", "a = [1", "a = {b = 1", "a = 1\na = 2", "a = 1\n[a]", `a = "\q"`, `a = "\u12"`,
		"a = 1\n[[a]]", "a = " + strings.Repeat("[", 9999), strings.Repeat("a.", 9999) + "a = 1", "{}", "a = \x01",
	} {
		if root, err := Parse([]byte("\n" + text)); err == nil || !strings.HasPrefix(err.Error(), "line ") {
			t.Errorf("%.40q is %v, %v", text, root, err)
		}
	}
}

// An agent left a file of comments alone, of each of which the rest of the file was copied: the next launch took 35 s.
func TestACommentCopiesNothing(t *testing.T) {
	text := []byte(strings.Repeat("# x\n", 10_000))
	if n := testing.AllocsPerRun(1, func() { _, _ = Parse(text) }); n > 100 {
		t.Errorf("%v allocations", n)
	}
}

// What is written is read as it was.
func FuzzFormat(f *testing.F) {
	f.Add([]byte(document))
	f.Add([]byte("a = \"\x7f\\u0000\"\n'\"' = inf\nb = {}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		root, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(Format(root))
		before, _ := json.Marshal(root) // which mends what is no UTF-8
		after, _ := json.Marshal(again)
		if err != nil || !reflect.DeepEqual(before, after) {
			t.Errorf("%q became %q: %v", before, after, err)
		}
	})
}
