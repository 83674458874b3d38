package output

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"unicode/utf8"
)

// Frame is one line of a frame log: what went over the wire, for debugging.
type Frame struct {
	OffsetNS int64    `json:"offset_ns"` // since the process began to open sessions
	Server   string   `json:"server"`
	Session  int      `json:"session"` // the slot it belongs to
	Dir      string   `json:"dir"`     // out: to the server; in: from it
	Channel  string   `json:"channel"`
	Status   int      `json:"http_status,omitempty"`
	Header   []string `json:"header,omitempty"`
	Event    string   `json:"event,omitempty"`
	EventID  string   `json:"event_id,omitempty"`
	Method   string   `json:"method,omitempty"`
	ID       string   `json:"id,omitempty"` // as JSON text
	Bytes    int      `json:"bytes"`        // of the whole message
	Cut      int      `json:"cut,omitempty"`
	Text     string   `json:"text"` // without the last Cut bytes
}

const (
	// FrameText is how much of a message a frame log keeps.
	FrameText = 4 << 10
	// frameBytes is how large a frame log may become.
	frameBytes = 64 << 20
	// frameQueue is how many frames may wait to be written.
	frameQueue = 4096
)

// FrameLog writes frames as JSON lines to a file of bounded size. What does not
// fit, or comes faster than it can be written, is counted and told in the last line.
type FrameLog struct {
	file  *os.File
	queue chan Frame
	done  chan error
	limit int64

	mu     sync.RWMutex // held to send; for writing to close
	closed bool
	lost   atomic.Int64
}

// NewFrameLog makes the file, or empties it. Close must be called.
func NewFrameLog(name string) (*FrameLog, error) {
	f, err := os.Create(name) //nolint:gosec // the user names the file
	if err != nil {
		return nil, fmt.Errorf("frame log: %w", err)
	}
	l := &FrameLog{file: f, queue: make(chan Frame, frameQueue), done: make(chan error, 1), limit: frameBytes}
	go func() { l.done <- l.write() }()
	return l, nil
}

// Add hands over a frame without waiting. Safe for concurrent use, also after Close.
func (l *FrameLog) Add(f Frame) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return
	}
	select {
	case l.queue <- f:
	default:
		l.lost.Add(1)
	}
}

// Close writes what waits and returns the first error there was.
func (l *FrameLog) Close() error {
	l.mu.Lock()
	closed := l.closed
	l.closed = true
	l.mu.Unlock()
	if closed {
		return nil
	}
	close(l.queue)
	if err := errors.Join(<-l.done, l.file.Close()); err != nil {
		return fmt.Errorf("frame log: %w", err)
	}
	return nil
}

// write is the writing goroutine. After an error it takes what comes and drops it.
func (l *FrameLog) write() error {
	w := bufio.NewWriterSize(l.file, 64<<10)
	var size int64
	var failed error
	for f := range l.queue {
		if failed != nil {
			continue
		}
		line, err := json.Marshal(f)
		if err != nil {
			failed = err
			continue
		}
		if size += int64(len(line)) + 1; size > l.limit {
			size = l.limit
			l.lost.Add(1)
			continue
		}
		if _, failed = w.Write(append(line, '\n')); failed == nil && len(l.queue) == 0 {
			failed = w.Flush()
		}
	}
	if lost := l.lost.Load(); lost > 0 && failed == nil {
		_, failed = fmt.Fprintf(w, `{"not_written":%d}`+"\n", lost)
	}
	return errors.Join(failed, w.Flush())
}

// CutText returns at most n bytes of a text, whole characters of it, and how
// many bytes that left out.
func CutText(text string, n int) (string, int) {
	if len(text) <= n {
		return text, 0
	}
	end := n
	for end > n-utf8.UTFMax && end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end], len(text) - end
}
