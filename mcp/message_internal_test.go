package mcp

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestDecodeMessage(t *testing.T) {
	tests := []struct {
		in   string
		kind messageKind
		id   int64 // -1: no number
		err  bool
	}{
		{`{"jsonrpc":"2.0","id":7,"result":{}}`, kindResponse, 7, false},
		{` { "result" : {"id":9} , "jsonrpc":"2.0", "id" : 7 } `, kindResponse, 7, false},
		{`{"jsonrpc":"2.0","id":"7","result":{}}`, kindResponse, -1, false},
		{`{"jsonrpc":"2.0","id":7.0,"error":{}}`, kindResponse, 7, false},
		{`{"jsonrpc":"2.0","id":7e0,"error":{}}`, kindResponse, 7, false},
		{`{"jsonrpc":"2.0","id":7.5,"error":{}}`, kindResponse, -1, false},
		{`{"jsonrpc":"2.0","id":1e300,"error":{}}`, kindResponse, -1, false},
		{`{"jsonrpc":"2.0","id":-1e300,"error":{}}`, kindResponse, -1, false},
		{`{"jsonrpc":"2.0","id":null,"error":{}}`, kindResponse, -1, false},
		{`{"jsonrpc":"2.0","error":{}}`, kindResponse, -1, false},
		{`{"jsonrpc":"2.0","id":7}`, kindResponse, 7, false},
		{`{"jsonrpc":"2.0","id":0,"method":"ping"}`, kindRequest, 0, false},
		{`{"jsonrpc":"2.0","method":"x"}`, kindNotification, -1, false},
		{`{"jsonrpc":"2.0","\u0069d":8,"result":{}}`, kindResponse, 8, false},
		{`{"jsonrpc":"2.0","ID":8,"Result":{}}`, kindOther, -1, false},
		{`{"jsonrpc":"2.0","id":1,"id":2,"result":{}}`, kindResponse, 2, false},
		{`{"level":"info"}`, kindOther, -1, false},
		{`{}`, kindOther, -1, false},
		{`[]`, kindOther, -1, true},
		{`null`, kindOther, -1, true},
		{``, kindOther, -1, true},
		{`{"jsonrpc":"2.0"`, kindOther, -1, true},
		{`{"a":1}{"b":2}`, kindOther, -1, true},
		{`{"a":` + strings.Repeat("[", 20000), kindOther, -1, true},
	}
	for _, tt := range tests {
		m, err := decodeMessage([]byte(tt.in))
		if (err != nil) != tt.err || m.kind() != tt.kind {
			t.Errorf("%.60s: kind %d, error %v", tt.in, m.kind(), err)
		}
		if id, ok := m.numericID(); ok != (tt.id >= 0) || ok && id != tt.id {
			t.Errorf("%.60s: id %d, %v", tt.in, id, ok)
		}
	}
}

func TestIDInFragment(t *testing.T) {
	tests := []struct {
		head, tail string
		id         int64 // 0: none
	}{
		{`{"jsonrpc":"2.0","id":7,"result":{"x":"aaa`, `aa"}}`, 7},
		{`{"jsonrpc":"2.0","id":7`, `7}`, 0}, // possibly 77
		{`{"result":{"x":"aaa`, `a"},"jsonrpc":"2.0","id":12}` + "\n", 12},
		{`{"result":{"x":"aaa`, `a"} , "id":12 , "jsonrpc":"2.0" }`, 12},
		{`{"result":{"x":"aaa`, `a"},"jsonrpc":"2.0","id":"12"}`, 0},
		{`{"result":{"x":"aaa`, `a","id":12}}`, 0},
		{`{"method":"x","params":{"x":"aaa`, `a"},"id":12}`, 0},
		{`garbage`, `garbage`, 0},
		{``, ``, 0},
		{`{"a":"` + strings.Repeat(`\`, 9), `}`, 0},
	}
	for _, tt := range tests {
		id, ok := idInFragment([]byte(tt.head), []byte(tt.tail))
		if ok != (tt.id != 0) || ok && id != tt.id {
			t.Errorf("%s … %s: %d, %v; want %d", tt.head, tt.tail, id, ok, tt.id)
		}
	}
}

// Wire test 27 for Mcp-Name; the value is what Mcp-Param-* will use too.
func TestEncodeHeader(t *testing.T) {
	tests := map[string]string{
		"resize": "resize", "toy://a?b=c d": "toy://a?b=c d", "": "", "a\tb": "a\tb",
		"é": "=?base64?w6k=?=", " a": "=?base64?IGE=?=", "a ": "=?base64?YSA=?=", "\ta": "=?base64?CWE=?=",
		"a\n": "=?base64?YQo=?=", "a\x7f": "=?base64?YX8=?=", "größe": "=?base64?Z3LDtsOfZQ==?=",
		"=?base64?x?=": "=?base64?PT9iYXNlNjQ/eD89?=", "=?base64?": "=?base64?", "?=": "?=",
	}
	for in, want := range tests {
		if got := encodeHeader(in); got != want {
			t.Errorf("encodeHeader(%q) = %q, want %q", in, got, want)
		}
	}
}

// FuzzDecodeMessage holds the scanner against encoding/json: what is accepted, and
// each member that counts.
func FuzzDecodeMessage(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"a\"b\\"}],"isError":false}}`,
		`{"result":{},"jsonrpc":"2.0","id":"x"}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"x"}}`,
		`{"method":"ping","id":0}`, `{"\u0069d":1,"id":2}`, ` {"a" : [ {"b":"]}"} ] , "id":-1.5e3 } `, `{}`, `[1]`, `{"id":1`, `{"a":"\\","id":3}`,
		`{"id":1}x`, "\xEF\xBB\xBF{}", `{"id":true,"params":[],"method":null}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := decodeMessage(data)
		var want map[string]json.RawMessage
		wantErr := json.Unmarshal(data, &want)
		if (err == nil) != (wantErr == nil && want != nil) {
			t.Fatalf("accepted: %v, encoding/json: %v", err, wantErr)
		}
		if err != nil {
			return
		}
		for key, got := range map[string]json.RawMessage{
			"jsonrpc": m.jsonrpc, "id": m.id, "method": m.method, "params": m.params, "result": m.result, "error": m.err,
		} {
			if !bytes.Equal(got, want[key]) || (got == nil) != (want[key] == nil) {
				t.Errorf("%s is %q, encoding/json: %q", key, got, want[key])
			}
			if got := lookup(data, key); !bytes.Equal(got, want[key]) {
				t.Errorf("lookup of %s is %q, encoding/json: %q", key, got, want[key])
			}
		}
		m.kind()
		m.numericID()
		m.methodName()
		if err := m.answer(data, 0); err != nil && err.Error() == "" {
			t.Error("an error without text")
		}
	})
}

// FuzzFragment: nothing that a server can print may bring the scanner out of bounds.
func FuzzFragment(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":7,"result":{"x":"`), []byte(`"},"id":7}`))
	f.Add([]byte(`{"a":"\\\`), []byte(`,"jsonrpc":"2.0"}`))
	f.Add([]byte(`{"a":tru`), []byte(`1}`))
	f.Fuzz(func(_ *testing.T, head, tail []byte) {
		idInFragment(head, tail)
		excerpt(head)
		lookupString(head, "x")
	})
}

// FuzzParams: whatever object a user gives, the message is JSON that holds it and
// the members of the version.
func FuzzParams(f *testing.F) {
	for _, s := range []string{`{}`, ``, ` { "a" : 1 } `, `{"_meta":{}}`, `{"_meta":{"x":1},"name":"_meta"}`, `{"_meta":7}`, `{"\u005fmeta":{}}`, `{"a":{"_meta":{}}}`, `{"_meta":{},"_meta":{}}`} {
		f.Add([]byte(s))
	}
	o := (&Options{}).withDefaults()
	e := newEnvelope(&o)
	e.setVersion(V20260728)
	f.Fuzz(func(t *testing.T, params []byte) {
		var given map[string]json.RawMessage
		if len(params) > 0 && (json.Unmarshal(params, &given) != nil || given == nil) {
			return // the caller answers for that
		}
		line, err := e.current().appendRequest(nil, 3, &Request{Method: "tools/call", Params: params})
		if err != nil {
			return
		}
		var got struct {
			Method string
			Params map[string]json.RawMessage
		}
		if err := json.Unmarshal(line, &got); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		for k, v := range given {
			if k != "_meta" && string(got.Params[k]) != string(v) {
				t.Errorf("member %s is %s, want %s", k, got.Params[k], v)
			}
		}
		var meta map[string]json.RawMessage
		if bytes.Count(params, []byte("meta")) > 1 {
			return // several _meta: which one counts is the server's choice
		}
		if err := json.Unmarshal(got.Params["_meta"], &meta); err != nil {
			t.Fatal(err)
		}
		for _, m := range e.current().meta {
			if meta[m.key] == nil {
				t.Errorf("no %s in %s", m.key, line)
			}
		}
	})
}
