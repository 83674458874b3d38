package mcptest

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"sync"
	"testing"

	"mcpbench/mcp"
)

// SSE serves the peer over HTTP+SSE in memory until the test ends and returns the
// transport that reaches it. Sessions must be closed before the test ends.
//
// An answer to a message comes over the stream, after its Delay; the POST is
// answered at once, or after the Lag, or, when the answer is Silent, never. With a
// Status of 300 or more the POST has the answer and the stream gets nothing. An
// answer to "GET" is the stream: its Frames take the place of the endpoint event,
// and then the stream ends, unless it has Hold. A POST to the URL of the stream is
// refused with 405, or as "POST /sse" says.
func (p *Peer) SSE(tb testing.TB) *mcp.LegacySSE {
	tb.Helper()
	s := &legacySSE{peer: p, streams: make(map[string]*stream)}
	l := Serve(tb, s)
	tb.Cleanup(s.answering.Wait)
	return &mcp.LegacySSE{URL: "http://mcptest/sse?tenant=1", DialContext: l.DialContext}
}

type legacySSE struct {
	peer      *Peer
	answering sync.WaitGroup

	mu      sync.Mutex
	streams map[string]*stream
}

// stream is the event stream of one session.
type stream struct {
	events chan string
	cut    chan struct{}   // break the connection
	end    chan struct{}   // end it in order
	ctx    context.Context //nolint:containedctx // of the GET, which ends the stream
}

// ServeHTTP serves the stream to a GET, and takes messages by POST.
func (s *legacySSE) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // the client went
	}
	r := decode(body)
	r.HTTPMethod, r.Header, r.URL = req.Method, req.Header.Clone(), req.URL.String()
	if req.Method == http.MethodGet {
		r.Method = "GET"
		s.stream(w, req, r)
		return
	}
	session := req.URL.Query().Get("session")
	a := s.take(r, session)
	if a.Silent {
		<-req.Context().Done()
		return
	}
	if a.Status >= 300 || session == "" {
		s.peer.writeHTTP(w, req, &a, r)
		return
	}
	s.mu.Lock()
	st := s.streams[session]
	s.mu.Unlock()
	if st == nil {
		http.Error(w, "no such session", http.StatusNotFound)
		return
	}
	s.answering.Go(func() { st.answer(&a, r) })
	if !pause(req.Context(), a.Lag) {
		return
	}
	status := a.Status
	if status == 0 {
		status = http.StatusAccepted
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, "Accepted") // a client that is gone has shown it
}

func (s *legacySSE) take(r Received, session string) Answer {
	if session != "" {
		return s.peer.take(r)
	}
	s.peer.mu.Lock()
	defer s.peer.mu.Unlock()
	s.peer.received = append(s.peer.received, r)
	if a, ok := s.peer.scripted("POST /sse"); ok {
		return a
	}
	return Answer{Status: http.StatusMethodNotAllowed, Type: "text/plain", Raw: "Method not allowed"}
}

func (s *legacySSE) stream(w http.ResponseWriter, req *http.Request, r Received) {
	st := &stream{events: make(chan string), cut: make(chan struct{}, 1), end: make(chan struct{}, 1), ctx: req.Context()}
	s.mu.Lock()
	id := strconv.Itoa(len(s.streams) + 1)
	s.streams[id] = st
	s.mu.Unlock()
	s.peer.mu.Lock()
	s.peer.received = append(s.peer.received, r)
	a, ok := s.peer.scripted("GET")
	s.peer.mu.Unlock()
	if !ok {
		a = Answer{Frames: []Frame{{Event: "endpoint", JSON: "/message?session=" + id}}, Hold: true}
	}
	if a.Silent || !pause(req.Context(), a.Delay) {
		<-req.Context().Done()
		return
	}
	if a.Status != 0 || a.Type != "" {
		s.peer.writeHTTP(w, req, &a, r)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	flusher := http.NewResponseController(w)
	write := func(text string) {
		if _, err := io.WriteString(w, text); err == nil {
			_ = flusher.Flush() // a client that is gone shows at the next write
		}
	}
	write(": ok\n\n")
	for _, f := range a.Frames {
		if !pause(req.Context(), f.Delay) {
			return
		}
		write(f.event(r))
	}
	for a.Hold {
		select {
		case text := <-st.events:
			write(text)
		case <-st.cut:
			panic(http.ErrAbortHandler)
		case <-st.end:
			return
		case <-req.Context().Done():
			return
		}
	}
}

// answer puts an answer into the stream.
func (st *stream) answer(a *Answer, r Received) {
	put := func(text string) bool {
		if text == "" {
			return true
		}
		select {
		case st.events <- text:
			return true
		case <-st.ctx.Done():
			return false
		}
	}
	if !pause(st.ctx, a.Delay) {
		return
	}
	for _, f := range a.Frames {
		if !pause(st.ctx, f.Delay) || !put(f.event(r)) {
			return
		}
	}
	if m := a.message(r); m != "" && !put("event: message\ndata: "+m+"\n\n") || !put(fill(a.Raw, r)) {
		return
	}
	if a.Cut {
		st.cut <- struct{}{}
	}
	if a.End {
		st.end <- struct{}{}
	}
}
