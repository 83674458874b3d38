package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"

	"github.com/google/go-cmp/cmp"
)

func ready(t *testing.T, c mcp.Canned) mcp.Answerer {
	t.Helper()
	a, err := c.Ready()
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// What a canned answerer says, text for text.
func TestCanned(t *testing.T) {
	full := mcp.Canned{
		Roots:       mcp.CannedRoots{List: []mcp.Root{{URI: "file:///w", Name: "w"}, {URI: "file:///v"}}},
		Sampling:    mcp.CannedSampling{Text: `say "é"`, Model: "stub", StopReason: "maxTokens"},
		Elicitation: mcp.CannedElicitation{Content: json.RawMessage(`{"confirm": true}`)},
	}
	filled, declined, cancelled := full, full, full
	filled.Elicitation.Fill = true
	declined.Elicitation.Action, cancelled.Elicitation.Action = "decline", "cancel"
	made := mcp.Canned{}
	made.Sampling.Make = func(_ context.Context, q mcp.Question) (string, error) { return "for " + string(q.Params), nil }
	made.Elicitation.Make = func(_ context.Context, q mcp.Question) (json.RawMessage, error) {
		return json.RawMessage(`{"n":` + string(q.Params[len(`{"n":`):len(`{"n":`)+1]) + `}`), nil
	}
	const form = `{"n":7,"message":"?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"},"confirm":{"type":"boolean"}}}}`
	tests := []struct {
		name   string
		canned mcp.Canned
		method string
		params string
		want   string
	}{
		{"roots", full, "roots/list", "", `{"roots":[{"uri":"file:///w","name":"w"},{"uri":"file:///v"}]}`},
		{"no roots", mcp.Canned{}, "roots/list", "", `{"roots":[]}`},
		{"sampling", full, "sampling/createMessage", "{}", `{"role":"assistant","content":{"type":"text","text":"say \"é\""},"model":"stub","stopReason":"maxTokens"}`},
		{"empty sampling", mcp.Canned{}, "sampling/createMessage", "{}", `{"role":"assistant","content":{"type":"text","text":""},"model":"mcpbench","stopReason":"endTurn"}`},
		{"sampling made", made, "sampling/createMessage", `{"a":1}`, `{"role":"assistant","content":{"type":"text","text":"for {\"a\":1}"},"model":"mcpbench","stopReason":"endTurn"}`},
		{"form", full, "elicitation/create", form, `{"action":"accept","content":{"confirm": true}}`},
		{"empty form", mcp.Canned{}, "elicitation/create", form, `{"action":"accept","content":{}}`},
		{"form filled", filled, "elicitation/create", form, `{"action":"accept","content":{"confirm":true,"name":"x"}}`},
		{"form made", made, "elicitation/create", form, `{"action":"accept","content":{"n":7}}`},
		{"declined", declined, "elicitation/create", form, `{"action":"decline"}`},
		{"cancelled", cancelled, "elicitation/create", form, `{"action":"cancel"}`},
		{"url", filled, "elicitation/create", `{"mode":"url","url":"https://u.invalid/"}`, `{"action":"accept"}`},
		{"url declined", declined, "elicitation/create", `{"mode":"url","url":"https://u.invalid/"}`, `{"action":"decline"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var params json.RawMessage
			if tt.params != "" {
				params = json.RawMessage(tt.params)
			}
			got, err := ready(t, tt.canned).Answer(t.Context(), mcp.Question{Method: tt.method, Params: params})
			if compact(t, got) != compact(t, json.RawMessage(tt.want)) || err != nil {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
	_, err := ready(t, full).Answer(t.Context(), mcp.Question{Method: "no/such"})
	if e, ok := errors.AsType[*mcp.RPCError](err); !ok || e.Code != -32601 {
		t.Errorf("error %v", err)
	}
}

func compact(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestCannedThatIsWrong(t *testing.T) {
	for word, e := range map[string]mcp.CannedElicitation{
		"accept, decline, cancel": {Action: "reject"},
		"no JSON object: [1]":     {Content: json.RawMessage(`[1]`)},
		"no JSON object: {":       {Content: json.RawMessage(`{`)},
	} {
		_, err := mcp.Canned{Elicitation: e}.Ready()
		contains(t, err, word)
	}
	broken := mcp.Canned{}
	broken.Elicitation.Make = func(context.Context, mcp.Question) (json.RawMessage, error) { return json.RawMessage(`7`), nil }
	_, err := ready(t, broken).Answer(t.Context(), mcp.Question{Method: "elicitation/create"})
	contains(t, err, "no JSON object: 7")
}

// Each method waits by its own function, several at once; whoever ends the waiting
// ends the answer.
func TestCannedWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wait := func(d time.Duration) mcp.Wait {
			return func(ctx context.Context) error {
				select {
				case <-time.NewTimer(d).C:
					return nil
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
		}
		a := ready(t, mcp.Canned{
			Roots: mcp.CannedRoots{Wait: wait(time.Second)}, Sampling: mcp.CannedSampling{Wait: wait(2 * time.Second)},
			Elicitation: mcp.CannedElicitation{Wait: wait(3 * time.Second)},
		})
		start, cause := time.Now(), errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 2500*time.Millisecond, cause)
		defer cancel()
		var all sync.WaitGroup
		for method, want := range map[string]time.Duration{"roots/list": time.Second, "sampling/createMessage": 2 * time.Second, "elicitation/create": 2500 * time.Millisecond} {
			all.Go(func() {
				_, err := a.Answer(ctx, mcp.Question{Method: method})
				if took := time.Since(start); took != want || (err != nil) != (method == "elicitation/create") || err != nil && !errors.Is(err, cause) {
					t.Errorf("%s took %v, %v", method, took, err)
				}
			})
		}
		all.Wait()
		ended, end := context.WithCancel(t.Context())
		end()
		if _, err := ready(t, mcp.Canned{}).Answer(ended, mcp.Question{Method: "roots/list"}); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	})
}

// A canned answerer with a real session, in the old and in the new form.
func TestCannedSession(t *testing.T) {
	form := `{"message":"?","requestedSchema":{"type":"object","properties":{"yes":{"type":"boolean","default":true}}}}`
	for _, v := range []mcp.Version{mcp.V20251125, mcp.V20260728} {
		peer := func() *mcptest.Peer {
			p := &mcptest.Peer{}
			if v.Features().ServerRequests {
				return p.On("tools/call", mcptest.Answer{Frames: []mcptest.Frame{askAndWait(`"f"`, "elicitation/create", form)}, Result: done})
			}
			return p.On("tools/call", asksFor(`,"inputRequests":{"f":{"method":"elicitation/create","params":`+form+`}}`), mcptest.Answer{Result: done})
		}
		overBoth(t, peer, func(o over) {
			s := connect(o.T, o.transport, mcp.Options{
				Version: v, Capabilities: v.Capabilities(true, true, true), Answers: ready(o.T, mcp.Canned{Elicitation: mcp.CannedElicitation{Fill: true}}),
			})
			if _, err := s.Call(o.Context(), echo); err != nil {
				o.Fatal(err)
			}
			const answer = `{"action":"accept","content":{"yes":true}}`
			got, want := bodies(o.peer), []string{`{"jsonrpc":"2.0","id":"f","result":` + answer + `}`}
			if !v.Features().ServerRequests {
				got, want = []string{string(params(o.T, o.peer, 1, "tools/call")["inputResponses"])}, []string{`{"f":` + answer + `}`}
			}
			if d := cmp.Diff(want, got); d != "" {
				o.Errorf("%s: answers (-want +got)\n%s", v, d)
			}
		})
	}
}

// Each version writes what the client can be asked for in a form of its own.
func TestCapabilities(t *testing.T) {
	const legacy = `"roots":{"listChanged":true},"sampling":{}`
	all := map[mcp.Version]string{
		mcp.V20241105: `{` + legacy + `}`,
		mcp.V20250326: `{` + legacy + `}`,
		mcp.V20250618: `{` + legacy + `,"elicitation":{}}`,
		mcp.V20251125: `{"roots":{"listChanged":true},"sampling":{"tools":{}},"elicitation":{"form":{},"url":{}}}`,
		mcp.V20260728: `{"roots":{},"sampling":{"tools":{}},"elicitation":{"form":{},"url":{}}}`,
	}
	for v, want := range all {
		if got := string(v.Capabilities(true, true, true)); got != want {
			t.Errorf("%s: %s, want %s", v, got, want)
		}
		if got := string(v.Capabilities(false, false, false)); got != `{}` {
			t.Errorf("%s: nothing is %s", v, got)
		}
		got := string(v.Capabilities(false, false, true))
		if has := strings.Contains(got, "elicitation"); has != strings.Contains(want, "elicitation") || !json.Valid([]byte(got)) {
			t.Errorf("%s: elicitation is %s", v, got)
		}
	}
}
