package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"mcpbench/mcp"
	"mcpbench/output"
	"mcpbench/scenarios"
)

const (
	// callFrameText is how much of a message call shows.
	callFrameText = 256 << 10
	// callBytes bounds what may wait to be shown.
	callBytes = 64 << 20
	// callAnomalies bounds how many anomalies are shown.
	callAnomalies = 100
	// callLine bounds a line of the server's stderr.
	callLine = 64 << 10
)

// sighting is one thing that call has seen: a frame, or a line of the server's stderr.
type sighting struct {
	frame *output.Frame
	line  string
}

// callWatch takes what a session shows, until the one who shows it to the user
// takes it from there. Safe for concurrent use.
type callWatch struct {
	mask *scenarios.Masker

	mu        sync.Mutex
	waiting   []sighting
	bytes     int // of those
	left      int // were too many
	muted     bool
	ended     bool
	anomalies []string
	heads     []time.Duration // when the header of an event stream came
	events    []time.Duration // when its events came
	rest      []byte          // of a line of stderr

	wake chan struct{} // has room for one: there is something to take
}

func newCallWatch(mask *scenarios.Masker) *callWatch {
	return &callWatch{mask: mask, wake: make(chan struct{}, 1)}
}

// frame is the Options.OnFrame of the session.
func (w *callWatch) frame(f mcp.Frame) {
	shown := newFrame(&f, w.mask, callFrameText)
	hide(&shown, w.mask)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.muted {
		return
	}
	w.time(&f)
	w.see(sighting{frame: &shown}, len(shown.Text)+500)
}

// time notes what the timing of an event stream consists of.
func (w *callWatch) time(f *mcp.Frame) {
	const enough = 1000
	switch {
	case len(w.heads) > enough || len(w.events) > enough:
	case f.Channel == mcp.ChannelPost && slices.ContainsFunc(f.Header, isStream):
		w.heads = append(w.heads, f.At)
	case f.Channel == mcp.ChannelEvent && len(f.Data) > 0:
		w.events = append(w.events, f.At)
	}
}

func isStream(header string) bool {
	return strings.HasPrefix(header, "Content-Type: text/event-stream")
}

func (w *callWatch) see(s sighting, size int) {
	if w.bytes+size > callBytes {
		w.left++
		return
	}
	w.bytes += size
	w.waiting = append(w.waiting, s)
	w.tell()
}

func (w *callWatch) tell() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// anomaly is the Options.OnAnomaly of the session.
func (w *callWatch) anomaly(kind mcp.Anomaly, detail string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.muted && len(w.anomalies) < callAnomalies {
		w.anomalies = append(w.anomalies, fmt.Sprintf("%s: %s", kind, w.mask.Text(detail)))
	}
}

// Write is for the server's stderr.
func (w *callWatch) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		part, rest, ended := bytes.Cut(b, []byte{'\n'})
		w.rest = append(w.rest, part[:min(len(part), max(0, 2*callLine-len(w.rest)))]...)
		if ended {
			w.Flush()
		}
		b = rest
	}
	return n, nil
}

// Flush shows a last line without a line feed.
func (w *callWatch) Flush() {
	line := bytes.TrimRight(w.rest, "\r")
	text := w.mask.Text(string(line[:w.mask.End(line, callLine)]))
	w.rest = w.rest[:0]
	w.mu.Lock()
	defer w.mu.Unlock()
	if text != "" {
		w.see(sighting{line: text}, len(text))
	}
}

// mute has nothing seen until it is called with false.
func (w *callWatch) mute(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.muted = on
}

// end says that nothing will come any more.
func (w *callWatch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	w.tell()
}

// next waits for what there is to show; more is false after the last.
func (w *callWatch) next() (seen []sighting, more bool) {
	<-w.wake
	w.mu.Lock()
	defer w.mu.Unlock()
	seen, w.waiting, w.bytes = w.waiting, nil, 0
	return seen, !w.ended
}

// stream returns when the header and the first event came of the stream that
// answers the request sent at that moment; negative what did not come.
func (w *callWatch) stream(sent time.Duration) (head, event time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	head, event = -1, -1
	if i := slices.IndexFunc(w.heads, func(at time.Duration) bool { return at >= sent }); i >= 0 {
		head = w.heads[i]
		if i = slices.IndexFunc(w.events, func(at time.Duration) bool { return at >= head }); i >= 0 {
			event = w.events[i]
		}
	}
	return head, event
}
