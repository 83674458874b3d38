package output

import (
	"fmt"
	"strconv"

	"mcpbench/metrics"
)

// find writes what a search for the highest load has tried, and what it found.
func (r *textSummary) find() {
	f := r.s.Find
	if f == nil {
		return
	}
	r.blank()
	r.line("  ", r.bold("FIND"), "  ", Escape(f.Expr))
	const columns = "    %12s %10s %9s %9s %8s  %s"
	r.line(r.faint(fmt.Sprintf(columns, levelUnit(f.Over), "REQUESTS/S", "P50", "P99", "ERRORS", "")))
	for i := range f.Probes {
		p := &f.Probes[i]
		held := r.mark(p.Held)
		if p.Sound == metrics.Unsound {
			held += " " + r.bad("unsound")
		}
		r.line(fmt.Sprintf(columns, level(p.Level), trimZeros(strconv.FormatFloat(p.RatePS, 'f', 1, 64)),
			formatMS(p.P50), formatMS(p.P99), groupDigits(p.Errors), held))
	}
	r.paragraph("  ", r.found(f))
}

// found says in words what a search found.
func (r *textSummary) found(f *metrics.FindSummary) string {
	switch {
	case f.Held == 0:
		return r.bad("it does not hold at " + level(f.From) + unitOf(f.Over) + ", the lowest load")
	case f.Failed == nil && f.Held == f.To:
		return "it holds up to " + level(f.Held) + unitOf(f.Over) + ", the highest load"
	case f.Failed == nil:
		return "stopped: it holds at " + level(f.Held) + unitOf(f.Over)
	}
	sure := ""
	if !f.Confirmed {
		sure = "; not confirmed"
	}
	return fmt.Sprintf("highest load that held: %s%s (between %s and %s%s)", level(f.Held), unitOf(f.Over), level(f.Held), level(*f.Failed), sure)
}

func level(v float64) string { return trimZeros(strconv.FormatFloat(v, 'f', 1, 64)) }

func levelUnit(over string) string {
	if over == "rate" {
		return "ARRIVALS/S"
	}
	return "SESSIONS"
}

func unitOf(over string) string {
	if over == "rate" {
		return "/s"
	}
	return " sessions"
}
