package feed

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// jsonReader is kept between rows for its buffers.
type jsonReader struct {
	// The decoder knows a bytes.Buffer and does not copy from it.
	src *bytes.Buffer
	dec jsontext.Decoder
}

var jsonReaders = sync.Pool{New: func() any { return &jsonReader{src: new(bytes.Buffer)} }}

// fillJSON adds the members of an object to dst; of two with one name the last
// counts.
func (t *text) fillJSON(row []byte, dst Row) error {
	r := jsonReaders.Get().(*jsonReader)
	defer func() {
		*r.src = bytes.Buffer{} // lets go of the row
		jsonReaders.Put(r)
	}()
	*r.src = *bytes.NewBuffer(row)
	r.dec.Reset(r.src, jsontext.AllowDuplicateNames(true))
	if kind := r.dec.PeekKind(); kind != '{' && kind != 0 {
		return fmt.Errorf("the row is %s; each line must be a JSON object", kindName(kind))
	}
	if err := r.object(dst, t.known, t.only); err != nil {
		return plainJSON(err)
	}
	if _, err := r.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("more follows the object; each line must be one JSON object")
	}
	return nil
}

// object reads one; names, unless nil, has those that are known, and only is
// whether to keep no other.
func (r *jsonReader) object(dst map[string]any, names map[string]string, only bool) error {
	if _, err := r.dec.ReadToken(); err != nil { // the brace
		return err
	}
	for r.dec.PeekKind() != '}' {
		raw, err := r.dec.ReadValue()
		if err != nil {
			return err
		}
		name, known := names[string(inside(raw))]
		if !known || bytes.IndexByte(raw, '\\') >= 0 {
			if name, err = unescaped(raw); err != nil {
				return err
			}
			_, known = names[name]
		}
		if only && !known {
			if err := r.dec.SkipValue(); err != nil {
				return err
			}
			continue
		}
		if dst[name], err = r.value(); err != nil {
			return err
		}
	}
	_, err := r.dec.ReadToken()
	return err
}

// inside is what is between the quotes of a string; nothing if it is none, which
// a name always is.
func inside(raw []byte) []byte {
	if len(raw) < 2 {
		return nil
	}
	return raw[1 : len(raw)-1]
}

// unescaped is the value of a JSON string.
func unescaped(raw []byte) (string, error) {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(inside(raw)), nil
	}
	text, err := jsontext.AppendUnquote(nil, raw)
	return string(text), err
}

func (r *jsonReader) value() (any, error) {
	kind := r.dec.PeekKind()
	if kind == '{' {
		object := map[string]any{}
		return object, r.object(object, nil, false)
	}
	if kind == '[' {
		return r.array()
	}
	return r.scalar()
}

func (r *jsonReader) scalar() (any, error) {
	raw, err := r.dec.ReadValue()
	if err != nil {
		return nil, err
	}
	switch raw[0] {
	case '"':
		return unescaped(raw)
	case 'n':
		return nil, nil
	case 't', 'f':
		return raw[0] == 't', nil
	default:
		return number(string(raw))
	}
}

func (r *jsonReader) array() (any, error) {
	if _, err := r.dec.ReadToken(); err != nil { // the bracket
		return nil, err
	}
	list := []any{}
	for r.dec.PeekKind() != ']' {
		v, err := r.value()
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := r.dec.ReadToken()
	return list, err
}

// number keeps whole numbers exact, as far as int goes.
func number(text string) (any, error) {
	if n, err := strconv.Atoi(text); err == nil && text != "-0" {
		return n, nil
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, fmt.Errorf("the number %.30s is out of range", strings.Clone(text)) // text stays on the stack
	}
	return v, nil
}

func kindName(k jsontext.Kind) string {
	if name := map[jsontext.Kind]string{'[': "an array", '"': "a string", '0': "a number"}[k]; name != "" {
		return name
	}
	return k.String()
}

// plainJSON says what is wrong without the name of a package, in 200 bytes.
func plainJSON(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return errors.New("bad JSON: it ends too early")
	}
	s := strings.TrimPrefix(err.Error(), "jsontext: ")
	if len(s) > 200 {
		s = strings.ToValidUTF8(s[:197], "") + "…"
	}
	if strings.HasPrefix(s, "the number") {
		return errors.New(s)
	}
	return fmt.Errorf("bad JSON: %s", s)
}
