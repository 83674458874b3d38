package mcp_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"
)

// resultOf returns an answer whose message has exactly size bytes.
func resultOf(size int) string {
	const frame = `{"jsonrpc":"2.0","id":2,"result":{"x":""}}`
	return `{"x":"` + strings.Repeat("é", (size-len(frame))/2) + strings.Repeat("x", (size-len(frame))%2) + `"}`
}

// An answer up to the limit is fine; one over it fails its own request, with the
// limit that it broke, and the session goes on (faults A2, A3, B29).
func TestMessageLimit(t *testing.T) {
	const limit = 200_000
	for _, size := range []int{70_000, limit - 1, limit, limit + 1, 1_000_000} {
		for _, stream := range []bool{false, true} {
			peer := func() *mcptest.Peer {
				return (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Result: resultOf(size), SSE: stream}, mcptest.Answer{Result: echoed})
			}
			overAll(t, peer, func(o over) {
				t, tr := o.T, o.transport
				s := connect(t, tr, mcp.Options{Limits: mcp.Limits{MessageBytes: limit}})
				r, err := s.Call(t.Context(), echo)
				fits := size <= limit
				switch {
				case tr.Kind() == "sse":
					fits = size+len("event: messagedata: ") <= limit
				case stream && tr.Kind() == "http":
					fits = size+len("data: ") <= limit
				}
				if fits && (err != nil || r.BytesIn != size) {
					t.Errorf("%d bytes: %d in, %v", size, r.BytesIn, err)
				}
				if e, ok := errors.AsType[*mcp.LimitError](err); ok == fits || ok && (e.Limit != mcp.LimitMessage || e.Max != limit) {
					t.Errorf("%d bytes: %v", size, err)
				}
				wantOrder(t, r)
				if _, err := s.Call(t.Context(), echo); err != nil {
					t.Errorf("the next call: %v", err)
				}
			})
		}
	}
}

// An answer that is not read, because it says that it is too long, once counted
// as many bytes as the one before it.
func TestAnswerThatIsNotReadHasNoBytes(t *testing.T) {
	overHTTP(t, func(h onHTTP) {
		t := h.T
		long := mcptest.Answer{Result: resultOf(5000), Header: map[string]string{"Content-Length": "5000"}}
		p := (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Result: echoed}, long)
		s := connect(t, serveHTTP(t, p, h.engine), mcp.Options{Limits: mcp.Limits{MessageBytes: 4000}})
		if _, err := s.Call(t.Context(), echo); err != nil {
			t.Fatal(err)
		}
		r, err := s.Call(t.Context(), echo)
		if _, ok := errors.AsType[*mcp.LimitError](err); !ok || r.BytesIn != 0 {
			t.Errorf("%d bytes, %v", r.BytesIn, err)
		}
	})
}

func TestHeaderLimit(t *testing.T) {
	overHTTP(t, func(h onHTTP) {
		t, engine := h.T, h.engine
		p := (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Result: echoed, Header: map[string]string{"X": strings.Repeat("x", 100_000)}})
		s := connect(t, serveHTTP(t, p, engine), mcp.Options{Limits: mcp.Limits{HeaderBytes: 10_000}})
		_, err := s.Call(t.Context(), echo)
		if e, ok := errors.AsType[*mcp.LimitError](err); !ok || e.Limit != mcp.LimitHeader {
			t.Errorf("error %v", err)
		}
	})
}

// Wire test 13 and the difference between a stream that ends and one that is cut.
func TestConnectionCut(t *testing.T) {
	tests := map[string]mcptest.Answer{
		"before the header":   {Cut: true},
		"in a JSON body":      {Cut: true, Raw: `{"jsonrpc":"2.0",`},
		"in an event stream":  {Cut: true, SSE: true},
		"after another event": {Cut: true, Frames: []mcptest.Frame{{JSON: `{"jsonrpc":"2.0","method":"notifications/message","params":{}}`}}},
	}
	for name, answer := range tests {
		for _, v := range []mcp.Version{mcp.V20251125, mcp.V20260728} {
			t.Run(name+" "+string(v), func(t *testing.T) {
				overHTTP(t, func(h onHTTP) {
					t, engine := h.T, h.engine
					p := (&mcptest.Peer{SessionID: "s"}).On("tools/call", answer, mcptest.Answer{Result: echoed})
					s := connect(t, serveHTTP(t, p, engine), mcp.Options{Version: v})
					r, err := s.Call(t.Context(), echo)
					e, ok := errors.AsType[*mcp.TransportError](err)
					if !ok || e.Op != "read" || e.Class() != mcp.ClassEOF || mcp.SessionLost(err) {
						t.Errorf("error %v", err)
					}
					wantOrder(t, r)
					if _, err := s.Call(t.Context(), echo); err != nil {
						t.Errorf("the next call: %v", err)
					}
					time.Sleep(time.Minute) // virtual
					if n := len(p.Received("tools/call", "GET", "notifications/cancelled")); n != 2 {
						t.Errorf("%d messages, want 2: nothing is resumed, repeated or cancelled", n)
					}
				})
			})
		}
	}
}

// A connection is opened once and its time is told apart from the exchange.
func TestConnectionReuse(t *testing.T) {
	for _, answer := range []mcptest.Answer{{Result: echoed}, {Result: echoed, SSE: true}} {
		overHTTP(t, func(h onHTTP) {
			t, engine := h.T, h.engine
			p := (&mcptest.Peer{}).On("tools/call", answer)
			tr := serveHTTP(t, p, engine)
			dials := slowDials(tr, 70*time.Millisecond)
			s := connect(t, tr, mcp.Options{})
			for range 5 {
				r, err := s.Call(t.Context(), echo)
				if err != nil || r.Timing.Connect != 0 || r.Timing.End != r.Timing.Start {
					t.Errorf("timing %+v, %v", r.Timing, err)
				}
			}
			i := s.Info()
			if *dials != 1 || i.TCP != 70*time.Millisecond || i.TLS != 0 || i.Handshake != 0 || i.End-i.Start != 70*time.Millisecond {
				t.Errorf("%d dials, info %+v", *dials, i)
			}
		})
	}
}

// The time limit counts from the send; opening a connection has as much for itself.
func TestTimeoutCountsFromTheSend(t *testing.T) {
	overHTTP(t, func(h onHTTP) {
		t, engine := h.T, h.engine
		p := (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Cut: true}, mcptest.Answer{Delay: 900 * time.Millisecond, Result: echoed})
		tr := serveHTTP(t, p, engine)
		slowDials(tr, 900*time.Millisecond)
		s := connect(t, tr, mcp.Options{})
		if _, err := s.Call(t.Context(), echo); err == nil {
			t.Fatal("the connection was not cut")
		}
		req := echo
		req.Timeout = time.Second
		r, err := s.Call(t.Context(), req)
		if err != nil || r.Timing.Connect != 900*time.Millisecond || r.Timing.End-r.Timing.Start != 900*time.Millisecond {
			t.Errorf("timing %+v, %v", r.Timing, err)
		}
		if got := r.Timing.FirstByte - r.Timing.Start; got != 900*time.Millisecond {
			t.Errorf("first byte after %v", got)
		}
	})
}

// Calls of one session may overlap; each gets its own answer.
func TestConcurrentCalls(t *testing.T) {
	peer := func() *mcptest.Peer {
		return (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Delay: time.Second, Result: `{"id":$ID}`})
	}
	overAll(t, peer, func(o over) {
		t, tr := o.T, o.transport
		s := connect(t, tr, mcp.Options{})
		results := make(chan string, 50)
		for range cap(results) {
			go func() {
				r, err := s.Call(t.Context(), echo)
				if err != nil {
					t.Error(err)
				}
				results <- string(r.Result)
			}()
		}
		seen := map[string]bool{}
		for range cap(results) {
			seen[<-results] = true
		}
		if len(seen) != cap(results) {
			t.Errorf("%d different answers of %d", len(seen), cap(results))
		}
	})
}

func TestUserHeaders(t *testing.T) {
	overHTTP(t, func(h onHTTP) {
		t, engine := h.T, h.engine
		p := &mcptest.Peer{SessionID: "s"}
		tr := serveHTTP(t, p, engine)
		tr.URL = "http://ann:pw@mcptest/mcp?x=1#frag"
		tr.Header = map[string][]string{"x-tenant": {"a", "b"}, "host": {"other.example"}, "accept": {"text/html"}, "user-agent": {"me"}}
		s := connect(t, tr, mcp.Options{})
		if _, err := s.Call(t.Context(), echo); err != nil {
			t.Fatal(err)
		}
		for _, r := range p.Received() {
			if got := strings.Join(r.Header["X-Tenant"], ","); got != "a,b" {
				t.Errorf("X-Tenant %q", got)
			}
			if r.Header.Get("Accept") != "application/json, text/event-stream" || r.Header.Get("User-Agent") != "me" {
				t.Errorf("header %v", r.Header)
			}
			if r.Header.Get("Authorization") != "Basic YW5uOnB3" {
				t.Errorf("Authorization %q", r.Header.Get("Authorization"))
			}
		}
	})
}
