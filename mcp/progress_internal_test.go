package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func newTokens(told *[]Anomaly) *tokens {
	o := Options{OnAnomaly: func(kind Anomaly, _ string) { *told = append(*told, kind) }}.withDefaults()
	return &tokens{o: &o, env: newEnvelope(&o)}
}

// A token of the session's own is never one that a running request has.
func TestFreshTokens(t *testing.T) {
	var told []Anomaly
	s := newTokens(&told)
	taken := Request{Params: []byte(`{"_meta":{"progressToken":"mcpbench-7"}}`)}
	if _, err := s.follow(&taken, 1, nil); err != nil {
		t.Fatal(err)
	}
	own := Request{Wants: &Wants{Progress: true}}
	k, err := s.follow(&own, 7, nil)
	if err != nil || k.key != `"mcpbench-7x"` || string(own.Params) != `{"_meta":{"progressToken":"mcpbench-7x"}}` {
		t.Errorf("token %s in %s, %v", k.key, own.Params, err)
	}
}

// What is remembered of requests that are over is bounded, and what the session
// chose itself needs no memory.
func TestTokensOfTheOver(t *testing.T) {
	var told []Anomaly
	s := newTokens(&told)
	s.env.lastID.Store(1000)
	for i := range 10 * maxKnownTokens {
		req := Request{Params: fmt.Appendf(nil, `{"_meta":{"progressToken":%d}}`, i)}
		k, err := s.follow(&req, int64(i), nil)
		if err != nil {
			t.Fatal(err)
		}
		s.end(k)
		s.end(k) // again does no harm
	}
	if len(s.known) != maxKnownTokens || len(s.running) != 0 {
		t.Errorf("%d known, %d running", len(s.known), len(s.running))
	}
	want := map[string]Anomaly{
		strconv.Itoa(10*maxKnownTokens - 1): AnomalyProgressLate,
		strconv.Itoa(9 * maxKnownTokens):    AnomalyProgressLate,
		strconv.Itoa(9*maxKnownTokens - 1):  AnomalyProgressToken, // forgotten
		`"mcpbench-1000"`:                   AnomalyProgressLate,
		`"mcpbench-1001"`:                   AnomalyProgressToken,
		`"mcpbench-"`:                       AnomalyProgressToken,
		`""`:                                AnomalyProgressToken,
	}
	for token, kind := range want {
		told = nil
		m := message{params: []byte(`{"progress":1,"progressToken":` + token + `}`)}
		if s.take(&m, 1, 0, s.o.now()) != nil || len(told) != 1 || told[0] != kind {
			t.Errorf("%s: told %v, want %v", token, told, kind)
		}
	}
}

// Of two running requests with the same token the one that came last counts, and
// the end of the other does not take it away.
func TestSameTokenTwice(t *testing.T) {
	var told []Anomaly
	s := newTokens(&told)
	var ks []*tracker
	for id := range 2 {
		req := Request{Params: []byte(`{"_meta":{"progressToken":"t"}}`)}
		k, err := s.follow(&req, int64(id), nil)
		if err != nil {
			t.Fatal(err)
		}
		ks = append(ks, k)
	}
	s.end(ks[0])
	m := message{params: []byte(`{"progress":1,"progressToken":"t"}`)}
	if s.take(&m, 1, 0, s.o.now()) != ks[1] || len(told) != 0 {
		t.Errorf("told %v", told)
	}
}

// FuzzProgress sends arbitrary progress notifications to a session with some
// running requests, and compares what becomes of them with encoding/json's reading.
func FuzzProgress(f *testing.F) {
	for _, params := range []string{
		`{"progressToken":"a","progress":1}`, `{"progressToken":"\u0061","progress":-1e3}`, `{"progressToken":7,"progress":0.5}`,
		`{"progressToken":7.0,"progress":1}`, `{"progressToken":70e-1,"progress":1}`, `{"progress":1,"progressToken":"7"}`,
		`{"progressToken":"x","progress":1}`, `{"progressToken":null}`, `[]`, `{}`, ``, `7`, `{"progressToken":"a","progress":1e999}`,
		`{"progressToken":"a","progressToken":7,"progress":"1"}`, `{"progressToken":{"a":[1]},"progress":null}`, `{"progressToken":"a","progress":-0}`,
		`{"progressToken":9007199254740993,"progress":1}`, `{"progressToken":"\ud800","progress":1}`, `{"progressTok\u0065n":"a","progress":1}`,
	} {
		f.Add([]byte(params), int64(0))
	}
	f.Fuzz(func(t *testing.T, params []byte, stream int64) {
		data := []byte(`{"jsonrpc":"2.0","method":"notifications/progress"}`)
		if len(params) > 0 {
			data = fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/progress","params":%s}`, params)
		}
		m, err := decodeMessage(data)
		if err != nil || m.kind() != kindNotification || !exactKeys(m.params) {
			return // params closed the object, or the like
		}
		var told []Anomaly
		s := newTokens(&told)
		running := runningWith(t, s, `"a"`, `7`, `"\u00e9\\"`)
		token, isNumber := readProgress(m.params)
		owner := running[token]
		for range 2 {
			if got := s.take(&m, len(data), stream, s.o.now()); got != owner {
				t.Fatalf("%s went to %v", data, got)
			}
		}
		want, good := []Anomaly{AnomalyProgressToken, AnomalyProgressToken}, 0
		switch {
		case owner != nil && isNumber:
			want, good = []Anomaly{AnomalyProgressValue}, 1 // the second one
		case owner != nil:
			want = []Anomaly{AnomalyProgressValue, AnomalyProgressValue}
		}
		if d := cmp.Diff(want, told); d != "" {
			t.Errorf("%s: anomalies (-want +got)\n%s", data, d)
		}
		for _, k := range running {
			if k == owner && (k.notes != 2 || k.good != good) || k != owner && k.notes != 0 {
				t.Errorf("%s: counted %+v", data, k)
			}
		}
	})
}

// runningWith starts requests with these tokens.
func runningWith(t *testing.T, s *tokens, all ...string) map[string]*tracker {
	t.Helper()
	running := map[string]*tracker{}
	for i, token := range all {
		req := Request{Params: []byte(`{"_meta":{"progressToken":` + token + `}}`)}
		k, err := s.follow(&req, int64(i), nil)
		if err != nil {
			t.Fatal(err)
		}
		running[progressOracle([]byte(token))] = k
	}
	return running
}

// readProgress returns the token, in one way of writing, and whether the value is a number.
func readProgress(params []byte) (token string, isNumber bool) {
	var p struct {
		Token    json.RawMessage `json:"progressToken"`
		Progress json.RawMessage `json:"progress"`
	}
	var value float64
	if json.Unmarshal(params, &p) != nil {
		return "", false // no object
	}
	isNumber = json.Unmarshal(p.Progress, &value) == nil && !bytes.Equal(p.Progress, []byte("null"))
	return progressOracle(p.Token), isNumber
}

// exactKeys reports whether the keys that matter are spelt as they are: encoding/json
// takes others for them too.
func exactKeys(params []byte) bool {
	var object map[string]json.RawMessage
	if json.Unmarshal(params, &object) != nil {
		return true
	}
	for key := range object {
		for _, name := range []string{"progressToken", "progress"} {
			if key != name && strings.EqualFold(key, name) {
				return false
			}
		}
	}
	return true
}

// progressOracle writes a token in one way.
func progressOracle(token []byte) string {
	var v any
	if json.Unmarshal(token, &v) != nil {
		return ""
	}
	switch v := v.(type) {
	case string:
		return "s" + v
	case float64:
		if math.Abs(v) <= 1<<53 {
			return "n" + strconv.FormatFloat(v, 'g', -1, 64)
		}
		return "n" + string(token)
	}
	return ""
}

// FuzzWithMeta puts a token into arbitrary parameters: the result has it, and all
// the rest as before.
func FuzzWithMeta(f *testing.F) {
	for _, params := range []string{``, `{}`, `{"name":"x"}`, `{"_meta":{}}`, `{"_meta":{"a":1},"b":[{}]}`, `{"_meta":null}`, `{"_m\u0065ta":{"a":1}}`, ` { "a" : 1 } `, `{"_meta":{"a":1},"_meta":{"b":2}}`} {
		f.Add([]byte(params))
	}
	f.Fuzz(func(t *testing.T, params []byte) {
		before := map[string]any{}
		if len(bytes.TrimSpace(params)) > 0 && (json.Unmarshal(params, &before) != nil || before == nil) {
			return
		}
		got, err := withMeta(params, "progressToken", []byte(`"T"`))
		meta, isObject := before["_meta"].(map[string]any)
		if err != nil {
			if _, has := before["_meta"]; !has || isObject {
				t.Fatalf("%s: %v", params, err)
			}
			return
		}
		var after map[string]any
		if err := json.Unmarshal(got, &after); err != nil {
			t.Fatalf("%s became %s: %v", params, got, err)
		}
		if meta == nil {
			meta = map[string]any{}
		}
		meta["progressToken"] = "T"
		before["_meta"] = meta
		if d := cmp.Diff(before, after); d != "" {
			t.Errorf("%s became %s (-want +got)\n%s", params, got, d)
		}
	})
}

// A send that happens a second time starts the limits anew; what was due once stays so.
func TestBoundsBegin(t *testing.T) {
	told := 0
	b := newBounds(&Wants{IdleTimeout: 5 * time.Second, CancelAfter: 2 * time.Second}, 5*time.Second, 0, func() { told++ })
	step := func(now, wantNext time.Duration, want error) {
		t.Helper()
		if next, over := b.strike(now * time.Second); next != wantNext*time.Second || over != want { //nolint:errorlint // the very one
			t.Errorf("at %d: next %v, over %v", now, next, over)
		}
	}
	step(0, 2, nil) // before the send we look again after the shortest
	step(1, 3, nil)
	if next := b.begin(10 * time.Second); next != 12*time.Second {
		t.Errorf("next %v", next)
	}
	if next := b.begin(11 * time.Second); next != 13*time.Second {
		t.Errorf("next %v after the second send", next)
	}
	step(12, 13, nil)
	step(15, 16, nil) // told at 15, later than it was due; the whole limit ends at 16
	if told != 1 || !b.cancelled() {
		t.Errorf("told %d times", told)
	}
	b.begin(15 * time.Second) // what was cancelled is not sent again
	step(15, 16, nil)
	step(16, 16, errSilent)
	step(20, 16, errSilent)
	if b.end() != 15*time.Second || told != 1 {
		t.Errorf("told %d times", told)
	}
	step(30, 0, errSilent)
}
