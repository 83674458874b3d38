package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/zap"

	"mcpbench/driver"
	"mcpbench/internal/mcptest"
	"mcpbench/mcp"
	"mcpbench/metrics"
	"mcpbench/scenarios"
)

// listening is a scenario with all that a client does beyond plain calls.
const listening = `
version: 1
servers: {s: {url: "http://peer.test/mcp"}}
client:
  capabilities: {elicitation: true, sampling: true, roots: true}
  answers:
    elicitation: {delay: 20ms}
    sampling: {text: "said ${{ session.index }}", model: small, delay: {uniform: [5ms, 5ms]}}
    roots: ["file:///w/${{ session.index }}"]
load: {groups: {g: {iterations: 3}}}
flows:
  f:
    before: [{connect: {}}, {subscribe: {uris: ["toy://a"]}, as: news}]
    steps:
      - {id: ask, tools/call: {name: deploy}, progress: true, idle_timeout: 1s}
      - {id: stop, prompts/get: {name: slow}, cancel: {after: 40ms}}
      - {id: wait, wait_for: {notification: resources/updated, from: news, timeout: 3s}, check: {right: 'result.uri == "toy://a"'}}
      - {id: raw, request: {method: x-vendor/stats, params: {n: 1}}}
    after: [{unsubscribe: {handle: news}}]
`

// recording keeps the samples of a run.
type recording struct{ samples []metrics.Sample }

func (r *recording) Write(batch []metrics.Sample) error {
	r.samples = append(r.samples, batch...)
	return nil
}

func (r *recording) Close() error { return nil }

// runListening runs the scenario against a peer with one version, and returns its
// requests by step and the summary.
func runListening(t *testing.T, transport mcp.Transport, version mcp.Version) (map[string][]metrics.Sample, *metrics.Summary) {
	t.Helper()
	sc, err := scenarios.Load("listening.yaml", []byte(listening), scenarios.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	program, err := compile(sc)
	if err != nil {
		t.Fatal(err)
	}
	d := &dialer{server: &program.Servers[0], seed: 1, client: &program.Client}
	plan, err := driver.NewPlan(program, 1, func(int) driver.Dial {
		return func(ctx context.Context, slot int, o mcp.Options) (driver.Session, error) {
			o.Version, o.GetStream = version, program.NeedsStream(0)
			if err := d.declare(&o, slot); err != nil {
				return nil, err
			}
			return mcp.Connect(ctx, transport, o)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	kept := &recording{}
	c := metrics.NewCollector(metrics.CollectorConfig{Catalog: plan.Catalog, Sinks: []metrics.Sink{kept}})
	r := driver.New(plan, c, zap.NewNop())
	if err := errors.Join(r.Run(t.Context(), nil), r.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	if a := r.Anomalies(); len(a) > 0 {
		t.Errorf("anomalies %v", a)
	}
	steps := map[string][]metrics.Sample{}
	for _, s := range kept.samples {
		if err := s.Valid(); err != nil {
			t.Error(err)
		}
		if s.Kind == metrics.KindStep {
			id := plan.Catalog.Steps[s.Step].ID
			steps[id] = append(steps[id], s)
		}
	}
	return steps, c.Summary(metrics.RunInfo{ServerRequests: r.ServerRequests(), SessionOpened: true})
}

const (
	form   = `{"message":"sure?","requestedSchema":{"type":"object","properties":{"yes":{"type":"boolean","default":true},"n":{"type":"integer","minimum":7}}}}`
	prompt = `{"messages":[{"role":"user","content":{"type":"text","text":"2+2"}}],"maxTokens":8}`
)

func progress(after time.Duration, value string) mcptest.Frame {
	return mcptest.Frame{Delay: after, JSON: `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$TOKEN,"progress":` + value + `}}`}
}

func ask(id, method, params string) mcptest.Frame {
	return mcptest.Frame{JSON: `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + params + `}`, Await: id}
}

// TestListeningLegacy runs it over HTTP and stdio in 2025-11-25: a call has
// progress after 10 and 30 ms, then asks for a form, a message and the roots, for
// which the client takes 20 and 5 ms.
func TestListeningLegacy(t *testing.T) {
	for _, kind := range []string{"http", "stdio"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				peer := &mcptest.Peer{SessionID: "s"}
				updated := mcptest.Frame{OnGet: true, JSON: `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"toy://a"}}`}
				peer.On("GET", mcptest.Answer{Feed: true})
				peer.On("resources/subscribe", mcptest.Answer{Result: `{}`})
				peer.On("resources/unsubscribe", mcptest.Answer{Result: `{}`})
				peer.On("tools/call", mcptest.Answer{Result: `{"content":[]}`, Frames: []mcptest.Frame{
					progress(10*time.Millisecond, "0"), progress(20*time.Millisecond, "0.5"),
					ask(`"a"`, "elicitation/create", form), ask(`"b"`, "sampling/createMessage", prompt), ask(`"c"`, "roots/list", "{}"), updated,
				}})
				peer.On("prompts/get", mcptest.Answer{Silent: true})
				peer.On("x-vendor/stats", mcptest.Answer{Result: `{"n":1}`})
				transport := mcp.Transport(peer.HTTP(t))
				if kind == "stdio" {
					transport = peer.Stdio(t)
				}
				steps, summary := runListening(t, transport, mcp.V20251125)
				checkListening(t, steps, summary, 1)
				if n := len(steps["unsubscribe news"]); n != 1 {
					t.Errorf("%d rows of unsubscribing", n)
				}
				answers := map[string]string{}
				for _, r := range peer.Received("") {
					answers[r.ID] = r.Body
				}
				want := map[string]string{
					`"a"`: `{"jsonrpc":"2.0","id":"a","result":{"action":"accept","content":{"yes":true,"n":7}}}`,
					`"b"`: `{"jsonrpc":"2.0","id":"b","result":{"role":"assistant","content":{"type":"text","text":"said 0"},"model":"small","stopReason":"endTurn"}}`,
					`"c"`: `{"jsonrpc":"2.0","id":"c","result":{"roots":[{"uri":"file:///w/0"}]}}`,
				}
				if diff := cmp.Diff(want, answers); diff != "" {
					t.Errorf("answers (-want +got):\n%s", diff)
				}
				if n := len(peer.Received("notifications/cancelled")); n != 3 {
					t.Errorf("%d cancellations, want 3", n)
				}
			})
		})
	}
}

// checkListening checks what is the same in all versions.
func checkListening(t *testing.T, steps map[string][]metrics.Sample, summary *metrics.Summary, rounds uint8) {
	t.Helper()
	for id, want := range map[string]metrics.Outcome{"ask": metrics.OK, "stop": metrics.Cancelled, "wait": metrics.OK, "raw": metrics.OK} {
		if n := len(steps[id]); n != 3 {
			t.Errorf("%s: %d rows, want 3", id, n)
		}
		for _, s := range steps[id] {
			if s.Outcome != want {
				t.Errorf("%s: outcome %v, want %v; %+v", id, s.Outcome, want, s.Extra)
			}
		}
	}
	for _, s := range steps["ask"] {
		want := &metrics.Extra{HasProgress: true, FirstProgress: 10 * time.Millisecond, LastProgress: 30 * time.Millisecond, Gaps: []time.Duration{20 * time.Millisecond}}
		ignore := cmpopts.IgnoreFields(metrics.Extra{}, "Connect", "Rounds")
		if diff := cmp.Diff(want, s.Extra, ignore); diff != "" || s.Progress != 2 || s.Rounds != rounds {
			t.Errorf("ask: %d progress, %d rounds, extra (-want +got):\n%s", s.Progress, s.Rounds, diff)
		}
		if took := s.Service(); took < 50*time.Millisecond || took > 60*time.Millisecond {
			t.Errorf("ask: took %v, want 30 ms and 20 to 25 for the answers", took)
		}
	}
	for _, s := range steps["stop"] {
		if s.Service() < 40*time.Millisecond {
			t.Errorf("stop: took %v", s.Service())
		}
	}
	asked := map[string]int64{}
	for _, q := range summary.ServerRequests {
		asked[q.Method] = q.Count
		if q.Refused != 0 || q.Answer.Count != q.Count {
			t.Errorf("%+v", q)
		}
	}
	if diff := cmp.Diff(map[string]int64{"elicitation/create": 3, "sampling/createMessage": 3, "roots/list": 3}, asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	if c := summary.Checks; len(c) != 1 || c[0].Passed != 3 {
		t.Errorf("checks %+v", c)
	}
}

// checkRounds looks at calls of two rounds: the first ends with the questions, the
// second is answered at once.
func checkRounds(t *testing.T, calls []metrics.Sample) {
	t.Helper()
	for _, s := range calls {
		if r := s.Extra.Rounds; len(r) != 2 || r[0] != 30*time.Millisecond || r[1] >= 5*time.Millisecond {
			t.Errorf("rounds of %v", r)
		}
	}
}

// modernPeer tells of an update each 100 ms on its listen stream, and has calls
// take two rounds.
func modernPeer() *mcptest.Peer {
	peer := &mcptest.Peer{}
	about := `"_meta":{"io.modelcontextprotocol/subscriptionId":$ID}`
	frames := []mcptest.Frame{{JSON: `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{` + about + `,"notifications":{"resourceSubscriptions":["toy://a"]}}}`}}
	for range 3 {
		frames = append(frames, mcptest.Frame{Delay: 100 * time.Millisecond, JSON: `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{` + about + `,"uri":"toy://a"}}`})
	}
	peer.On("subscriptions/listen", mcptest.Answer{Frames: append(frames, mcptest.Frame{Delay: time.Hour}), Hold: true})
	input := mcptest.Answer{
		Frames: []mcptest.Frame{progress(10*time.Millisecond, "0"), progress(20*time.Millisecond, "0.5")},
		Result: `{"resultType":"input_required","requestState":"s","inputRequests":{"a":{"method":"elicitation/create","params":` + form +
			`},"b":{"method":"sampling/createMessage","params":` + prompt + `},"c":{"method":"roots/list"}}}`,
	}
	complete := mcptest.Answer{Result: `{"resultType":"complete","content":[]}`}
	peer.On("tools/call", input, complete, input, complete, input, complete)
	peer.On("prompts/get", mcptest.Answer{Silent: true})
	peer.On("x-vendor/stats", mcptest.Answer{Result: `{"resultType":"complete"}`})
	return peer
}

// TestListeningModern does the same in 2026-07-28, where the call takes two
// rounds and the subscription is a stream.
func TestListeningModern(t *testing.T) {
	for _, kind := range []string{"http", "stdio"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				peer := modernPeer()
				transport := mcp.Transport(peer.HTTP(t))
				if kind == "stdio" {
					transport = peer.Stdio(t)
				}
				steps, summary := runListening(t, transport, mcp.V20260728)
				checkListening(t, steps, summary, 2)
				checkRounds(t, steps["ask"])
				if n := len(steps["unsubscribe news"]); n != 0 {
					t.Errorf("%d rows of the end of a stream", n)
				}
				for _, s := range summary.Steps {
					if strings.HasPrefix(s.Step, "subscribe") && s.Method != "subscriptions/listen" {
						t.Errorf("%s has the method %s", s.Step, s.Method)
					}
				}
				var params struct {
					Responses map[string]json.RawMessage `json:"inputResponses"`
				}
				if err := json.Unmarshal(peer.Received("tools/call")[1].Params, &params); err != nil || len(params.Responses) != 3 {
					t.Errorf("answers %s, %v", params.Responses, err)
				}
			})
		})
	}
}
