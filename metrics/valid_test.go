package metrics_test

import (
	"strings"
	"testing"
	"time"

	"mcpbench/metrics"
)

func TestValid(t *testing.T) {
	open := metrics.Sample{Intended: 1, Release: 2, Start: 3, FirstByte: 4, End: 5, Rounds: 1}
	closed := metrics.Sample{Intended: metrics.NoOffset, Release: metrics.NoOffset, Start: 3, FirstByte: 5, End: 5}
	iteration := metrics.Sample{Kind: metrics.KindIteration, Step: metrics.NoStep, Intended: 1, Release: 1, Start: 1, End: 2}
	tests := []struct {
		name   string
		base   metrics.Sample
		change func(*metrics.Sample)
		want   string // part of the error; "" is none
	}{
		{"open", open, nil, ""},
		{"closed", closed, nil, ""},
		{"iteration", iteration, nil, ""},
		{"released early", open, func(s *metrics.Sample) { s.Release = 0 }, "intended 1ns is after release 0s"},
		{"sent before release", open, func(s *metrics.Sample) { s.Release = 4 }, "release 4ns is after start 3ns"},
		{"byte before the send", open, func(s *metrics.Sample) { s.FirstByte = 2 }, "start 3ns is after first byte 2ns"},
		{"byte after the end", open, func(s *metrics.Sample) { s.FirstByte = 6 }, "first byte 6ns is after end 5ns"},
		{"ends before it starts", open, func(s *metrics.Sample) { s.FirstByte, s.End = 0, 2 }, "start 3ns is after end 2ns"},
		{"no byte", open, func(s *metrics.Sample) { s.FirstByte = metrics.NoOffset }, ""},
		{"intended without release", open, func(s *metrics.Sample) { s.Release = metrics.NoOffset }, "one without the other"},
		{"skipped", open, func(s *metrics.Sample) { s.Outcome = metrics.Skipped }, "makes no such sample"},
		{"dropped request", open, func(s *metrics.Sample) { s.Outcome = metrics.Dropped }, "makes no such sample"},
		{"unknown outcome", open, func(s *metrics.Sample) { s.Outcome = 99 }, "outcome 99 does not exist"},
		{"unknown kind", open, func(s *metrics.Sample) { s.Kind = 9 }, "kind 9 does not exist"},
		{"unknown phase", open, func(s *metrics.Sample) { s.Phase = 9 }, "phase 9 does not exist"},
		{"checks of a cancelled request", open, func(s *metrics.Sample) { s.Outcome, s.ChecksFailed = metrics.Cancelled, 1 }, "failed checks with outcome cancelled"},
		{"progress", open, func(s *metrics.Sample) { s.Progress = 1 }, "1 progress notifications among 0"},
		{"connect without extra", open, func(s *metrics.Sample) { s.HasConnect = true }, "without an Extra"},
		{"session without info", closed, func(s *metrics.Sample) { s.Kind = metrics.KindSession }, "without Extra.Session"},
		{"dropped that took time", iteration, func(s *metrics.Sample) { s.Outcome = metrics.Outcome(metrics.IterDropped) }, "start 1ns and end 2ns differ"},
		{"completed with a failed step", iteration, func(s *metrics.Sample) { s.Step = 0 }, "step 0 is named as failed"},
		{"failed without a step", iteration, func(s *metrics.Sample) { s.Outcome = metrics.Outcome(metrics.IterFailed) }, "no step is named"},
		{"unknown iteration outcome", iteration, func(s *metrics.Sample) { s.Outcome = 6 }, "iteration outcome 6 does not exist"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := tt.base
			if tt.change != nil {
				tt.change(&s)
			}
			err := s.Valid()
			if tt.want == "" && err != nil {
				t.Errorf("got %v, want none", err)
			}
			if tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// TestTTFB pins when a first byte counts: FirstByte equal to End stands for
// none, unless the outcome needs an answer.
func TestTTFB(t *testing.T) {
	tests := []struct {
		outcome   metrics.Outcome
		firstByte time.Duration
		want      time.Duration
		ok        bool
	}{
		{metrics.OK, 4, 1, true},
		{metrics.OK, 5, 2, true},
		{metrics.OK, 3, 0, true},
		{metrics.OK, 0, 0, false},
		{metrics.OK, 6, 0, false},
		{metrics.OK, metrics.NoOffset, 0, false},
		{metrics.Timeout, 5, 0, false},
		{metrics.Timeout, 4, 1, true},
		{metrics.Timeout, 3, 0, false},
	}
	for _, tt := range tests {
		s := metrics.Sample{Start: 3, FirstByte: tt.firstByte, End: 5, Outcome: tt.outcome}
		if got, ok := s.TTFB(); ok != tt.ok || ok && got != tt.want {
			t.Errorf("%v, first byte %d: got %v, %v", tt.outcome, tt.firstByte, got, ok)
		}
	}
}
