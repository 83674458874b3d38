package output

import (
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"mcpbench/metrics"
)

// trendCells is the width of the sparkline at 80 columns; it grows with the terminal.
const trendCells = 8

// steps writes the table of steps. With several groups or targets each has a
// line of its own above its steps.
func (r *textSummary) steps() {
	if len(r.s.Steps) == 0 || r.s.Requests.Total == 0 {
		return
	}
	t, sections := stepTable(r.s, r.sparkWidth())
	r.blank()
	last := ""
	for i, line := range strings.Split(r.layout(t), "\n") {
		line = strings.TrimRight(line, " ")
		r.edge = max(r.edge, 2+text.StringWidthWithoutEscSequences(line))
		if i == 0 {
			r.line("  ", r.bold(line))
			continue
		}
		if section := sections[i-1]; section != last {
			r.line("  ", r.faint(text.Snip("─ "+section, r.width-2, "…")))
			last = section
		}
		if strings.HasPrefix(line, "  ") { // one more distribution of the step above
			line = r.faint(line)
		}
		r.line("  ", line)
	}
}

func (r *textSummary) sparkWidth() int { return trendCells + min((r.width-minWidth)/4, trendCells) }

// Labels of rows with one more distribution of the step above.
const (
	serviceLabel = "  service time"
	gapLabel     = "  progress gap"
	roundLabel   = "  each round"
	stopLabel    = "  after cancel"
)

// stepTable builds the table of steps, which gives text and Markdown alike,
// and names the section that each of its rows belongs to. Steps that a session
// has once are no part of the load and left out.
func stepTable(s *metrics.Summary, spark int) (t table.Writer, sections []string) {
	t = table.NewWriter()
	t.AppendHeader(table.Row{"STEP", "COUNT", "ERR", "P50", "P90", "P99", "P99.9", "MAX", "TREND"})
	open := map[string]bool{}
	for _, l := range s.Load {
		open[l.Group] = l.Model == "open"
	}
	for i := range s.Steps {
		step := &s.Steps[i]
		if step.Part != "" {
			continue
		}
		section := stepSection(s, step)
		sections = append(sections, section)
		var failed int64
		for o := range metrics.Outcome(metrics.NumOutcomes) {
			if o.Failed() {
				failed += step.Outcomes[o.String()]
			}
		}
		row := table.Row{stepLabel(step), groupDigits(step.Count), errorShare(failed, step.Count)}
		row = append(row, figures(step.Latency)...)
		t.AppendRow(append(row, sparkline(step.Trend, spark)))
		for _, more := range []struct {
			label string
			show  bool
			of    *metrics.Quantiles
		}{{serviceLabel, open[step.Group], step.Service}, {gapLabel, true, step.Gap}, {roundLabel, true, step.Round}, {stopLabel, true, step.CancelStop}} {
			if more.show && more.of != nil {
				t.AppendRow(append(table.Row{more.label, "", ""}, figures(more.of)...))
				sections = append(sections, section)
			}
		}
	}
	return t, sections
}

func figures(q *metrics.Quantiles) table.Row {
	if q == nil {
		return table.Row{none, none, none, none, none}
	}
	return table.Row{
		figure(q, "p50", q.P50), figure(q, "p90", q.P90), figure(q, "p99", q.P99),
		figure(q, "p999", q.P999), figure(q, "max", q.Max),
	}
}

// stepSection names what tells the steps of a run with several groups or
// targets apart; it is empty when there is one of each.
func stepSection(s *metrics.Summary, step *metrics.StepSummary) string {
	var parts []string
	if len(s.Load) > 1 {
		parts = append(parts, Escape(step.Group))
	}
	if len(s.Targets) > 1 {
		parts = append(parts, nonEmpty(Escape(step.Server), Escape(step.Transport), Escape(step.ProtocolVersion))...)
	}
	return strings.Join(parts, dot)
}

// stepLabel is the method with what it names; a step that has an id of its own
// is led by it, since thresholds and queries select by it.
func stepLabel(step *metrics.StepSummary) string {
	call := step.Method
	if step.Name != "" {
		call += " " + step.Name
	}
	switch step.Step {
	case "", step.Method, step.Name, call:
		return Escape(call)
	}
	return Escape(step.Step + ": " + call)
}

// layout renders t without borders, in columns that fit the width: the first
// one gives way.
func (r *textSummary) layout(t table.Writer) string {
	style := table.Style{Name: "bare", Box: table.BoxStyle{PaddingRight: "  ", UnfinishedRow: "…"}}
	t.SetStyle(style)
	columns := make([]table.ColumnConfig, 0, 9)
	for i := 2; i <= 8; i++ {
		columns = append(columns, table.ColumnConfig{Number: i, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(columns)
	wide := t.Render()
	excess := 2 + text.LongestLineLen(trimLines(wide)) - r.width
	if excess <= 0 {
		return wide
	}
	widest := 0
	for i := range r.s.Steps {
		if r.s.Steps[i].Part == "" {
			widest = max(widest, text.StringWidthWithoutEscSequences(stepLabel(&r.s.Steps[i])))
		}
	}
	first := max(widest-excess, 8)
	columns = append(columns, table.ColumnConfig{Number: 1, WidthMax: first, WidthMaxEnforcer: func(s string, n int) string {
		return text.Snip(s, n, "…")
	}})
	t.SetColumnConfigs(columns)
	return t.Render()
}

func trimLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "\n")
}
