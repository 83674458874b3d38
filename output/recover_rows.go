package output

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/parquet-go/parquet-go"

	"mcpbench/metrics"
)

// The columns that a summary needs, as the row types of the tables have them.
type (
	requestFacts struct {
		Group      string       `parquet:"group"`
		Step       string       `parquet:"step"`
		Trial      int32        `parquet:"trial"`
		Protocol   string       `parquet:"protocol_version"`
		Session    int64        `parquet:"session"`
		Iteration  int64        `parquet:"iteration"` // -1 comes back as metrics.NoIteration
		Seq        int64        `parquet:"seq"`
		Start      int64        `parquet:"start_offset_ns"`
		Intended   *int64       `parquet:"intended_offset_ns"`
		Lateness   *int64       `parquet:"lateness_ns"`
		Service    int64        `parquet:"service_ns"`
		TTFB       *int64       `parquet:"ttfb_ns"`
		Outcome    string       `parquet:"outcome"`
		Code       *int32       `parquet:"error_code"`
		HTTPStatus *int32       `parquet:"http_status"`
		Message    *string      `parquet:"error_message"`
		Out        int32        `parquet:"request_bytes"`
		In         int32        `parquet:"response_bytes"`
		First      *int64       `parquet:"first_progress_ns"`
		Last       *int64       `parquet:"last_progress_ns"`
		Gaps       []int64      `parquet:"progress_gaps_ns,list"`
		Rounds     []int64      `parquet:"round_ns,list"`
		CancelStop *int64       `parquet:"cancel_stop_ns"`
		CacheTTL   *int64       `parquet:"cache_ttl_ms"`
		CacheScope *string      `parquet:"cache_scope"`
		Checks     []checkFacts `parquet:"checks,list"`
		Warmup     bool         `parquet:"warmup"`
	}
	checkFacts struct {
		OK bool `parquet:"ok"`
	}
	intervalFacts struct {
		Second int64 `parquet:"second"`
	}
	loadFacts struct {
		Group  string `parquet:"group"`
		Second int64  `parquet:"second"`
		Wanted int32  `parquet:"sessions_wanted"`
	}
)

// names finds the ids of a catalog by the names in rows.
type names struct {
	groups     map[string]uint8
	steps      map[[2]string]uint16 // group and step
	protocols  map[string]uint8
	outcomes   map[string]metrics.Outcome
	iterations map[string]metrics.IterationOutcome
	once       []bool // by step: no part of the load
}

func namesOf(cat *metrics.Catalog) *names {
	n := &names{
		groups: map[string]uint8{}, steps: map[[2]string]uint16{}, protocols: map[string]uint8{},
		outcomes: map[string]metrics.Outcome{}, iterations: map[string]metrics.IterationOutcome{},
	}
	for i, g := range cat.Groups {
		n.groups[g.Name] = uint8(i)
	}
	for i := range cat.Steps {
		n.steps[[2]string{cat.Groups[cat.Steps[i].Group].Name, cat.Steps[i].ID}] = uint16(i)
		n.once = append(n.once, cat.Steps[i].Part != "")
	}
	for i, p := range cat.Protocols {
		n.protocols[p] = uint8(i)
	}
	for o := range metrics.Outcome(metrics.NumOutcomes) {
		n.outcomes[o.String()] = o
	}
	for o := range metrics.IterationOutcome(metrics.NumIterationOutcomes) {
		n.iterations[o.String()] = o
	}
	return n
}

// request turns a row back into the sample it was made of, as far as a summary
// can tell.
func (n *names) request(row *requestFacts) (metrics.Sample, error) {
	step, ok := n.steps[[2]string{row.Group, row.Step}]
	outcome, known := n.outcomes[row.Outcome]
	if !ok || !known {
		return metrics.Sample{}, fmt.Errorf("a row of step %q of group %q with outcome %q: the journal knows no such", row.Step, row.Group, row.Outcome)
	}
	s := metrics.Sample{
		Kind: metrics.KindStep, Intended: metrics.NoOffset, Release: metrics.NoOffset,
		Start: time.Duration(row.Start), End: time.Duration(row.Start + row.Service),
		Iteration: uint64(row.Iteration), Session: sessionOf(row.Session), Step: step, Seq: uint16(row.Seq), //nolint:gosec // written from these types
		Outcome: outcome, Proto: n.protocols[row.Protocol], Group: n.groups[row.Group], Rounds: 1,
		BytesOut: uint32(row.Out), BytesIn: uint32(row.In), Trial: uint16(row.Trial), //nolint:gosec // never negative
		Phase: phaseOf(row.Warmup, time.Duration(row.Start+row.Service)),
	}
	if row.Intended != nil && row.Lateness != nil {
		s.Intended = time.Duration(*row.Intended)
		s.Release = s.Intended + time.Duration(*row.Lateness)
	}
	switch {
	case row.TTFB != nil:
		s.FirstByte = s.Start + time.Duration(*row.TTFB)
	case outcome == metrics.OK || outcome == metrics.CheckFailed || outcome == metrics.ToolError ||
		outcome == metrics.RPCError || outcome == metrics.HTTPError:
		s.FirstByte = s.Start - 1 // for these, what stands in the interval is a first byte
	default:
		s.FirstByte = s.End
	}
	if row.Code != nil {
		s.Code = *row.Code
	}
	if row.HTTPStatus != nil {
		s.HTTPStatus = uint16(*row.HTTPStatus) //nolint:gosec // written from a uint16
	}
	for i, c := range row.Checks {
		if !c.OK && outcome.Answered() {
			s.ChecksFailed |= 1 << i
		}
	}
	if n.once[step] {
		s.Phase = metrics.PhaseSetup
	}
	s.Extra = row.extra()
	return s, nil
}

// extra returns what of a sample's Extra counts in a summary, nil for nothing.
func (row *requestFacts) extra() *metrics.Extra {
	if row.Message == nil && row.First == nil && row.CancelStop == nil && row.CacheTTL == nil && len(row.Rounds) == 0 {
		return nil
	}
	x := &metrics.Extra{}
	if row.Message != nil {
		x.Message = *row.Message
	}
	if row.First != nil && row.Last != nil {
		x.HasProgress, x.FirstProgress, x.LastProgress = true, time.Duration(*row.First), time.Duration(*row.Last)
		for _, gap := range row.Gaps {
			x.Gaps = append(x.Gaps, time.Duration(gap))
		}
	}
	for _, round := range row.Rounds {
		x.Rounds = append(x.Rounds, time.Duration(round))
	}
	if row.CacheTTL != nil {
		x.HasCache, x.CacheTTL = true, *row.CacheTTL
		if row.CacheScope != nil {
			x.CacheScope = *row.CacheScope
		}
	}
	if row.CancelStop != nil {
		x.HasCancelStop, x.CancelStop = true, time.Duration(*row.CancelStop)
	}
	return x
}

// sessionOf is the inverse of sessionNumber.
func sessionOf(number int64) uint32 {
	if number < 0 {
		return metrics.NoSession
	}
	return uint32(number) //nolint:gosec // written from a uint32
}

// phaseOf is the phase of a row: its column tells only measured from the rest.
func phaseOf(warmup bool, end time.Duration) metrics.Phase {
	switch {
	case !warmup:
		return metrics.PhaseMeasured
	case end < 0:
		return metrics.PhaseSetup
	}
	return metrics.PhaseWarmup
}

// iteration does the same for a row of the iterations table.
func (n *names) iteration(row *iterationRow) (metrics.Sample, error) {
	group, ok := n.groups[row.Group]
	outcome, known := n.iterations[row.Outcome]
	if !ok || !known {
		return metrics.Sample{}, fmt.Errorf("an iteration of group %q with outcome %q: the journal knows no such", row.Group, row.Outcome)
	}
	s := metrics.Sample{
		Kind: metrics.KindIteration, Intended: metrics.NoOffset, Release: metrics.NoOffset,
		Start: time.Duration(row.Start), End: time.Duration(row.End), Iteration: uint64(row.Iteration), //nolint:gosec // never negative
		Session: metrics.NoSession, Step: metrics.NoStep, Seq: uint16(row.Steps), Group: group, //nolint:gosec // written from a uint16
		Outcome: metrics.Outcome(outcome), Trial: uint16(row.Trial), //nolint:gosec // written from a uint16
		Phase: phaseOf(row.Warmup, time.Duration(row.End)),
	}
	if row.Session != nil {
		s.Session = sessionOf(*row.Session)
	}
	if row.Intended != nil && row.Lateness != nil {
		s.Intended = time.Duration(*row.Intended)
		s.Release = s.Intended + time.Duration(*row.Lateness)
	}
	if row.FailedStep != nil {
		s.Step = n.steps[[2]string{row.Group, *row.FailedStep}]
	}
	return s, nil
}

// eachRow reads a part in its order. The row is valid during the call.
func eachRow[T any](path string, do func(*T) error) error {
	file, err := os.Open(filepath.Clean(path))
	if err != nil {
		return fmt.Errorf("read a part: %w", bare(err))
	}
	defer func() { _ = file.Close() }() // it is only read
	pf, err := openPartFile(file)
	if err != nil {
		return err
	}
	for _, group := range pf.RowGroups() {
		if err := eachOfGroup(group, do); err != nil {
			return err
		}
	}
	return nil
}

func openPartFile(file *os.File, options ...parquet.FileOption) (pf *parquet.File, err error) {
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("read a part: %w", bare(err))
	}
	err = guard(func() error {
		pf, err = parquet.OpenFile(file, info.Size(), options...)
		return err
	})
	return pf, err
}

func eachOfGroup[T any](group parquet.RowGroup, do func(*T) error) error {
	reader := parquet.NewGenericRowGroupReader[T](group)
	defer func() { _ = guard(reader.Close) }() // it is only read
	rows := make([]T, chunkRows)
	for {
		clear(rows)
		n := 0
		err := guard(func() (err error) {
			n, err = reader.Read(rows)
			return err
		})
		for i := range rows[:n] {
			if err := do(&rows[i]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// guard turns a panic of parquet-go 0.32 into an error: some bytes that are
// damaged make it read behind the end of a slice.
func guard(read func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("damaged: %v", p)
		}
	}()
	return read()
}
