package mcp_test

import (
	"strconv"
	"testing"
	"time"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"

	"github.com/google/go-cmp/cmp"
)

// Wire test 18: progress is told by its token, on whatever stream it comes: one SDK
// sends a call's notifications now on its own stream, now on the GET stream.
func TestProgressOnTheGetStream(t *testing.T) {
	const own, get = false, true
	type frame struct {
		onGet bool
		value string
	}
	tests := []struct {
		name   string
		frames []frame
		sse    bool
		count  int
		want   map[mcp.Anomaly]int
	}{
		{"all there (go-sdk, JSON mode)", []frame{{get, "1"}, {get, "2"}}, false, 2, nil},
		{"all there, SSE", []frame{{get, "1"}, {get, "2"}}, true, 2, nil},
		{"split (mcp-go)", []frame{{own, "1"}, {get, "2"}, {own, "3"}, {get, "4"}}, true, 4, nil},
		// Streams have no order among them, but the same value twice cannot be.
		{"overtaken", []frame{{get, "2"}, {own, "1"}, {get, "3"}}, true, 3, nil},
		{"twice", []frame{{get, "2"}, {own, "2"}}, true, 1, map[mcp.Anomaly]int{mcp.AnomalyProgressValue: 1}},
		{"not increasing", []frame{{get, "2"}, {get, "1"}}, false, 1, map[mcp.Anomaly]int{mcp.AnomalyProgressValue: 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			overHTTP(t, func(h onHTTP) {
				t, engine := h.T, h.engine
				p := (&mcptest.Peer{SessionID: "s"}).On("GET", mcptest.Answer{Feed: true})
				answer := mcptest.Answer{Result: echoed, SSE: tt.sse}
				size := len(`{"jsonrpc":"2.0","id":2,"result":` + echoed + `}`)
				for _, f := range tt.frames {
					one := tick(ms, `"t"`, f.value)
					one.OnGet = f.onGet
					answer.Frames = append(answer.Frames, one)
					size += len(one.JSON)
				}
				answer.Frames = append(answer.Frames, mcptest.Frame{Delay: ms, Raw: "\n", OnGet: true}) // all of it came
				p.On("tools/call", answer)
				var a mcptest.Anomalies
				s := connect(t, serveHTTP(t, p, engine), mcp.Options{GetStream: true, OnAnomaly: a.Tell})
				r, err := s.Call(t.Context(), withToken(`"t"`))
				if err != nil || r.Progress != tt.count || r.Notifications != len(tt.frames) || r.BytesIn != size {
					t.Errorf("got %+v, %v; want %d bytes", r, err, size)
				}
				if r.More == nil || r.More.First != r.Timing.Start+ms {
					t.Errorf("more %+v", r.More)
				}
				if d := cmp.Diff(tt.want, a.Counts(), emptyIsNil); d != "" {
					t.Errorf("anomalies (-want +got)\n%s", d)
				}
			})
		})
	}
}

// Progress on the stream of another request counts for its own, and as late when
// that is over.
func TestProgressOnAnotherPostStream(t *testing.T) {
	overHTTP(t, func(h onHTTP) {
		t, engine := h.T, h.engine
		carrier := []mcptest.Frame{tick(2*ms, `"t"`, "1"), tick(ms, `"t"`, "2"), tick(10*ms, `"t"`, "3")}
		p := (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Delay: 8 * ms, Result: echoed}).
			On("prompts/get", mcptest.Answer{Frames: carrier, Result: `{}`})
		var a mcptest.Anomalies
		s := connect(t, serveHTTP(t, p, engine), mcp.Options{OnAnomaly: a.Tell})
		done := make(chan mcp.Reply)
		go func() {
			r, err := s.Call(t.Context(), withToken(`"t"`))
			if err != nil {
				t.Error(err)
			}
			done <- r
		}()
		time.Sleep(ms) // virtual
		r, err := s.Call(t.Context(), mcp.Request{Method: "prompts/get"})
		if err != nil || r.Progress != 0 || r.Notifications != 1 || r.More != nil {
			t.Errorf("the carrier got %+v, %v", r, err)
		}
		if want := len(carrier[2].JSON) + len(`{"jsonrpc":"2.0","id":3,"result":{}}`); r.BytesIn != want {
			t.Errorf("%d bytes in for the carrier, want %d", r.BytesIn, want)
		}
		r = <-done
		wantProgress(t, r, []time.Duration{3 * ms, 4 * ms})
		if d := cmp.Diff(map[mcp.Anomaly]int{mcp.AnomalyProgressLate: 1}, a.Counts()); d != "" {
			t.Errorf("anomalies (-want +got)\n%s", d)
		}
	})
}

// Progress without end is counted without end, and timed up to a bound.
func TestMuchProgress(t *testing.T) {
	var frames []mcptest.Frame
	for i := range mcp.MaxGaps + 10 {
		frames = append(frames, tick(ms, "$TOKEN", strconv.Itoa(i)))
	}
	peer := func() *mcptest.Peer {
		return (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Frames: frames, Result: echoed})
	}
	overBoth(t, peer, func(o over) {
		t, tr := o.T, o.transport
		r, err := connect(t, tr, mcp.Options{}).Call(t.Context(), following(mcp.Wants{}))
		if err != nil || r.Progress != len(frames) || r.More == nil || len(r.More.Gaps) != mcp.MaxGaps {
			t.Fatalf("got %+v, %v", r, err)
		}
		if took := r.More.Last - r.More.First; took != time.Duration(len(frames)-1)*ms {
			t.Errorf("last %v after the first", took)
		}
	})
}
