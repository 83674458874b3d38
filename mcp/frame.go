package mcp

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"mcpbench/mcp/sse"
)

// Frame is one thing that went over the wire, as Options.OnFrame is shown it.
type Frame struct {
	At  time.Duration // since Options.Base: it was about to be written, or had arrived
	Out bool          // from the client to the server
	// Channel says how it travelled.
	Channel Channel
	// Status is that of an HTTP response, 0 for anything else. An event stream is
	// shown when its header came, without data, and then event by event.
	Status int
	// Header holds the telling fields of an HTTP message as "Name: value".
	Header []string
	// Event, EventID and Retry are those of an event of a stream.
	Event, EventID string
	Retry          time.Duration
	// Data is the message, or whatever stood in its place. It is not to be kept.
	Data []byte
	// Cut tells that Data is only the beginning: the rest was over a limit, or did
	// not arrive.
	Cut bool
}

// Channel is how a Frame travels.
type Channel string

// Channels.
const (
	ChannelStdio  Channel = "stdio"  // a line
	ChannelPost   Channel = "post"   // the body of a POST, or of the response to one
	ChannelEvent  Channel = "event"  // an event of the response to a POST
	ChannelGet    Channel = "get"    // a GET, its response or an event of it
	ChannelDelete Channel = "delete" // a DELETE or its response
)

// Names returns the method of the message and its id as JSON text, "" for what it
// does not have or what is no JSON-RPC message.
func (f *Frame) Names() (method, id string) {
	var m message
	s := scanObject(f.Data)
	for field, ok := s.next(); ok; field, ok = s.next() {
		if slot := m.slot(&field); slot != nil {
			*slot = f.Data[field.start:field.end]
		}
	}
	if m.kind() == kindOther {
		return "", ""
	}
	return m.methodName(), string(m.id)
}

// shownFields are the fields of a request that a Frame has: what a version
// demands, and not what the user added, which may be secret.
var shownFields = []string{"Mcp-Session-Id", "Mcp-Protocol-Version", methodField, nameField, "Last-Event-ID"}

// showSending has r shown each time that an engine is about to write it.
func (c *httpConn) showSending(r *httpRequest, channel Channel) {
	if c.o.OnFrame == nil {
		return
	}
	r.onSent = func(at time.Duration) {
		var header []string
		for _, f := range slices.Concat(r.header, r.extra) {
			if slices.Contains(shownFields, f.name) || strings.HasPrefix(f.name, paramField) {
				header = append(header, f.name+": "+f.value)
			}
		}
		c.o.OnFrame(Frame{At: at, Out: true, Channel: channel, Header: header, Data: r.body})
	}
}

// showAnswer shows a response with as much of its body as was read, and up to err.
func (c *httpConn) showAnswer(resp response, at time.Duration, channel Channel, body []byte, err error) {
	if c.o.OnFrame == nil {
		return
	}
	var header []string
	for _, name := range keptHeaders {
		if value := resp.header(name); value != "" {
			header = append(header, name+": "+value)
		}
	}
	c.o.OnFrame(Frame{At: at, Channel: channel, Status: resp.status(), Header: header, Data: body, Cut: err != nil})
}

// said is the beginning of a body that is only read when somebody wants to see it.
func (c *httpConn) said(resp response, wanted bool) []byte {
	if c.o.OnFrame == nil && !wanted {
		return nil
	}
	body, _ := readSome(resp, 512) // what did not come matters to nobody
	return body
}

// showEvent shows an event that came at the moment given, or, if that is
// negative, just now.
func (c *httpConn) showEvent(ev *sse.Event, at time.Duration, channel Channel) {
	if c.o.OnFrame == nil {
		return
	}
	if at < 0 {
		at = c.o.now()
	}
	c.o.OnFrame(Frame{
		At: at, Channel: channel, Event: ev.Name, EventID: ev.ID, Retry: max(0, ev.Retry), Data: ev.Data,
	})
}

// showLines shows lines that are about to be written.
func (c *pipeConn) showLines(batch []byte) {
	if c.o.OnFrame == nil {
		return
	}
	now := c.o.now()
	for line := range bytes.Lines(batch) {
		c.o.OnFrame(Frame{At: now, Out: true, Channel: ChannelStdio, Data: line[:len(line)-1]})
	}
}

// showLine shows a line that has come.
func (c *pipeConn) showLine(t *textLine) {
	if c.o.OnFrame != nil && len(bytes.TrimSpace(t.text)) > 0 {
		c.o.OnFrame(Frame{At: t.end, Channel: ChannelStdio, Data: t.text, Cut: t.oversized})
	}
}
