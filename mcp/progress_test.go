package mcp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"

	"github.com/google/go-cmp/cmp"
)

const ms = time.Millisecond

// tick is a progress notification that comes after a pause.
func tick(after time.Duration, token, value string) mcptest.Frame {
	return mcptest.Frame{Delay: after, JSON: `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` +
		token + `,"progress":` + value + `}}`}
}

// following is a call that asks for progress.
func following(w mcp.Wants) mcp.Request {
	req := echo
	w.Progress = true
	req.Wants = &w
	return req
}

// withToken is a call whose caller has a token of its own.
func withToken(token string) mcp.Request {
	return mcp.Request{Method: "tools/call", Params: []byte(`{"name":"echo","_meta":{"k":1,"progressToken":` + token + `}}`)}
}

// Wire test 18: what becomes of each kind of progress notification.
func TestProgressKinds(t *testing.T) {
	tests := []struct {
		name     string
		frames   []mcptest.Frame
		after    string          // on the stream or the pipe, behind the answer
		progress []time.Duration // when those that count came
		want     map[mcp.Anomaly]int
	}{
		{name: "none"},
		{name: "one", frames: []mcptest.Frame{tick(ms, "$TOKEN", "0")}, progress: []time.Duration{ms}},
		{
			name:     "fractions",
			frames:   []mcptest.Frame{tick(ms, "$TOKEN", "0"), tick(2*ms, "$TOKEN", "1e-3"), tick(3*ms, "$TOKEN", "0.5"), tick(0, "$TOKEN", "1.0e0")},
			progress: []time.Duration{ms, 3 * ms, 6 * ms, 6 * ms},
		},
		{
			name:     "negative ones",
			frames:   []mcptest.Frame{tick(ms, "$TOKEN", "-7"), tick(ms, "$TOKEN", "-6.5")},
			progress: []time.Duration{ms, 2 * ms},
		},
		{
			name:     "unknown token",
			frames:   []mcptest.Frame{tick(ms, `"nobody's"`, "1"), tick(ms, "4711", "1"), tick(ms, "null", "1"), tick(ms, `{"a":1}`, "1"), tick(ms, "$TOKEN", "1")},
			progress: []time.Duration{5 * ms},
			want:     map[mcp.Anomaly]int{mcp.AnomalyProgressToken: 4},
		},
		{
			name:   "no token, no params",
			frames: []mcptest.Frame{{JSON: `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}`}, {JSON: `{"jsonrpc":"2.0","method":"notifications/progress"}`}, {JSON: `{"jsonrpc":"2.0","method":"notifications/progress","params":[1]}`}},
			want:   map[mcp.Anomaly]int{mcp.AnomalyProgressToken: 3},
		},
		{
			name:     "not increasing",
			frames:   []mcptest.Frame{tick(ms, "$TOKEN", "2"), tick(ms, "$TOKEN", "2"), tick(ms, "$TOKEN", "1"), tick(ms, "$TOKEN", "3")},
			progress: []time.Duration{ms, 4 * ms},
			want:     map[mcp.Anomaly]int{mcp.AnomalyProgressValue: 2},
		},
		{
			name:     "no number",
			frames:   []mcptest.Frame{tick(ms, "$TOKEN", `"1"`), tick(ms, "$TOKEN", "null"), tick(ms, "$TOKEN", "1e999"), tick(ms, "$TOKEN", "1")},
			progress: []time.Duration{4 * ms},
			want:     map[mcp.Anomaly]int{mcp.AnomalyProgressValue: 3},
		},
		{
			name:   "after the answer",
			frames: []mcptest.Frame{tick(ms, "$TOKEN", "1")}, after: tick(0, "$TOKEN", "2").JSON,
			progress: []time.Duration{ms},
			want:     map[mcp.Anomaly]int{mcp.AnomalyProgressLate: 1},
		},
	}
	for _, tt := range tests {
		for _, v := range []mcp.Version{mcp.V20241105, mcp.V20251125, mcp.V20260728} {
			t.Run(tt.name+" "+string(v), func(t *testing.T) {
				overBoth(t, func() *mcptest.Peer { return &mcptest.Peer{SessionID: "s"} }, func(o over) {
					o.peer.On("tools/call", answering(o.transport.Kind(), tt.frames, tt.after))
					var a mcptest.Anomalies
					s := connect(o.T, o.transport, mcp.Options{Version: v, OnAnomaly: a.Tell})
					r, err := s.Call(o.Context(), following(mcp.Wants{}))
					if err != nil || string(r.Result) != echoed {
						o.Fatalf("got %+v, %v", r, err)
					}
					wantProgress(o.T, r, tt.progress)
					notes := len(tt.progress) + tt.want[mcp.AnomalyProgressValue]
					if o.transport.Kind() == "http" { // what has no owner came on our stream all the same
						notes += tt.want[mcp.AnomalyProgressToken]
					}
					if r.Notifications != notes {
						o.Errorf("%d notifications, want %d", r.Notifications, notes)
					}
					time.Sleep(time.Second) // virtual
					if d := cmp.Diff(tt.want, a.Counts(), emptyIsNil); d != "" {
						o.Errorf("anomalies (-want +got)\n%s", d)
					}
				})
			})
		}
	}
}

var emptyIsNil = cmp.Transformer("emptyIsNil", func(m map[mcp.Anomaly]int) map[string]int {
	counts := map[string]int{}
	for k, n := range m {
		counts[k.String()] = n
	}
	return counts
})

// answering is an answer with frames before it and, unless empty, a message behind it.
func answering(kind string, frames []mcptest.Frame, after string) mcptest.Answer {
	if after == "" {
		return mcptest.Answer{Frames: frames, Result: echoed, SSE: true}
	}
	const answer = `{"jsonrpc":"2.0","id":$ID,"result":` + echoed + `}`
	raw := answer + "\n" + after + "\n"
	if kind == "http" {
		raw = "data: " + answer + "\n\ndata: " + after + "\n\n"
	}
	return mcptest.Answer{Frames: frames, Raw: raw, SSE: true}
}

// wantProgress fails unless the reply has progress at these times after its start.
func wantProgress(t *testing.T, r mcp.Reply, at []time.Duration) {
	t.Helper()
	if r.Progress != len(at) {
		t.Errorf("%d progress notifications, want %d", r.Progress, len(at))
	}
	if len(at) == 0 {
		if r.More != nil {
			t.Errorf("more: %+v", r.More)
		}
		return
	}
	if r.More == nil {
		t.Fatal("the progress has no times")
	}
	start := r.Timing.Start
	if r.More.First-start != at[0] || r.More.Last-start != at[len(at)-1] {
		t.Errorf("first %v, last %v; want %v", r.More.First-start, r.More.Last-start, at)
	}
	var gaps []time.Duration
	for i := range at[1:] {
		gaps = append(gaps, at[i+1]-at[i])
	}
	if d := cmp.Diff(gaps, r.More.Gaps); d != "" {
		t.Errorf("gaps (-want +got)\n%s", d)
	}
}

// A plain request has no token, and progress for it is nobody's.
func TestProgressNobodyAskedFor(t *testing.T) {
	peer := func() *mcptest.Peer {
		return (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Frames: []mcptest.Frame{tick(ms, "$TOKEN", "1"), tick(ms, "2", "1")}, Result: echoed})
	}
	overBoth(t, peer, func(o over) {
		t, p, tr := o.T, o.peer, o.transport
		var a mcptest.Anomalies
		s := connect(t, tr, mcp.Options{OnAnomaly: a.Tell})
		r, err := s.Call(t.Context(), echo)
		if err != nil || r.Progress != 0 || r.More != nil || a.Counts()[mcp.AnomalyProgressToken] != 2 {
			t.Errorf("got %+v, %v; anomalies %v", r, err, a.Texts())
		}
		if strings.Contains(p.Received("tools/call")[0].Body, "progressToken") {
			t.Error("a token was sent")
		}
	})
}

// The caller's token stays, whatever JSON it is, and the server may write it otherwise.
func TestCallersProgressToken(t *testing.T) {
	tests := []struct{ sent, back string }{
		{`"t1"`, `"t1"`},
		{`"t1"`, `"\u0074\u0031"`},
		{`"\u0074/é"`, `"t\/é"`},
		{`""`, `""`},
		{`77`, `77`},
		{`77`, `77.0`},
		{`77`, `7.7e1`},
		{`-1`, `-1`},
		{`0`, `-0`},
		{`9007199254740993`, `9007199254740993`},
		{`5.5`, `5.5`},
	}
	for _, tt := range tests {
		t.Run(tt.sent+" "+tt.back, func(t *testing.T) {
			peer := func() *mcptest.Peer {
				return (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Frames: []mcptest.Frame{tick(ms, tt.back, "1")}, Result: echoed})
			}
			overBoth(t, peer, func(o over) {
				t, p, tr := o.T, o.peer, o.transport
				for _, v := range []mcp.Version{mcp.V20251125, mcp.V20260728} {
					var a mcptest.Anomalies
					s := connect(t, tr, mcp.Options{Version: v, OnAnomaly: a.Tell})
					for _, w := range []*mcp.Wants{nil, {}, {Progress: true}, {IdleTimeout: time.Hour}} {
						req := withToken(tt.sent)
						req.Wants = w
						r, err := s.Call(t.Context(), req)
						if err != nil || len(a.Texts()) != 0 {
							t.Errorf("%v, %v", err, a.Texts())
						}
						wantProgress(t, r, []time.Duration{ms})
						all := p.Received("tools/call")
						if got := sentToken(t, all[len(all)-1]); got != tt.sent {
							t.Errorf("sent %s", got)
						}
					}
				}
			})
		})
	}
}

func sentToken(t *testing.T, r mcptest.Received) string {
	t.Helper()
	var params struct {
		Meta struct {
			Token json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	}
	if err := json.Unmarshal(r.Params, &params); err != nil {
		t.Fatal(err)
	}
	return string(params.Meta.Token)
}

// The session's own tokens are strings, differ among running requests, and leave
// the rest of the parameters alone.
func TestOwnProgressTokens(t *testing.T) {
	peer := func() *mcptest.Peer {
		return (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Frames: []mcptest.Frame{tick(time.Second, "$TOKEN", "$ID")}, Result: echoed})
	}
	params := []string{"", `{}`, `{"name":"x","_meta":{}}`, `{"_meta":{"a":"b"},"name":"x"}`, ` {"x":[1]} `}
	overBoth(t, peer, func(o over) {
		for _, v := range []mcp.Version{mcp.V20251125, mcp.V20260728} {
			s := connect(o.T, o.transport, mcp.Options{Version: v})
			before := len(o.peer.Received("tools/call"))
			var calls sync.WaitGroup
			for i := range 50 {
				req := mcp.Request{Method: "tools/call", Wants: &mcp.Wants{Progress: true}}
				if text := params[i%len(params)]; text != "" {
					req.Params = []byte(text)
				}
				calls.Go(func() {
					r, err := s.Call(o.Context(), req)
					if err != nil {
						o.Error(err)
					}
					wantProgress(o.T, r, []time.Duration{time.Second})
				})
			}
			calls.Wait()
			seen := map[string]bool{}
			for _, m := range o.peer.Received("tools/call")[before:] {
				token := sentToken(o.T, m)
				if seen[token] || !strings.HasPrefix(token, `"`) {
					o.Errorf("token %s", token)
				}
				seen[token] = true
			}
			wantParams(o.T, params, o.peer.Received("tools/call")[before:])
		}
	})
}

// wantParams fails unless each of the messages has one of the parameters, apart
// from _meta, and as many of each.
func wantParams(t *testing.T, params []string, all []mcptest.Received) {
	t.Helper()
	counts := map[string]int{}
	for i := range len(all) {
		counts[withoutMeta(t, params[i%len(params)])]++
	}
	for _, m := range all {
		counts[withoutMeta(t, string(m.Params))]--
	}
	for text, n := range counts {
		if n != 0 {
			t.Errorf("%d of %s are missing", n, text)
		}
	}
}

func withoutMeta(t *testing.T, params string) string {
	t.Helper()
	var object map[string]any
	if params != "" {
		if err := json.Unmarshal([]byte(params), &object); err != nil {
			t.Fatal(err)
		}
	}
	delete(object, "_meta")
	return fmt.Sprint(object)
}

func TestProgressTokenNeedsAnObject(t *testing.T) {
	overBoth(t, func() *mcptest.Peer { return &mcptest.Peer{} }, func(o over) {
		t, tr := o.T, o.transport
		s := connect(t, tr, mcp.Options{})
		for _, params := range []string{`[1]`, `{"_meta":7}`, `"x"`} {
			_, err := s.Call(t.Context(), mcp.Request{Method: "tools/call", Params: []byte(params), Wants: &mcp.Wants{Progress: true}})
			contains(t, err, "not a JSON object")
		}
		if _, err := s.Call(t.Context(), echo); err != nil {
			t.Error(err)
		}
	})
}
