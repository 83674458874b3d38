package output

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// barParts is the resolution of the bar.
const barParts = 1000

// runBar shows one bar. The container does not get ctx: it would then drop the
// last update, and the bar would not end as the run did.
func (p *Progress) runBar(ctx context.Context) {
	p.refresh()
	bars := mpb.New(mpb.WithOutput(p.config.Out), mpb.WithAutoRefresh(), mpb.WithRefreshRate(pollEvery))
	// A total of 0 keeps a full bar alive until the run has ended.
	bar := bars.New(0, mpb.BarStyle().Lbound(" ").Filler("█").Tip("█").Padding("░").Rbound(" "),
		mpb.PrependDecorators(p.decorator(func(v *progressView) string { return fmt.Sprintf("%-10s", v.phase) })),
		mpb.AppendDecorators(p.decorator((*progressView).figures)),
	)
	bar.SetTotal(barParts, false)
	p.bars.Store(bars)
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for running := true; running; {
		select {
		case <-ctx.Done():
			running = false
		case <-tick.C:
		}
		bar.SetCurrent(p.refresh())
	}
	v := p.look()
	if v.phase != phaseConnecting {
		v.phase = phaseDone
	}
	p.view.Store(&v)
	if v.fraction == 1 {
		bar.SetTotal(barParts, true)
	} else {
		bar.Abort(false)
	}
	bars.Wait()
	p.bars.Store(nil)
}

// refresh takes a new look and returns how far the bar is.
func (p *Progress) refresh() int64 {
	v := p.look()
	p.view.Store(&v)
	return int64(v.fraction * barParts)
}

// decorator shows a part of the newest view.
func (p *Progress) decorator(show func(*progressView) string) decor.Decorator {
	return decor.Any(func(decor.Statistics) string { return show(p.view.Load()) })
}

// figures stand to the right of the bar.
func (v *progressView) figures() string {
	s := &v.snapshot
	if v.phase == phaseConnecting {
		return ""
	}
	out := fmt.Sprintf("%3.0f%%%s%s%s%s failed", 100*v.fraction, dot, v.rate(), dot, groupDigits(s.Failed))
	if s.P99 > 0 {
		out += dot + v.p99()
	}
	if v.leftOK && v.phase != phaseDone && v.phase != phaseFinishing {
		out += dot + v.remaining()
	}
	return out
}

// LogWriter returns a writer for log lines, which are put above the bar while
// there is one. Each Write must hold whole lines. Control characters but
// newline, tab and colours are escaped: log lines may quote a server. It is
// safe for concurrent use as far as ProgressConfig.Out is, and before and
// after Run too.
func (p *Progress) LogWriter() io.Writer { return logWriter{p} }

type logWriter struct{ p *Progress }

func (w logWriter) Write(b []byte) (int, error) {
	line := escapeLog(b)
	if bars := w.p.bars.Load(); bars != nil {
		// A terminal echoes ^C where the bar's line begins.
		if _, err := bars.Write(append([]byte("\r\x1b[K"), line...)); err == nil {
			return len(b), nil
		}
		// The bars ended in between; the line must not be lost.
	}
	if _, err := w.p.config.Out.Write(line); err != nil {
		return 0, err
	}
	return len(b), nil
}
