// Package schemas reads and compiles JSON Schemas that come from servers and
// from users: offline, within limits, and with the regular expressions that
// servers really send. A schema that compiles here can be validated against
// without a panic and at a cost that grows with the value alone.
package schemas

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	maxBytes   = 1 << 20 // of a schema
	maxObjects = 5_000   // JSON objects in it; the compiler takes quadratic time, about 0.3 s for these
)

// Formats says what the keyword format means.
type Formats bool

// The specification lets a validator ignore formats (JSON Schema 2020-12
// validation §7.2.1): what is to be accepted must have them right, what is to
// be refused must be wrong without them.
const (
	IgnoreFormats Formats = false
	AssertFormats Formats = true
)

// Compile compiles the schema in data: draft 2020-12 unless $schema names
// another. References to other documents are errors, as are schemas whose
// validation could take exponential time. The schema is safe for concurrent use.
func Compile(data []byte, formats Formats) (*jsonschema.Schema, error) {
	if len(data) > maxBytes {
		return nil, fmt.Errorf("it has %d bytes, more than %d", len(data), maxBytes)
	}
	document, err := Decode(data)
	if err != nil {
		return nil, err
	}
	left := maxObjects
	if !countObjects(document, &left) {
		return nil, fmt.Errorf("it has more than %d objects", maxObjects)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(compilePattern)
	if formats == AssertFormats {
		c.AssertFormat()
	}
	const name = "urn:mcpbench:schema"
	if err := c.AddResource(name, document); err != nil {
		return nil, fmt.Errorf("it is broken: %s", Failure(err))
	}
	schema, err := c.Compile(name)
	if err != nil {
		return nil, fmt.Errorf("it is broken: %s", Failure(err))
	}
	all := Reachable(schema)
	if err := checkWeight(all); err != nil {
		return nil, err
	}
	if formats == IgnoreFormats { // drafts before 2019-09 always assert them
		for _, s := range all {
			s.Format = nil
		}
	}
	return schema, nil
}

func countObjects(v any, left *int) bool {
	switch v := v.(type) {
	case map[string]any:
		*left--
		for _, member := range v {
			if *left < 0 || !countObjects(member, left) {
				return false
			}
		}
	case []any:
		for _, item := range v {
			if !countObjects(item, left) {
				return false
			}
		}
	}
	return *left >= 0
}

// noLoader refuses references to other documents: nothing is fetched or read.
type noLoader struct{}

// Load refuses url.
func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s is another document", url)
}

const (
	maxFailures     = 3     // failures told
	maxFailureBytes = 160   // of each
	maxLeaves       = 10000 // failures looked at
)

// Failure returns what a compile or validation error says in one line of at
// most about 500 bytes: the first failures by the place in the value, each with
// its JSON pointer.
func Failure(err error) string {
	if broken, ok := errors.AsType[*jsonschema.SchemaValidationError](err); ok {
		err = broken.Err
	}
	verr, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		line, _, _ := strings.Cut(err.Error(), "\n")
		return Cut(line, maxFailures*maxFailureBytes)
	}
	leaves := appendLeaves(nil, verr)
	slices.SortStableFunc(leaves, func(a, b *jsonschema.ValidationError) int {
		return slices.Compare(a.InstanceLocation, b.InstanceLocation)
	})
	var lines []string
	for i, leaf := range leaves {
		line := Cut(leaf.Error(), maxFailureBytes)
		if slices.Contains(lines, line) {
			continue
		}
		if len(lines) == maxFailures {
			lines = append(lines, fmt.Sprintf("%d more", len(leaves)-i))
			break
		}
		lines = append(lines, line)
	}
	return strings.ReplaceAll(strings.Join(lines, "; "), "\n", " ")
}

func appendLeaves(leaves []*jsonschema.ValidationError, e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	if len(e.Causes) == 0 && len(leaves) < maxLeaves {
		return append(leaves, e)
	}
	for _, cause := range e.Causes {
		leaves = appendLeaves(leaves, cause)
	}
	return leaves
}

// Cut returns text in at most n bytes, cut at a character and marked when it
// was longer.
func Cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	const mark = "…"
	return strings.ToValidUTF8(text[:n-len(mark)], "") + mark
}
