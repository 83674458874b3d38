package scenarios

import (
	"errors"
	"fmt"

	"mcpbench/scenarios/internal/generate"
)

var errNoSample = errors.New("give the arguments with -a")

// SampleArguments returns arguments that the inputSchema of a tool allows: its
// required properties only, each by const, default, the first of examples or
// enum, else the plainest value of its type. The outcome is validated against
// the schema. An error says what stands in the way, the schema being "it", and
// to pass -a.
func SampleArguments(schema []byte) ([]byte, error) {
	g, err := generate.Compile(schema)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, errNoSample)
	}
	return g.AppendLeast(nil), nil
}
