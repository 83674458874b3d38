package output

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"mcpbench/metrics"
)

// goodCheckShare is the share of passed verdicts, in percent, from which a
// check is marked ✓. It is a mark for the eye; thresholds decide.
const goodCheckShare = 99

// maxChecks is how many checks are shown before those that always passed are
// put into one.
const maxChecks = 6

func (r *textSummary) checks() {
	all := joinChecks(r.s.Checks)
	if len(all) == 0 {
		return
	}
	names := map[string]int{}
	for _, c := range all {
		names[c.Name]++
	}
	var items []string
	perfect := 0
	for _, c := range all {
		if c.Failed == 0 && len(all) > maxChecks {
			perfect++
			continue
		}
		name := shorten(c.Name, maxName)
		if names[c.Name] > 1 {
			name = shorten(c.Step, maxName/2) + "/" + shorten(c.Name, maxName/2)
		}
		total := c.Passed + c.Failed
		good := 100*c.Passed >= goodCheckShare*total
		item := r.mark(good) + " " + name + " " + percent(c.Passed, total)
		if !good {
			item += " (" + groupDigits(c.Failed) + " of " + groupDigits(total) + ")"
		}
		items = append(items, item)
	}
	switch {
	case perfect == len(all):
		items = append(items, r.mark(true)+" all "+plural(int64(perfect), "check")+" 100%")
	case perfect > 0:
		items = append(items, r.mark(true)+" "+plural(int64(perfect), "other")+" 100%")
	}
	r.blank()
	r.items("  "+r.bold("CHECKS")+"  ", "   ", items)
}

// joinChecks sums up the checks of one name and step over all groups and
// leaves out those without a verdict.
func joinChecks(checks []metrics.CheckSummary) []metrics.CheckSummary {
	var out []metrics.CheckSummary
	type key struct{ step, name string }
	at := map[key]int{}
	for _, c := range checks {
		if c.Passed+c.Failed == 0 {
			continue
		}
		k := key{c.Step, c.Name}
		if i, ok := at[k]; ok {
			out[i].Passed += c.Passed
			out[i].Failed += c.Failed
			continue
		}
		at[k] = len(out)
		out = append(out, c)
	}
	return out
}

// maxErrorLines bounds the list of failures; summary.json has them all.
const maxErrorLines = 10

// errors writes failures on one line when they are few and short, else one a line.
func (r *textSummary) errors() {
	kinds := joinErrors(r.s.Errors)
	if len(kinds) == 0 {
		return
	}
	if len(joinChecks(r.s.Checks)) == 0 {
		r.blank()
	}
	const label = "  ERRORS  "
	items := make([]string, len(kinds))
	for i, k := range kinds {
		items[i] = k.text + " ×" + groupDigits(k.count)
	}
	if oneLine := strings.Join(items, dot); text.StringWidthWithoutEscSequences(label+oneLine) <= r.width {
		r.line("  ", r.bold("ERRORS"), "  ", oneLine)
		return
	}
	r.line("  ", r.bold("ERRORS"))
	widest := 0
	for _, k := range kinds[:min(len(kinds), maxErrorLines)] {
		widest = max(widest, text.StringWidthWithoutEscSequences("×"+groupDigits(k.count)))
	}
	for _, k := range kinds[:min(len(kinds), maxErrorLines)] {
		count := text.Pad("×"+groupDigits(k.count), widest, ' ')
		r.hanging("  "+count+"  ", k.text)
	}
	if more := len(kinds) - maxErrorLines; more > 0 {
		r.line("  ", r.faint("and "+plural(int64(more), "other kind")+", see summary.json"))
	}
}

// hanging writes text of any length after label, continued under its start.
func (r *textSummary) hanging(label, s string) {
	width := text.StringWidthWithoutEscSequences(label)
	for i, line := range strings.Split(text.WrapSoft(s, r.width-width), "\n") {
		if i > 0 {
			label = strings.Repeat(" ", width)
		}
		r.line(label, line)
	}
}

type errorKind struct {
	text  string
	count int64
}

// joinErrors sums up the failures of all steps that read the same, the most
// frequent first.
func joinErrors(errors []metrics.ErrorSummary) []errorKind {
	var kinds []errorKind
	at := map[string]int{}
	for i := range errors {
		s := errorText(&errors[i])
		if k, ok := at[s]; ok {
			kinds[k].count += errors[i].Count
			continue
		}
		at[s] = len(kinds)
		kinds = append(kinds, errorKind{text: s, count: errors[i].Count})
	}
	slices.SortStableFunc(kinds, func(a, b errorKind) int { return cmp.Compare(b.count, a.count) })
	return kinds
}

// errorText says what failed, led by what tells failures of a kind apart.
func errorText(e *metrics.ErrorSummary) string {
	message := Escape(e.Message)
	lead := strings.ReplaceAll(e.Outcome, "_", " ")
	switch e.Outcome {
	case metrics.RPCError.String():
		lead = fmt.Sprint(e.Code)
	case metrics.HTTPError.String():
		lead = fmt.Sprintf("HTTP %d", e.Code)
		message = strings.Replace(message, "HTTP status #", lead, 1) // masked, but known
	case metrics.TransportError.String():
		if message != "" {
			return message
		}
	}
	if message == "" {
		return lead
	}
	if strings.Contains(strings.ToLower(message), strings.ToLower(lead)) {
		return message
	}
	separator := ": "
	if e.Outcome == metrics.RPCError.String() {
		separator = " "
	}
	return lead + separator + message
}

// thresholdRoom is what a line needs beside the expression of a threshold.
const thresholdRoom = 20

// thresholds writes those that the user named, and default ones that failed.
func (r *textSummary) thresholds() {
	var shown []*metrics.ThresholdResult
	column := 32
	for i := range r.s.Thresholds {
		t := &r.s.Thresholds[i]
		if t.Default && t.OK || r.s.Verdict == metrics.VerdictError && r.s.Requests.Total == 0 {
			continue
		}
		shown = append(shown, t)
		if n := text.StringWidthWithoutEscSequences(Escape(t.Expr)); n <= r.width-thresholdRoom {
			column = max(column, n)
		}
	}
	if len(shown) == 0 {
		return
	}
	r.blank()
	r.line("  ", r.bold("THRESHOLDS"))
	for _, t := range shown {
		value := thresholdValue(t)
		if t.Default {
			value += r.faint(" (default)")
		}
		expr := Escape(t.Expr)
		if text.StringWidthWithoutEscSequences(expr) > column {
			r.hanging("  "+r.mark(t.OK)+" ", expr)
			r.line("      ", value)
		} else {
			r.line("  ", r.mark(t.OK), " ", text.Pad(expr, column, ' '), "  ", value)
		}
		if t.Aborted {
			r.line("    ", r.bad("ended the run at "+formatSpan(t.AbortedAtS)), ": ", abortValue(t))
		}
	}
}

// abortValue says what a threshold that ended the run saw.
func abortValue(t *metrics.ThresholdResult) string {
	seen := metrics.ThresholdResult{Value: t.WindowValue, Unit: t.Unit}
	return thresholdValue(&seen) + " over the last " + formatSpan(t.WindowS)
}

// end writes where the results are, what to do next, and the verdict with the
// exit code.
func (r *textSummary) end() {
	s := r.s
	r.blank()
	if s.ResultsDir != "" {
		dir := "  " + Escape(s.ResultsDir)
		if len(r.options.Notes) > 0 {
			dir += " (" + strings.Join(r.options.Notes, ", ") + ")"
		}
		r.line(dir)
	}
	for _, hint := range r.options.Hints {
		if strings.HasPrefix(hint, " ") { // a command to copy: never broken into lines
			r.line("  ", Escape(hint))
			continue
		}
		r.paragraph("  ", Escape(hint))
	}
	r.failure()
	exit := fmt.Sprintf("exit %d", s.ExitCode)
	left := r.conclusion()
	gap := max(r.edge-text.StringWidthWithoutEscSequences(left)-len(exit), 2)
	if s.ExitCode != metrics.ExitOK {
		exit = r.bad(exit)
	}
	r.line(r.bold(left), strings.Repeat(" ", gap), exit)
}

// failure says why the run could not finish. Of several reasons, one a line,
// only the first is told: a full disk fails every table.
func (r *textSummary) failure() {
	if r.s.Error == "" {
		return
	}
	first, rest, _ := strings.Cut(r.s.Error, "\n")
	message := Escape(first)
	if rest != "" {
		message += " (and " + plural(int64(strings.Count(rest, "\n")+1), "more line") + ")"
	}
	for i, line := range wrapWords("error: "+message, r.width) {
		if i == 0 {
			line = r.bad("error:") + strings.TrimPrefix(line, "error:")
		}
		r.line(line)
	}
}

func (r *textSummary) conclusion() string {
	s := r.s
	var named, failed int
	ended := ""
	for i := range s.Thresholds {
		t := &s.Thresholds[i]
		if t.Aborted {
			ended = "ended at " + formatSpan(t.AbortedAtS) + ": "
		}
		if !t.Default {
			named++
		}
		if !t.OK {
			failed++
		}
	}
	switch s.Verdict {
	case metrics.VerdictError:
		return "could not finish"
	case metrics.VerdictInterrupted:
		return "interrupted: results are complete up to here"
	case metrics.VerdictUnsound:
		return "no verdict: the load generator itself was the limit"
	}
	q := &s.Requests
	switch {
	case failed > 0 && named > 0:
		return fmt.Sprintf("%s%d of %s failed", ended, failed, plural(int64(named), "threshold"))
	case failed > 0 && q.OK == 0:
		return "no request succeeded"
	case failed > 0:
		return "every request failed"
	case named > 0:
		return fmt.Sprintf("%s met", plural(int64(named), "threshold"))
	case s.Iterations.Dropped > 0:
		return fmt.Sprintf("no thresholds: %s of %s arrivals dropped, %s of %s requests failed",
			groupDigits(s.Iterations.Dropped), groupDigits(s.Iterations.Total), groupDigits(q.Failed), groupDigits(q.Total))
	case q.Failed > 0:
		return fmt.Sprintf("no thresholds: %s of %s requests failed", groupDigits(q.Failed), groupDigits(q.Total))
	case q.ChecksFailed > 0:
		return fmt.Sprintf("no thresholds: %s of %s requests failed a check", groupDigits(q.ChecksFailed), groupDigits(q.Total))
	}
	return plural(q.Total, "request") + ", none failed"
}
