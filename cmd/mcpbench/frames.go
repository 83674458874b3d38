package main

import (
	"encoding/json"
	"strings"

	"mcpbench/mcp"
	"mcpbench/output"
	"mcpbench/scenarios"
)

// frameLog is the log of --frames.
type frameLog struct {
	log  *output.FrameLog
	mask *scenarios.Masker
}

// openFrames makes the file of --frames; nil when there is to be none.
func openFrames(name string, mask *scenarios.Masker) (*frameLog, error) {
	switch name {
	case "":
		return nil, nil
	case "-":
		return nil, usage("--frames -: standard output is for results; name a file")
	}
	log, err := output.NewFrameLog(name)
	if err != nil {
		return nil, failure("--frames: %w", err)
	}
	return &frameLog{log: log, mask: mask}, nil
}

func (l *frameLog) close() error {
	if l == nil {
		return nil
	}
	return l.log.Close()
}

// of returns what the sessions of a slot show their frames to, nil when nobody
// wants to see them.
func (l *frameLog) of(server string, slot int) func(mcp.Frame) {
	if l == nil {
		return nil
	}
	return func(f mcp.Frame) {
		out := newFrame(&f, l.mask, output.FrameText)
		out.Server, out.Session = server, slot
		l.log.Add(out)
	}
}

// newFrame is a frame with its secrets hidden and at most limit bytes of its message.
func newFrame(f *mcp.Frame, mask *scenarios.Masker, limit int) output.Frame {
	out := output.Frame{
		OffsetNS: int64(f.At), Dir: "in", Channel: string(f.Channel), Status: f.Status,
		Event: f.Event, EventID: f.EventID, Bytes: len(f.Data),
	}
	if f.Out {
		out.Dir = "out"
	}
	for _, h := range f.Header {
		out.Header = append(out.Header, maskHeader(mask.Text(h)))
	}
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if len(f.Data) <= 1<<20 && json.Unmarshal(f.Data, &m) == nil {
		out.Method, out.ID = m.Method, string(m.ID)
	}
	out.Text, out.Cut = output.CutText(string(f.Data), limit)
	out.Text = mask.Message(out.Text)
	return out
}

// maskHeader hides the value of a field whose name looks secret, but for its
// beginning when it is long: enough to tell one server session from another.
func maskHeader(field string) string {
	name, value, _ := strings.Cut(field, ": ")
	if !scenarios.SecretName(name) {
		return field
	}
	if len(value) < 16 {
		value = ""
	}
	return name + ": " + value[:min(4, len(value))] + "***"
}
