package scenarios

import "mcpbench/scenarios/internal/syntax"

// Problem is one fault of a scenario: where it is and what to do. Line and
// Column count from 1, columns in characters; both are 0 when the fault has no
// place in a file, and File then names the flag at fault, or the scenario.
// String prints place and message, with the excerpt on the lines after.
type Problem = syntax.Problem

// Problems are all the faults of a scenario, in the order of their places.
// Load, Override and Compile return their error as this type when the scenario
// is at fault.
type Problems = syntax.Problems //nolint:errname // a list first, an error second
