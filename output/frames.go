package output

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// Frame is one line of a frame log: what went over the wire, for debugging.
type Frame struct {
	// OffsetNS counts from when the program began to open sessions, which is
	// before the clock of the results starts.
	OffsetNS int64  `json:"offset_ns"`
	Server   string `json:"server,omitempty"`
	Session  int64  `json:"session"` // its number, as in the tables; -1 of a probe
	// Probe marks what was asked of the server before the load, in no table.
	Probe   bool     `json:"probe,omitempty"`
	Dir     string   `json:"dir"` // out: to the server; in: from it
	Channel string   `json:"channel"`
	Status  int      `json:"http_status,omitempty"`
	Header  []string `json:"header,omitempty"`
	Event   string   `json:"event,omitempty"`
	EventID string   `json:"event_id,omitempty"`
	RetryMS int64    `json:"retry_ms,omitempty"`
	Method  string   `json:"method,omitempty"`
	ID      string   `json:"id,omitempty"`  // as JSON text
	Bytes   int      `json:"bytes"`         // of the whole message
	Cut     int      `json:"cut,omitempty"` // bytes at its end that are not in Text
	// Incomplete tells that more was to come, but did not or was over a limit.
	Incomplete bool   `json:"incomplete,omitempty"`
	Text       string `json:"text"`
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
// fit, or comes faster than it can be written, is counted and told in the last
// line. Safe for concurrent use.
type FrameLog struct {
	file    *os.File
	made    bool // the file was not there before
	queue   chan Frame
	done    chan error
	prepare func(*Frame)

	mu      sync.RWMutex // held to send; for writing to start and close
	running bool
	full    atomic.Bool
	lost    atomic.Int64
	clock   atomic.Int64 // 0: not started
}

// OpenFrameLog opens the file, or makes it. What it holds stays until Start.
// Close must be called.
func OpenFrameLog(name string) (*FrameLog, error) {
	_, missing := os.Lstat(name)
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666) //nolint:gosec // the user names the file; the umask has the last word
	if err != nil {
		return nil, fmt.Errorf("frame log: %w", err)
	}
	return &FrameLog{
		file: f, made: errors.Is(missing, os.ErrNotExist),
		queue: make(chan Frame, frameQueue), done: make(chan error, 1),
	}, nil
}

// Start empties the file and begins to write. prepare is given each frame before
// it is written, by the goroutine that writes: what costs time, and need not
// happen while a request waits, such as hiding secrets.
func (l *FrameLog) Start(prepare func(*Frame)) error {
	// What is under /dev may be the file that standard error goes to.
	info, err := l.file.Stat()
	if err == nil && info.Mode().IsRegular() && !strings.HasPrefix(l.file.Name(), "/dev/") {
		if err := l.file.Truncate(0); err != nil {
			return fmt.Errorf("frame log: %w", err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.prepare, l.running = prepare, true
	go func() { l.done <- l.write() }() // Close waits
	return nil
}

// Add hands over a frame without waiting.
func (l *FrameLog) Add(f Frame) {
	if l.full.Load() {
		l.lost.Add(1)
		return
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	if !l.running {
		return
	}
	select {
	case l.queue <- f:
	default:
		l.lost.Add(1)
	}
}

// StartClock notes when the clock of the results started, on the frames' own.
func (l *FrameLog) StartClock(at time.Duration) { l.clock.Store(max(1, int64(at))) }

// Close writes what waits and returns the first error there was. Without Start
// it takes away the file, if there was none before.
func (l *FrameLog) Close() error {
	l.mu.Lock()
	running := l.running
	l.running = false
	l.mu.Unlock()
	var err error
	switch {
	case running:
		close(l.queue)
		err = errors.Join(<-l.done, l.file.Close())
	case l.prepare == nil:
		if err = l.file.Close(); err == nil && l.made {
			err = os.Remove(l.file.Name())
		}
		l.made = false
	}
	if err != nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("frame log: %w", err)
	}
	return nil
}

// frameWriter is what the writing goroutine has.
type frameWriter struct {
	log    *FrameLog
	out    *bufio.Writer
	size   int64
	clock  bool // its line was written
	line   bytes.Buffer
	failed error
}

// write is the writing goroutine. After an error it takes what comes and drops it.
func (l *FrameLog) write() error {
	w := &frameWriter{log: l, out: bufio.NewWriterSize(l.file, 64<<10)}
	for f := range l.queue {
		w.startClock()
		l.prepare(&f)
		if !l.full.Load() && !w.put(f, frameBytes) {
			l.full.Store(true)
		}
		if l.full.Load() {
			l.lost.Add(1)
		}
		if len(l.queue) == 0 {
			w.flush()
		}
	}
	w.startClock()
	if lost := l.lost.Load(); lost > 0 {
		w.put(struct {
			NotWritten int64 `json:"not_written"`
		}{lost}, 2*frameBytes)
	}
	w.flush()
	return w.failed
}

// startClock writes the line of the clock, which goes in whatever size the file has.
func (w *frameWriter) startClock() {
	if at := w.log.clock.Load(); at != 0 && !w.clock {
		w.clock = true
		w.put(struct {
			Start int64 `json:"clock_start_ns"`
		}{at}, 2*frameBytes)
	}
}

// put writes a line, unless the file would be larger than that.
func (w *frameWriter) put(v any, limit int64) (fits bool) {
	w.line.Reset()
	enc := json.NewEncoder(&w.line)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		w.failed = errors.Join(w.failed, err)
		return true
	}
	line := escapeJSON(w.line.Bytes())
	if w.size+int64(len(line)) > limit {
		return false
	}
	w.size += int64(len(line))
	if w.failed == nil {
		_, w.failed = w.out.Write(line)
	}
	return true
}

func (w *frameWriter) flush() {
	if w.failed == nil {
		w.failed = w.out.Flush()
	}
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

// Prepare hides secrets in all of the frame: whole in the text, short in the rest.
func (f *Frame) Prepare(short, whole func(string) string) {
	f.Text = strings.ToValidUTF8(whole(f.Text), "\uFFFD")
	for i, h := range f.Header {
		f.Header[i] = short(h)
	}
	for _, s := range []*string{&f.Method, &f.ID, &f.Event, &f.EventID} {
		if *s != "" {
			*s = short(*s)
		}
	}
}
