package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"mcpbench/mcp"
	"mcpbench/metrics"
	"mcpbench/output"
	"mcpbench/scenarios"
)

// called is what call prints.
type called struct {
	Server          mcp.Implementation `json:"server_info,omitzero"`
	Transport       string             `json:"transport,omitempty"`
	ProtocolVersion mcp.Version        `json:"protocol_version,omitempty"`
	HTTPEngine      mcp.Engine         `json:"http_engine,omitempty"`
	Frames          []output.Frame     `json:"frames"`
	NotShown        int                `json:"frames_not_shown,omitempty"`
	Timing          callTiming         `json:"timing_ms"`
	RequestBytes    int                `json:"request_bytes"`
	ResponseBytes   int                `json:"response_bytes"`
	HTTPStatus      int                `json:"http_status,omitempty"`
	Rounds          int                `json:"rounds,omitempty"`
	Notifications   int                `json:"notifications"`
	Anomalies       []string           `json:"anomalies,omitempty"`
	Outcome         string             `json:"outcome"`
	ErrorCode       int32              `json:"error_code,omitempty"`
	Error           string             `json:"error,omitempty"`
	Hint            string             `json:"hint,omitempty"`

	mask   *scenarios.Masker
	opened bool // the session
	made   bool // the request
	sent   time.Duration
	shown  bool // a frame
}

// callTiming has milliseconds: the first four last so long, the rest are since
// the start. What did not happen is 0 and left out.
type callTiming struct {
	Spawn      float64 `json:"spawn,omitempty"`
	TCP        float64 `json:"tcp,omitempty"`
	TLS        float64 `json:"tls,omitempty"`
	Handshake  float64 `json:"handshake,omitempty"`
	Sent       float64 `json:"sent,omitempty"`
	FirstByte  float64 `json:"first_byte,omitempty"`
	FirstEvent float64 `json:"first_event,omitempty"`
	Done       float64 `json:"done,omitempty"`
	// Rounds are the exchanges of a request that took several.
	Rounds []roundTiming `json:"rounds,omitempty"`
}

// roundTiming is when one exchange began and ended, in milliseconds since the start.
type roundTiming struct {
	Sent float64 `json:"sent"`
	Done float64 `json:"done"`
}

func inMS(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

const (
	// callLines is how many lines of one message call shows to a person.
	callLines = 60
	// callMargin is where messages begin.
	callMargin = 13
)

// callView shows a call to a person. All texts in it are the server's.
type callView struct {
	text  strings.Builder
	color bool
	width int // columns
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

// show shows what is seen, or keeps it for the JSON, until nothing more comes.
// The error is the first of writing.
func (f *callFlags) show(s streams, w *callWatch, c *called) error {
	v := f.view(s)
	var failed error
	for more := true; more; {
		var seen []sighting
		seen, more = w.next()
		for _, one := range seen {
			switch {
			case one.frame == nil:
				_, err := fmt.Fprintf(s.err, "stderr: %s\n", clean(one.line))
				failed = errors.Join(failed, err)
			case f.json:
				c.Frames = append(c.Frames, *one.frame)
			default:
				v.frame(one.frame)
				c.shown = true
			}
		}
		if failed == nil {
			_, failed = io.WriteString(s.out, v.text.String())
		}
		v.text.Reset()
	}
	return failed
}

func (f *callFlags) view(s streams) *callView {
	width := terminalWidth(s.out)
	if width == 0 {
		width = 80
	}
	return &callView{color: output.UseColor(isTerminal(s.out), f.noColor, s.getenv), width: min(max(width, 60), 120)}
}

// conclude shows what is known at the end.
func (f *callFlags) conclude(s streams, c *called) error {
	if f.json {
		return output.WriteObject(s.out, c)
	}
	v := f.view(s)
	v.conclude(c)
	_, err := io.WriteString(s.out, v.text.String())
	return err
}

func (v *callView) conclude(c *called) {
	if c.opened {
		fmt.Fprintf(&v.text, "\n%s %s · %s · protocol %s", clean(c.Server.Name), clean(c.Server.Version), c.Transport, c.ProtocolVersion)
		if c.HTTPEngine != "" {
			fmt.Fprintf(&v.text, " · engine %s", c.HTTPEngine)
		}
		v.text.WriteByte('\n')
	}
	if c.opened || c.shown {
		v.text.WriteByte('\n')
	}
	t := &c.Timing
	for _, phase := range []struct {
		name string
		ms   float64
		from float64
		note string
	}{
		{"spawn", t.Spawn, 0, "  starting the process"},
		{"tcp", t.TCP, 0, ""},
		{"tls", t.TLS, 0, ""},
		{"handshake", t.Handshake, 0, ""},
		{"sent", t.Sent, 0, "  since the start"},
		{"first byte", t.FirstByte, t.Sent, "  since it was sent"},
		{"first event", t.FirstEvent, t.Sent, ""},
		{"done", t.Done, t.Sent, ""},
	} {
		if phase.ms == 0 {
			continue
		}
		sign := ""
		if phase.from > 0 {
			sign = "+"
		}
		v.item(phase.name, fmt.Sprintf("%10s%s", sign+ms(phase.ms-phase.from), v.dim(phase.note)))
	}
	for i, round := range t.Rounds {
		v.item(fmt.Sprintf("round %d", i+1), fmt.Sprintf("%10s%s", ms(round.Done-round.Sent), v.dim(fmt.Sprintf("  sent at +%s", ms(round.Sent-t.Sent)))))
	}
	if c.made {
		v.item("bytes", fmt.Sprintf("%d out, %d in", c.RequestBytes, c.ResponseBytes))
	}
	for i, a := range c.Anomalies {
		name := "anomalies"
		if i > 0 {
			name = ""
		}
		v.words(name, clean(a))
	}
	if c.NotShown > 0 {
		v.item("not shown", fmt.Sprintf("%d frames: there were too many at once", c.NotShown))
	}
	v.outcome(c)
	if c.Hint != "" {
		v.words("hint", clean(c.Hint))
	}
}

func (v *callView) outcome(c *called) {
	if c.Outcome == metrics.OK.String() {
		v.item("outcome", "ok")
		return
	}
	outcome := c.Outcome
	switch outcome {
	case metrics.RPCError.String(), metrics.HTTPError.String(), metrics.ProcessExit.String():
		outcome += fmt.Sprintf(":%d", c.ErrorCode) // the others' numbers are our own, and said in words
	}
	v.item("outcome", v.strong(outcome))
	if c.Error != "" {
		v.words("", clean(c.Error))
	}
}

// item writes a line of the table at the end.
func (v *callView) item(name, text string) { fmt.Fprintf(&v.text, "  %-13s%s\n", name, text) }

// words writes an item that may be long, in as many lines as it takes.
func (v *callView) words(name, text string) {
	const margin = 15
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > v.width-margin {
			v.item(name, line)
			name, line = "", ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	v.item(name, line)
}

func ms(value float64) string { return fmt.Sprintf("%.2fms", value) }

// frame writes one line about a frame, and its fields and its message below.
func (v *callView) frame(f *output.Frame) {
	var words []string
	add := func(format string, args ...any) { words = append(words, fmt.Sprintf(format, args...)) }
	switch {
	case f.Status > 0:
		add("HTTP %d", f.Status)
	case f.Dir == "in" && (f.Event != "" || f.Channel != string(mcp.ChannelStdio)):
		add("%s", strings.TrimSpace("event "+clean(f.Event)))
	case f.Channel == string(mcp.ChannelStdio):
		add("stdio")
	default:
		add("%s", strings.ToUpper(f.Channel))
	}
	var fields []string
	for _, h := range f.Header {
		if value, ok := strings.CutPrefix(h, "Content-Type: "); ok {
			add("%s", clean(value))
			continue
		}
		fields = append(fields, h)
	}
	if f.Method != "" {
		add("%s", clean(f.Method))
	}
	if f.ID != "" {
		add("#%s", clean(f.ID))
	}
	notes := nonEmpty(clean(f.EventID))
	if len(notes) > 0 {
		notes[0] = "event id " + notes[0]
	}
	if f.RetryMS > 0 {
		notes = append(notes, fmt.Sprintf("retry %dms", f.RetryMS))
	}
	if f.Bytes > 0 {
		notes = append(notes, fmt.Sprintf("%d B", f.Bytes))
	}
	arrow := "←"
	if f.Dir == "out" {
		arrow = "→"
	}
	fmt.Fprintf(&v.text, "%10s %s %s%s\n", ms(inMS(time.Duration(f.OffsetNS))), arrow, strings.Join(words, " "),
		v.dim(strings.Join(append([]string{""}, notes...), "  ")))
	for _, h := range fields {
		v.line(v.dim(clean(h)))
	}
	v.message(f)
}

func (v *callView) line(text string) {
	fmt.Fprintf(&v.text, "%*s%s\n", callMargin, "", text)
}

// message writes the message of a frame: JSON laid out, anything else as it is.
func (v *callView) message(f *output.Frame) {
	if f.Text == "" {
		return
	}
	lines, ok := output.PrettyJSON(f.Text, v.width-callMargin)
	if !ok {
		lines = strings.Split(strings.TrimRight(f.Text, "\r\n"), "\n")
		for i, l := range lines {
			lines[i] = output.Escape(strings.TrimRight(l, "\r"))
		}
	}
	more := max(0, len(lines)-callLines)
	for _, l := range lines[:len(lines)-more] {
		shown, cut := output.CutText(l, 8*v.width)
		if cut > 0 {
			shown += v.dim(fmt.Sprintf(" … %d more bytes", cut))
		}
		v.line(shown)
	}
	switch {
	case more > 0:
		v.line(v.dim(fmt.Sprintf("… %d more lines (--json has them)", more)))
	case f.Cut > 0:
		v.line(v.dim(fmt.Sprintf("… %d more bytes", f.Cut)))
	case f.Incomplete:
		v.line(v.dim("… and no more came"))
	}
}
