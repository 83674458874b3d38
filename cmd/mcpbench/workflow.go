package main

import (
	"io"
	"sync"
)

// workflowGuard is a stream to a job of GitHub Actions. The runner takes a line that
// begins with ::, spaces before it aside, for a command, and so it does ##[ anywhere
// in a line (Workflow commands for GitHub Actions, and the older form that the runner
// still reads). What servers say must not be able to give one, wherever it is
// printed, so the last character of either is written as a JSON escape, which leaves
// JSON what it means. Safe for concurrent use when the stream is: since others may
// write in between, each Write is taken for the begin of a line.
type workflowGuard struct {
	to io.Writer

	mu     sync.Mutex // of what is below, not held while writing
	colons int        // at the begin of the line; -1 past it
	hashes int        // just before
}

// guarded returns s with its streams guarded when they are read by GitHub Actions.
// Commands of our own go to s.commands.
func (s streams) guarded() streams {
	s.commands = s.out
	if s.inWorkflow() {
		s.out, s.err = &workflowGuard{to: s.out}, &workflowGuard{to: s.err}
	}
	return s
}

// inWorkflow tells that the program runs in a job of GitHub Actions.
func (s streams) inWorkflow() bool { return s.getenv("GITHUB_ACTIONS") == "true" }

// Write writes p with what would be a command escaped.
func (g *workflowGuard) Write(p []byte) (int, error) {
	if _, err := g.to.Write(g.escape(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// escape returns p, or what is to be written for it.
func (g *workflowGuard) escape(p []byte) []byte {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.colons = max(g.colons, 0)
	var out []byte
	from := 0
	for i, c := range p {
		if escape := g.next(c); escape != "" {
			out = append(append(out, p[from:i]...), escape...)
			from = i + 1
		}
	}
	if from == 0 {
		return p
	}
	return append(out, p[from:]...)
}

// next takes the next byte and returns what stands for it, "" for itself.
func (g *workflowGuard) next(c byte) string {
	hashes := g.hashes
	g.hashes = 0
	switch {
	case c == '\n' || c == '\r':
		g.colons = 0
	case c == ':' && g.colons == 1:
		g.colons = -1
		return `\u003a`
	case c == ':' && g.colons == 0:
		g.colons = 1
	case c > ' ' && c < 0x80 || g.colons == 1: // beyond ASCII there are more spaces
		g.colons = -1
	}
	switch {
	case c == '#':
		g.hashes = hashes + 1
	case c == '[' && hashes >= 2:
		return `\u005b`
	}
	return ""
}
