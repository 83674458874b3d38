package mcptest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpbench/mcp"
)

// ServeHTTP plays the peer as a Streamable HTTP endpoint.
func (p *Peer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // the client went
	}
	r := decode(body)
	r.HTTPMethod, r.Header = req.Method, req.Header.Clone()
	if req.Method != http.MethodPost {
		r.Method = req.Method
	}
	a := p.take(r)
	if !pause(req.Context(), a.Delay) {
		return
	}
	if a.Silent {
		<-req.Context().Done()
		return
	}
	p.writeHTTP(w, req, &a, r)
	if a.Hold {
		<-req.Context().Done()
	}
	if a.Cut {
		panic(http.ErrAbortHandler)
	}
}

func (p *Peer) writeHTTP(w http.ResponseWriter, req *http.Request, a *Answer, r Received) {
	message := a.message(r)
	stream := a.SSE || a.Feed || slices.ContainsFunc(a.Frames, func(f Frame) bool { return !f.OnGet })
	if a.Cut && !stream && message == "" && a.Raw == "" {
		return // cut before the header
	}
	contentType := a.Type
	switch {
	case contentType != "":
	case stream:
		contentType = "text/event-stream"
	case message != "" || a.Raw != "":
		contentType = "application/json"
	}
	if contentType != "" {
		w.Header().Set("Content-Type", contentType)
	}
	for k, v := range a.Header {
		w.Header()[k] = []string{v} // as spelt
	}
	status := a.Status
	if status == 0 {
		status = http.StatusOK
		if req.Method == http.MethodPost && (r.ID == "" || r.Method == "") && message == "" && a.Raw == "" {
			status = http.StatusAccepted
		}
	}
	w.WriteHeader(status)
	flusher := http.NewResponseController(w)
	write := func(text string) {
		if _, err := io.WriteString(w, text); err == nil && (stream || a.Hold || a.Cut) {
			_ = flusher.Flush() // a client that is gone shows at the next write
		}
	}
	if stream {
		write(": ok\n\n") // sends the header even when no frame is due yet
	}
	if !p.writeFrames(req.Context(), a, r, write) {
		return
	}
	if stream && message != "" {
		message = "data: " + message + "\n\n"
	}
	write(fill(a.Raw, r) + message)
}

// writeFrames writes the frames of an answer, or all that other answers have for
// the GET stream; false when the client went.
func (p *Peer) writeFrames(ctx context.Context, a *Answer, r Received, write func(text string)) bool {
	for _, f := range a.Frames {
		if !pause(ctx, f.Delay) {
			return false
		}
		if f.OnGet {
			select {
			case p.feeding() <- f.event(r):
			case <-ctx.Done():
				return false
			}
		} else {
			write(f.event(r))
		}
		if !p.await(ctx, &f, r) {
			return false
		}
	}
	for a.Feed {
		select {
		case event := <-p.feeding():
			write(event)
		case <-ctx.Done():
			return false
		}
	}
	return true
}

func (f *Frame) event(r Received) string {
	if f.Raw != "" {
		return fill(f.Raw, r)
	}
	var b strings.Builder
	if f.Event != "" {
		b.WriteString("event: " + f.Event + "\n")
	}
	if f.ID != "" {
		b.WriteString("id: " + f.ID + "\n")
	}
	b.WriteString("data: " + fill(f.JSON, r) + "\n\n")
	return b.String()
}

// pause waits; false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// ServePipe plays the peer as a stdio server until its input ends. Each message
// is answered by a goroutine of its own, all of which it awaits.
func (p *Peer) ServePipe(ctx context.Context, in io.Reader, output io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	out := &lineWriter{peer: p, w: output, free: make(chan struct{}, 1)}
	var answering sync.WaitGroup
	defer answering.Wait()
	defer cancel()
	p.mu.Lock()
	p.pipes++
	conn := p.pipes
	p.mu.Unlock()
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) {
			return nil
		}
		if err != nil {
			return err
		}
		r := decode(bytes.TrimRight(line, "\n"))
		r.Conn = conn
		a := p.take(r)
		answering.Go(func() {
			if out.answer(ctx, &a, r) && a.Cut {
				closeBoth(in, output)
			}
		})
	}
}

// lineWriter writes for several goroutines, one at a time.
type lineWriter struct {
	peer *Peer
	w    io.Writer
	free chan struct{}
}

func (l *lineWriter) write(text string) {
	if text == "" {
		return
	}
	l.free <- struct{}{}
	defer func() { <-l.free }()
	_, _ = io.WriteString(l.w, text) // a client that is gone ends the input too
}

// answer writes what an answer consists of; false when nothing is due or ctx ended first.
func (l *lineWriter) answer(ctx context.Context, a *Answer, r Received) bool {
	if a.Silent || !pause(ctx, a.Delay) {
		return false
	}
	for _, f := range a.Frames {
		if !pause(ctx, f.Delay) {
			return false
		}
		text := f.JSON + "\n"
		if f.Raw != "" {
			text = f.Raw
		}
		l.write(fill(text, r))
		if !l.peer.await(ctx, &f, r) {
			return false
		}
	}
	text := fill(a.Raw, r)
	if m := a.message(r); m != "" {
		text += m + "\n"
	}
	l.write(text)
	return true
}

func closeBoth(ends ...any) {
	for _, end := range ends {
		if c, ok := end.(io.Closer); ok {
			_ = c.Close() // of pipes in memory
		}
	}
}

// HTTP serves the peer over an in-memory listener until the test ends and returns
// the transport that reaches it. Sessions must be closed before the test ends.
func (p *Peer) HTTP(tb testing.TB) *mcp.Streamable {
	tb.Helper()
	return &mcp.Streamable{URL: "http://mcptest/mcp", DialContext: Serve(tb, p).DialContext}
}

// Serve serves h over an in-memory listener until the test ends.
func Serve(tb testing.TB, h http.Handler) *Listener {
	tb.Helper()
	l := Listen()
	srv := &http.Server{Handler: h} //nolint:gosec // in memory, no slow clients
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			tb.Errorf("serve: %v", err)
		}
	})
	tb.Cleanup(func() {
		if err := srv.Close(); err != nil {
			tb.Errorf("close the server: %v", err)
		}
		serving.Wait()
	})
	return l
}

// Stdio returns a transport whose every connection is a pair of in-memory pipes
// with the peer at the other end.
func (p *Peer) Stdio(tb testing.TB) mcp.Transport {
	tb.Helper()
	t := &pipes{peer: p, tb: tb}
	tb.Cleanup(t.serving.Wait)
	return t
}

type pipes struct {
	peer    *Peer
	tb      testing.TB
	serving sync.WaitGroup
}

// Kind returns stdio.
func (*pipes) Kind() string { return "stdio" }

// Dial connects to the peer.
func (t *pipes) Dial(ctx context.Context, o mcp.Options) (mcp.Conn, error) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	t.serving.Go(func() {
		if err := t.peer.ServePipe(context.WithoutCancel(ctx), inR, outW); err != nil {
			t.tb.Errorf("peer: %v", err)
		}
		closeBoth(inR, outW)
	})
	return mcp.NewPipe(outR, inW, o), nil
}

// Anomalies counts what a session reports. Its Tell goes into Options.OnAnomaly.
type Anomalies struct {
	mu   sync.Mutex
	told []mcp.Anomaly
	text []string
}

// Tell notes one anomaly.
func (a *Anomalies) Tell(kind mcp.Anomaly, detail string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.told = append(a.told, kind)
	a.text = append(a.text, kind.String()+": "+detail)
}

// Counts returns how often each kind was told.
func (a *Anomalies) Counts() map[mcp.Anomaly]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	counts := make(map[mcp.Anomaly]int)
	for _, k := range a.told {
		counts[k]++
	}
	return counts
}

// Texts returns what was told, in order.
func (a *Anomalies) Texts() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.text)
}
