package expect

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"mcpbench/scenarios/internal/schemas"
)

const (
	maxFailure = 500 // bytes of a failure
	maxValue   = 80  // of a value shown in it
)

// reader reads results. Readers are pooled: a result is read without allocating.
type reader struct {
	d    jsontext.Decoder
	in   bytes.Reader
	text []byte
}

var readers = sync.Pool{New: func() any { return new(reader) }}

const maxKept = 1 << 20 // bytes of a text kept in the pool

func open(result []byte) *reader {
	r, _ := readers.Get().(*reader)
	r.in.Reset(result)
	r.d.Reset(&r.in, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	r.text = r.text[:0]
	return r
}

func (r *reader) close() {
	if cap(r.text) > maxKept {
		r.text = nil
	}
	r.in.Reset(nil)
	readers.Put(r)
}

// onText calls test with the texts of a result, see textOf.
func onText(result []byte, test func(text []byte) string) string {
	r := open(result)
	defer r.close()
	text, err := r.textOf(result)
	if err != nil {
		return "result: " + err.Error()
	}
	if failure := test(text); failure != "" {
		return "text of the result " + failure
	}
	return ""
}

// textOf returns what a reader of a result would read: the members text of its
// content (tools/call), contents (resources/read) and messages (prompts/get),
// of resources in them too, one to a line. A result with none of these members
// is read as it came, as JSON.
func (r *reader) textOf(result []byte) ([]byte, error) {
	found := false
	err := r.members(func(name []byte) error {
		switch string(name) {
		case `"content"`, `"contents"`, `"messages"`:
			found = true
			return r.collect()
		}
		return r.d.SkipValue()
	})
	if err != nil {
		return nil, err
	}
	if !found {
		return result, nil
	}
	return r.text, nil
}

var errNoObject = errors.New("it is no JSON object")

// members calls f at the value of each member of the object that comes next.
// name is quoted and valid during the call alone.
func (r *reader) members(f func(name []byte) error) error {
	if r.d.PeekKind() != '{' {
		if _, err := r.d.ReadToken(); err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("it is not JSON: %w", err)
		}
		return errNoObject
	}
	if _, err := r.d.ReadToken(); err != nil {
		return err
	}
	for r.d.PeekKind() != '}' {
		name, err := r.d.ReadValue()
		if err != nil {
			return fmt.Errorf("it is not JSON: %w", err)
		}
		if err := f(name); err != nil {
			return err
		}
	}
	_, err := r.d.ReadToken()
	return err
}

// collect appends the members text of the value that comes next, at any depth
// but in what describes the texts.
func (r *reader) collect() error {
	switch next := byte(r.d.PeekKind()); next {
	case '[':
		if _, err := r.d.ReadToken(); err != nil {
			return err
		}
		for r.d.PeekKind() != ']' {
			if err := r.collect(); err != nil {
				return err
			}
		}
		_, err := r.d.ReadToken()
		return err
	case '{':
		return r.members(r.block)
	default:
		if err := r.d.SkipValue(); err != nil {
			return fmt.Errorf("it is not JSON: %w", err)
		}
		return nil
	}
}

func (r *reader) block(name []byte) error {
	switch string(name) {
	case `"_meta"`, `"annotations"`:
		return r.d.SkipValue()
	case `"text"`:
		if r.d.PeekKind() != '"' {
			return r.d.SkipValue()
		}
		v, err := r.d.ReadValue()
		if err != nil {
			return fmt.Errorf("it is not JSON: %w", err)
		}
		if len(r.text) > 0 {
			r.text = append(r.text, '\n')
		}
		r.text, _ = jsontext.AppendUnquote(r.text, v) // of a string that has been read: bytes that are no UTF-8 are replaced
		return nil
	}
	return r.collect()
}

// structured returns the structuredContent of a tool's result, nil when there
// is none, and whether it has isError.
func structured(result []byte) (content []byte, isError bool, err error) {
	r := open(result)
	defer r.close()
	err = r.members(func(name []byte) error {
		switch string(name) {
		case `"structuredContent"`:
			v, err := r.d.ReadValue()
			content = bytes.Clone(v)
			return err
		case `"isError"`:
			t, err := r.d.ReadToken()
			isError = err == nil && t.Kind() == 't'
			return err
		}
		return r.d.SkipValue()
	})
	return content, isError, err
}

// quote returns a text as a JSON string, cut to be shown.
func quote(text string) string {
	b, _ := jsontext.AppendQuote(nil, schemas.Cut(text, maxValue)) // bytes that are no UTF-8 are replaced
	return string(b)
}

func cutBytes(text []byte) []byte { return text[:min(len(text), 2*maxValue)] }
