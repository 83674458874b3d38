package query_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"mcpbench/output"
)

const killScenario = `version: 1
name: kill
servers: {a: {transport: http, url: "http://127.0.0.1:1/", protocol: "2025-11-25"}}
load:
  groups:
    main: {duration: 60s, server: a, flow: f, arrivals: {rate: %d/s}, max_sessions: 64}
flows:
  f:
    steps:
      - tools/call: {name: echo, arguments: {n: "${{ iteration.index }}"}}
`

// handedOver is how old an answer must be to be in the journal for certain:
// ours is at most 100 ms behind.
const handedOver = 200 * time.Millisecond

// number reads an environment variable.
func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// TestKillLosesNothing kills runs at random moments (KILL_MOMENTS of them, 3 by
// default, with KILL_RATE requests a second, 5000 by default): every request
// that the server had answered 200 ms before the kill has its row, and only one.
func TestKillLosesNothing(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	rate := number(t, "KILL_RATE", 5000)
	for i := range number(t, "KILL_MOMENTS", 3) {
		after := 300*time.Millisecond + time.Duration(rng.Int64N(int64(3*time.Second)))
		t.Run(fmt.Sprint(i), func(t *testing.T) { killAt(t, rate, after) })
	}
}

func killAt(t *testing.T, rate int, after time.Duration) {
	t.Helper()
	server, dir := newFake(t), t.TempDir()
	file, results := filepath.Join(dir, "s.yaml"), filepath.Join(dir, "results")
	if err := os.WriteFile(file, fmt.Appendf(nil, killScenario, rate), 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	cmd := exec.CommandContext(t.Context(), mcpbench, "run", file, "--url", server.url, "-o", results)
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); server.count() == 0; time.Sleep(time.Millisecond) { // another process: real time
		if time.Since(began) > 10*time.Second {
			t.Fatalf("no request came: %v\n%s", cmd.Process.Kill(), &log)
		}
	}
	time.Sleep(after) // the moment of the kill is in real time too
	killed := time.Now()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed

	report, err := output.Recover(onlyRun(t, results))
	if err != nil {
		t.Fatal(err)
	}
	check(t, server, results, killed)
	t.Logf("killed after %v, %d answers; %+v", after, server.count(), report)
}

// check compares what the server answered with the rows.
func check(t *testing.T, server *fake, results string, killed time.Time) {
	t.Helper()
	db := open(t)
	rows := map[int64]int64{}
	for _, row := range query(t, db, fmt.Sprintf(`SELECT iteration, count(*) n FROM read_parquet('%s/*/requests/*/*.parquet') GROUP BY 1`, results)) {
		rows[row["iteration"].(int64)] = row["n"].(int64)
	}
	server.mu.Lock()
	defer server.mu.Unlock()
	due, missing := 0, 0
	for n, at := range server.answered {
		if killed.Sub(at) <= handedOver {
			continue
		}
		if due++; rows[n] == 0 {
			missing++
		}
	}
	twice := 0
	for _, n := range rows {
		if n != 1 {
			twice++
		}
	}
	if missing > 0 || twice > 0 || due == 0 {
		t.Errorf("of %d answers older than %v, %d have no row; %d requests have more than one", due, handedOver, missing, twice)
	}
	sum := query(t, db, fmt.Sprintf(`SELECT sum(count)::BIGINT n FROM read_parquet('%s/*/intervals/*/*.parquet')`, results))
	if got := sum[0]["n"].(int64); got != int64(len(rows)) {
		t.Errorf("the intervals count %d requests, the table has %d", got, len(rows))
	}
}
