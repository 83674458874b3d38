package scenarios

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	maxSampleDepth = 32      // references and nesting followed
	maxSampleBytes = 1 << 20 // of the schema
	maxSampleItems = 1000    // elements or characters made because a schema asks for them
)

var errNoSample = errors.New("give the arguments with -a")

// SampleArguments returns arguments that the inputSchema of a tool allows: its
// required properties only, each by const, default, the first of examples or
// enum, else the plainest value of its type. The outcome is validated against
// the schema. An error says what stands in the way, the schema being "it", and
// to pass -a.
func SampleArguments(schema []byte) ([]byte, error) {
	if len(schema) > maxSampleBytes {
		return nil, fmt.Errorf("it has %d bytes: %w", len(schema), errNoSample)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", errNoSample)
	}
	m := maker{root: document}
	value, err := m.value(document, 0)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, errNoSample)
	}
	if _, ok := value.(map[string]any); !ok {
		return nil, fmt.Errorf("it asks for no object: %w", errNoSample)
	}
	if err := validate(document, value); err != nil {
		return nil, fmt.Errorf("%w: %w", err, errNoSample)
	}
	// The reader keeps numbers as json.Number, which only its own package writes
	// as numbers.
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return nil, fmt.Errorf("%w: %w", err, errNoSample)
	}
	return bytes.TrimSpace(out.Bytes()), nil
}

// validate checks value against a schema that must not reach outside itself.
func validate(document, value any) error {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	c.UseLoader(noLoader{})
	const name = "input.json"
	if err := c.AddResource(name, document); err != nil {
		return fmt.Errorf("the schema is broken: %s", firstLineOf(err))
	}
	compiled, err := c.Compile(name)
	if err != nil {
		return fmt.Errorf("the schema is broken: %s", firstLineOf(err))
	}
	if err := compiled.Validate(value); err != nil {
		return fmt.Errorf("what was made does not fit it (%s)", lastLineOf(err))
	}
	return nil
}

// noLoader refuses references to other documents.
type noLoader struct{}

// Load refuses url.
func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s is another document", url)
}

func firstLineOf(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

func lastLineOf(err error) string {
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	return strings.TrimPrefix(strings.TrimSpace(lines[len(lines)-1]), "- ")
}
