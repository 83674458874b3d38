package output

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"

	"mcpbench/metrics"
)

// ProgressMode is how a Progress shows itself.
type ProgressMode uint8

// Progress modes. The caller resolves auto: bars on a terminal, else lines.
const (
	ProgressNone ProgressMode = iota
	ProgressLine              // a plain line each ten seconds and at each change of phase
	ProgressBar
)

const (
	// lineEvery is the time between two lines of line mode.
	lineEvery = 10 * time.Second
	// pollEvery is how often the snapshot is looked at.
	pollEvery = 200 * time.Millisecond
)

// ProgressConfig configures a Progress. The zero value shows nothing.
type ProgressConfig struct {
	Mode ProgressMode
	// Out is where progress goes; writes that fail are left out. nil shows nothing.
	Out io.Writer
	// Snapshot returns the newest figures, or nil while there are none.
	Snapshot func() *metrics.Snapshot
	// Warmup and Measured are the planned lengths of the phases; Measured is 0
	// when only iterations limit the run.
	Warmup, Measured time.Duration
	// Iterations is the planned number of all iterations; 0 is no limit.
	Iterations int64
	// Stopped reports whether the load was ended early; nil: it never is.
	Stopped func() bool
}

// Progress shows how far a run is.
type Progress struct {
	config ProgressConfig
	bars   atomic.Pointer[mpb.Progress] // while Run shows bars
	view   atomic.Pointer[progressView] // what bars show
}

// NewProgress returns a Progress that shows nothing until Run is called.
func NewProgress(c ProgressConfig) *Progress {
	if c.Out == nil {
		c.Mode, c.Out = ProgressNone, io.Discard
	}
	return &Progress{config: c}
}

// Run shows progress until ctx is done, then the final state. It is called
// once, returns when nothing more will be written, and must be cancelled after
// the last snapshot was published.
func (p *Progress) Run(ctx context.Context) {
	switch p.config.Mode {
	case ProgressLine:
		p.runLines(ctx)
	case ProgressBar:
		p.runBar(ctx)
	case ProgressNone:
		<-ctx.Done()
	}
}

func (p *Progress) runLines(ctx context.Context) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	last, begun := time.Now(), phaseConnecting
	for {
		select {
		case <-ctx.Done():
			v := p.look()
			if v.phase != phaseConnecting {
				v.phase = phaseDone
				p.printLine(v)
			}
			return
		case now := <-tick.C:
			v := p.look()
			if v.phase == begun && now.Sub(last) < lineEvery {
				continue
			}
			last, begun = now, v.phase
			p.printLine(v)
		}
	}
}

// printLine writes one line. That stderr is closed is no reason to stop a run.
func (p *Progress) printLine(v progressView) {
	_, _ = io.WriteString(p.config.Out, v.line()+"\n")
}

// progressPhase is the part of the run as a person sees it.
type progressPhase uint8

const (
	phaseConnecting progressPhase = iota // the clock has not started
	phaseWarmup
	phaseMeasuring
	phaseFinishing // the plan is over, open requests end
	phaseDone
)

func (p progressPhase) String() string {
	return [...]string{"connecting", "warm-up", "measuring", "finishing", "done"}[p]
}

// progressView is one look at the run.
type progressView struct {
	phase    progressPhase
	snapshot metrics.Snapshot
	planned  time.Duration // 0: only iterations limit the run
	fraction float64       // of the plan, 0 to 1; 0 without a plan
	left     time.Duration
	leftOK   bool
}

// look reads the newest snapshot and holds it against the plan. With a limit
// of time and one of iterations the one that is nearer counts.
func (p *Progress) look() progressView {
	c := &p.config
	v := progressView{}
	if c.Measured > 0 {
		v.planned = c.Warmup + c.Measured
	}
	if c.Snapshot != nil {
		if s := c.Snapshot(); s != nil {
			v.snapshot = *s
		}
	}
	elapsed := v.snapshot.Elapsed
	if v.planned > 0 {
		v.fraction = min(float64(elapsed)/float64(v.planned), 1)
	}
	if c.Iterations > 0 {
		v.fraction = max(v.fraction, min(float64(v.snapshot.Iterations)/float64(c.Iterations), 1))
	}
	switch {
	case elapsed <= 0:
		return v
	case v.fraction == 1, c.Stopped != nil && c.Stopped():
		v.phase = phaseFinishing
	case elapsed < c.Warmup:
		v.phase = phaseWarmup
	default:
		v.phase = phaseMeasuring
	}
	if v.fraction > 0 {
		v.left, v.leftOK = time.Duration(float64(elapsed)*(1-v.fraction)/v.fraction), true
	}
	return v
}

// line is one line of line mode.
func (v *progressView) line() string {
	s := &v.snapshot
	if v.phase == phaseConnecting {
		return "connecting"
	}
	at := formatSpan(s.Elapsed.Round(time.Second).Seconds())
	if v.planned > 0 {
		at += " of " + formatSpan(v.planned.Seconds())
	}
	items := []string{v.phase.String(), at, v.rate(), plural(s.Requests, "request"), groupDigits(s.Failed) + " failed"}
	if s.P99 > 0 && v.phase != phaseDone {
		items = append(items, v.p99())
	}
	if s.Dropped > 0 {
		items = append(items, groupDigits(s.Dropped)+" dropped")
	}
	if v.phase != phaseDone {
		items = append(items, plural(int64(s.Sessions), "session"), fmt.Sprintf("%s in flight", groupDigits(int64(s.InFlight))))
	}
	if v.leftOK && v.left > 0 && v.phase != phaseDone {
		items = append(items, v.remaining())
	}
	return strings.Join(items, dot)
}

func (v *progressView) rate() string {
	if v.phase == phaseDone && v.snapshot.Elapsed > 0 { // the last second is not a whole one
		return perSecond(float64(v.snapshot.Requests) / v.snapshot.Elapsed.Seconds())
	}
	return perSecond(v.snapshot.RatePerS)
}

func (v *progressView) p99() string {
	return "p99 " + formatMS(float64(v.snapshot.P99)/float64(time.Millisecond))
}

func (v *progressView) remaining() string {
	return formatSpan((v.left + time.Second/2).Truncate(time.Second).Seconds()) + " left"
}
