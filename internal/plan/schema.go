package plan

import _ "embed"

//go:embed schema.json
var schema []byte

// Schema is the JSON Schema (draft 2020-12) of plan files. It is made from
// the types of this package and their comments by `go test ./internal/plan
// -update`; a digest that fits is beyond it.
func Schema() []byte { return schema }
