package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"mcpbench/output"
)

// frameColumns of the requests are also in the frames.
type frameColumns struct {
	Session  int64 `parquet:"session"`
	Start    int64 `parquet:"start_offset_ns"`
	Service  int64 `parquet:"service_ns"`
	Sent     int32 `parquet:"request_bytes"`
	Received int32 `parquet:"response_bytes"`
}

// moment is what a frame with an id and a row have in common.
type moment struct {
	session, at int64
	bytes       int32
}

// loggedFrames are the frames of a log that have an id.
type loggedFrames struct {
	out, in map[moment]int
	probe   []string // what was sent before the load, by method
	clock   int64
}

// framesOf runs with a log of frames and returns it with the rows.
func framesOf(t *testing.T, args ...string) (*loggedFrames, []frameColumns) {
	t.Helper()
	dir := t.TempDir()
	log := filepath.Join(dir, "frames.jsonl")
	var out, errs bytes.Buffer
	code := run(t.Context(), append([]string{"run", "-c", "3", "-n", "30", "-q", "--json", "-o", dir, "--frames", log}, args...),
		streams{in: &bytes.Buffer{}, out: &out, err: &errs, env: func(string) (string, bool) { return "", false }})
	if code != 0 {
		t.Fatalf("exit %d: %s", code, &errs)
	}
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	got := &loggedFrames{out: map[moment]int{}, in: map[moment]int{}}
	for line := range bytes.Lines(data) {
		got.read(t, line)
	}
	parts, err := filepath.Glob(filepath.Join(dir, "*", "requests", "agent=local", "*.parquet"))
	if err != nil || len(parts) != 1 {
		t.Fatalf("%v, %v", parts, err)
	}
	rows, err := parquet.ReadFile[frameColumns](parts[0])
	if err != nil || len(rows) != 30 || got.clock == 0 {
		t.Fatalf("%d rows, clock at %d, %v", len(rows), got.clock, err)
	}
	return got, rows
}

func (l *loggedFrames) read(t *testing.T, line []byte) {
	t.Helper()
	var f struct {
		output.Frame
		Clock int64 `json:"clock_start_ns"`
	}
	if err := json.Unmarshal(line, &f); err != nil {
		t.Fatal(err)
	}
	m := moment{f.Session, f.OffsetNS, int32(f.Bytes)}
	switch {
	case f.Clock > 0:
		l.clock = f.Clock
	case f.Probe != (f.Session == -1):
		t.Errorf("a frame of session %d has probe %v", f.Session, f.Probe)
	case f.Probe && f.Dir == "out" && f.ID != "":
		l.probe = append(l.probe, f.Method)
	case f.Probe, f.ID == "":
	case f.Dir == "out":
		l.out[m]++
	default:
		l.in[m]++
	}
}

// The frames of a run and its rows tell the same: which session sent a request
// when, when the answer was there, how long both were. What is asked before the
// load is there too, and told apart.
func TestFramesAgreeWithTheRows(t *testing.T) {
	const discover = "server/discover"
	for name, tt := range map[string]struct {
		args, probe []string
	}{
		"pinned":        {[]string{"--protocol", "2025-11-25", "-t", "echo", "-a", `{"message":"x"}`}, nil},
		"version asked": {[]string{"-t", "echo", "-a", `{"message":"x"}`}, []string{discover}},
		"schema asked":  {[]string{"-t", "echo"}, []string{discover, "tools/list"}},
	} {
		t.Run(name, func(t *testing.T) {
			frames, rows := framesOf(t, tt.args...)
			for _, r := range rows {
				if frames.out[moment{r.Session, r.Start + frames.clock, r.Sent}] != 1 {
					t.Errorf("no frame was sent for %+v", r)
				}
				if frames.in[moment{r.Session, r.Start + r.Service + frames.clock, r.Received}] != 1 {
					t.Errorf("no frame came for %+v", r)
				}
			}
			if want := len(rows) + 3; tt.probe == nil && (len(frames.out) != want || len(frames.in) != want) {
				t.Errorf("%d frames with an id out, %d in, want %d: the rows and a handshake for each session", len(frames.out), len(frames.in), want)
			}
			if diff := cmp.Diff(tt.probe, slices.Compact(frames.probe)); diff != "" {
				t.Errorf("asked before the load (-want +got):\n%s", diff)
			}
		})
	}
}
