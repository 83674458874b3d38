package output_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbench/output"
)

func TestPrettyJSON(t *testing.T) {
	for _, tt := range []struct {
		text  string
		width int
		want  string
	}{
		{`{"a":1,"b":[true,null,-1.50e3],"c":{}}`, 80, `{"a": 1, "b": [true, null, -1.50e3], "c": {}}`},
		{` { "a" : 1 , "b" : { } } `, 10, "{\n  \"a\": 1,\n  \"b\": {}\n}"},
		{`{"id":1,"result":{"content":[{"type":"text","text":"a \"quoted\" word, a: colon"}],"isError":false}}`, 60, `{
  "id": 1,
  "result": {
    "content": [
      {
        "type": "text",
        "text": "a \"quoted\" word, a: colon"
      }
    ],
    "isError": false
  }
}`},
		{`[[1,2,3],[4,5,6]]`, 12, "[\n  [1, 2, 3],\n  [4, 5, 6]\n]"},
		{`"text"`, 3, `"text"`},
		{`[]`, 1, `[]`},
		{"{\"k\u009b\":\"\u202e\"}", 80, `{"k\x9b": "\u202e"}`},
		{`{"日本":"日本"}`, 13, "{\n  \"日本\": \"日本\"\n}"},
	} {
		lines, ok := output.PrettyJSON(tt.text, tt.width)
		if d := cmp.Diff(tt.want, strings.Join(lines, "\n")); d != "" || !ok {
			t.Errorf("%s in %d columns, ok %v (-want +got)\n%s", tt.text, tt.width, ok, d)
		}
	}
	for _, text := range []string{"", "a banner", `{"a":1`, `{} {}`} {
		if lines, ok := output.PrettyJSON(text, 80); ok {
			t.Errorf("%q: %q", text, lines)
		}
	}
}

// Deep and long texts take time in proportion.
func TestPrettyJSONOfDeepText(t *testing.T) {
	const depth = 9000
	text := strings.Repeat(`{"a":[`, depth/2) + strings.Repeat(`]}`, depth/2)
	lines, ok := output.PrettyJSON(text, 20)
	if !ok || len(lines) > 2*depth || len(lines[len(lines)/2]) > 200 {
		t.Errorf("%d lines, %v", len(lines), ok)
	}
}

// Whatever is laid out is the same JSON.
func FuzzPrettyJSON(f *testing.F) {
	for _, seed := range []string{`{"a":[1,{"b":"c"}],"d":""}`, `[[],{},"\\",1e5]`, "\"\u2028\"", `0`} {
		f.Add(seed, 10)
	}
	f.Fuzz(func(t *testing.T, text string, width int) {
		lines, ok := output.PrettyJSON(text, width)
		if ok != json.Valid([]byte(text)) {
			t.Fatalf("%q: ok is %v", text, ok)
		}
		if !ok || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
			return // characters that were escaped
		}
		var a, b any
		if json.Unmarshal([]byte(text), &a) != nil {
			return // a number out of range
		}
		if err := json.Unmarshal([]byte(strings.Join(lines, "\n")), &b); err != nil || !cmp.Equal(a, b) {
			t.Errorf("%q became %q: %v", text, lines, err)
		}
	})
}
