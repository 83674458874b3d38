package output_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbench/output"
)

// killedAtSteps stops a recovery before each of its steps, or each stride-th,
// and does it again: tables and summary are as if it had run in one go.
func killedAtSteps(t *testing.T, base string, stride int, wantLost bool) {
	t.Helper()
	whole := copyFolder(t, base)
	var steps []string
	report, err := output.RecoverWithSteps(whole, func(step string) error { steps = append(steps, step); return nil })
	if err != nil || (report.Err() != nil) != wantLost {
		t.Fatalf("%+v, %v, %v", report, err, report.Err())
	}
	for at := 0; at < len(steps); at += stride {
		step := steps[at]
		dir := copyFolder(t, base)
		recoverWithKills(t, dir, at)
		sameFolder(t, whole, dir, fmt.Sprintf("killed before step %d (%s)", at, step))
		again, err := output.Recover(dir)
		if err != nil || !again.Complete || (again.Err() != nil) != wantLost {
			t.Errorf("killed before step %d (%s): asked again: %+v, %v", at, step, again, err)
		}
	}
}

// recoverWithKills recovers a folder in three attempts, of which the first two
// are stopped after so many steps.
func recoverWithKills(t *testing.T, dir string, after int) {
	t.Helper()
	for try := range 3 {
		n := 0
		_, err := output.RecoverWithSteps(dir, func(string) error {
			if n++; try < 2 && n > after {
				return errKilled
			}
			return nil
		})
		if err != nil && !errors.Is(err, errKilled) {
			t.Fatalf("killed after %d steps: %v", after, err)
		}
	}
}

// sameFolder compares the results in two folders, and sees to it that nothing
// unfinished is left in the second.
func sameFolder(t *testing.T, want, got, what string) {
	t.Helper()
	if diff := cmp.Diff(tables(t, want), tables(t, got)); diff != "" {
		t.Errorf("%s: tables (-whole +recovered again):\n%s", what, diff)
	}
	a, b := readSummary(t, want), readSummary(t, got)
	b.ResultsDir = a.ResultsDir
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("%s: summary (-whole +recovered again):\n%s", what, diff)
	}
	for _, name := range names(t, got) {
		if strings.HasSuffix(name, ".partial") || strings.HasPrefix(name, "/journal/") && !strings.Contains(name, ".damaged") {
			t.Errorf("%s: %s is left", what, name)
		}
	}
}

func TestRecoveryThatIsKilledGoesOn(t *testing.T) {
	t.Run("frozen", func(t *testing.T) {
		killedAtSteps(t, killed(t, output.ParquetConfig{PartRows: 8}, func(sink testSink) {
			frozen(t, sink)
			settle(t, sink.dir, 1)
		}), 1, false)
	})
	t.Run("broken run.json", func(t *testing.T) {
		dir := threeBatches(t, true)
		if err := os.WriteFile(filepath.Join(dir, "run.json"), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
		killedAtSteps(t, dir, 3, false)
	})
	// What the first attempt has found missing must not be forgotten by the last.
	t.Run("damaged", func(t *testing.T) {
		dir := threeBatches(t, false)
		starts := frameStarts(t, wal(dir, "000000.wal"))
		change(t, wal(dir, "000000.wal"), func(data []byte) []byte { data[starts[2]+50] ^= 1; return data })
		killedAtSteps(t, dir, 3, true)
	})
	t.Run("segment gone", func(t *testing.T) {
		dir := threeBatches(t, true)
		if err := os.Remove(wal(dir, "000001.wal")); err != nil {
			t.Fatal(err)
		}
		killedAtSteps(t, dir, 3, true)
	})
	t.Run("truncated", func(t *testing.T) {
		dir := threeBatches(t, false)
		starts := frameStarts(t, wal(dir, "000000.wal"))
		if err := os.Truncate(wal(dir, "000000.wal"), int64(starts[2]+50)); err != nil {
			t.Fatal(err)
		}
		killedAtSteps(t, dir, 3, true)
	})
}
