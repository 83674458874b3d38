package main

import (
	"encoding/base64"
	"strings"
	"sync/atomic"
	"time"

	"mcpbench/mcp"
	"mcpbench/output"
	"mcpbench/scenarios"
)

// frameLog is the log of --frames. A nil one does nothing.
type frameLog struct {
	log     *output.FrameLog
	mask    atomic.Pointer[scenarios.Masker]
	started bool                      // of the goroutine that starts it
	base    atomic.Pointer[time.Time] // of the frames' offsets, once it is known
}

// openFrames opens the file of --frames; nil when there is to be none.
func openFrames(f *runFlags) (*frameLog, error) {
	switch {
	case f.frames == "" || f.dryRun:
		return nil, nil
	case f.frames == "-" || f.frames == "/dev/stdout":
		return nil, usage("--frames %s: standard output is for results; name a file", f.frames)
	}
	log, err := output.OpenFrameLog(f.frames)
	if err != nil {
		return nil, failure("--frames: %w", err)
	}
	return &frameLog{log: log}, nil
}

// start begins to log, before anything is sent. Called again it only changes what
// is hidden from then on. It is for one goroutine.
func (l *frameLog) start(mask *scenarios.Masker) error {
	if l == nil {
		return nil
	}
	l.mask.Store(mask)
	if l.started {
		return nil
	}
	l.started = true
	return l.log.Start(func(f *output.Frame) { hide(f, l.mask.Load()) })
}

func (l *frameLog) close() error {
	if l == nil {
		return nil
	}
	return l.log.Close()
}

// watch has the frames of a session logged.
func (l *frameLog) watch(server string, session uint32, o *mcp.Options) {
	if l == nil {
		return
	}
	base := o.Base
	l.base.CompareAndSwap(nil, &base)
	later := base.Sub(*l.base.Load()) // than a probe
	o.OnFrame = func(f mcp.Frame) {
		out := newFrame(&f, l.mask.Load(), output.FrameText)
		out.OffsetNS += int64(later)
		out.Server, out.Session = server, int64(session)
		l.log.Add(out)
	}
}

// watchProbe has the frames logged of a session that is opened before the load to
// ask a server something. It sets the Base of o.
func (l *frameLog) watchProbe(server string, o *mcp.Options) {
	if l == nil {
		return
	}
	now := time.Now()
	l.base.CompareAndSwap(nil, &now)
	o.Base = *l.base.Load()
	o.OnFrame = func(f mcp.Frame) {
		out := newFrame(&f, l.mask.Load(), output.FrameText)
		out.Server, out.Session, out.Probe = server, -1, true
		l.log.Add(out)
	}
}

// startClock notes when the clock of the results started.
func (l *frameLog) startClock(t0 time.Time) {
	if l == nil {
		return
	}
	if base := l.base.Load(); base != nil {
		l.log.StartClock(t0.Sub(*base))
	}
}

// newFrame copies a frame, of its message at most limit bytes. Its secrets are
// not hidden yet, but none is cut in two.
func newFrame(f *mcp.Frame, mask *scenarios.Masker, limit int) output.Frame {
	kept := mask.End(f.Data, limit)
	out := output.Frame{
		OffsetNS: int64(f.At), Dir: "in", Channel: string(f.Channel), Status: f.Status, Header: f.Header,
		Event: f.Event, EventID: f.EventID, RetryMS: f.Retry.Milliseconds(),
		Bytes: len(f.Data), Cut: len(f.Data) - kept, Incomplete: f.Cut, Text: string(f.Data[:kept]),
	}
	if f.Out {
		out.Dir = "out"
	}
	out.Method, out.ID = f.Names()
	return out
}

// hide hides the secrets of a frame.
func hide(f *output.Frame, mask *scenarios.Masker) {
	if f.Event == "endpoint" { // of HTTP+SSE: a URL, which usually holds the session
		f.Text = scenarios.MaskURL(f.Text)
	}
	f.Prepare(func(text string) string { return maskHeader(mask.Text(text), mask) }, mask.Message)
}

const codedBegin, codedEnd = "=?base64?", "?="

// maskHeader hides the value of a field whose name looks secret, but for its
// beginning when it is long: enough to tell one server session from another.
func maskHeader(field string, mask *scenarios.Masker) string {
	name, value, ok := strings.Cut(field, ": ")
	switch {
	case !ok:
		return field
	case name == "Location":
		return name + ": " + scenarios.MaskURL(value)
	case strings.HasPrefix(value, codedBegin) && strings.HasSuffix(value, codedEnd):
		// Coded as 2026-07-28 does it with what is not ASCII.
		coded := strings.TrimSuffix(strings.TrimPrefix(value, codedBegin), codedEnd)
		if plain, err := base64.StdEncoding.DecodeString(coded); err == nil && mask.Text(string(plain)) != string(plain) {
			return name + ": ***"
		}
		return field
	case !mask.SecretName(name):
		return field
	}
	if len(value) < 16 {
		value = ""
	}
	return name + ": " + value[:min(4, len(value))] + "***"
}
