package plan

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"claudebox/checks/kit/golden"
	"claudebox/checks/kit/must"
)

// TestTheSchemaIsThatOfTheTypes is the freshness check, and with -update the
// generator.
func TestTheSchemaIsThatOfTheTypes(t *testing.T) {
	text, err := json.MarshalIndent(describe(t), "", "  ")
	must.Do(t, err)
	golden.Compare(t, "schema.json", append(text, '\n'))
}

func TestTheSchemaTakesAPlanAndNothingElse(t *testing.T) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	must.Do(t, err)
	c := jsonschema.NewCompiler()
	must.Do(t, c.AddResource("plan.json", doc))
	s, err := c.Compile("plan.json")
	must.Do(t, err)
	good := string(build(t, example()).Encode())
	for name, tc := range map[string]struct {
		src  string
		want bool
	}{
		"a plan":                  {good, true},
		"an unknown key":          {strings.Replace(good, `"system"`, `"sytem"`, 1), false},
		"an unknown kind":         {strings.Replace(good, `"kind": "tmpfs"`, `"kind": "tmp"`, 1), false},
		"another version":         {strings.Replace(good, `"version": `, `"version": 9`, 1), false},
		"a value of another type": {strings.Replace(good, `"state": "project"`, `"state": 3`, 1), false},
		"a mount without a place": {strings.Replace(good, `"destination"`, `"mode"`, 1), false},
	} {
		t.Run(name, func(t *testing.T) {
			value, err := jsonschema.UnmarshalJSON(strings.NewReader(tc.src))
			must.Do(t, err)
			if err := s.Validate(value); (err == nil) != tc.want {
				t.Errorf("got %v", err)
			}
		})
	}
}

type object = map[string]any

// comments are those of types, "plan.Mount", of fields, "plan.Mount.Kind", and
// the constants of types of text.
type comments struct {
	docs  map[string]string
	words map[string][]string
}

func describe(t *testing.T) object {
	c := readComments(t)
	root := c.schema(reflect.TypeFor[Plan]())
	root["$schema"], root["title"] = "https://json-schema.org/draft/2020-12/schema", "claudebox's plan"
	properties := root["properties"].(object)
	properties["digest"] = object{"type": "string", "pattern": "^[0-9a-f]{64}$", "description": "sha256 of the file without this line"}
	properties["version"] = object{"const": Version}
	root["required"] = append([]string{"digest"}, root["required"].([]string)...)
	return root
}

func readComments(t *testing.T) comments {
	c := comments{map[string]string{}, map[string][]string{}}
	for _, name := range []string{"plan.go", "resolve/resolution.go", "../profile/profile.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		must.Do(t, err)
		c.ofFile(file)
	}
	return c
}

func (c comments) ofFile(file *ast.File) {
	for _, decl := range file.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range group.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				c.ofType(file.Name.Name+"."+spec.Name.Name, spec, group.Doc)
			case *ast.ValueSpec:
				if word, ok := spec.Values[0].(*ast.BasicLit); ok && spec.Type != nil {
					text, _ := strconv.Unquote(word.Value)
					name := spec.Type.(*ast.Ident).Name
					c.words[name] = append(c.words[name], text)
				}
			}
		}
	}
}

func (c comments) ofType(name string, spec *ast.TypeSpec, doc *ast.CommentGroup) {
	c.docs[name] = plain(doc)
	if s, ok := spec.Type.(*ast.StructType); ok {
		for _, field := range s.Fields.List {
			c.docs[name+"."+field.Names[0].Name] = plain(field.Comment)
		}
	}
}

func plain(doc *ast.CommentGroup) string {
	return strings.Join(strings.Fields(doc.Text()), " ")
}

func (c comments) schema(t reflect.Type) object {
	switch t.Kind() {
	case reflect.Struct:
		return c.record(t)
	case reflect.Slice:
		return object{"type": []string{"array", "null"}, "items": c.schema(t.Elem())}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.String:
		if words := c.words[t.Name()]; words != nil && t.Name() != "MadeFile" {
			return object{"type": "string", "enum": words}
		}
		return object{"type": "string"}
	}
	return object{"type": "integer"}
}

func (c comments) record(t reflect.Type) object {
	properties, required := object{}, []string{}
	for i := range t.NumField() {
		field := t.Field(i)
		name, more, _ := strings.Cut(field.Tag.Get("json"), ",")
		schema := c.schema(field.Type)
		if doc := c.docs[t.String()+"."+field.Name]; doc != "" {
			schema["description"] = doc
		}
		properties[name] = schema
		if more != "omitempty" && more != "omitzero" {
			required = append(required, name)
		}
	}
	record := object{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
	if doc := c.docs[t.String()]; doc != "" {
		record["description"] = doc
	}
	return record
}
