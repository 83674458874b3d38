package output

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

const (
	// serverLine is how much of a line is kept.
	serverLine = 64 << 10
	// serversName is the folder of these files within the results folder.
	serversName = "servers"
)

// ServerLogKeep is how many bytes of the beginning and how many of the end of what a
// server prints are kept: the one explains why it did not start, the other why it
// stopped.
type ServerLogKeep struct{ Head, Tail int }

// ServerLog keeps what the processes of one stdio server print on stderr, in the
// file servers/NAME.stderr of the results folder: the beginning as it comes, the
// end at the end, each line behind the number of its session. The file
// is made with the first line. Nothing waits for the disk. Safe for concurrent use.
type ServerLog struct {
	path string
	mask Masker
	keep ServerLogKeep

	mu      sync.Mutex // guards the fields below; not held while the file is written
	head    []byte     // to be written
	taken   int        // bytes of lines that went into head
	tail    []byte     // whole lines
	cut     int64      // bytes of lines that were in tail
	started bool
	closed  bool

	wake chan struct{} // has room for one: there is something to write
	done chan error
}

// Masker hides secrets.
type Masker interface {
	Text(text string) string
	// End is where to cut a text of which at most n bytes are to be shown.
	End(text []byte, n int) int
}

// unsafeName matches what is not to stand in the name of a file.
var unsafeName = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// NewServerLogs returns a log for each of the servers, whose names differ. An
// empty name has none.
func (f *Folder) NewServerLogs(servers []string, keep ServerLogKeep, mask Masker) []*ServerLog {
	logs := make([]*ServerLog, len(servers))
	taken := map[string]bool{}
	for i, server := range servers {
		if server == "" {
			continue
		}
		name := unsafeName.ReplaceAllString(server, "_")
		// File systems differ in what they take for the same name.
		for base, n := name, 2; taken[strings.ToLower(name)]; n++ {
			name = fmt.Sprintf("%s_%d", base, n)
		}
		taken[strings.ToLower(name)] = true
		logs[i] = &ServerLog{
			path: filepath.Join(f.path, serversName, name+".stderr"), mask: mask, keep: keep,
			wake: make(chan struct{}, 1), done: make(chan error, 1),
		}
	}
	return logs
}

// Session returns the writer for the process of one session. It never fails: that
// the file cannot be written is told by Close. The writer is for one goroutine.
func (l *ServerLog) Session(number uint32) io.Writer {
	return &sessionLog{log: l, prefix: fmt.Sprintf("[%d] ", number)}
}

// Probe returns the log of a process that no session of the run has.
func (l *ServerLog) Probe() io.Writer { return &sessionLog{log: l, prefix: "[probe] "} }

// Close writes what is left, closes the file and returns the first error there
// was. What comes later is dropped.
func (l *ServerLog) Close() error {
	l.mu.Lock()
	started, closed := l.started, l.closed
	l.closed = true
	l.mu.Unlock()
	if closed || !started {
		return nil
	}
	close(l.wake)
	if err := <-l.done; err != nil {
		return fmt.Errorf("keep the server's stderr: %w", err)
	}
	return nil
}

func (l *ServerLog) line(prefix string, line []byte) {
	kept := l.mask.End(line, serverLine)
	text := prefix + string(escapeLog([]byte(l.mask.Text(string(line[:kept]))))) + "\n"
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return
	case l.taken+len(text) <= l.keep.Head && len(l.tail) == 0 && l.cut == 0:
		l.taken += len(text)
		l.head = append(l.head, text...)
	default:
		l.tail = append(l.tail, text...)
		if len(l.tail) > 2*l.keep.Tail {
			l.shorten()
		}
		if l.started {
			return // nothing to write yet
		}
	}
	if !l.started {
		l.started = true
		go func() { l.done <- l.write() }() // Close waits
	}
	select {
	case l.wake <- struct{}{}:
	default: // it is about to look anyway
	}
}

// shorten leaves of the tail whole lines of at most keep.Tail.
func (l *ServerLog) shorten() {
	over := len(l.tail) - l.keep.Tail
	if over <= 0 {
		return
	}
	over += bytes.IndexByte(l.tail[over-1:], '\n')
	l.cut += int64(over)
	l.tail = l.tail[:copy(l.tail, l.tail[over:])]
}

// write is the writing goroutine. After an error it drops what comes.
func (l *ServerLog) write() error {
	file, err := l.create()
	put := func(text []byte) {
		if err == nil && len(text) > 0 {
			_, err = file.Write(text)
		}
	}
	for open := true; open; {
		_, open = <-l.wake
		put(l.take())
	}
	l.mu.Lock()
	l.shorten()
	tail, cut := l.tail, l.cut
	l.mu.Unlock()
	if cut > 0 {
		put(fmt.Appendf(nil, "... %s were not kept here ...\n", FormatBytes(cut)))
	}
	put(tail)
	if file != nil {
		err = errors.Join(err, file.Close())
	}
	return err
}

func (l *ServerLog) create() (*os.File, error) {
	if err := makeFolder(filepath.Dir(l.path)); err != nil {
		return nil, err
	}
	return os.Create(l.path)
}

// take returns what waits to be written.
func (l *ServerLog) take() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	head := l.head
	l.head = nil
	return head
}

// sessionLog splits what a process prints into lines.
type sessionLog struct {
	log    *ServerLog
	prefix string
	rest   []byte // of a line that has not ended, not more than will be looked at
}

// Write takes b; what does not end in a line feed waits for more.
func (s *sessionLog) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		part, rest, ended := bytes.Cut(b, []byte{'\n'})
		room := max(0, 2*serverLine-len(s.rest)) // a secret may begin within what is kept
		s.rest = append(s.rest, part[:min(len(part), room)]...)
		if ended {
			s.Flush()
		}
		b = rest
	}
	return n, nil
}

// Flush gives away a last line without a line feed.
func (s *sessionLog) Flush() {
	if line := bytes.TrimRight(s.rest, "\r"); len(line) > 0 {
		s.log.line(s.prefix, line)
	}
	s.rest = s.rest[:0]
}
