package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	"go.uber.org/zap"

	"mcpbench/driver"
	"mcpbench/internal/self"
	"mcpbench/internal/target"
	"mcpbench/metrics"
	"mcpbench/output"
	"mcpbench/scenarios"
)

// execution is one run, from a compiled program to its exit code.
type execution struct {
	streams
	flags    *runFlags
	scenario *scenarios.Scenario
	program  *scenarios.Program
	command  []string // our own command line, masked
	failed   error    // why the run cannot even begin

	runID     string
	startedAt time.Time
	plan      *driver.Plan
	embedded  *embedded
	frames    *frameLog           // nil: none
	logs      []*output.ServerLog // of stdio servers, by their index; nil for others
	folder    *output.Folder
	parquet   *output.Parquet
	collector *metrics.Collector
	runner    *driver.Runner
	file      *output.RunFile
	signal    *signals
	dialers   []*dialer            // of the groups
	shared    []shared             // of the servers
	asked     int64                // requests that found out what the demo target speaks
	findings  *metrics.FindSummary // of a search; nil: there was none
	procsSet  bool                 // chooseProcs has chosen
	throttled float64              // share of the seconds with cgroup throttling
	own       *self.Watch
	limits    self.Limits
	floors    []metrics.Calibration // of --calibrate
}

// closeTime bounds the orderly end of all sessions after the results are safe.
const closeTime = 15 * time.Second

// run makes the load and everything that comes of it. The error has the exit code.
func (e *execution) run(ctx context.Context) error {
	e.runID, e.startedAt = output.NewRunID(), time.Now()
	e.own, e.limits = self.NewWatch(self.Config{Root: "/", Held: e.held}), self.ReadLimits("/")
	abandoned := make(chan int, 1)
	ended := make(chan error, 1)
	screen := e.newScreen()
	ctx, e.signal = watchSignals(ctx, screen.notice, func(code int) { abandoned <- code })
	go func() {
		err := e.measure(ctx, screen)
		e.signal.Close()
		ended <- err
	}()
	select {
	case err := <-ended:
		return err
	case code := <-abandoned:
		return &exitError{code: code, err: errors.New("given up: the results are not complete")}
	}
}

// measure prepares, runs and reports. Whatever goes wrong after the usage was
// checked ends in a summary that says so.
func (e *execution) measure(ctx context.Context, screen *screen) error {
	err := e.prepare(ctx, screen.log)
	if err == nil {
		screen.start()
		err = e.runner.Run(ctx, e.signal.Stop)
	} else {
		err = errors.Join(err, e.recordNothing())
	}
	closeErr := e.closeSessions(ctx)
	screen.stop()
	if closeErr != nil {
		screen.log.Warn("sessions not closed in order", zap.Error(closeErr))
	}
	var counted *target.Stats
	if e.embedded != nil {
		stats, terr := e.embedded.close()
		if terr != nil {
			screen.log.Warn("demo target", zap.Error(terr))
		} else {
			counted = &stats
		}
	}
	e.throttled = screen.throttle.share()
	return e.report(errors.Join(err, e.closeLogs(), e.closeFeeds()), counted)
}

// recordNothing ends a collector that never got a run, so that there is a
// summary of nothing.
func (e *execution) recordNothing() error {
	if e.plan == nil {
		e.plan = &driver.Plan{Catalog: &metrics.Catalog{Protocols: []string{""}}}
	}
	e.collector = metrics.NewCollector(metrics.CollectorConfig{Catalog: e.plan.Catalog, Warmup: e.program.Warmup})
	e.collector.Close()
	return e.collector.Run()
}

// prepare makes everything that the load needs, results first: a path that
// cannot be written is known before anything is sent.
func (e *execution) prepare(ctx context.Context, log *zap.Logger) error {
	if e.failed != nil {
		return e.failed
	}
	p := e.program
	folder, err := output.Create(e.outDir(), e.runID)
	if err != nil {
		return err
	}
	e.folder = folder
	if e.embedded, err = startEmbedded(ctx, p); err != nil {
		return err
	}
	e.share()
	if err := e.find(ctx, log); err != nil {
		return err
	}
	p = e.program
	e.plan, err = driver.NewPlan(p, e.flags.seed, e.dialerOf)
	if err != nil {
		return err
	}
	if err := e.openFeeds(ctx); err != nil {
		return err
	}
	e.watch()
	if err := e.frames.start(e.scenario.Masker()); err != nil {
		return err
	}
	e.choosePacers()
	e.file = e.newRunFile()
	// The journal comes first: a folder with run.json and without a journal has lost it.
	e.parquet, err = output.NewParquet(output.ParquetConfig{
		Folder: folder, RunID: e.runID, Catalog: e.plan.Catalog, T0: e.startedAt, Run: e.file, Warmup: p.Warmup,
	})
	if err != nil {
		return err
	}
	if err := errors.Join(folder.WriteRun(e.file), folder.WriteScenario(e.scenario.Resolved())); err != nil {
		return errors.Join(err, e.parquet.Close())
	}
	e.plan.OnClock = func(t0 time.Time) {
		e.frames.startClock(t0)
		e.parquet.SetT0(t0)
		e.own.Begin(t0.Add(p.Warmup))
		e.file.Clock.T0 = &t0
	}
	e.collector = metrics.NewCollector(metrics.CollectorConfig{
		Catalog: e.plan.Catalog, Sinks: []metrics.Sink{loadEnd{e.own}, e.parquet}, Warmup: warmupLength(p),
		Thresholds: p.Thresholds,
		Gauges:     func(group int) metrics.Gauges { return e.runner.Gauges(group) },
		Tallies:    func() metrics.Tallies { return e.runner.Tallies() },
	})
	if err := e.calibrate(ctx, log); err != nil {
		return errors.Join(err, e.parquet.Close())
	}
	e.decide(ctx, log)
	e.runner = driver.New(e.plan, e.collector, log)
	return nil
}

// warmupLength is that of the warm-up, as far as it is known beforehand.
func warmupLength(p *scenarios.Program) time.Duration {
	if p.WarmupGoal != nil {
		return metrics.Endless
	}
	return p.Warmup
}

// choosePacers gives each open group its pacer, and the program its processors.
func (e *execution) choosePacers() {
	precise := 0
	for i := range e.plan.Groups {
		g := &e.plan.Groups[i]
		if !g.Open {
			continue
		}
		g.Pacer = e.flags.pacer
		if g.Pacer == "auto" {
			g.Pacer = driver.PacerFor(g.Peak())
		}
		e.plan.Catalog.Groups[i].Pacer = g.Pacer
		if g.Pacer == driver.PacerPrecise {
			precise++
		}
	}
	e.chooseProcs(precise)
}

// outDir is where run folders go: the flag, the scenario, the default.
func (e *execution) outDir() string {
	if e.program.OutputDir == "" {
		return e.flags.out
	}
	return e.program.OutputDir
}

func (e *execution) newRunFile() *output.RunFile {
	p, text := e.program, e.scenario.Resolved()
	sum := sha256.Sum256(text)
	f := &output.RunFile{
		RunID: e.runID, Mcpbench: version, Go: runtime.Version(), StartedAt: e.startedAt.UTC(),
		Host: output.ThisHost(), Command: e.command,
		Scenario: output.ScenarioRef{Name: e.program.Name, SHA256: hex.EncodeToString(sum[:])},
		Seed:     e.flags.seed, Tags: e.program.Tags,
	}
	for _, t := range p.Thresholds { // for whoever has to judge the run after a kill
		f.Thresholds = append(f.Thresholds, metrics.ThresholdResult{Expr: t.Expr})
	}
	return f
}

// openFeeds opens the sources of rows.
func (e *execution) openFeeds(ctx context.Context) error {
	for i := range e.plan.Groups {
		g := &e.plan.Groups[i]
		g.AllowWrites = e.flags.writes
		var err error
		if g.Feeds, err = e.program.OpenFeeds(ctx, i, e.flags.seed, false); err != nil {
			return err
		}
		if g.SessionFeeds, err = e.program.OpenFeeds(ctx, i, e.flags.seed, true); err != nil {
			return err
		}
		e.dialers[i].feeds = g.SessionFeeds
	}
	return nil
}

// closeFeeds releases them. No iteration runs any more.
func (e *execution) closeFeeds() error {
	var errs []error
	if e.plan != nil {
		for i := range e.plan.Groups {
			errs = append(errs, e.plan.Groups[i].Feeds.Close(), e.plan.Groups[i].SessionFeeds.Close())
		}
	}
	return errors.Join(errs...)
}

// closeSessions ends the sessions within a bound. After a second signal they
// are cut at once.
func (e *execution) closeSessions(ctx context.Context) error {
	if e.runner == nil {
		return nil
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	return e.runner.Close(bounded)
}

// report writes and prints what came of the run.
func (e *execution) report(err error, counted *target.Stats) error {
	s := e.summary(err)
	err = errors.Join(err, e.writeResults(s))
	if err != nil && s.ExitCode != metrics.ExitError {
		// A result that cannot be written is a failed run. What of it can be
		// written should say so; that it may fail again is known already.
		s = e.summary(err)
		_ = e.writeResults(s)
	}
	var perr error
	if e.flags.json {
		perr = output.WriteJSON(e.out, s)
	} else {
		perr = output.RenderText(e.out, s, e.textOptions(s, counted))
	}
	switch {
	case perr != nil:
		return failure("print the summary: %w", perr)
	case err != nil && s.ExitCode == metrics.ExitError && (e.flags.json || !isTerminal(e.out)):
		// On a terminal the summary has said it already.
		return &exitError{code: s.ExitCode, err: err}
	case s.ExitCode != 0:
		return &exitError{code: s.ExitCode}
	}
	return nil
}

func (e *execution) summary(err error) *metrics.Summary {
	info := metrics.RunInfo{
		RunID: e.runID, Scenario: e.program.Name, StartedAt: e.startedAt, Seed: e.flags.seed, Tags: e.program.Tags,
		Thresholds: e.program.Thresholds, Err: err, Signal: e.signal.Signal(),
		Own: e.ownUse(), Calibration: e.floors, ThrottledShare: e.throttled,
	}
	if e.folder != nil {
		info.ResultsDir = e.folder.Path()
	}
	if e.runner != nil {
		stats := e.runner.SessionStats()
		info.SessionOpened = stats.Opened > 0
		info.Closed, info.Reopened = stats.Closed, stats.Reopened
		info.Anomalies = e.runner.Anomalies()
		info.ServerRequests = e.runner.ServerRequests()
		info.MeasuredEnd = e.runner.MeasuredEnd()
	}
	s := e.collector.Summary(info)
	s.Find = e.findings
	return s
}

// writeResults writes the files that are known only at the end.
func (e *execution) writeResults(s *metrics.Summary) error {
	if e.folder == nil || e.file == nil {
		return nil
	}
	now := time.Now().UTC()
	e.file.EndedAt = &now
	e.file.Targets, e.file.Thresholds = s.Targets, s.Thresholds
	e.file.Verdict, e.file.ExitCode, e.file.Soundness = s.Verdict, &s.ExitCode, &s.Soundness
	return errors.Join(
		output.WriteRuns(output.ParquetConfig{Folder: e.folder, RunID: e.runID, Catalog: e.plan.Catalog, Run: e.file}, s),
		e.folder.WriteSummary(s), e.folder.WriteRun(e.file),
	)
}

func (e *execution) textOptions(s *metrics.Summary, counted *target.Stats) output.TextOptions {
	o := output.TextOptions{
		Color: output.UseColor(isTerminal(e.out), e.flags.noColor, e.getenv), Width: terminalWidth(e.out),
	}
	if e.folder != nil {
		if n, err := e.folder.TableBytes("requests"); err == nil {
			o.Notes = append(o.Notes, "requests "+output.FormatBytes(n))
		}
		if s.ExitCode != metrics.ExitError {
			o.Notes = append(o.Notes, "summary.json")
		}
	}
	if counted != nil {
		// What went to other servers cannot be told apart in our count.
		onlyDemo := !slices.ContainsFunc(e.program.Groups, func(g scenarios.Group) bool { return !e.program.Servers[g.Server].Embedded })
		if onlyDemo && e.program.RowIsRequest() && e.findings == nil {
			o.Hints = append(o.Hints, targetHint(*counted, e.collector.Snapshot(), e.openings(s.Sessions.Opened)+e.asked+e.listed()))
		}
		if s.ExitCode == 0 && e.scenario.Name() == "quickstart" {
			o.Hints = append(o.Hints,
				"next: your own server, over stdio or HTTP:",
				"  mcpbench discover -- ./my-server --stdio",
				"  mcpbench run --url http://127.0.0.1:8080/mcp -t TOOL -a '{…}' -c 20 -d 10s")
		}
	}
	return o
}

// targetHint compares the demo target's own count with ours: every request,
// those of the warm-up included, but not the openings: one request for each
// session, and those of the probe.
func targetHint(t target.Stats, snap *metrics.Snapshot, openings int64) string {
	received := t.Requests.Received - openings
	equal := "equal"
	if received != snap.Requests {
		equal = "not equal"
	}
	return fmt.Sprintf("the target counted %d requests, mcpbench %d, warm-up included: %s", received, snap.Requests, equal)
}

// logTo returns the program's logger on w.
func (f *runFlags) logTo(w io.Writer) *zap.Logger {
	return newLogger(w, f.logFormat, f.verbose, f.quiet)
}
