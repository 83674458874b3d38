package scenarios_test

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"mcpbench/scenarios"
)

// schemaOf compiles the published schema.
func schemaOf(tb testing.TB) *jsonschema.Schema {
	tb.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(scenarios.SchemaJSON()))
	if err != nil {
		tb.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("mcpbench.schema.json", document); err != nil {
		tb.Fatal(err)
	}
	s, err := c.Compile("mcpbench.schema.json")
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// validates tells what the schema says of a YAML text, which is read by the
// YAML library's own decoder, as an editor would.
func validates(tb testing.TB, s *jsonschema.Schema, text []byte) error {
	tb.Helper()
	var value any
	if err := yaml.Unmarshal(text, &value); err != nil {
		tb.Fatal(err)
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		tb.Fatal(err)
	}
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(encoded))
	if err != nil {
		tb.Fatal(err)
	}
	return s.Validate(instance)
}

func TestSchemaAcceptsFullExampleAndBundled(t *testing.T) {
	s := schemaOf(t)
	full, err := os.ReadFile("testdata/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := validates(t, s, full); err != nil {
		t.Errorf("full example: %v", err)
	}
	for _, b := range scenarios.Bundled() {
		if err := validates(t, s, b.Data); err != nil {
			t.Errorf("%s: %v", b.Name, err)
		}
	}
}

func TestSchemaRefuses(t *testing.T) {
	s := schemaOf(t)
	const head = "version: 1\nload: {groups: {main: {}}}\n"
	for name, text := range map[string]string{
		"no version":        "load: {groups: {main: {}}}\nflows: {f: {steps: [{ping: {}}]}}\n",
		"unknown key":       head + "flows: {f: {steps: [{ping: {}}]}}\nflow: 1\n",
		"duration a number": head + "flows: {f: {steps: [{ping: {}, timeout: 5}]}}\n",
		"no operation":      head + "flows: {f: {steps: [{id: a}]}}\n",
		"two operations":    head + "flows: {f: {steps: [{ping: {}, tools/list: {}}]}}\n",
		"progress a text":   head + "flows: {f: {steps: [{ping: {}, progress: maybe}]}}\n",
		"cancel without":    head + "flows: {f: {steps: [{ping: {}, cancel: {}}]}}\n",
		"one end":           head + "flows: {f: {steps: [{ping: {}, cancel: {after: {uniform: [5ms]}}}]}}\n",
		"wait for nothing":  head + "flows: {f: {steps: [{wait_for: {from: x}}]}}\n",
		"before no list":    head + "flows: {f: {before: {ping: {}}, steps: [{ping: {}}]}}\n",
		"unknown action":    head + "client: {answers: {elicitation: {action: maybe}}}\nflows: {f: {steps: [{ping: {}}]}}\n",
		"unknown value":     head + "servers: {a: {embedded: carrier pigeon}}\nflows: {f: {steps: [{ping: {}}]}}\n",
	} {
		if err := validates(t, s, []byte(text)); err == nil {
			t.Errorf("%s: accepted:\n%s", name, text)
		}
	}
}

func TestSchemaAllowsVariables(t *testing.T) {
	text := "version: 1\nservers: {a: {embedded: \"${KIND:-http}\"}}\nload: {groups: {main: {sessions: \"${N:-3}\", duration: \"${D:-5s}\", in_flight: \"${F:-2}\"}}}\nflows: {f: {steps: [{ping: {}}]}}\n"
	if err := validates(t, schemaOf(t), []byte(text)); err != nil {
		t.Error(err)
	}
	p := mustCompile(t, mustLoad(t, text))
	if g := p.Groups[0]; g.Sessions != 3 || g.InFlight != 2 {
		t.Errorf("sessions %d, in_flight %d; want 3 and 2", g.Sessions, g.InFlight)
	}
}
