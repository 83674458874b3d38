package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"

	"mcpbench/metrics"
)

// WriteJSON writes s as the one object of --json, indented and with a newline
// at its end. Lists and maps are never null, times are in UTC and cut to
// microseconds, and control characters of text that came from a server are
// escaped also where JSON allows them, since the object may go to a terminal.
func WriteJSON(w io.Writer, s *metrics.Summary) error {
	data, err := encodeSummary(s)
	if err != nil {
		return fmt.Errorf("encode summary: %w", err)
	}
	if _, err := w.Write(data); err != nil {
		return fmt.Errorf("write summary: %w", err)
	}
	return nil
}

// WriteObject writes v as one JSON object in the manner of WriteJSON.
func WriteObject(w io.Writer, v any) error {
	data, err := encodeJSON(v)
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}

func encodeSummary(s *metrics.Summary) ([]byte, error) { return encodeJSON(normalSummary(s)) }

func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // expressions with < and > stay readable
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return escapeJSON(b.Bytes()), nil
}

// escapeJSON replaces the control and direction characters that encoding/json
// leaves as they are. Outside strings JSON text has none of them but newlines.
func escapeJSON(data []byte) []byte {
	if !bytes.ContainsFunc(data, escapedInJSON) {
		return data
	}
	out := make([]byte, 0, len(data)+64)
	for len(data) > 0 {
		r, n := utf8.DecodeRune(data)
		if escapedInJSON(r) {
			out = fmt.Appendf(out, `\u%04x`, r)
		} else {
			out = append(out, data[:n]...)
		}
		data = data[n:]
	}
	return out
}

func escapedInJSON(r rune) bool { return r != '\n' && unsafeRune(r) }

// normalSummary returns a copy of s in the form of the contract.
func normalSummary(s *metrics.Summary) *metrics.Summary {
	c := *s
	if c.SchemaVersion == 0 {
		c.SchemaVersion = SchemaVersion
	}
	c.StartedAt = microseconds(c.StartedAt)
	c.Targets = list(c.Targets)
	c.Sessions.Outcomes = counts(c.Sessions.Outcomes)
	c.Requests.Outcomes = counts(c.Requests.Outcomes)
	c.Steps = normalSteps(c.Steps)
	c.Checks = list(c.Checks)
	c.Thresholds = list(c.Thresholds)
	c.Anomalies = counts(c.Anomalies)
	c.Errors = list(c.Errors)
	c.Load = list(c.Load)
	c.Soundness.Reasons, c.Soundness.Notes = list(c.Soundness.Reasons), list(c.Soundness.Notes)
	c.Servers = list(c.Servers)
	trials := make([]metrics.TrialSummary, len(c.Trials))
	for i, t := range c.Trials {
		t.StartedAt = microseconds(t.StartedAt)
		t.Requests.Outcomes = counts(t.Requests.Outcomes)
		t.Steps = normalSteps(t.Steps)
		t.Soundness.Reasons, t.Soundness.Notes = list(t.Soundness.Reasons), list(t.Soundness.Notes)
		trials[i] = t
	}
	c.Trials = trials
	return &c
}

func normalSteps(steps []metrics.StepSummary) []metrics.StepSummary {
	out := make([]metrics.StepSummary, len(steps))
	for i, s := range steps {
		s.Outcomes = counts(s.Outcomes)
		s.Codes = counts(s.Codes)
		s.Trend = list(s.Trend)
		out[i] = s
	}
	return out
}

// counts returns m, or an empty map in place of nil: a map of the contract
// prints as {} and never as null.
func counts(m map[string]int64) map[string]int64 {
	if m == nil {
		return map[string]int64{}
	}
	return m
}
