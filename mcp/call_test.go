package mcp_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"

	"github.com/google/go-cmp/cmp"
)

// Wire tests 7 and 8: every form of the same answer gives the same result.
func TestAnswerForms(t *testing.T) {
	const answer = `{"jsonrpc":"2.0","id":$ID,"result":` + echoed + `}`
	const reordered = `{"result":` + echoed + `,"jsonrpc":"2.0","id":$ID,"x":[1]}`
	stream := func(raw string) mcptest.Answer {
		return mcptest.Answer{Type: "text/event-stream", Raw: raw}
	}
	tests := []struct {
		name   string
		answer mcptest.Answer
	}{
		{"JSON", mcptest.Answer{JSON: answer}},
		{"JSON with another order of members", mcptest.Answer{JSON: reordered}},
		{"JSON with a charset and upper case", mcptest.Answer{JSON: answer, Type: "Application/JSON; charset=utf-8"}},
		{"JSON among blanks", mcptest.Answer{JSON: "\n " + answer + "\r\n"}},
		{"SSE", mcptest.Answer{JSON: answer, SSE: true}},
		{"SSE with a charset", mcptest.Answer{Raw: "data: " + answer + "\n\n", Type: "text/event-stream;charset=utf-8"}},
		{"SSE named message, id first", stream("id: 7\nevent: message\ndata: " + answer + "\n\n")},
		{"SSE with CRLF", stream("event: message\r\ndata: " + answer + "\r\n\r\n")},
		{"SSE with go-sdk priming", stream("event: prime\nid: P_0\ndata: \n\ndata: " + answer + "\n\n")},
		{"SSE with TypeScript priming", stream("id: x\ndata: \n\nevent: message\ndata: " + answer + "\n\n")},
		{"SSE with comments", stream(": hello\n\n: there\ndata: " + answer + "\n\n")},
		{"SSE in two data lines", stream("data: {\"jsonrpc\":\"2.0\",\"id\":$ID,\ndata: \"result\":" + echoed + "}\n\n")},
		{"SSE that stays open", mcptest.Answer{JSON: answer, SSE: true, Hold: true}},
		{"number written otherwise", mcptest.Answer{JSON: strings.Replace(answer, "$ID", "$ID.0", 1)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			overHTTP(t, func(h onHTTP) {
				t, engine := h.T, h.engine
				p := (&mcptest.Peer{}).On("tools/call", tt.answer, mcptest.Answer{JSON: answer}, tt.answer)
				var a mcptest.Anomalies
				s := connect(t, serveHTTP(t, p, engine), mcp.Options{OnAnomaly: a.Tell})
				for range 3 {
					r, err := s.Call(t.Context(), echo)
					if err != nil || string(r.Result) != echoed || r.HTTPStatus != 200 || r.Rounds != 1 {
						t.Errorf("got %+v, %v", r, err)
					}
					if want := p.Received("tools/call")[0].Body; r.BytesOut != len(want) {
						t.Errorf("%d bytes out, want %d", r.BytesOut, len(want))
					}
					wantOrder(t, r)
				}
				if len(a.Texts()) != 0 {
					t.Errorf("anomalies %v", a.Texts())
				}
			})
		})
	}
}

// Wire test 9: the stream of a request carries other messages before the answer.
func TestMessagesBeforeTheAnswer(t *testing.T) {
	frames := []mcptest.Frame{
		{JSON: `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$TOKEN,"progress":0}}`, Delay: 10 * time.Millisecond},
		{JSON: `{"jsonrpc":"2.0","id":$ID,"method":"ping"}`}, // the server numbers for itself
		{JSON: `{"jsonrpc":"2.0","id":"r","method":"roots/list"}`},
		{JSON: `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`},
		{JSON: `{"jsonrpc":"2.0","method":"notifications/strange"}`},
		{JSON: `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$TOKEN,"progress":1}}`, Delay: 10 * time.Millisecond},
	}
	peer := func() *mcptest.Peer {
		return (&mcptest.Peer{SessionID: "s"}).On("tools/call", mcptest.Answer{Frames: frames, Result: echoed})
	}
	overAll(t, peer, func(o over) {
		t, p, tr := o.T, o.peer, o.transport
		var a mcptest.Anomalies
		s := connect(t, tr, mcp.Options{OnAnomaly: a.Tell})
		r, err := s.Call(t.Context(), mcp.Request{
			Method: "tools/call", Params: []byte(`{"name":"echo","_meta":{"progressToken":"t1"}}`),
		})
		if err != nil || string(r.Result) != echoed {
			t.Fatalf("got %+v, %v", r, err)
		}
		wantNotifications, wantFirst := 4, 10*time.Millisecond
		if tr.Kind() != "http" {
			wantNotifications, wantFirst = 2, 20*time.Millisecond // only a token ties one to a request
		}
		if r.Progress != 2 || r.Notifications != wantNotifications {
			t.Errorf("%d notifications, %d progress; want %d, 2", r.Notifications, r.Progress, wantNotifications)
		}
		if first := r.Timing.FirstByte - r.Timing.Start; first != wantFirst {
			t.Errorf("first byte after %v, want %v", first, wantFirst)
		}
		if took := r.Timing.End - r.Timing.Start; took != 20*time.Millisecond {
			t.Errorf("took %v, want 20ms", took)
		}
		time.Sleep(time.Second) // virtual: the answers to the server are on their way
		var answers []string
		for _, m := range p.Received("") {
			answers = append(answers, m.Body)
			if tr.Kind() == "http" && m.Header.Get("Mcp-Session-Id") != "s" || m.Header != nil && m.HTTPMethod != http.MethodPost {
				t.Errorf("the answer was sent as %s with %v", m.HTTPMethod, m.Header)
			}
		}
		slices.Sort(answers)
		want := []string{
			`{"jsonrpc":"2.0","id":"r","error":{"code":-32601,"message":"Method not found"}}`,
			`{"jsonrpc":"2.0","id":2,"result":{}}`,
		}
		if d := cmp.Diff(want, answers); d != "" {
			t.Errorf("answers to the server (-want +got)\n%s", d)
		}
		wantAnomalies := map[mcp.Anomaly]int{mcp.AnomalyServerRequestRefused: 1, mcp.AnomalyUnknownNotification: 1}
		if d := cmp.Diff(wantAnomalies, a.Counts()); d != "" {
			t.Errorf("anomalies (-want +got)\n%s", d)
		}
	})
}

// Wire tests 11, 13 and 49 and the matrix of answers: what is wrong is told apart.
func TestHTTPAnswersThatAreWrong(t *testing.T) {
	const sse = "text/event-stream"
	tests := []struct {
		name   string
		answer mcptest.Answer
		fault  mcp.ProtocolFault
	}{
		{"stream ends without an answer", mcptest.Answer{SSE: true}, mcp.FaultNoAnswer},
		{"stream ends after priming without an id", mcptest.Answer{Type: sse, Raw: "event: prime\ndata: \n\nevent: close\nretry: 10\ndata: \n\n"}, mcp.FaultNoAnswer},
		{"last event without a blank line", mcptest.Answer{Type: sse, Raw: `data: {"jsonrpc":"2.0","id":$ID,"result":{}}`}, mcp.FaultNoAnswer},
		{"empty stream", mcptest.Answer{Type: sse, Status: 200, Raw: " "}, mcp.FaultNoAnswer},
		{"JSON type with SSE text (go-sdk JSON mode)", mcptest.Answer{Raw: "event: prime\ndata: \n\n"}, mcp.FaultBadJSON},
		{"cut JSON", mcptest.Answer{Raw: `{"jsonrpc":"2.0","id":$ID,"result":{"a":`}, mcp.FaultBadJSON},
		{"empty JSON body", mcptest.Answer{Type: "application/json", Status: 200}, mcp.FaultBadJSON},
		{"a string", mcptest.Answer{Raw: `"ok"`}, mcp.FaultBadJSON},
		{"broken event", mcptest.Answer{Type: sse, Raw: "data: {broken\n\n"}, mcp.FaultBadJSON},
		{"other id", mcptest.Answer{JSON: `{"jsonrpc":"2.0","id":999,"result":{}}`}, mcp.FaultForeignID},
		{"id as string", mcptest.Answer{JSON: `{"jsonrpc":"2.0","id":"$ID","result":{}}`}, mcp.FaultForeignID},
		{"result without id", mcptest.Answer{JSON: `{"jsonrpc":"2.0","id":null,"result":{}}`}, mcp.FaultForeignID},
		{"a request instead", mcptest.Answer{JSON: `{"jsonrpc":"2.0","id":$ID,"method":"ping"}`}, mcp.FaultNoAnswer},
		{"both", mcptest.Answer{JSON: `{"jsonrpc":"2.0","id":$ID,"result":{},"error":{"code":1,"message":""}}`}, mcp.FaultResultAndError},
		{"neither", mcptest.Answer{JSON: `{"jsonrpc":"2.0","id":$ID}`}, mcp.FaultNoResultNoError},
		{"jsonrpc 1.0", mcptest.Answer{JSON: `{"jsonrpc":"1.0","id":$ID,"result":{}}`}, mcp.FaultBadJSONRPC},
		{"no jsonrpc", mcptest.Answer{JSON: `{"id":$ID,"result":{}}`}, mcp.FaultBadJSONRPC},
		{"result is no object", mcptest.Answer{Result: `[1]`}, mcp.FaultBadResult},
		{"isError is no boolean", mcptest.Answer{Result: `{"isError":"true"}`}, mcp.FaultBadResult},
		{"error without code", mcptest.Answer{Error: `{"message":"x"}`}, mcp.FaultBadError},
		{"error is a text", mcptest.Answer{Error: `"x"`}, mcp.FaultBadError},
		{"202", mcptest.Answer{Status: 202}, mcp.FaultNoAnswer},
		{"204", mcptest.Answer{Status: 204}, mcp.FaultNoAnswer},
		{"HTML", mcptest.Answer{Raw: "<html>", Type: "text/html"}, mcp.FaultContentType},
		{"compressed", mcptest.Answer{Raw: "\x1f\x8b", Header: map[string]string{"Content-Encoding": "gzip"}}, mcp.FaultContentEncoding},
		{"array (test 45)", mcptest.Answer{JSON: `[{"jsonrpc":"2.0","id":$ID,"result":{}}]`}, mcp.FaultBatch},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			overHTTP(t, func(h onHTTP) {
				t, engine := h.T, h.engine
				p := (&mcptest.Peer{}).On("tools/call", tt.answer, mcptest.Answer{Result: echoed})
				s := connect(t, serveHTTP(t, p, engine), mcp.Options{})
				r, err := s.Call(t.Context(), echo)
				wantFault(t, err, tt.fault)
				wantOrder(t, r)
				if mcp.SessionLost(err) {
					t.Error("the session counts as lost")
				}
				if _, err := s.Call(t.Context(), echo); err != nil {
					t.Errorf("the next call: %v", err)
				}
				if got := len(p.Received("tools/call", "GET")); got != 2 {
					t.Errorf("%d messages, want 2: nothing is repeated or resumed", got)
				}
			})
		})
	}
}

// Wire test 51: in 2026-07-28 the client posts no responses, not even to a ping.
func TestModernServerRequestIsAViolation(t *testing.T) {
	peer := func() *mcptest.Peer {
		return (&mcptest.Peer{}).On("tools/call", mcptest.Answer{
			Frames: []mcptest.Frame{{JSON: `{"jsonrpc":"2.0","id":1,"method":"ping"}`}}, Result: echoed,
		})
	}
	overBoth(t, peer, func(o over) {
		t, p, tr := o.T, o.peer, o.transport
		var a mcptest.Anomalies
		s := connect(t, tr, mcp.Options{Version: mcp.V20260728, OnAnomaly: a.Tell})
		if _, err := s.Call(t.Context(), echo); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second) // virtual
		if len(p.Received("")) != 0 || a.Counts()[mcp.AnomalyServerRequestForbidden] != 1 {
			t.Errorf("answers %v, anomalies %v", p.Received(""), a.Texts())
		}
	})
}

func TestOddEventsAreSurvived(t *testing.T) {
	overHTTP(t, func(h onHTTP) {
		t, engine := h.T, h.engine
		p := (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Frames: []mcptest.Frame{
			{JSON: `{"type":"heartbeat"}`},
			{Event: "ping", JSON: `2026-01-01 12:00`},
			{JSON: `{"jsonrpc":"2.0","id":999,"result":{}}`},
			{JSON: `{"jsonrpc":"2.0","id":"$ID","result":{}}`},
		}, Result: echoed})
		var a mcptest.Anomalies
		s := connect(t, serveHTTP(t, p, engine), mcp.Options{OnAnomaly: a.Tell})
		if r, err := s.Call(t.Context(), echo); err != nil || string(r.Result) != echoed {
			t.Errorf("got %+v, %v", r, err)
		}
		want := map[mcp.Anomaly]int{mcp.AnomalyOddEvent: 2, mcp.AnomalyUnknownID: 2}
		if d := cmp.Diff(want, a.Counts()); d != "" {
			t.Errorf("anomalies (-want +got)\n%s", d)
		}
	})
}

func TestBadParams(t *testing.T) {
	overAll(t, func() *mcptest.Peer { return &mcptest.Peer{} }, func(o over) {
		t, p, tr := o.T, o.peer, o.transport
		for _, v := range []mcp.Version{"", mcp.V20260728} {
			if !carries(tr, v) {
				continue
			}
			s := connect(t, tr, mcp.Options{Version: v})
			before := len(p.Received())
			for _, params := range []string{`[1]`, `7`, `"x"`} {
				_, err := s.Call(t.Context(), mcp.Request{Method: "tools/list", Params: []byte(params)})
				contains(t, err, "tools/list", "not a JSON object")
			}
			if got := len(p.Received()); got != before {
				t.Errorf("%d messages were sent", got-before)
			}
		}
	})
}
