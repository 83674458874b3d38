package mcp

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// nested returns n arrays within each other.
func nested(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

// FuzzValue holds the syntax of one value against encoding/json: accept or
// reject, with whatever follows it.
func FuzzValue(f *testing.F) {
	for _, s := range []string{
		`0`, `-0`, `01`, `-`, `1.`, `.5`, `1.5e`, `1e+`, `1E-07`, `1.0.0`, `--1`, `+1`, `0x1`, `1e400`, `-a`,
		`true`, `tru`, `truex`, `nul`, `null`, `false `, `NaN`, `Infinity`,
		`""`, `"`, `"\`, `"\"`, `"\\"`, `"\u12"`, `"\u12g4"`, `"\uD800"`, `"\x"`, `"a` + "\n" + `"`, `"a` + "\x1f" + `bcdefgh"`, "\"\x7f\xff\xc3\"",
		`"1234567"`, `"12345678"`, `"1234567\n890"`, `"12345678` + "\x00" + `"`, `"\/\b\f\n\r\t"`,
		`[]`, `[,]`, `[1,]`, `[1 2]`, `[1`, `[ 1 , [ ] , { } ]`, `]`, `{}`, `{,}`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{"a":1 "b":2}`, `{a:1}`, `{"a":1}}`, `{"a":1`, `{1:2}`, ` { "a" : [ ] } `,
		"\xEF\xBB\xBF1", "", " ", "1 2", "\v1", nested(maxDepth), nested(maxDepth + 1),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		end := valueEnd(data, skipSpace(data, 0), 0)
		got := end >= 0 && skipSpace(data, end) == len(data)
		if want := json.Valid(data); got != want {
			t.Errorf("accepted: %v, encoding/json: %v", got, want)
		}
	})
}

// Depth counts from the message on, as in encoding/json.
func TestDepth(t *testing.T) {
	for n, want := range map[int]bool{maxDepth - 1: true, maxDepth: false} {
		for _, key := range []string{"result", "x"} {
			text := []byte(`{"` + key + `":` + nested(n) + `}`)
			if _, err := decodeMessage(text); (err == nil) != want || json.Valid(text) != want {
				t.Errorf("%s of depth %d: %v, encoding/json %v", key, n, err, json.Valid(text))
			}
			text = []byte(`{"` + key + `":{"y":` + nested(n-1) + `}}`)
			if _, err := decodeMessage(text); (err == nil) != want || json.Valid(text) != want {
				t.Errorf("object in %s of depth %d: %v, encoding/json %v", key, n, err, json.Valid(text))
			}
		}
	}
}

// FuzzVerdict: the members that decide what a result means are those that
// encoding/json finds.
func FuzzVerdict(f *testing.F) {
	for _, s := range []string{
		`{"isError":true}`, `{"isError":true,"isError":false,"resultType":"task"}`, `{"\u0069sError":true}`, `{"a":{"isError":true}}`,
		`{ "resultType" : "complete" , "content":[{"isError":1}] }`, `{}`, `[{"isError":true}]`, `7`, `{"isError":{"isError":2}}`, `{"IsError":true}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, result []byte) {
		text := append(append([]byte(`{"jsonrpc":"2.0","result":{"isError":9},"id":1,"result":`), result...), '}')
		m, err := decodeMessage(text)
		if valid := json.Valid(text); valid != (err == nil) {
			t.Fatalf("error %v, encoding/json %v", err, valid)
		}
		if err != nil {
			return
		}
		var want map[string]json.RawMessage
		if json.Unmarshal(m.result, &want) != nil {
			want = nil
		}
		for key, got := range map[string][]byte{"isError": m.isError.in(m.result), "resultType": m.resultType.in(m.result)} {
			if !bytes.Equal(got, want[key]) || (got == nil) != (want[key] == nil) {
				t.Errorf("%s is %q, encoding/json %q", key, got, want[key])
			}
		}
	})
}

var scanned message

// BenchmarkDecodeMessage measures the scanner alone.
func BenchmarkDecodeMessage(b *testing.B) {
	answer := func(text string) []byte {
		return []byte(`{"jsonrpc":"2.0","id":1000000007,"result":{"content":[{"type":"text","text":"` + text + `"}],"isError":false}}`)
	}
	for name, data := range map[string][]byte{
		"200B":        answer(strings.Repeat("x", 94)),
		"10KB":        answer(strings.Repeat("lorem ipsum ", 850)),
		"1MB":         answer(strings.Repeat("lorem ipsum ", 87_000)),
		"1MB escaped": answer(strings.Repeat(`line\n\"x\" `, 87_000)),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				m, err := decodeMessage(data)
				if err != nil {
					b.Fatal(err)
				}
				scanned = m
			}
		})
	}
}
