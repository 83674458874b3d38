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
	src bytes.Reader
	dec jsontext.Decoder
}

var jsonReaders = sync.Pool{New: func() any { return new(jsonReader) }}

// fillJSON adds the members of an object to dst; of two with one name the last
// counts.
func (t *text) fillJSON(row []byte, dst Row) error {
	r := jsonReaders.Get().(*jsonReader)
	defer func() {
		r.src.Reset(nil) // lets go of the row
		jsonReaders.Put(r)
	}()
	r.src.Reset(row)
	r.dec.Reset(&r.src, jsontext.AllowDuplicateNames(true))
	if kind := r.dec.PeekKind(); kind != '{' && kind != 0 {
		return fmt.Errorf("the row is %s; each line must be a JSON object", kindName(kind))
	}
	if err := r.object(dst, t.keep); err != nil {
		return plainJSON(err)
	}
	if _, err := r.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("more follows the object; each line must be one JSON object")
	}
	return nil
}

// object reads one; keep, unless nil, has the names to keep.
func (r *jsonReader) object(dst map[string]any, keep map[string]bool) error {
	if _, err := r.dec.ReadToken(); err != nil { // the brace
		return err
	}
	for r.dec.PeekKind() != '}' {
		token, err := r.dec.ReadToken()
		if err != nil {
			return err
		}
		name := token.String()
		if keep != nil && !keep[name] {
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

func (r *jsonReader) value() (any, error) {
	switch r.dec.PeekKind() {
	case '{':
		object := map[string]any{}
		return object, r.object(object, nil)
	case '[':
		return r.array()
	}
	token, err := r.dec.ReadToken()
	if err != nil {
		return nil, err
	}
	switch token.Kind() {
	case 't', 'f':
		return token.Bool(), nil
	case '"':
		return token.String(), nil
	case '0':
		return number(token.String())
	}
	return nil, nil
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
		return nil, fmt.Errorf("the number %.30s is out of range", text)
	}
	return v, nil
}

func kindName(k jsontext.Kind) string {
	switch k {
	case '[':
		return "an array"
	case '"':
		return "a string"
	case '0':
		return "a number"
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
