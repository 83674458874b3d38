package scenarios

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"mcpbench/internal/curve"
	"mcpbench/internal/nearest"
	"mcpbench/scenarios/internal/grammar"
	"mcpbench/scenarios/internal/syntax"
)

// shapes are the keys of arrivals that say how the rate changes.
var shapes = []string{"stages", "spike", "sine", "bursts", "steps", "replay"}

// arrivals compiles the rate of an open load over time.
func (c *compiler) arrivals(out *Group, g *grammar.Group) {
	a := g.Arrivals
	if a == nil {
		return
	}
	if a.Process != "" {
		out.Process = a.Process
	}
	out.SkipLate = a.OnLate == "skip"
	if a.Node.Kind != syntax.Map && a.Node.Kind != syntax.Null {
		return
	}
	var found []*syntax.Node
	for _, key := range shapes {
		if n := a.Node.Key(key); n != nil {
			found = append(found, n)
		}
	}
	if len(found) > 1 {
		c.fault(found[1], a.Path, "%s and %s are two ways for the rate to change; keep one", found[0].Text, found[1].Text)
		return
	}
	rate, at := a.Rate.PerSecond, a.Node.Key("rate")
	shape := ""
	if len(found) == 1 {
		shape = found[0].Text
	}
	if at == nil && shape != "stages" && shape != "replay" {
		if shape == "" {
			c.fault(g.Node.Key("arrivals"), a.Path, "arrivals wants a rate, e.g. rate: 200/s")
		} else {
			c.fault(found[0], a.Path, "%s wants a rate beside it, e.g. rate: 200/s", shape)
		}
		return
	}
	out.Changes = shape != "" && shape != "replay"
	out.Level, out.WarmLevel = c.shape(a, shape, rate)
	if shape == "replay" {
		if at != nil {
			c.fault(at, a.Path, "rate and replay are two ways to say how many arrivals; keep one")
		}
		out.Process = "replay"
		out.Times = c.replay(a.Replay)
		if p := a.Node.Key("process"); p != nil {
			c.fault(p, a.Path, "replay has times of its own; leave process out")
		}
	}
	if peak := out.Peak(); peak > grammar.MaxRate {
		c.fault(a.Node.Key(shapeOrRate(shape)), a.Path, "the rate reaches %.0f/s; at most %d/s can be released", peak, grammar.MaxRate)
	}
	if shape == "stages" && out.Level.Max() == 0 && len(a.Stages) > 0 {
		c.fault(found[0], a.Path+".stages", "there is never an arrival")
	}
}

func shapeOrRate(shape string) string {
	if shape == "" {
		return "rate"
	}
	return shape
}

// shape returns the rate over time, and the one of the warm-up.
func (c *compiler) shape(a *grammar.Arrivals, shape string, rate float64) (level curve.Curve, warm float64) {
	var err error
	warm = rate
	switch shape {
	case "stages":
		stages := make([]curve.Stage, 0, len(a.Stages))
		for _, s := range a.Stages {
			if s == nil || s.Node == nil || s.Node.Kind != syntax.Map {
				continue
			}
			stages = append(stages, curve.Stage{Level: s.Rate.PerSecond, HasLevel: s.Rate.Set, Over: s.Over.D, Hold: s.Hold.D})
		}
		level, err = curve.Stages(rate, stages)
		warm = firstLevel(rate, stages)
	case "spike":
		level, err = curve.Spike(rate, a.Spike.Rate.PerSecond, a.Spike.At.D, a.Spike.For.D, a.Spike.Every.D)
	case "sine":
		level, err = curve.Sine(rate, a.Sine.Amplitude.PerSecond, a.Sine.Period.D)
	case "bursts":
		level, err = curve.Pulse(rate, a.Bursts.On.D, a.Bursts.Off.D)
	case "steps":
		top := a.Steps.To.PerSecond
		if !a.Steps.To.Set {
			top = min(grammar.MaxRate, rate+a.Steps.By.PerSecond*(curve.MaxPieces-1))
		}
		level, err = curve.Staircase(rate, a.Steps.By.PerSecond, a.Steps.Every.D, top)
	case "replay":
		return curve.Constant(0), 0
	default:
		level = curve.Constant(rate)
	}
	if err != nil {
		c.fault(a.Node.Key(shape), syntax.Join(a.Path, shape), "%s", err)
	}
	return level, warm
}

// maxReplayed bounds the arrivals of a replay: they are held in memory.
const maxReplayed = 10_000_000

// replay reads the recorded times of arrivals: offsets, or points in time, which
// count from the first.
func (c *compiler) replay(r *grammar.Replay) []time.Duration {
	speed := 1.0
	if r.Speed.Set {
		speed = r.Speed.W
	}
	if speed <= 0 {
		c.fault(r.Node.Lookup("speed"), r.Path+".speed", "must be more than 0")
		return nil
	}
	times, err := c.recorded(r)
	if err != nil {
		c.fault(r.Node.Lookup("file"), r.Path+".file", "%s", err)
		return nil
	}
	for i := range times {
		times[i] = time.Duration(float64(times[i]) / speed)
	}
	return times
}

func (c *compiler) recorded(r *grammar.Replay) ([]time.Duration, error) {
	data, err := c.options.read(r.File)
	if err != nil {
		return nil, err
	}
	in, column, err := column(data, r.File, r.Column)
	if err != nil {
		return nil, err
	}
	var out []time.Duration
	var first time.Time
	for {
		row, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.File, err)
		}
		line, _ := in.FieldPos(column)
		text := strings.TrimSpace(row[column])
		v, err := grammar.ParseDuration(text)
		if err != nil {
			at, terr := time.Parse(time.RFC3339Nano, text)
			if terr != nil {
				return nil, fmt.Errorf("%s:%d: %q is neither an offset such as 1.25s nor a point in time such as 2026-12-01T10:00:00.5Z", r.File, line, text)
			}
			if first.IsZero() {
				first = at
			}
			v = at.Sub(first)
		}
		switch {
		case v < 0 || len(out) > 0 && v < out[len(out)-1]:
			return nil, fmt.Errorf("%s:%d: %s is before the arrival above it; sort the file by time", r.File, line, text)
		case len(out) == maxReplayed:
			return nil, fmt.Errorf("%s has more than %d arrivals", r.File, maxReplayed)
		}
		out = append(out, v)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s has no arrival", r.File)
	}
	return out, nil
}

// column opens a file of comma-separated values at one of its columns.
func column(data []byte, file, name string) (*csv.Reader, int, error) {
	r := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(data, []byte("\ufeff"))))
	r.ReuseRecord = true
	names, err := r.Read()
	if err != nil {
		return nil, 0, fmt.Errorf("%s: no line of names: %w", file, err)
	}
	names = slices.Clone(names)
	at := slices.Index(names, name)
	if name == "" && len(names) == 1 {
		at = 0
	}
	if at < 0 {
		return nil, 0, fmt.Errorf("%s has no column %q%s; it has: %s", file, name, nearest.DidYouMean(name, names), strings.Join(names, ", "))
	}
	return r, at, nil
}

// life compiles when sessions end.
func (c *compiler) life(g *grammar.Group) Life {
	l := g.SessionLife
	if l == nil || l.Node == nil || l.Node.Kind != syntax.Map {
		return Life{}
	}
	out := Life{Iterations: int64(l.Iterations), Churn: l.Churn.PerSecond}
	if l.Duration != nil {
		out.Duration = c.spread(*l.Duration, l.Path+".duration")
		if l.Duration.Zero {
			c.fault(l.Node.Lookup("duration"), l.Path+".duration", "must be more than 0")
		}
	}
	if s := l.Storm; s != nil && s.Node != nil && s.Node.Kind == syntax.Map {
		out.StormEvery, out.StormShare = c.limit(s.Place, "every", s.Every, 0), 1
		if s.Share != nil {
			out.StormShare = float64(*s.Share)
		}
		if out.StormShare == 0 {
			c.fault(s.Node.Lookup("share"), s.Path+".share", "must be more than 0")
		}
	}
	if e := l.End; e != nil && e.Node != nil && e.Node.Kind == syntax.Map {
		out.Ends = Ends{Delete: e.Delete.W, NoDelete: e.NoDelete.W, Drop: e.Drop.W}
		if out.Ends == (Ends{}) {
			c.fault(l.Node.Key("end"), l.Path+".end", "wants the weight of a way to end, e.g. {delete: 90, drop: 10}")
		}
	}
	return out
}

// defaultWarmupMax bounds a warm-up that ends by itself.
const (
	defaultWarmupMax    = 5 * time.Minute
	defaultStableWindow = 5 * time.Second
	defaultStableWithin = 0.1
)

// warmup compiles how the warm-up ends.
func (c *compiler) warmup(w *grammar.Warmup) {
	c.out.Warmup = w.D
	if w.Iterations == 0 && w.Stable == nil {
		return
	}
	goal := &WarmupGoal{Iterations: w.Iterations, Max: c.limit(w.Place, "max", w.Max, defaultWarmupMax)}
	if s := w.Stable; s != nil {
		goal.Window, goal.Within = orDefault(s.Window, defaultStableWindow), defaultStableWithin
		if s.Within != nil {
			goal.Within = float64(*s.Within)
		}
		if goal.Within == 0 {
			c.fault(s.Node.Lookup("within"), s.Path+".within", "must be more than 0")
		}
	}
	c.out.WarmupGoal = goal
}
