package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"mcpbench/driver"
	"mcpbench/internal/curve"
	"mcpbench/internal/search"
	"mcpbench/metrics"
	"mcpbench/scenarios"
)

// findFlags say what a search looks for, and where.
type findFlags struct {
	expr      string
	over      string
	from, to  float64
	precision float64

	thresholds []metrics.Threshold
}

func (f *findFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.expr, "find", "", "find the highest load at which `EXPR` holds, as in 'p99(latency) < 200ms and rate(errors) < 1%'")
	fs.StringVar(&f.over, "over", "", "what --find changes: rate or sessions (default: rate of an open load, else sessions)")
	fs.Float64Var(&f.from, "from", 0, "the lowest load of --find, arrivals per second or sessions")
	fs.Float64Var(&f.to, "to", 0, "the highest load of --find")
	fs.Float64Var(&f.precision, "find-precision", 0.05, "how near --find comes: the share by which what failed may be above what held")
}

// parse checks the flags.
func (f *findFlags) parse(cmd *cobra.Command) error {
	if f.expr == "" {
		for _, name := range []string{"over", "from", "to", "find-precision"} {
			if cmd.Flags().Changed(name) {
				return usage("--%s goes with --find", name)
			}
		}
		return nil
	}
	for part := range strings.SplitSeq(f.expr, " and ") {
		t, err := metrics.ParseThreshold(strings.TrimSpace(part))
		if err != nil {
			return usage("--find %q: %w", strings.TrimSpace(part), err)
		}
		f.thresholds = append(f.thresholds, t)
	}
	switch {
	case f.over != "" && f.over != "rate" && f.over != "sessions":
		return usage("--over %q: must be rate or sessions", f.over)
	case f.from <= 0 || f.to <= f.from:
		return usage("--find wants --from and --to, the lowest and the highest load, as in --from 10 --to 1000")
	case f.to > 1e6:
		return usage("--to %g: at most 1000000", f.to)
	case f.precision < 0.001 || f.precision > 1:
		return usage("--find-precision %g: must be from 0.001 to 1", f.precision)
	}
	return nil
}

// prepared checks the search against what is to be run.
func (f *findFlags) prepared(p *scenarios.Program) error {
	if f.expr == "" {
		return nil
	}
	closed := slices.ContainsFunc(p.Groups, func(g scenarios.Group) bool { return !g.Open })
	if f.over == "" {
		f.over = "rate"
		if closed {
			f.over = "sessions"
		}
	}
	if f.over == "rate" && closed {
		return usage("--over rate wants an open load: give a rate, e.g. -r 10/s, or arrivals in the scenario")
	}
	for i := range p.Groups {
		g := &p.Groups[i]
		if g.Changes || g.Process == "replay" {
			return usage("--find looks for a load that does not change, and group %s has one that does", g.Name)
		}
		if g.Duration == 0 {
			return usage("--find wants the length of a try: -d")
		}
	}
	cat := p.Catalog()
	for i := range f.thresholds {
		if err := f.thresholds[i].Resolve(cat); err != nil {
			return usage("--find %q: %w", f.thresholds[i].Expr, err)
		}
	}
	return nil
}

// at returns the program with the load of a level: every group has it.
func (f *findFlags) at(p *scenarios.Program, level float64) *scenarios.Program {
	out := *p
	out.Groups = slices.Clone(p.Groups)
	for i := range out.Groups {
		g := &out.Groups[i]
		if f.over == "sessions" {
			g.Sessions = int(level)
		}
		switch {
		case !g.Open:
			g.Level, g.WarmLevel = curve.Constant(level), level
		case f.over == "rate":
			g.Level, g.WarmLevel = curve.Constant(level), level
		}
	}
	return &out
}

// find searches and makes the program that of the highest load that held, or of the
// lowest of the search. Its tries are in no table.
func (e *execution) find(ctx context.Context, log *zap.Logger) error {
	f := &e.flags.find
	if f.expr == "" {
		return nil
	}
	s := search.New(search.Config{From: f.from, To: f.to, Precision: f.precision, Whole: f.over == "sessions"})
	out := &metrics.FindSummary{Expr: f.expr, Over: f.over, From: f.from, To: f.to}
	program := e.program
	for !e.stopping() {
		level, more := s.Next()
		if !more {
			break
		}
		probe, err := e.try(ctx, f.at(program, level), log)
		if err != nil {
			return fmt.Errorf("find at %g: %w", level, err)
		}
		if e.stopping() {
			break // it was cut short
		}
		probe.Level = level
		s.Report(probe.Held)
		out.Probes = append(out.Probes, *probe)
		log.Info("tried", zap.Float64(f.over, level), zap.Bool("held", probe.Held), zap.String("p99", fmt.Sprintf("%.4gms", probe.P99)),
			zap.Int64("errors", probe.Errors))
	}
	held, failed, confirmed := s.Result()
	out.Held, out.Confirmed = held, confirmed
	if failed > 0 {
		out.Failed = &failed
	}
	e.findings = out
	e.dialers = nil
	level := held
	if level == 0 {
		level = f.from
	}
	e.program = f.at(program, level)
	e.program.Thresholds = slices.Concat(program.Thresholds, f.thresholds)
	return nil
}

// stopping reports whether the user wants to stop.
func (e *execution) stopping() bool {
	select {
	case <-e.signal.Stop:
		return true
	default:
		return false
	}
}

// try makes one run of a program, on sessions of its own and with nothing recorded.
func (e *execution) try(ctx context.Context, p *scenarios.Program, log *zap.Logger) (*metrics.FindProbe, error) {
	e.program, e.dialers = p, nil
	var err error
	if e.plan, err = driver.NewPlan(p, e.flags.seed, e.dialerOf); err != nil {
		return nil, err
	}
	if err := e.openFeeds(ctx); err != nil {
		return nil, err
	}
	e.choosePacers()
	c := metrics.NewCollector(metrics.CollectorConfig{Catalog: e.plan.Catalog, Warmup: warmupLength(p)})
	e.decide(ctx, log)
	r := driver.New(e.plan, c, zap.NewNop())
	err = r.Run(ctx, e.signal.Stop)
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	_ = r.Close(bounded) // what does not end in order is no matter of the search
	opened := r.SessionStats().Opened > 0
	if ferr := e.closeFeeds(); ferr != nil {
		return nil, errors.Join(err, ferr)
	}
	if err != nil && !opened { // no load at all can be made
		return nil, err
	}
	s := c.Summary(metrics.RunInfo{
		Thresholds: e.flags.find.thresholds, MeasuredEnd: r.MeasuredEnd(), SessionOpened: opened, StartedAt: time.Now(),
	})
	out := &metrics.FindProbe{
		Held: err == nil && s.Soundness.Verdict != metrics.Unsound, Sound: s.Soundness.Verdict,
		RatePS: s.Requests.RatePerS, Errors: s.Requests.Failed, Values: s.Thresholds,
	}
	for _, t := range s.Thresholds {
		out.Held = out.Held && t.OK
	}
	out.P50, out.P99 = c.LatencyQuantiles()
	return out, nil
}
