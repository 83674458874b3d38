package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"mcpbench/driver"
	"mcpbench/internal/nulltarget"
	"mcpbench/mcp"
	"mcpbench/metrics"
	"mcpbench/scenarios"
)

const (
	// calibrationWarmup and calibrationTime are the length of one measurement.
	calibrationWarmup = 100 * time.Millisecond
	calibrationTime   = 900 * time.Millisecond
	// calibrationSessions is from how many on the ceiling does not rise any more.
	calibrationSessions = 64
)

// calibration measures the floor of this machine for one kind of transport.
type calibration struct {
	kind   string // http or stdio
	engine mcp.Engine
	target *nulltarget.Target
	stop   <-chan struct{} // closed when the user wants to stop
}

// calibrate measures the floor for each kind of transport in use, before the load
// and with the same engine, pacer and processors. None of it is in any table.
func (e *execution) calibrate(ctx context.Context, log *zap.Logger) error {
	if !e.flags.calibrate {
		return nil
	}
	target, err := nulltarget.Start(ctx)
	if err != nil {
		return fmt.Errorf("calibrate: %w", err)
	}
	for _, kind := range []string{"http", "stdio"} {
		c := calibration{kind: kind, engine: mcp.Engine(e.flags.engine), target: target, stop: e.signal.Stop}
		k, err := c.all(ctx, e.program, e.plan)
		if err != nil {
			return errors.Join(fmt.Errorf("calibrate %s: %w", kind, err), target.Close())
		}
		if k == nil {
			continue
		}
		e.floors = append(e.floors, *k)
		fields := []zap.Field{
			zap.String("transport", kind), zap.Int("floor_us", int(k.FloorUS)),
			zap.Int("ceiling_per_s", int(k.CeilingPS)), zap.Int("sessions", k.Sessions),
		}
		if k.Lateness99 != nil {
			fields = append(fields, zap.Float64("rate_per_s", k.RatePerS), zap.Float64("lateness_p99_ms", *k.Lateness99))
		}
		log.Info("calibrated against a target that does nothing", fields...)
	}
	if err := target.Close(); err != nil {
		return fmt.Errorf("calibrate: %w", err)
	}
	return nil
}

// wanted is what the groups of one kind of transport want together.
type wanted struct {
	sessions      int
	rate, planned float64 // of open groups: iterations and requests a second
	pacer         string
}

func (c *calibration) wanted(p *scenarios.Program, plan *driver.Plan) wanted {
	var w wanted
	for i := range plan.Groups {
		g := &plan.Groups[i]
		if (p.Servers[g.Server].Transport == "stdio") != (c.kind == "stdio") {
			continue
		}
		w.sessions += g.Sessions
		if !g.Open {
			continue
		}
		w.rate += g.Peak()
		w.planned += g.Peak() * float64(requestsOf(g.Do))
		if w.pacer != driver.PacerPrecise {
			w.pacer = g.Pacer
		}
	}
	return w
}

// requestsOf is how many requests one iteration makes for certain, at least one.
func requestsOf(actions []*scenarios.Action) int {
	n := 0
	for _, a := range actions {
		if a.Kind == scenarios.ActStep && a.Step.Kind == scenarios.StepRequest && !a.Conditional() {
			n++
		}
	}
	return max(n, 1)
}

// all makes the measurements; nil when no group needs them or the user stopped.
func (c *calibration) all(ctx context.Context, p *scenarios.Program, plan *driver.Plan) (*metrics.Calibration, error) {
	w := c.wanted(p, plan)
	if w.sessions == 0 {
		return nil, nil //nolint:nilnil // nothing to measure is no error
	}
	k := &metrics.Calibration{Transport: c.kind, Sessions: min(w.sessions, calibrationSessions), RatePerS: w.rate, PlannedPerS: w.planned}
	one, err := c.measure(ctx, scenarios.Overrides{Sessions: 1}, "")
	if err != nil {
		return nil, err
	}
	many, err := c.measure(ctx, scenarios.Overrides{Sessions: k.Sessions}, "")
	if err != nil {
		return nil, err
	}
	var paced *metrics.Summary
	if w.rate > 0 {
		paced, err = c.measure(ctx, scenarios.Overrides{Sessions: k.Sessions, Rate: fmt.Sprintf("%.6f/s", w.rate)}, w.pacer)
		if err != nil {
			return nil, err
		}
	}
	select {
	case <-c.stop:
		return nil, nil //nolint:nilnil // cut short, there is nothing to tell
	default:
	}
	if one.Steps[0].Service == nil {
		return nil, fmt.Errorf("no request was answered: %v", one.Errors)
	}
	k.FloorUS, k.CeilingPS = one.Steps[0].Service.P50*1000, many.Requests.RatePerS
	if paced != nil && paced.Soundness.Lateness != nil {
		k.Lateness99 = &paced.Soundness.Lateness.P99
	}
	return k, nil
}

// measure runs one load against the null target, by all that a run goes through
// but the files.
func (c *calibration) measure(ctx context.Context, o scenarios.Overrides, pacer string) (*metrics.Summary, error) {
	q := scenarios.QuickConfig{Tool: "null", Args: []byte("{}")}
	if c.kind == "stdio" {
		q.Command = []string{"null"} // which is never started: see dial
	} else {
		q.URL = c.target.URL
	}
	sc, err := scenarios.Quick(q)
	if err != nil {
		return nil, err
	}
	warmup, grace := calibrationWarmup, calibrationWarmup
	o.Duration, o.Warmup, o.Grace, o.Protocol = calibrationTime, &warmup, &grace, string(mcp.V20251125)
	if err := sc.Override(o); err != nil {
		return nil, err
	}
	program, err := sc.Compile()
	if err != nil {
		return nil, err
	}
	plan, err := driver.NewPlan(program, 1, func(int) driver.Dial { return c.dial })
	if err != nil {
		return nil, err
	}
	plan.Groups[0].Pacer = pacer
	collector := metrics.NewCollector(metrics.CollectorConfig{Catalog: plan.Catalog, Warmup: warmup})
	runner := driver.New(plan, collector, zap.NewNop())
	err = runner.Run(ctx, c.stop)
	if err = errors.Join(err, runner.Close(ctx)); err != nil {
		return nil, err
	}
	return collector.Summary(metrics.RunInfo{MeasuredEnd: runner.MeasuredEnd()}), nil
}

// dial implements driver.Dial.
func (c *calibration) dial(ctx context.Context, _ int, o mcp.Options) (driver.Session, error) {
	o.Version, o.Client = mcp.V20251125, mcp.Implementation{Name: "mcpbench", Version: version}
	var transport mcp.Transport = &mcp.Streamable{URL: c.target.URL, Engine: c.engine}
	if c.kind == "stdio" {
		transport = nullPipe{c.target}
	}
	session, err := mcp.Connect(ctx, transport, o)
	if err != nil {
		return nil, err // not a nil *mcp.Session in the interface
	}
	return session, nil
}

// nullPipe is stdio without a process.
type nullPipe struct{ target *nulltarget.Target }

// Kind implements mcp.Transport.
func (nullPipe) Kind() string { return "stdio" }

// Dial implements mcp.Transport.
func (p nullPipe) Dial(_ context.Context, o mcp.Options) (mcp.Conn, error) {
	r, w, err := p.target.Pipe()
	if err != nil {
		return nil, err
	}
	return mcp.NewPipe(r, w, o), nil
}
