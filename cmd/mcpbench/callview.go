package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"mcpbench/metrics"
	"mcpbench/output"
)

// callLines is how many lines of one message call shows to a person.
const callLines = 60

// callView writes what call saw for a person. All texts in it are the server's.
type callView struct {
	text  bytes.Buffer
	color bool
}

// dim and strong are the two colours there are: what is beside the point, and a failure.
func (v *callView) dim(s string) string    { return v.paint("2", s) }
func (v *callView) strong(s string) string { return v.paint("31", s) }

func (v *callView) paint(code, s string) string {
	if !v.color || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (v *callView) call(c *called) {
	for i := range c.Frames {
		v.frame(&c.Frames[i])
	}
	if !c.answered {
		return
	}
	t := &c.Timing
	v.text.WriteByte('\n')
	fmt.Fprintf(&v.text, "%s %s · %s · protocol %s", clean(c.Server.Name), clean(c.Server.Version), c.Transport, c.ProtocolVersion)
	if c.HTTPEngine != "" {
		fmt.Fprintf(&v.text, " · engine %s", c.HTTPEngine)
	}
	v.text.WriteString("\nopening ")
	for _, phase := range []struct {
		name string
		ms   float64
	}{{"spawn", t.Spawn}, {"tcp", t.TCP}, {"tls", t.TLS}} {
		if phase.ms > 0 {
			fmt.Fprintf(&v.text, " %s %s ·", phase.name, ms(phase.ms))
		}
	}
	fmt.Fprintf(&v.text, " handshake %s\nrequest  sent at %s · first byte +%s · done +%s · %d B out, %d B in\n",
		ms(t.Handshake), ms(t.Sent), ms(t.FirstByte-t.Sent), ms(t.Done-t.Sent), c.RequestBytes, c.ResponseBytes)
	if c.Outcome == metrics.OK.String() {
		v.text.WriteString("outcome  ok\n")
		return
	}
	outcome := c.Outcome
	if c.ErrorCode != 0 {
		outcome += fmt.Sprintf(" (%d)", c.ErrorCode)
	}
	fmt.Fprintf(&v.text, "outcome  %s", v.strong(outcome))
	if c.Error != "" {
		fmt.Fprintf(&v.text, ": %s", clean(c.Error))
	}
	v.text.WriteByte('\n')
}

func ms(value float64) string { return fmt.Sprintf("%.2fms", value) }

// frame writes one line about a frame and its message below.
func (v *callView) frame(f *output.Frame) {
	arrow := "←"
	if f.Dir == "out" {
		arrow = "→"
	}
	fmt.Fprintf(&v.text, "%10s %s %s", ms(inMS(time.Duration(f.OffsetNS))), arrow, f.Channel)
	if f.Status > 0 {
		fmt.Fprintf(&v.text, " %d", f.Status)
	}
	if f.Event != "" {
		fmt.Fprintf(&v.text, " %s", clean(f.Event))
	}
	if f.EventID != "" {
		fmt.Fprintf(&v.text, " id %s", clean(f.EventID))
	}
	if f.Method != "" {
		fmt.Fprintf(&v.text, " %s", clean(f.Method))
	}
	if f.ID != "" {
		fmt.Fprintf(&v.text, " #%s", clean(f.ID))
	}
	if f.Bytes > 0 {
		v.text.WriteString(v.dim(fmt.Sprintf(" %d B", f.Bytes)))
	}
	v.text.WriteByte('\n')
	for _, h := range f.Header {
		fmt.Fprintf(&v.text, "%13s%s\n", "", v.dim(clean(h)))
	}
	v.message(f)
}

func (v *callView) message(f *output.Frame) {
	text := f.Text
	var pretty bytes.Buffer
	if json.Indent(&pretty, []byte(text), "", "  ") == nil {
		text = pretty.String()
	}
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if text == "" {
		lines = nil
	}
	more := max(0, len(lines)-callLines)
	for _, line := range lines[:len(lines)-more] {
		fmt.Fprintf(&v.text, "%13s%s\n", "", output.Escape(strings.TrimRight(line, "\r")))
	}
	switch {
	case more > 0:
		fmt.Fprintf(&v.text, "%13s%s\n", "", v.dim(fmt.Sprintf("… %d more lines (--json shows them)", more)))
	case f.Cut > 0:
		fmt.Fprintf(&v.text, "%13s%s\n", "", v.dim(fmt.Sprintf("… %d more bytes", f.Cut)))
	}
}
