package shape

import "encoding/json"

// dialect is the JSON Schema that editors' YAML servers know best.
const dialect = "https://json-schema.org/draft/2020-12/schema"

// JSONSchema is the shape as a JSON Schema (draft 2020-12), indented and with
// a newline at the end. It takes every document that [Decode] takes; what
// concerns several keys at once is left to the decoder.
func JSONSchema(root *Shape, title string) ([]byte, error) {
	schema := root.jsonSchema()
	schema["$schema"] = dialect
	schema["title"] = title
	text, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(text, '\n'), nil
}

type object = map[string]any

func (s *Shape) jsonSchema() object {
	schema := s.jsonType()
	if s.Doc != "" {
		schema["description"] = s.Doc
	}
	return schema
}

// jsonType allows null where a person may leave a list or mapping empty: all
// entries commented out leave a key without a value.
func (s *Shape) jsonType() object {
	switch s.Kind {
	case Scalar:
		return object{"type": []string{"string", "number", "boolean"}}
	case Flag:
		return s.withDefault(object{"type": "boolean"}, s.Default == "true")
	case Number:
		return object{"type": "integer", "minimum": s.Min, "maximum": s.Max}
	case Word:
		return s.withDefault(object{"type": "string", "enum": s.Words}, s.Words[0])
	case List:
		list := object{"type": []string{"array", "null"}, "items": s.Elem.jsonSchema()}
		if s.Filled {
			list["type"], list["minItems"] = "array", 1
		}
		if s.Single {
			return object{"anyOf": []object{s.Elem.jsonSchema(), list}}
		}
		return list
	case Record:
		return s.jsonRecord()
	case Table:
		return object{
			"type":                 []string{"object", "null"},
			"propertyNames":        s.Rule.limit(object{}),
			"additionalProperties": s.Elem.jsonSchema(),
		}
	}
	return s.withDefault(s.Rule.limit(object{"type": "string"}), s.Default)
}

// withDefault adds the value that stands when nothing is said, if any.
func (s *Shape) withDefault(schema object, value any) object {
	if s.Unsaid() != "" {
		schema["default"] = value
	}
	return schema
}

// limit adds what a rule, if any, says of texts.
func (r *Rule) limit(schema object) object {
	if r != nil && r.Pattern != "" {
		schema["pattern"] = r.Pattern
	}
	if r != nil && len(r.Examples) > 0 {
		schema["examples"] = r.Examples
	}
	return schema
}

func (s *Shape) jsonRecord() object {
	properties := object{}
	for _, key := range s.Keys {
		properties[key.Name] = key.Shape.jsonSchema()
	}
	record := object{"type": []string{"object", "null"}, "properties": properties, "additionalProperties": false}
	if required := s.required(); len(required) > 0 {
		record["required"], record["type"] = required, "object"
	}
	if s.Short != "" {
		record["type"] = "object"
		return object{"anyOf": []object{s.Key(s.Short).jsonSchema(), record}}
	}
	return record
}
