package metrics

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// maxErrorKinds bounds the distinct entries of the errors table.
	maxErrorKinds = 1000
	// maxErrorMessageBytes bounds one message, whoever set it.
	maxErrorMessageBytes = 200
	// otherMessages stands for what found no place in the table.
	otherMessages = "other messages"
)

type errorKey struct {
	outcome Outcome
	code    int32
	step    uint16 // NoStep: not of a step
	message string
}

type errorEntry struct {
	count       int64
	first, last time.Duration
}

// errorTable counts failures by kind. Its size is bounded: once it holds
// maxErrorKinds kinds, new ones are counted by outcome alone.
type errorTable struct {
	entries map[errorKey]*errorEntry
}

func (t *errorTable) add(s *Sample, step uint16) {
	key := errorKey{outcome: s.Outcome, code: s.Code, step: step}
	if s.Extra != nil {
		key.message = cut(s.Extra.Message)
	}
	e := t.entries[key]
	if e == nil && len(t.entries) >= maxErrorKinds {
		key = errorKey{outcome: s.Outcome, step: NoStep, message: otherMessages}
		e = t.entries[key]
	}
	if e == nil {
		if t.entries == nil {
			t.entries = map[errorKey]*errorEntry{}
		}
		key.message = strings.Clone(key.message) // it may be part of a large answer
		e = &errorEntry{first: s.End, last: s.End}
		t.entries[key] = e
	}
	e.count++
	e.first = min(e.first, s.End)
	e.last = max(e.last, s.End)
}

// cut shortens a message to maxErrorMessageBytes without splitting a rune.
func cut(message string) string {
	if len(message) <= maxErrorMessageBytes {
		return message
	}
	end := maxErrorMessageBytes
	for end > maxErrorMessageBytes-utf8.UTFMax && !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end]
}

// summaries lists the kinds, the most frequent first.
func (t *errorTable) summaries(cat *Catalog) []ErrorSummary {
	out := make([]ErrorSummary, 0, len(t.entries))
	for key, e := range t.entries {
		row := ErrorSummary{
			Outcome: key.outcome.String(), Code: key.code, Message: key.message, Count: e.count,
			FirstS: max(0, e.first.Seconds()), LastS: max(0, e.last.Seconds()), // dialling begins before the clock
		}
		if key.step != NoStep {
			row.Step = cat.Steps[key.step].ID
		}
		out = append(out, row)
	}
	slices.SortFunc(out, func(a, b ErrorSummary) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Outcome, b.Outcome),
			cmp.Compare(a.Code, b.Code), cmp.Compare(a.Message, b.Message), cmp.Compare(a.Step, b.Step),
			cmp.Compare(a.FirstS, b.FirstS))
	})
	return out
}
