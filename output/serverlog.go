package output

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"sync"
)

const (
	// serverLogBytes is how large the file of a server's stderr may become.
	serverLogBytes = 4 << 20
	// serverLine is how long a line is kept together.
	serverLine = 64 << 10
	// serversName is the folder of these files within the results folder.
	serversName = "servers"
)

// ServerLog keeps what the processes of one stdio server print on stderr, in the
// file servers/NAME.stderr of the results folder: the first 4 MiB, each line
// behind the number of its session's slot. The file is made with the first line.
// Safe for concurrent use.
type ServerLog struct {
	path string
	mask func(string) string

	mu   sync.Mutex
	file *os.File
	size int64
	cut  int64
	err  error
}

// unsafeName matches what is not to stand in the name of a file.
var unsafeName = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// NewServerLog returns the log of a server. mask hides secrets in a line.
func (f *Folder) NewServerLog(server string, mask func(string) string) *ServerLog {
	name := unsafeName.ReplaceAllString(server, "_") + ".stderr"
	return &ServerLog{path: filepath.Join(f.path, serversName, name), mask: mask}
}

// Session returns the writer for the process of one session. It never fails: that
// the file cannot be written is told by Close. The writer is for one goroutine.
func (l *ServerLog) Session(slot int) io.Writer {
	return &sessionLog{log: l, prefix: fmt.Sprintf("[%d] ", slot)}
}

// Close closes the file and returns the first error there was.
func (l *ServerLog) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		if l.cut > 0 && l.err == nil {
			_, l.err = fmt.Fprintf(l.file, "... %s more were not kept\n", FormatBytes(l.cut))
		}
		l.err = errors.Join(l.err, l.file.Close())
		l.file = nil
	}
	if l.err != nil {
		return fmt.Errorf("keep the server's stderr: %w", l.err)
	}
	return nil
}

func (l *ServerLog) line(prefix string, line []byte) {
	text := prefix + l.mask(string(line)) + "\n"
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return
	}
	if l.size+int64(len(text)) > serverLogBytes {
		l.cut += int64(len(text))
		return
	}
	if l.file == nil {
		if l.file, l.err = l.open(); l.err != nil {
			return
		}
	}
	n, err := l.file.WriteString(text)
	l.size += int64(n)
	l.err = err
}

func (l *ServerLog) open() (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(l.path), 0o750); err != nil {
		return nil, err
	}
	return os.Create(l.path)
}

// sessionLog splits what a process prints into lines.
type sessionLog struct {
	log    *ServerLog
	prefix string
	rest   []byte // of a line that has not ended
}

// Write takes b; what does not end in a line feed waits for more.
func (s *sessionLog) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		end := bytes.IndexByte(b, '\n')
		part := b
		if end >= 0 {
			part, b = b[:end], b[end+1:]
		} else {
			b = nil
		}
		s.rest = append(s.rest, part...)
		if end >= 0 || len(s.rest) >= serverLine {
			s.Flush()
		}
	}
	return n, nil
}

// Flush gives away a last line without a line feed.
func (s *sessionLog) Flush() {
	if len(s.rest) > 0 {
		s.log.line(s.prefix, bytes.TrimRight(s.rest, "\r"))
		s.rest = s.rest[:0]
	}
}
