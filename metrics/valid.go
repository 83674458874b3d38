package metrics

import (
	"errors"
	"fmt"
	"time"
)

// Valid reports every law that the sample breaks, joined into one error; nil
// when it keeps all. It is for tests: nothing on the measured path calls it.
func (s *Sample) Valid() error {
	errs := []error{s.validOrder(), s.validOutcome()}
	if s.Phase > PhaseSetup {
		errs = append(errs, fmt.Errorf("phase %d does not exist", s.Phase))
	}
	if s.Progress > s.Notifications {
		errs = append(errs, fmt.Errorf("%d progress notifications among %d notifications", s.Progress, s.Notifications))
	}
	if s.HasConnect && s.Extra == nil {
		errs = append(errs, errors.New("HasConnect without an Extra"))
	}
	if s.Kind == KindSession && (s.Extra == nil || s.Extra.Session == nil) {
		errs = append(errs, errors.New("a session sample without Extra.Session"))
	}
	return errors.Join(errs...)
}

// validOrder checks Intended ≤ Release ≤ Start ≤ FirstByte ≤ End over those present.
func (s *Sample) validOrder() error {
	if (s.Intended == NoOffset) != (s.Release == NoOffset) {
		return fmt.Errorf("intended %v and release %v: one without the other", s.Intended, s.Release)
	}
	type instant struct {
		name string
		at   time.Duration
	}
	order := make([]instant, 0, 5)
	if s.Intended != NoOffset {
		order = append(order, instant{"intended", s.Intended}, instant{"release", s.Release})
	}
	order = append(order, instant{"start", s.Start})
	if s.FirstByte != 0 && s.FirstByte != NoOffset {
		order = append(order, instant{"first byte", s.FirstByte})
	}
	order = append(order, instant{"end", s.End})
	for i := 1; i < len(order); i++ {
		if a, b := order[i-1], order[i]; a.at > b.at {
			return fmt.Errorf("%s %v is after %s %v", a.name, a.at, b.name, b.at)
		}
	}
	return nil
}

func (s *Sample) validOutcome() error {
	switch s.Kind {
	case KindIteration:
		return s.validIteration()
	case KindStep, KindConnect, KindSession:
		if int(s.Outcome) >= NumOutcomes {
			return fmt.Errorf("outcome %d does not exist", s.Outcome)
		}
		if s.Outcome == Skipped || s.Outcome == Dropped {
			return fmt.Errorf("outcome %v makes no such sample", s.Outcome)
		}
		if s.ChecksFailed != 0 && (s.Kind != KindStep || !s.Outcome.CountsChecks()) {
			return fmt.Errorf("failed checks with outcome %v", s.Outcome)
		}
		return nil
	}
	return fmt.Errorf("kind %d does not exist", s.Kind)
}

func (s *Sample) validIteration() error {
	if s.IterOutcome() >= NumIterationOutcomes {
		return fmt.Errorf("iteration outcome %d does not exist", s.Outcome)
	}
	switch s.IterOutcome() {
	case IterDropped:
		if s.Start != s.End {
			return fmt.Errorf("dropped, but start %v and end %v differ", s.Start, s.End)
		}
	case IterCompleted:
		if s.Step != NoStep {
			return fmt.Errorf("completed, but step %d is named as failed", s.Step)
		}
	case IterFailed, IterScriptError:
		if s.Step == NoStep {
			return fmt.Errorf("%v, but no step is named as failed", s.IterOutcome())
		}
	case IterInterrupted, IterAgentLost:
	}
	return nil
}
