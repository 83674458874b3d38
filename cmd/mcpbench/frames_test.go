package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

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

// The frames of a run and its rows tell the same: which session sent a request
// when, when the answer was there, how long both were.
func TestFramesAgreeWithTheRows(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "frames.jsonl")
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{
		"run", "--protocol", "2025-11-25", "-t", "echo", "-a", `{"message":"x"}`, "-c", "3", "-n", "30", "-q", "--json", "-o", dir, "--frames", log,
	}, streams{in: &bytes.Buffer{}, out: &out, err: &errs, env: func(string) (string, bool) { return "", false }})
	if code != 0 {
		t.Fatalf("exit %d: %s", code, &errs)
	}
	type moment struct {
		session, at int64
		bytes       int32
	}
	frames := map[string]map[moment]int{"out": {}, "in": {}}
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	var clock int64
	for line := range bytes.Lines(data) {
		var f struct {
			output.Frame
			Clock int64 `json:"clock_start_ns"`
		}
		if err := json.Unmarshal(line, &f); err != nil {
			t.Fatal(err)
		}
		clock = max(clock, f.Clock)
		if f.ID != "" && f.Clock == 0 {
			frames[f.Dir][moment{int64(f.Session), f.OffsetNS, int32(f.Bytes)}]++
		}
	}
	parts, err := filepath.Glob(filepath.Join(dir, "*", "requests", "agent=local", "*.parquet"))
	if err != nil || len(parts) != 1 {
		t.Fatalf("%v, %v", parts, err)
	}
	rows, err := parquet.ReadFile[frameColumns](parts[0])
	if err != nil || len(rows) != 30 || clock == 0 {
		t.Fatalf("%d rows, clock at %d, %v", len(rows), clock, err)
	}
	for _, r := range rows {
		if frames["out"][moment{r.Session, r.Start + clock, r.Sent}] != 1 {
			t.Errorf("no frame was sent for %+v", r)
		}
		if frames["in"][moment{r.Session, r.Start + r.Service + clock, r.Received}] != 1 {
			t.Errorf("no frame came for %+v", r)
		}
	}
	if want := len(rows) + 3; len(frames["out"]) != want || len(frames["in"]) != want {
		t.Errorf("%d frames with an id out, %d in, want %d: the rows and a handshake for each session", len(frames["out"]), len(frames["in"]), want)
	}
}
