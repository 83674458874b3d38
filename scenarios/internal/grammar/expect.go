package grammar

import "mcpbench/scenarios/internal/syntax"

// Expect decides the outcome of a request by its answer: check_failed when it is
// not as expected.
type Expect struct {
	Place
	// Outcome that is expected, or several; one of these is recorded as ok. An error is written with its code, as rpc_error:-32602.
	Outcome Names `json:"outcome"`
	// Golden is a JSON file that the result must equal, relative to the scenario's folder.
	Golden Template `json:"golden"`
	// Ignore what these JSON pointers lead to when comparing with golden.
	Ignore []string `json:"ignore"`
	// Schema is a JSON Schema of the result: a map, or the name of a file.
	Schema Value `json:"schema"`
	// Contains is text that the texts of the result contain, or a map of members that the result has.
	Contains Value `json:"contains"`
	// Matches is a regular expression (RE2) that the texts of the result match.
	Matches string `json:"matches"`
}

// Names is one text or a list of texts.
type Names struct {
	Node *syntax.Node
	List []string
}

func (v *Names) decode(d *decoder, n *syntax.Node, path string) {
	v.Node = n
	items := []*syntax.Node{n}
	if n.Kind == syntax.Seq {
		items = n.Items
	}
	for _, item := range items {
		if item.Kind != syntax.String {
			d.fault(item, path, "wants text or a list of texts; this is %s", item.Kind)
			return
		}
		v.List = append(v.List, item.Text)
	}
	if len(v.List) == 0 {
		d.fault(n, path, "the list is empty")
	}
}

// Generate calls a tool with arguments made from its input schema.
type Generate struct {
	Place
	// Tool by name, or any: one of those that are hinted read-only, of all with --allow-writes.
	Tool string `json:"tool" jsonschema:"required"`
	// Seed of the arguments. Default: the seed of the run.
	Seed *int `json:"seed" jsonschema:"minimum=0"`
	// Invalid is the share of arguments that the schema refuses, from 0 to 1: the server must refuse them too.
	Invalid *Share `json:"invalid" jsonschema:"default=0"`
}
