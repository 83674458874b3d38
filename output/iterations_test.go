package output_test

import (
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbench/metrics"
	"mcpbench/output"
)

// wantIteration says, straight from the documentation of the columns, what the
// row of a sample holds.
func wantIteration(s *metrics.Sample) row {
	cat := testCatalog()
	group := cat.Groups[s.Group]
	r := row{
		"trial": fmt.Sprint(s.Trial), "group": group.Name, "flow": group.Flow, "iteration": fmt.Sprint(s.Iteration),
		"start_offset_ns": fmt.Sprint(s.Start.Nanoseconds()), "end_offset_ns": fmt.Sprint(s.End.Nanoseconds()),
		"outcome": s.IterOutcome().String(), "steps": fmt.Sprint(s.Seq), "warmup": fmt.Sprint(s.Phase != metrics.PhaseMeasured),
	}
	if s.IterOutcome() != metrics.IterDropped {
		r["session"] = fmt.Sprint(s.Session)
	}
	if group.Open {
		r["intended_offset_ns"] = fmt.Sprint(s.Intended.Nanoseconds())
		r["lateness_ns"] = fmt.Sprint((s.Release - s.Intended).Nanoseconds())
		r["queued_ns"] = fmt.Sprint((s.Start - s.Release).Nanoseconds())
	}
	if s.Step != metrics.NoStep {
		r["failed_step"] = cat.Steps[s.Step].ID
	}
	return r
}

func TestIterationsAcrossPages(t *testing.T) {
	samples := randomSamples(40_000, 23)
	for i := range samples {
		s := &samples[i]
		s.Iteration = uint64(i / 3)
		s.Kind, s.Extra, s.Outcome = metrics.KindIteration, nil, metrics.Outcome(i%metrics.NumIterationOutcomes)
		if i%3 > 0 {
			s.Step = metrics.NoStep
		}
	}
	sink := newSink(t, output.ParquetConfig{})
	if err := errors.Join(sink.Write(samples), sink.Close()); err != nil {
		t.Fatal(err)
	}
	got := readRows(t, sink.parts(t, "iterations")[0])
	if len(got) != len(samples) {
		t.Fatalf("rows: got %d, want %d", len(got), len(samples))
	}
	for i := range samples {
		if want := wantIteration(&samples[i]); !maps.Equal(want, got[i]) {
			t.Fatalf("row %d (-want +got):\n%s", i, cmp.Diff(want, got[i]))
		}
	}
}
