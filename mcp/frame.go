package mcp

import (
	"slices"
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
	// Event and EventID are those of an event of a stream.
	Event, EventID string
	// Data is the message, or whatever stood in its place. It is not to be kept.
	Data []byte
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

// shownFields are the fields of a request that a Frame has: what a version
// demands, and not what the user added, which may be secret.
var shownFields = []string{"Mcp-Session-Id", "Mcp-Protocol-Version", methodField, nameField, "Last-Event-ID"}

// sentFrame shows a request that the engine was given, if it came to write it.
func (c *httpConn) sentFrame(r *httpRequest, t *stamps, channel Channel) {
	if c.o.OnFrame == nil || t.sent < 0 {
		return // nobody looks, or there was no connection
	}
	var header []string
	for _, f := range append(slices.Clone(r.header), r.extra...) {
		if slices.Contains(shownFields, f.name) {
			header = append(header, f.name+": "+f.value)
		}
	}
	c.o.OnFrame(Frame{At: t.sent, Out: true, Channel: channel, Header: header, Data: r.body})
}

// answerFrame shows a response with as much of its body as was read.
func (c *httpConn) answerFrame(resp response, at time.Duration, channel Channel, body []byte) {
	if c.o.OnFrame == nil {
		return
	}
	var header []string
	for _, name := range keptHeaders {
		if value := resp.header(name); value != "" {
			header = append(header, name+": "+value)
		}
	}
	c.o.OnFrame(Frame{At: at, Channel: channel, Status: resp.status(), Header: header, Data: body})
}

// eventFrame shows an event that has just come.
func (c *httpConn) eventFrame(ev *sse.Event, channel Channel) {
	if c.o.OnFrame != nil {
		c.o.OnFrame(Frame{At: c.o.now(), Channel: channel, Event: ev.Name, EventID: ev.ID, Data: ev.Data})
	}
}
