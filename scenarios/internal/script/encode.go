package script

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// AppendQuoted appends text as a JSON string with its quotes. Bytes that are
// not UTF-8 become U+FFFD.
func AppendQuoted(dst []byte, text string) []byte {
	out, err := jsontext.AppendQuote(dst, text)
	if err != nil {
		out, _ = jsontext.AppendQuote(dst, strings.ToValidUTF8(text, "\uFFFD"))
	}
	return out
}

// appendInside appends text as it stands inside a JSON string.
func appendInside(dst []byte, text string) []byte {
	start := len(dst)
	dst = AppendQuoted(dst, text)
	copy(dst[start:], dst[start+1:len(dst)-1])
	return dst[:len(dst)-2]
}

// appendValue appends v as a JSON value.
func appendValue(dst []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...), nil
	case string:
		return AppendQuoted(dst, v), nil
	case int:
		return strconv.AppendInt(dst, int64(v), 10), nil
	case bool:
		return strconv.AppendBool(dst, v), nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return dst, fmt.Errorf("%v is no number that JSON has", v)
		}
	case time.Duration:
		return AppendQuoted(dst, v.String()), nil
	case time.Time:
		return AppendQuoted(dst, v.Format(time.RFC3339Nano)), nil
	}
	encoded, err := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return dst, fmt.Errorf("a value that JSON does not have: %w", err)
	}
	return append(dst, encoded...), nil
}

// appendText appends v as text.
func appendText(dst []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case string:
		return append(dst, v...), nil
	case nil:
		return dst, fmt.Errorf("nothing (nil) cannot stand inside a text")
	case int, int64, uint64, bool, time.Duration:
		return fmt.Append(dst, v), nil
	case float64:
		return appendValue(dst, v)
	case time.Time:
		return v.AppendFormat(dst, time.RFC3339Nano), nil
	}
	return dst, fmt.Errorf("%s cannot stand inside a text", typeName(v))
}
