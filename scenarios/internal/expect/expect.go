// Package expect decides by the answer to a request whether it is the expected
// one: the keys golden, schema, contains, matches and outcome of expect:.
//
// What the Compile functions return is immutable and safe for concurrent use.
// Their errors are *PartError. Failures are one line of at most 500
// bytes; texts of the server stand in them as JSON strings or cut short.
package expect

import (
	"bytes"
	"fmt"
	"regexp"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"mcpbench/scenarios/internal/schemas"
)

// Expectation is one condition on a result.
type Expectation struct {
	test func(result []byte) string
}

// Test returns what is wrong with result, the result member of an answer as it
// came over the wire, and "" when it is as expected.
func (e *Expectation) Test(result []byte) (failure string) {
	return schemas.Cut(e.test(result), maxFailure)
}

// PartError is a mistake in what a scenario expects.
type PartError struct {
	Part   string // the key of expect: golden, ignore, schema, contains, matches or outcome
	Index  int    // of the item of a list: ignore and outcome
	Reason string
}

// Error names the part.
func (e *PartError) Error() string {
	if e.Part == "ignore" || e.Part == "outcome" {
		return fmt.Sprintf("%s[%d]: %s", e.Part, e.Index, e.Reason)
	}
	return e.Part + ": " + e.Reason
}

// CompileSchema expects a result that a JSON Schema allows: draft 2020-12
// unless $schema names another, formats asserted, no references to other
// documents.
func CompileSchema(schema []byte) (*Expectation, error) {
	s, err := schemas.Compile(schema, schemas.AssertFormats)
	if err != nil {
		return nil, &PartError{Part: "schema", Reason: err.Error()}
	}
	return &Expectation{func(result []byte) string { return validate(s, result, "result") }}, nil
}

// CompileOutput expects of the result of a tool that its structuredContent is
// what the outputSchema of the tool allows: the check valid_output. A result
// with isError needs none (MCP 2025-06-18, tools: output schema). Formats are
// not asserted, as the specification of JSON Schema has it by default.
func CompileOutput(outputSchema []byte) (*Expectation, error) {
	s, err := schemas.Compile(outputSchema, schemas.IgnoreFormats)
	if err != nil {
		return nil, &PartError{Part: "schema", Reason: err.Error()}
	}
	return &Expectation{func(result []byte) string {
		content, isError, err := structured(result)
		switch {
		case err != nil:
			return "result: " + err.Error()
		case isError:
			return ""
		case content == nil:
			return "result has no structuredContent, which the tool's output schema asks for"
		}
		return validate(s, content, "structuredContent")
	}}, nil
}

func validate(s *jsonschema.Schema, text []byte, what string) string {
	value, err := schemas.Decode(text)
	if err != nil {
		return what + ": " + err.Error()
	}
	if err := s.Validate(value); err != nil {
		return what + " does not fit the schema: " + schemas.Failure(err)
	}
	return ""
}

// CompileText expects text as a part of the texts of a result, see textOf.
func CompileText(text string) (*Expectation, error) {
	if text == "" {
		return nil, &PartError{Part: "contains", Reason: "an empty text is part of every result"}
	}
	part := []byte(text)
	quoted := quote(text)
	return &Expectation{func(result []byte) string {
		return onText(result, func(text []byte) string {
			if bytes.Contains(text, part) {
				return ""
			}
			return "does not contain " + quoted + ", but is " + quote(string(cutBytes(text)))
		})
	}}, nil
}

// CompileMatches expects a match of a regular expression (RE2) anywhere in the
// texts of a result, see textOf.
func CompileMatches(pattern string) (*Expectation, error) {
	if pattern == "" {
		return nil, &PartError{Part: "matches", Reason: "an empty expression matches every result"}
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, &PartError{Part: "matches", Reason: err.Error()}
	}
	quoted := quote(pattern)
	return &Expectation{func(result []byte) string {
		return onText(result, func(text []byte) string {
			if re.Match(text) {
				return ""
			}
			return "does not match " + quoted + ", but is " + quote(string(cutBytes(text)))
		})
	}}, nil
}
