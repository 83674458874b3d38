package metrics

import (
	"strconv"
	"strings"
	"time"
)

// Threshold is one parsed pass/fail test on the summary, written
// AGG(METRIC{tag=value,…}) OP VALUE.
type Threshold struct {
	Expr    string // as written
	Default bool   // not named by the user

	Agg    string // p99, mean, min, max, sum, count or rate
	Metric string
	Tags   []Tag
	Op     string  // < <= > >= == !=
	Value  float64 // in Unit
	Unit   string  // as in timeUnits and byteUnits, with "/s" for a rate; "%", or "" for a plain number

	Abort *Abort // nil: the threshold is judged at the end only

	metricOffset int // of the metric in Expr
}

// Tag restricts a threshold to the steps or groups that carry it.
type Tag struct {
	Key, Value             string
	keyOffset, valueOffset int // byte offsets in Expr
}

// ThresholdError says where a threshold expression is wrong.
type ThresholdError struct {
	Expr    string
	Offset  int    // byte offset of the fault in Expr
	Message string // what is wrong and what to write
	NotYet  string // the known name that is not supported yet, or ""
}

func (e *ThresholdError) Error() string { return e.Message }

// DefaultThresholds are those of a run that names none.
func DefaultThresholds() []Threshold {
	const metricAt = len("count(")
	return []Threshold{
		{Expr: "count(ok) > 0", Default: true, Agg: "count", Metric: "ok", Op: ">", metricOffset: metricAt},
		{
			Expr: "rate(errors) < 100%", Default: true, Agg: "rate", Metric: "errors", Op: "<", Value: 100, Unit: "%",
			metricOffset: metricAt - 1,
		},
	}
}

// String returns the threshold in its canonical form, which parses to the same.
func (t Threshold) String() string {
	var b strings.Builder
	b.WriteString(t.Agg + "(" + t.Metric)
	for i, tag := range t.Tags {
		b.WriteString([]string{"{", ","}[min(i, 1)] + tag.Key + "=" + quoteTag(tag.Value))
	}
	if len(t.Tags) > 0 {
		b.WriteByte('}')
	}
	b.WriteString(") " + t.Op + " " + strconv.FormatFloat(t.Value, 'f', -1, 64) + t.Unit)
	return b.String()
}

// Equal reports whether both were written the same and mean the same.
func (t Threshold) Equal(o Threshold) bool {
	abort := t.Abort == o.Abort || t.Abort != nil && o.Abort != nil && *t.Abort == *o.Abort
	return t.Expr == o.Expr && t.Default == o.Default && abort && t.String() == o.String()
}

// quoteTag quotes a value that would not be read back as it is.
func quoteTag(v string) string {
	if v == "" || strings.TrimSpace(v) != v || strings.ContainsAny(v, "\",{}") || strconv.Quote(v) != `"`+v+`"` {
		return strconv.Quote(v)
	}
	return v
}

// dimension is what the value of a threshold is measured in.
type dimension uint8

const (
	plainCount dimension = iota
	timeSpan
	share
	perSecondRate
	byteCount
	byteRate
)

// Units by their factor to the base units ns and byte.
var (
	timeUnits = map[string]float64{
		"ns": 1, "us": float64(time.Microsecond), "ms": float64(time.Millisecond),
		"s": float64(time.Second), "m": float64(time.Minute), "h": float64(time.Hour),
	}
	byteUnits = map[string]float64{"B": 1, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
)

// dimension tells from aggregate, metric and unit what is compared. The
// combination has been checked.
func (t *Threshold) dimension() dimension {
	perSec := strings.HasSuffix(t.Unit, "/s")
	switch kind := metricTable[t.Metric].kind; {
	case kind == kindBytes && perSec:
		return byteRate
	case kind == kindBytes:
		return byteCount
	case t.Agg == "count":
		return plainCount
	case kind == kindTime:
		return timeSpan
	case perSec:
		return perSecondRate
	}
	return share
}

// metricKind says which aggregates and units fit a metric.
type metricKind uint8

const (
	kindTime    metricKind = iota + 1 // a distribution of durations
	kindCounter                       // things counted
	kindBytes
	kindShare // a share only
)

// scope says what the tags of a metric select.
type scope uint8

const (
	scopeStep scope = iota
	scopeGroup
)

// metricInfo describes one metric of the selector grammar.
type metricInfo struct {
	kind     metricKind
	scope    scope
	share    bool            // rate may be a share
	perSec   bool            // rate may be per second
	of       string          // what the share is of, for messages
	open     bool            // measured in an open load only
	outcomes map[string]bool // values of the tag outcome; nil: the tag does not fit
}

func (m metricInfo) isKnown() bool { return len(m.aggregates()) > 0 }

// aggregates are those that fit the metric; p99 stands for all percentiles.
func (m metricInfo) aggregates() []string {
	switch m.kind {
	case kindTime:
		return []string{"p99", "mean", "min", "max", "sum", "count"}
	case kindCounter:
		return []string{"count", "rate"}
	case kindBytes:
		return []string{"sum", "rate"}
	case kindShare:
		return []string{"rate"}
	}
	return nil
}

var metricTable = map[string]metricInfo{
	"latency":        {kind: kindTime},
	"service_time":   {kind: kindTime},
	"ttfb":           {kind: kindTime},
	"gap":            {kind: kindTime},
	"connect":        {kind: kindTime, scope: scopeGroup},
	"iteration":      {kind: kindTime, scope: scopeGroup},
	"lateness":       {kind: kindTime, scope: scopeGroup, open: true},
	"queued":         {kind: kindTime, scope: scopeGroup, open: true},
	"requests":       {kind: kindCounter, perSec: true, outcomes: requestOutcomes(func(Outcome) bool { return true })},
	"ok":             {kind: kindCounter, perSec: true, share: true, of: "requests"},
	"errors":         {kind: kindCounter, perSec: true, share: true, of: "requests", outcomes: requestOutcomes(Outcome.Failed)},
	"checks":         {kind: kindCounter, share: true, of: "evaluated checks"},
	"iterations":     {kind: kindCounter, scope: scopeGroup, perSec: true, outcomes: iterationOutcomes()},
	"dropped":        {kind: kindCounter, scope: scopeGroup, perSec: true, share: true, of: "arrivals"},
	"achieved":       {kind: kindShare, scope: scopeGroup, share: true, of: "the offered rate", open: true},
	"bytes_sent":     {kind: kindBytes, perSec: true},
	"bytes_received": {kind: kindBytes, perSec: true},
}

// Names that the grammar knows but that are not delivered yet.
var (
	laterAggregates = []string{"last", "slope", "drift"}
	laterMetrics    = []string{"session", "server_rss", "server_cpu", "server_fds"}
	aggregates      = []string{"mean", "min", "max", "sum", "count", "rate"}
)

// requestOutcomes names the outcomes that a request can have and that are kept.
func requestOutcomes(keep func(Outcome) bool) map[string]bool {
	out := map[string]bool{}
	for i := range NumOutcomes {
		if o := Outcome(i); o != Skipped && o != Dropped && keep(o) {
			out[o.String()] = true
		}
	}
	return out
}

func iterationOutcomes() map[string]bool {
	out := map[string]bool{}
	for o := range IterationOutcome(NumIterationOutcomes) {
		out[o.String()] = true
	}
	return out
}
