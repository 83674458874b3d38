package output

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"mcpbench/metrics"
)

// Widths of the terminal summary. It is laid out for 80 columns and uses up to
// 120; the last line ends where the table does.
const (
	minWidth   = 80
	maxWidth   = 120
	labelWidth = 15
)

// TextOptions configure RenderText. The zero value is plain text of 80 columns.
type TextOptions struct {
	Color bool
	Width int // columns of the terminal; 0 is 80
	// Notes stand in parentheses after the results folder, as in
	// "requests 0.9 MiB" and "report.html".
	Notes []string
	// Hints are lines that say what could be done next. One that begins with a
	// space is a command: it is indented and never broken.
	Hints []string
}

// RenderText writes the summary of a run for a person to read. Text that a
// server gave is escaped. It returns the error of the one Write that it makes.
func RenderText(w io.Writer, s *metrics.Summary, o TextOptions) error {
	width := o.Width
	if width == 0 {
		width = minWidth
	}
	r := &textSummary{
		s: s, paint: paint{on: o.Color}, options: o,
		width: max(minWidth, min(width, maxWidth)), edge: minWidth,
	}
	r.header()
	r.facts()
	r.steps()
	r.checks()
	r.errors()
	r.thresholds()
	r.find()
	r.end()
	if _, err := io.WriteString(w, r.out.String()); err != nil {
		return fmt.Errorf("write summary: %w", err)
	}
	return nil
}

type textSummary struct {
	paint
	s       *metrics.Summary
	options TextOptions
	width   int
	edge    int // where the last line ends
	out     strings.Builder
}

func (r *textSummary) line(parts ...string) {
	r.out.WriteString(strings.TrimRight(strings.Join(parts, ""), " "))
	r.out.WriteByte('\n')
}

// blank separates two blocks; a block that is empty leaves no second one.
func (r *textSummary) blank() {
	if !strings.HasSuffix(r.out.String(), "\n\n") {
		r.out.WriteByte('\n')
	}
}

// items writes a label and what belongs to it, joined by sep and continued
// under the first item where a line would be too long.
func (r *textSummary) items(label, sep string, items []string) {
	if len(items) == 0 {
		return
	}
	indent := strings.Repeat(" ", text.StringWidthWithoutEscSequences(label))
	line, used := label, len(indent)
	for i, item := range items {
		n := text.StringWidthWithoutEscSequences(item)
		switch {
		case i == 0:
		case used+text.StringWidthWithoutEscSequences(sep)+n > r.width:
			r.line(line)
			line, used = indent, len(indent)
		default:
			line += sep
			used += text.StringWidthWithoutEscSequences(sep)
		}
		line += item
		used += n
	}
	r.line(line)
}

const dot = " · "

func (r *textSummary) fact(label string, items ...string) {
	r.items("  "+label+strings.Repeat(" ", labelWidth-2-len(label)), dot, items)
}

func (r *textSummary) header() {
	s := r.s
	parts := []string{r.bold(orNone(shorten(s.Scenario, minWidth/2)))}
	switch len(s.Targets) {
	case 0:
	case 1:
		parts = append(parts, nonEmpty(shorten(s.Targets[0].Transport, maxName), shorten(s.Targets[0].ProtocolVersion, maxName))...)
	default:
		parts = append(parts, fmt.Sprintf("%d targets", len(s.Targets)))
	}
	if s.DurationS > 0 {
		span := formatSpan(s.DurationS)
		if s.WarmupS > 0 {
			span += " (" + formatSpan(s.WarmupS) + " warm-up left out)"
		}
		parts = append(parts, span)
	}
	var sessions int
	for _, l := range s.Load {
		sessions += l.Sessions
	}
	if sessions > 0 {
		parts = append(parts, plural(int64(sessions), "session"))
	}
	parts = append(parts, "run "+s.RunID[:min(8, len(s.RunID))])
	r.items("", dot, parts)
	r.blank()
}

func (r *textSummary) facts() {
	s := r.s
	if s.Sessions.Opened+s.Sessions.Failed > 0 {
		r.fact("sessions", r.sessionItems()...)
	}
	if s.Requests.Total > 0 || s.Sessions.Opened > 0 {
		r.fact("requests", r.requestItems()...)
	}
	if it := &s.Iterations; it.Total != it.Completed || (it.Total > 0 && it.Total != s.Requests.Total) {
		r.fact("iterations", r.iterationItems()...)
	}
	if s.Requests.BytesSent > 0 || s.Requests.BytesReceived > 0 {
		r.fact("bytes", "sent "+formatBytes(s.Requests.BytesSent), "received "+formatBytes(s.Requests.BytesReceived))
	}
	r.load()
	r.fact("server asks", r.askedItems()...)
	if len(s.Anomalies) > 0 {
		r.fact("anomalies", countItems(s.Anomalies)...)
	}
}

func (r *textSummary) sessionItems() []string {
	s := &r.s.Sessions
	ended := groupDigits(s.Closed) + " ended clean"
	if s.Closed < s.Opened {
		ended = r.warn(ended)
	}
	items := []string{groupDigits(s.Opened) + " started"}
	if s.Opened > 0 {
		items = append(items, ended)
	}
	if s.Failed > 0 {
		items = append(items, r.bad(groupDigits(s.Failed)+" failed to open"))
	}
	if s.Reopened > 0 {
		items = append(items, r.warn(groupDigits(s.Reopened)+" lost and reopened"))
	}
	if q := s.Connect; q != nil {
		items = append(items, "connect p50 "+figure(q, "p50", q.P50)+" p99 "+figure(q, "p99", q.P99))
	}
	return items
}

func (r *textSummary) requestItems() []string {
	q := &r.s.Requests
	items := []string{groupDigits(q.Total)}
	if q.Total > 0 {
		items = append(items, perSecond(q.RatePerS))
	}
	failed := groupDigits(q.Failed) + " failed"
	if q.Failed > 0 {
		failed += " (" + percent(q.Failed, q.Total)
		if n := q.Outcomes[metrics.Timeout.String()]; n > 0 {
			failed += ", " + groupDigits(n) + " timed out"
		}
		failed = r.bad(failed + ")")
	}
	items = append(items, failed)
	for _, o := range []struct {
		outcome metrics.Outcome
		text    string
	}{
		{metrics.Cancelled, "cancelled as asked"},
		{metrics.Interrupted, "interrupted"},
		{metrics.ScriptError, "script errors"},
		{metrics.ClientError, "failed by our own fault"},
	} {
		n := q.Outcomes[o.outcome.String()]
		if n == 0 {
			continue
		}
		item := groupDigits(n) + " " + o.text
		if o.outcome == metrics.Interrupted && q.Open != nil {
			item += " (open for up to " + figure(q.Open, "max", q.Open.Max) + ")"
		}
		items = append(items, item)
	}
	if n := r.s.Iterations.Dropped; n > 0 {
		items = append(items, r.bad(groupDigits(n)+" dropped"))
	} else if slices.ContainsFunc(r.s.Load, func(l metrics.LoadSummary) bool { return l.Model == "open" }) {
		items = append(items, "0 dropped")
	}
	return items
}

// askedItems are what the servers asked of the clients.
func (r *textSummary) askedItems() []string {
	var items []string
	for i := range r.s.ServerRequests {
		q := &r.s.ServerRequests[i]
		item := shorten(q.Method, maxName) + " ×" + groupDigits(q.Count)
		var odd []string
		if q.Refused > 0 {
			odd = append(odd, groupDigits(q.Refused)+" refused")
		}
		if q.Unanswered > 0 {
			odd = append(odd, groupDigits(q.Unanswered)+" not answered")
		}
		if odd != nil {
			item += r.warn(" (" + strings.Join(odd, ", ") + ")")
		}
		items = append(items, item)
		if a := q.Answer; a != nil {
			items = append(items, "p50 "+figure(a, "p50", a.P50)+" p99 "+figure(a, "p99", a.P99))
		}
	}
	return items
}

func (r *textSummary) iterationItems() []string {
	it := &r.s.Iterations
	items := []string{groupDigits(it.Total), groupDigits(it.Completed) + " completed"}
	for _, n := range []struct {
		count int64
		text  string
	}{
		{it.Failed, "failed"},
		{it.Dropped, "dropped"},
		{it.Interrupted, "interrupted"},
		{it.ScriptError, "with a script error"},
		{it.AgentLost, "lost with their agent"},
	} {
		if n.count > 0 {
			items = append(items, groupDigits(n.count)+" "+n.text)
		}
	}
	if q := it.Latency; q != nil {
		items = append(items, "p50 "+figure(q, "p50", q.P50)+" p99 "+figure(q, "p99", q.P99))
	}
	return items
}

// load writes one line for each group and, under them, why the run is not sound.
func (r *textSummary) load() {
	s := r.s
	if len(s.Load) == 0 || s.Requests.Total+s.Iterations.Total == 0 {
		return
	}
	verdict := r.verdict()
	for i := range s.Load {
		items := r.loadItems(&s.Load[i])
		if len(s.Load) > 1 {
			items[0] = shorten(s.Load[i].Group, maxName) + ": " + items[0]
		}
		switch last := i == len(s.Load)-1; {
		case last && s.Load[i].Model == "open":
			items[len(items)-1] += " " + verdict
		case last:
			items = append(items, verdict)
		}
		label := ""
		if i == 0 {
			label = "load"
		}
		r.fact(label, items...)
	}
	for _, reason := range s.Soundness.Reasons {
		r.paragraph(strings.Repeat(" ", labelWidth), Escape(reason))
	}
	r.floors()
}

func (r *textSummary) verdict() string {
	switch v := r.s.Soundness.Verdict; v {
	case metrics.Sound:
		return r.good("✓ sound")
	case metrics.Doubtful:
		return r.warn("! doubtful")
	case metrics.Unsound:
		return r.bad("✗ unsound")
	default:
		return Escape(v)
	}
}

func (r *textSummary) loadItems(l *metrics.LoadSummary) []string {
	if l.Model != "open" {
		return []string{"closed, " + plural(int64(l.Sessions), "session"), "a closed load cannot show queueing"}
	}
	items := []string{"intended " + perSecond(l.RatePerS), "achieved " + perSecond(l.AchievedPerS)}
	if q := l.Queued; q != nil {
		items = append(items, "queued p99 "+figure(q, "p99", q.P99))
	}
	if q := l.Lateness; q != nil {
		items = append(items, "lateness p99 "+figure(q, "p99", q.P99))
	}
	return items
}

// paragraph writes text of any length in lines that begin with indent.
func (r *textSummary) paragraph(indent, s string) {
	for _, line := range wrapWords(s, r.width-len(indent)) {
		r.line(indent, line)
	}
}

// wrapWords breaks s between words. A word that is longer than a line stays
// whole: it may be a path that somebody copies.
func wrapWords(s string, width int) []string {
	var lines []string
	line, used := "", 0
	for word := range strings.FieldsSeq(s) {
		n := text.StringWidthWithoutEscSequences(word)
		switch {
		case used == 0:
		case used+1+n > width:
			lines = append(lines, line)
			line, used = "", 0
		default:
			line += " "
			used++
		}
		line += word
		used += n
	}
	return append(lines, line)
}

func countItems(m map[string]int64) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		if m[a] != m[b] {
			return int(min(max(m[b]-m[a], -1), 1))
		}
		return strings.Compare(a, b)
	})
	items := make([]string, len(names))
	for i, name := range names {
		items[i] = shorten(name, maxName) + " ×" + groupDigits(m[name])
	}
	return items
}

// maxName is the room for a name that stands within a line.
const maxName = 30

// shorten escapes a name and cuts it to n columns.
func shorten(s string, n int) string { return text.Snip(Escape(s), n, "…") }

func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return groupDigits(n) + " " + noun + "s"
}

func orNone(s string) string {
	if s == "" {
		return "(no name)"
	}
	return s
}

func nonEmpty(items ...string) []string {
	return slices.DeleteFunc(items, func(s string) bool { return s == "" })
}
