package schemas_test

import (
	"fmt"
	"strings"
	"testing"

	"mcpbench/scenarios/internal/schemas"
)

func TestCompileRefuses(t *testing.T) {
	doubled := func(levels int) string {
		var b strings.Builder
		b.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
		for i := range levels {
			fmt.Fprintf(&b, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
		}
		fmt.Fprintf(&b, `"d%d":{"type":"object"}}}`, levels)
		return b.String()
	}
	for _, tt := range []struct{ name, schema, want string }{
		{"no JSON", `{`, "it is not JSON"},
		{"two values", `{} {}`, "more follows"},
		{"a number the validator panics on", `{"minimum":1e999999999}`, "beyond what programs exchange"},
		{"a tiny number the validator panics on", `{"multipleOf":1e-999999999}`, "beyond what programs exchange"},
		{"another document", `{"$ref":"http://example.com/x.json"}`, "another document"},
		{"a file", `{"$ref":"file:///etc/passwd"}`, "another document"},
		{"an unknown dialect", `{"$schema":"http://example.com/dialect"}`, "another document"},
		{"a reference to nothing", `{"$ref":"#/$defs/a"}`, "not found"},
		{"a broken keyword", `{"required":"a"}`, "at '/required': got string, want array"},
		{"a circle", `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`, "circle"},
		{"recursive allOf", `{"allOf":[{"$ref":"#"},{"$ref":"#"}]}`, "circle"},
		{"2^30 schemas at one place", doubled(30), "too many"},
		{"2^d schemas at depth d", `{"properties":{"a":{"allOf":[{"$ref":"#"},{"$ref":"#"}]}}}`, "too many"},
		{"deep", strings.Repeat(`{"not":`, 300) + "{}" + strings.Repeat("}", 300), "nested deeper"},
		{"long", `{"title":"` + strings.Repeat("x", 1<<20) + `"}`, "bytes"},
		{"many", `{"enum":[` + strings.Repeat("{},", 5_000) + `{}]}`, "objects"},
		{"back-reference", `{"pattern":"(a)\\1"}`, "pattern"},
		{"look-ahead in the middle", `{"pattern":"^a(?!b)c$"}`, "pattern"},
		{"look-ahead of one alternative", `{"pattern":"^(?!b)c|d"}`, "pattern"},
		{"huge pattern", `{"pattern":"(a{1000}){1000}"}`, "pattern"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := schemas.Compile([]byte(tt.schema), schemas.AssertFormats)
			if err == nil || !strings.Contains(err.Error(), tt.want) || len(err.Error()) > 600 || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v; want one line with %q", err, tt.want)
			}
		})
	}
}

func TestFormatsAreIgnoredOrNot(t *testing.T) {
	for _, draft := range []string{"https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#"} {
		schema := fmt.Appendf(nil, `{"$schema":%q,"properties":{"format":{"type":"string","format":"email"},"r":{"format":"regex"}}}`, draft)
		for formats, valid := range map[schemas.Formats]bool{schemas.IgnoreFormats: true, schemas.AssertFormats: false} {
			s, err := schemas.Compile(schema, formats)
			if err != nil {
				t.Fatal(err)
			}
			for _, value := range []map[string]any{{"format": "nobody"}, {"r": "("}} {
				if err := s.Validate(value); (err == nil) != valid {
					t.Errorf("%s, formats asserted %v, %v: %v", draft, formats, value, err)
				}
			}
		}
	}
}

func TestPatterns(t *testing.T) {
	for _, tt := range []struct {
		pattern string
		yes, no []string
	}{
		{`^(?=.*[0-9])(?=.*[a-z]).{4,8}$`, []string{"abc1", "1aaaaaa"}, []string{"abcd", "1234", "a1", "aaaaaaaa1"}},
		{`^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$`, []string{"a.b@c.de"}, []string{".a@c.de", "a..b@c.de", "a@c"}},
		{`^(?!(?:a|[)])b)\w+$`, []string{"ac", "b"}, []string{"ab"}},
		{`^(?!a)(b|c)$`, []string{"b", "c"}, []string{"a", "ab"}},
		{`^\u0041\\u$`, []string{`A\u`}, []string{"B", "A"}},
		{`^\/\-$`, []string{"/-"}, []string{"/"}},
		{`b`, []string{"abc"}, []string{"ac"}},
	} {
		s, err := schemas.Compile(fmt.Appendf(nil, `{"pattern":%q}`, tt.pattern), schemas.IgnoreFormats)
		if err != nil {
			t.Errorf("%s: %v", tt.pattern, err)
			continue
		}
		for _, text := range tt.yes {
			if !s.Pattern.MatchString(text) {
				t.Errorf("%s refuses %s", tt.pattern, text)
			}
		}
		for _, text := range tt.no {
			if s.Pattern.MatchString(text) {
				t.Errorf("%s accepts %s", tt.pattern, text)
			}
		}
	}
}

func TestFailureIsBoundedAndAlwaysTheSame(t *testing.T) {
	s, err := schemas.Compile([]byte(`{"additionalProperties":{"type":"integer"}}`), schemas.IgnoreFormats)
	if err != nil {
		t.Fatal(err)
	}
	value := map[string]any{}
	for i := range 50 {
		value[fmt.Sprintf("member%02d", i)] = "text"
	}
	want := "at '/member00': got string, want integer; at '/member01': got string, want integer; at '/member02': got string, want integer; 47 more"
	for range 20 {
		if got := schemas.Failure(s.Validate(value)); got != want {
			t.Fatalf("failure %q", got)
		}
	}
}

func TestThousandsOfPropertiesCompile(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"type":"object","properties":{`)
	for i := range 4_500 {
		fmt.Fprintf(&b, `"p%d":{"type":"string"},`, i)
	}
	b.WriteString(`"last":{}}}`)
	if _, err := schemas.Compile([]byte(b.String()), schemas.IgnoreFormats); err != nil {
		t.Error(err)
	}
}
