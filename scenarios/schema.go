package scenarios

import _ "embed" // for the schema

//go:generate go run ./internal/genschema -o mcpbench.schema.json

//go:embed mcpbench.schema.json
var schemaJSON []byte

// SchemaJSON returns the JSON Schema of scenarios (draft 2020-12), for editors
// and catalogues. It accepts every key of the language, also those that this
// version does not do yet.
func SchemaJSON() []byte { return schemaJSON }
