package profile_test

import (
	"encoding/json"
	"testing"

	"claudebox/checks/kit/golden"
	"claudebox/checks/kit/must"
	"claudebox/internal/profile"
	"claudebox/internal/profile/shape"
)

// TestTheSchemaIsThatOfTheTable is the freshness check, and with -update the
// generator.
func TestTheSchemaIsThatOfTheTable(t *testing.T) {
	schema := schemaOf(profile.Schema())
	schema["$schema"], schema["title"] = "https://json-schema.org/draft/2020-12/schema", "claudebox profile"
	text, err := json.MarshalIndent(schema, "", "  ")
	must.Do(t, err)
	golden.Compare(t, "schema.json", append(text, '\n'))
}

type object = map[string]any

func schemaOf(s *shape.Shape) object {
	schema := typeOf(s)
	if s.Doc != "" {
		schema["description"] = s.Doc
	}
	return schema
}

// typeOf allows null where a person may leave a list or mapping empty: all
// entries commented out leave a key without a value.
func typeOf(s *shape.Shape) object {
	switch s.Kind {
	case shape.Scalar:
		return object{"type": []string{"string", "number", "boolean"}}
	case shape.Flag:
		return withDefault(s, object{"type": "boolean"}, s.Default == "true")
	case shape.Number:
		return object{"type": "integer", "minimum": s.Min, "maximum": s.Max}
	case shape.Word:
		return withDefault(s, object{"type": "string", "enum": s.Words}, s.Words[0])
	case shape.List:
		list := object{"type": []string{"array", "null"}, "items": schemaOf(s.Elem)}
		if s.Filled {
			list["type"], list["minItems"] = "array", 1
		}
		if s.Single {
			return object{"anyOf": []object{schemaOf(s.Elem), list}}
		}
		return list
	case shape.Record:
		return recordOf(s)
	case shape.Table:
		return object{
			"type":                 []string{"object", "null"},
			"propertyNames":        limit(s.Rule, object{}),
			"additionalProperties": schemaOf(s.Elem),
		}
	}
	return withDefault(s, limit(s.Rule, object{"type": "string"}), s.Default)
}

// withDefault adds the value that stands when nothing is said, if any.
func withDefault(s *shape.Shape, schema object, value any) object {
	if s.DefaultText() != "" {
		schema["default"] = value
	}
	return schema
}

// limit adds what a rule, if any, says of texts.
func limit(r *shape.Rule, schema object) object {
	if r != nil && r.Pattern != "" {
		schema["pattern"] = r.Pattern
	}
	if r != nil && len(r.Examples) > 0 {
		schema["examples"] = r.Examples
	}
	return schema
}

func recordOf(s *shape.Shape) object {
	properties := object{}
	var required []string
	for _, key := range s.Keys {
		properties[key.Name] = schemaOf(key.Shape)
		if key.Required {
			required = append(required, key.Name)
		}
	}
	record := object{"type": []string{"object", "null"}, "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		record["required"], record["type"] = required, "object"
	}
	if s.ScalarKey != "" {
		record["type"] = "object"
		return object{"anyOf": []object{schemaOf(s.Key(s.ScalarKey)), record}}
	}
	return record
}
