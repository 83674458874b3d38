package schemas

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	maxDepth    = 256  // of nested objects and arrays
	maxExponent = 400  // beyond float64's 308, and cheap as an exact fraction
	maxDigits   = 1000 // of one number
)

// Decode reads one JSON value as the validator wants it: json.Number for
// numbers. Of members with one name the last wins. An error says what is wrong
// with "it": no JSON, nested too deep, or a number that no float64 is near, on
// which the validator would panic.
func Decode(data []byte) (any, error) {
	d := jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	v, err := decode(d)
	if err != nil {
		return nil, err
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.New("it is not JSON: more follows the value")
	}
	return v, nil
}

func decode(d *jsontext.Decoder) (any, error) {
	t, err := d.ReadToken()
	if err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	if d.StackDepth() > maxDepth {
		return nil, fmt.Errorf("it is nested deeper than %d", maxDepth)
	}
	switch byte(t.Kind()) {
	case 'n':
		return nil, nil //nolint:nilnil // null is the value
	case 't', 'f':
		return t.Bool(), nil
	case '"':
		return t.String(), nil
	case '0':
		n := json.Number(t.String())
		if !plain(n) {
			return nil, fmt.Errorf("it has the number %s, which is beyond what programs exchange", Cut(n.String(), 40))
		}
		return n, nil
	case '[':
		items := []any{}
		for d.PeekKind() != ']' {
			item, err := decode(d)
			if err != nil {
				return nil, err
			}
			items = append(items, item)
		}
		_, err := d.ReadToken()
		return items, err
	default: // '{'; the decoder itself refuses a closing bracket here
		members := map[string]any{}
		for d.PeekKind() != '}' {
			name, err := d.ReadToken()
			if err != nil {
				return nil, fmt.Errorf("it is not JSON: %w", err)
			}
			key := name.String()
			if members[key], err = decode(d); err != nil {
				return nil, err
			}
		}
		_, err := d.ReadToken()
		return members, err
	}
}

// plain tells that a number can be made an exact fraction at little cost.
func plain(n json.Number) bool {
	digits, exponent, found := strings.Cut(strings.ToLower(n.String()), "e")
	if len(digits) > maxDigits {
		return false
	}
	if !found {
		return true
	}
	e, err := strconv.Atoi(exponent)
	return err == nil && e >= -maxExponent && e <= maxExponent
}
