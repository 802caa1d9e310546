package profile_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"claudebox/checks/kit/must"
	"claudebox/internal/profile"
	"claudebox/internal/profile/shape"
)

// compiled is the schema that editors get.
func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(profile.JSONSchema()))
	must.Do(t, err)
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	must.Do(t, compiler.AddResource("profile.json", document))
	schema, err := compiler.Compile("profile.json")
	must.Do(t, err)
	return schema
}

// asEditorsSee is a document as YAML 1.2 has it, without custom tags.
func asEditorsSee(t *testing.T, src string) any {
	t.Helper()
	var document any
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(src, "!replace", "")), &document); err != nil {
		t.Fatalf("%v in:\n%s", err, src)
	}
	if document == nil {
		return map[string]any{} // a file of comments only
	}
	return document
}

// examples are the profiles that people are shown: the built-in one, the
// starter with its examples, that of this package's tests, and those of the
// project's texts.
func examples(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{"everything": everything}
	for _, file := range []string{"default.yaml", "starter.yaml"} {
		src := must.Read(t, file)
		found[file] = uncommented(src)
	}
	for file, text := range globAll(t, "../../README.md", "../../doc/*.md") {
		for i, block := range fenced(text) {
			found[fmt.Sprintf("%s, block %d", file, i+1)] = block
		}
	}
	return found
}

func globAll(t *testing.T, patterns ...string) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		must.Do(t, err)
		for _, file := range files {
			text := must.Read(t, file)
			texts[file] = text
		}
	}
	return texts
}

// fence is a block of YAML in Markdown. A block that is no profile begins
// with a comment that says so.
var fence = regexp.MustCompile("(?ms)^```ya?ml\n(.*?)^```$")

func fenced(text string) []string {
	var blocks []string
	for _, match := range fence.FindAllStringSubmatch(text, -1) {
		if !strings.HasPrefix(match[1], "# not a profile") {
			blocks = append(blocks, match[1])
		}
	}
	return blocks
}

func TestEveryExampleFitsTheSchemaAndTheDecoder(t *testing.T) {
	schema := compiled(t)
	for name, src := range examples(t) {
		if err := schema.Validate(asEditorsSee(t, src)); err != nil {
			t.Errorf("%s: the schema refuses it: %v", name, err)
		}
		if _, _, err := readOne("example.yaml", []byte(src)); err != nil {
			t.Errorf("%s: the decoder refuses it: %v", name, err)
		}
	}
}

// onlyDecoder are faults of several values at once, of text that is no YAML
// value, or finer than a pattern: the schema lets them pass.
var onlyDecoder = []string{
	"a key said twice names the first",
	"a variable said twice names the first",
	"a merge key",
	"a key that is no text",
	"an unknown tag",
	"a tag that makes something else of a value",
	"a wrong anchor is reported once, however often it is used",
	"an anchor that holds itself",
	"a port of the host without a network", "a port that leads both ways",
	"tier allow without a list",
	"an allow list for another tier",
	"a proxy for another tier", "a preset that is private",
	"exceptions for another tier", "exceptions that cannot be",
	"an allow list without a tier must not mean the full network",
	"git hosts that are one",
	"a token in the place of a name is not shown",
	"an agent in the project",
	"a variable that is constant and passes",
	"mounts that show what must not be seen",
	"mounts at places that are taken",
	"mounts that conflict name each other",
	"nixpkgs that is not locked", "nixpkgs by an owner with a name like a revision",
	"binary data",
}

func TestTheSchemaRefusesWhatTheDecoderRefuses(t *testing.T) {
	schema := compiled(t)
	for name, tc := range wrong {
		if slices.Contains(onlyDecoder, name) {
			continue
		}
		if err := schema.Validate(asEditorsSee(t, tc.src)); err == nil {
			t.Errorf("%s: the schema takes\n%s", name, tc.src)
		}
	}
}

func TestTheSchemaTakesWhatTheDecoderTakes(t *testing.T) {
	schema := compiled(t)
	for _, src := range []string{
		"extends: [a, b]", "extends:", "packages:", "env: {A: 1, B: 1.5, C: true, D: text}", "env:", "nix:", "mcp:", "git: {hosts: }",
		"network: full", "network: {tier: allow, allow: [npm, \"*.a.b:1\"]}", "agent: codex", "agent: {name: x}", "agent: {env: [A]}",
		"mounts: !replace [{host: ~/x, mode: rw, secret: true, optional: false}]", "ports: {in: [], out: }",
	} {
		_, _, err := profile.Load("x", files{"x.yaml": strings.Replace(src, "extends: [a, b]", "extends: [x2]", 1), "x2.yaml": ""})
		if err != nil {
			t.Errorf("the decoder refuses %q: %v", src, err)
		}
		if err := schema.Validate(asEditorsSee(t, src)); err != nil {
			t.Errorf("the schema refuses %q: %v", src, err)
		}
	}
}

func TestTheSchemaExplainsEveryKey(t *testing.T) {
	var walk func(path string, s *shape.Shape)
	walk = func(path string, s *shape.Shape) {
		if s.Elem != nil {
			walk(path+"[]", s.Elem)
		}
		for _, key := range s.Keys {
			if key.Shape.Doc == "" || !strings.HasSuffix(key.Shape.Doc, ".") {
				t.Errorf("%s.%s: the description %q is no sentence", path, key.Name, key.Shape.Doc)
			}
			walk(path+"."+key.Name, key.Shape)
		}
	}
	walk("profile", profile.Schema())
}
