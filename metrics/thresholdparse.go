package metrics

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"mcpbench/internal/nearest"
)

// ParseThreshold parses one threshold expression:
//
//	AGG ( METRIC [ { tag = value [, tag = value]… } ] ) OP VALUE
//
// A value is bare (up to the next comma or closing brace) or a Go string in
// double quotes. Whitespace may stand between the parts. Whether the tags name
// something that exists is checked by Resolve.
//
// A syntax error is a *ThresholdError with the offset of the fault; a known
// aggregate or metric that is not delivered yet is a *ThresholdError with
// NotYet set.
func ParseThreshold(expr string) (Threshold, error) {
	p := parser{expr: expr}
	t := p.threshold()
	if p.err != nil {
		return Threshold{}, p.err
	}
	return t, nil
}

// parser reads one expression from left to right. After the first fault, err
// is set and every method returns at once.
type parser struct {
	expr string
	pos  int
	err  *ThresholdError
}

func (p *parser) fail(offset int, format string, args ...any) {
	if p.err == nil {
		p.err = &ThresholdError{Expr: p.expr, Offset: offset, Message: fmt.Sprintf(format, args...)}
	}
}

func (p *parser) notYet(offset int, name string) {
	if p.err == nil {
		p.fail(offset, "%s is not supported yet in thresholds", name)
		p.err.NotYet = name
	}
}

func (p *parser) threshold() Threshold {
	t := Threshold{Expr: p.expr}
	aggAt := p.skipSpace()
	t.Agg = p.aggregate()
	p.expect("(", "the aggregate, as in p99(latency) < 250ms")
	t.metricOffset = p.skipSpace()
	t.Metric = p.metric()
	t.Tags = p.tags(&t)
	p.expect(")", "the metric")
	p.checkAggregate(&t, aggAt)
	t.Op = p.operator()
	p.value(&t)
	return t
}

func (p *parser) skipSpace() int {
	for p.pos < len(p.expr) && strings.IndexByte(" \t\r\n", p.expr[p.pos]) >= 0 {
		p.pos++
	}
	return p.pos
}

// while reads the longest run of bytes that keep accepts.
func (p *parser) while(keep func(byte) bool) string {
	start := p.pos
	for p.pos < len(p.expr) && keep(p.expr[p.pos]) {
		p.pos++
	}
	return p.expr[start:p.pos]
}

func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}

func isNumberByte(c byte) bool { return c >= '0' && c <= '9' || c == '.' }

// expect reads one symbol.
func (p *parser) expect(symbol, after string) {
	if p.err != nil {
		return
	}
	at := p.skipSpace()
	if !strings.HasPrefix(p.expr[at:], symbol) {
		p.fail(at, "expected %q after %s, found %s", symbol, after, p.found())
		return
	}
	p.pos += len(symbol)
}

// found describes what stands at the current place.
func (p *parser) found() string {
	rest := p.expr[p.pos:]
	if rest == "" {
		return "the end"
	}
	if i := strings.IndexAny(rest, " \t\r\n"); i > 0 {
		rest = rest[:i]
	}
	return strconv.Quote(cut(rest))
}

func (p *parser) aggregate() string {
	at := p.skipSpace()
	name := p.while(func(c byte) bool { return isNameByte(c) || c == '.' })
	switch {
	case name == "":
		p.fail(at, "expected an aggregate such as p99, mean or rate, found %s", p.found())
	case slices.Contains(aggregates, name):
		return name
	case slices.Contains(laterAggregates, name):
		p.notYet(at, name)
	case name[0] == 'p' && len(name) > 1 && strings.IndexFunc(name[1:], func(r rune) bool { return r != '.' && (r < '0' || r > '9') }) < 0:
		q, err := strconv.ParseFloat(name[1:], 64)
		if err != nil || q > 100 {
			p.fail(at, "there is no percentile %s: write p0 to p100, with decimals as in p99.9", cut(name))
		}
		return "p" + strconv.FormatFloat(q, 'f', -1, 64)
	case metricTable[name].isKnown():
		p.fail(at, "%s is a metric and needs an aggregate around it, as in %s(%s)", name, metricTable[name].aggregates()[0], name)
	default:
		p.fail(at, "unknown aggregate %q%s", cut(name), nearest.DidYouMean(cut(name), append([]string{"p50", "p90", "p95", "p99", "p99.9"}, aggregates...)))
	}
	return ""
}

func (p *parser) metric() string {
	if p.err != nil {
		return ""
	}
	at := p.skipSpace()
	name := p.while(isNameByte)
	switch _, known := metricTable[name]; {
	case known:
		return name
	case name == "":
		p.fail(at, "expected a metric such as latency or errors, found %s", p.found())
	case slices.Contains(laterMetrics, name) || strings.HasPrefix(name, "server_"):
		p.notYet(at, cut(name))
	default:
		names := slices.Concat(slices.Sorted(maps.Keys(metricTable)), laterMetrics)
		p.fail(at, "unknown metric %q%s", cut(name), nearest.DidYouMean(cut(name), names))
	}
	return ""
}

// tags reads the tags in braces, if there are any.
func (p *parser) tags(t *Threshold) []Tag {
	if p.err != nil || !strings.HasPrefix(p.expr[p.skipSpace():], "{") {
		return nil
	}
	p.pos++
	var tags []Tag
	for p.err == nil {
		tag := Tag{keyOffset: p.skipSpace()}
		tag.Key = p.while(func(c byte) bool { return isNameByte(c) || c == '-' || c == '.' })
		if tag.Key == "" {
			p.fail(tag.keyOffset, "expected a tag such as step=NAME, found %s", p.found())
		}
		p.expect("=", "the tag "+tag.Key)
		tag.valueOffset = p.skipSpace()
		tag.Value = p.tagValue()
		p.checkTag(t, tag)
		if slices.ContainsFunc(tags, func(o Tag) bool { return o.Key == tag.Key }) {
			p.fail(tag.keyOffset, "the tag %s stands twice", tag.Key)
		}
		tags = append(tags, tag)
		if p.err == nil && strings.HasPrefix(p.expr[p.skipSpace():], ",") {
			p.pos++
			continue
		}
		p.expect("}", "the value of "+tag.Key)
		break
	}
	return tags
}

func (p *parser) tagValue() string {
	if p.err != nil {
		return ""
	}
	at := p.pos
	if strings.HasPrefix(p.expr[at:], `"`) {
		quoted, err := strconv.QuotedPrefix(p.expr[at:])
		if err != nil {
			p.fail(at, "the quoted value does not end")
			return ""
		}
		p.pos += len(quoted)
		value, err := strconv.Unquote(quoted)
		if err != nil {
			p.fail(at, "the quoted value is not a string")
		}
		return value
	}
	value := strings.TrimRight(p.while(func(c byte) bool { return strings.IndexByte(`,{}"`, c) < 0 }), " \t\r\n")
	if value == "" {
		p.fail(at, "expected the value of a tag, found %s", p.found())
	}
	return value
}

// checkTag checks what does not depend on the catalog: outcome and check.
func (p *parser) checkTag(t *Threshold, tag Tag) {
	if p.err != nil {
		return
	}
	info := metricTable[t.Metric]
	switch {
	case tag.Key == "outcome" && info.outcomes == nil:
		p.fail(tag.keyOffset, "the tag outcome selects among requests, errors and iterations, not %s", t.Metric)
	case tag.Key == "outcome" && !info.outcomes[tag.Value]:
		p.fail(tag.valueOffset, "%s has no outcome %q%s", t.Metric, cut(tag.Value),
			nearest.DidYouMean(cut(tag.Value), slices.Sorted(maps.Keys(info.outcomes))))
	case tag.Key == "check" && t.Metric != "checks":
		p.fail(tag.keyOffset, "the tag check selects among checks, not %s", t.Metric)
	}
}

// checkAggregate checks that the aggregate fits the metric.
func (p *parser) checkAggregate(t *Threshold, at int) {
	if p.err != nil {
		return
	}
	info := metricTable[t.Metric]
	if info.kind == kindTime && t.Agg[0] == 'p' {
		return
	}
	fits := info.aggregates()
	if !slices.Contains(fits, t.Agg) {
		hint := ""
		if t.Agg == "rate" && t.Metric == "iteration" {
			hint = ", or rate(iterations)"
		}
		p.fail(at, "%s does not fit %s: write %s(%s)%s", t.Agg, t.Metric, strings.Join(fits, ", "), t.Metric, hint)
	}
}

func (p *parser) operator() string {
	if p.err != nil {
		return ""
	}
	at := p.skipSpace()
	op := p.while(func(c byte) bool { return strings.IndexByte("<>=!", c) >= 0 })
	switch op {
	case "<", "<=", ">", ">=", "==", "!=":
		return op
	case "=":
		p.fail(at, `"=" does not compare: write "=="`)
	default:
		p.fail(at, "expected one of < <= > >= == !=, found %s", p.foundFrom(at))
	}
	return ""
}

func (p *parser) foundFrom(at int) string {
	p.pos = at
	return p.found()
}

// value reads the number and its unit and checks them against the rest.
func (p *parser) value(t *Threshold) {
	if p.err != nil {
		return
	}
	at := p.skipSpace()
	number := p.while(isNumberByte)
	if number == "" {
		p.fail(at, "expected a number, found %s", p.found())
		return
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsInf(v, 0) {
		p.fail(at, "%q is not a number", cut(number))
		return
	}
	t.Value = v
	unitAt := p.skipSpace()
	unit := p.while(func(c byte) bool { return c > ' ' && !isNumberByte(c) })
	if end := p.skipSpace(); end < len(p.expr) {
		p.fail(end, "unexpected %s after the value: write one number and one unit, such as 90s", p.found())
		return
	}
	switch unit {
	case "µs", "μs": // micro sign and Greek mu
		unit = "us"
	}
	t.Unit = unit
	p.checkUnit(t, at, unitAt)
}
