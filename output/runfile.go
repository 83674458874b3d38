package output

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"time"

	"mcpbench/metrics"
)

// SchemaVersion is that of the results folder: of run.json, summary.json and
// the Parquet tables.
const SchemaVersion = 1

// VerdictRunning is the verdict of run.json until the run has ended.
const VerdictRunning = "running"

// RunFile is run.json: what was run, where, and what came of it. The zero
// values of SchemaVersion and Verdict are written as 1 and running.
type RunFile struct {
	SchemaVersion int        `json:"schema_version"`
	RunID         string     `json:"run_id"`
	Mcpbench      string     `json:"mcpbench"` // our version
	Go            string     `json:"go"`
	StartedAt     time.Time  `json:"started_at"`
	EndedAt       *time.Time `json:"ended_at"` // null while running, and after a kill
	Host          Host       `json:"host"`
	// Command is the command line; the caller has masked its secrets.
	Command    []string                  `json:"command"`
	Scenario   ScenarioRef               `json:"scenario"`
	Seed       uint64                    `json:"seed"`
	Targets    []metrics.TargetSummary   `json:"targets"`
	Thresholds []metrics.ThresholdResult `json:"thresholds"` // value is null until the end
	Verdict    string                    `json:"verdict"`
	ExitCode   *int                      `json:"exit_code"` // null while running
	// Soundness is as in summary.json; nil while running.
	Soundness *metrics.Soundness `json:"soundness,omitempty"`
	Clock     Clock              `json:"clock"`
	Tags      map[string]string  `json:"tags,omitempty"`
	// Recovery says what a recovery could not read; nil when there was none, or
	// nothing was lost.
	Recovery *Losses `json:"recovery,omitempty"`
}

// Losses is what was recorded and could not be read any more.
type Losses struct {
	// Records is the number of records lost, as far as that can be told, and Bytes
	// their size in the journal.
	Records int64 `json:"lost_records"`
	Bytes   int64 `json:"lost_bytes"`
	// Places are the first hundred.
	Places []Loss `json:"places"`
}

// Loss is one place at which something was lost.
type Loss struct {
	File    string `json:"file"` // in the results folder
	Offset  int64  `json:"offset"`
	Bytes   int64  `json:"bytes"`
	Records int64  `json:"records"`
	Reason  string `json:"reason"`
}

// Host describes the machine that makes the load.
type Host struct {
	OS         string `json:"os"`
	Arch       string `json:"arch"`
	CPUs       int    `json:"cpus"`
	Hostname   string `json:"hostname"`
	GOMAXPROCS int    `json:"gomaxprocs"`
}

// ThisHost describes the machine and the limits of this process.
func ThisHost() Host {
	name, err := os.Hostname()
	if err != nil {
		name = "" // a machine without a name is no reason to fail a run
	}
	return Host{
		OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(),
		Hostname: name, GOMAXPROCS: runtime.GOMAXPROCS(0),
	}
}

// ScenarioRef names the scenario and holds the SHA-256 of its text, in hex.
type ScenarioRef struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

// Clock ties the offsets of all rows to wall time.
type Clock struct {
	T0 *time.Time `json:"t0"` // wall time of offset 0; null before the clock started
}

// MarshalCompact returns the file on one line, as the metadata of the Parquet
// files carry it.
func (r *RunFile) MarshalCompact() ([]byte, error) {
	data, err := json.Marshal(r.normal())
	if err != nil {
		return nil, fmt.Errorf("encode run metadata: %w", err)
	}
	return data, nil
}

// normal returns a copy in the form of the contract: lists are never null,
// times are in UTC and cut to microseconds.
func (r *RunFile) normal() *RunFile {
	c := *r
	if c.SchemaVersion == 0 {
		c.SchemaVersion = SchemaVersion
	}
	if c.Verdict == "" {
		c.Verdict = VerdictRunning
	}
	if c.Go == "" {
		c.Go = runtime.Version()
	}
	c.StartedAt = microseconds(c.StartedAt)
	c.EndedAt = microsecondsOf(c.EndedAt)
	c.Clock.T0 = microsecondsOf(c.Clock.T0)
	c.Command = list(c.Command)
	c.Targets = list(c.Targets)
	c.Thresholds = list(c.Thresholds)
	return &c
}

func microseconds(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

func microsecondsOf(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := microseconds(*t)
	return &u
}

// list returns s, or an empty slice in place of nil: a list of the contract
// prints as [] and never as null.
func list[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}
