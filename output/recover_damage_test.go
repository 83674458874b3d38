package output_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mcpbench/metrics"
	"mcpbench/output"
)

// threeBatches is a run that was killed after three writes of 5 requests and 5
// iterations each, and a reading after each of them. With parts the first two
// are parts already, and the third is in segment 1.
func threeBatches(tb testing.TB, parts bool) string {
	tb.Helper()
	config := output.ParquetConfig{}
	if parts {
		config.PartRows = 11
	}
	sink := newSink(tb, config)
	sink.must(tb, sink.folder.WriteRun(&output.RunFile{RunID: "RUN", StartedAt: t0, Seed: 7}))
	for i := range uint64(3) {
		if parts && i == 2 {
			settle(tb, sink.dir, 0)
		}
		var batch []metrics.Sample
		for n := range uint64(5) {
			batch = append(batch, arrival(5*i+n, time.Duration(5*i+n)*20*ms, 1)...)
		}
		sink.must(tb, sink.Write(batch), sink.WriteGauges(time.Duration(i+1)*100*ms, []metrics.Gauges{{}, {Intended: int64(5*i + 5)}}))
	}
	dir := copyFolder(tb, sink.dir)
	sink.must(tb, sink.Close())
	return dir
}

// settle waits until there are so many segments left. Real time: the compaction
// works in files.
func settle(tb testing.TB, dir string, left int) {
	tb.Helper()
	for range 2000 {
		names, err := filepath.Glob(filepath.Join(dir, "journal", "[0-9]*.wal"))
		if err != nil {
			tb.Fatal(err)
		}
		if len(names) == left {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	tb.Fatal("the compaction does not end")
}

// lost recovers a folder from which something is missing: what can be read is
// kept, the loss is told, now and when it is asked again, and the run has failed.
func lost(t *testing.T, dir string, requests int, words ...string) output.RecoverReport {
	t.Helper()
	report, err := output.Recover(dir)
	if err != nil {
		t.Fatal(err)
	}
	if report.Err() == nil {
		t.Fatalf("nothing is lost, it says: %+v", report)
	}
	for _, word := range words {
		if !strings.Contains(report.Err().Error(), word) || !strings.Contains(report.Text("D")+report.Err().Error(), word) {
			t.Errorf("got %q, want %q in it", report.Err(), word)
		}
	}
	if n := len(tableRows(t, dir, "requests")); n != requests {
		t.Errorf("%d requests, want %d", n, requests)
	}
	s := readSummary(t, dir)
	if s.Verdict != metrics.VerdictError || s.ExitCode != 1 || s.Error != report.Err().Error() || report.Verdict != s.Verdict {
		t.Errorf("summary: %s, %d, %q", s.Verdict, s.ExitCode, s.Error)
	}
	var file output.RunFile
	data, err := os.ReadFile(filepath.Join(dir, "run.json"))
	if err := errors.Join(err, json.Unmarshal(data, &file)); err != nil {
		t.Fatal(err)
	}
	if file.Verdict != "error" || *file.ExitCode != 1 || file.EndedAt == nil || file.Recovery == nil {
		t.Errorf("run.json: %s", data)
	}
	again, err := output.Recover(dir)
	if err != nil || !again.Complete || again.Err() == nil || again.Err().Error() != report.Err().Error() {
		t.Errorf("asked again: %+v, %v, %v", again, err, again.Err())
	}
	return report
}

func wal(dir string, name string) string { return filepath.Join(dir, "journal", name) }

// frameStarts are the offsets of the frames of a file.
func frameStarts(tb testing.TB, path string) []int {
	tb.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	var out []int
	for at := 0; at < len(data); {
		if !bytes.HasPrefix(data[at:], []byte("\xf7MJ1")) {
			tb.Fatalf("no frame at %d", at)
		}
		out = append(out, at)
		at += 20 + int(binary.LittleEndian.Uint32(data[at+4:]))
	}
	return append(out, len(data))
}

func change(tb testing.TB, path string, do func(data []byte) []byte) {
	tb.Helper()
	data, err := os.ReadFile(path)
	if err := errors.Join(err, os.WriteFile(path, do(data), 0o600)); err != nil {
		tb.Fatal(err)
	}
}

// TestLostJournalIsAnError: a journal that was deleted, emptied or overwritten
// passed for a complete run.
func TestLostJournalIsAnError(t *testing.T) {
	each := func(dir string, do func(path string) error) error {
		names, err := filepath.Glob(wal(dir, "*.wal"))
		for _, name := range names {
			err = errors.Join(err, do(name))
		}
		return err
	}
	flip := func(name string, at int) func(string) error {
		return func(dir string) error {
			data, err := os.ReadFile(wal(dir, name))
			data[at] ^= 1
			return errors.Join(err, os.WriteFile(wal(dir, name), data, 0o600))
		}
	}
	tests := []struct {
		name     string
		lose     func(dir string) error
		requests int // of the 10 in parts and the 5 in the journal
		want     string
	}{
		{"deleted", func(dir string) error { return os.RemoveAll(wal(dir, "")) }, 10, "journal: it is gone"},
		{"all files deleted", func(dir string) error { return each(dir, os.Remove) }, 10, "journal: it is gone"},
		{"emptied", func(dir string) error {
			return each(dir, func(path string) error { return os.Truncate(path, 0) })
		}, 10, "journal: its marks are gone"},
		{"overwritten", func(dir string) error {
			return each(dir, func(path string) error { return os.WriteFile(path, bytes.Repeat([]byte("garbage "), 1000), 0o600) })
		}, 10, "journal: its marks are gone"},
		{"segment deleted", func(dir string) error { return os.Remove(wal(dir, "000001.wal")) }, 10, "11 records of the run lost"},
		{"segment emptied", func(dir string) error { return os.Truncate(wal(dir, "000001.wal"), 0) }, 10, "000001.wal at offset 0"},
		{"segment overwritten", func(dir string) error {
			return os.WriteFile(wal(dir, "000001.wal"), []byte("not a journal at all"), 0o600)
		}, 10, "nothing in it can be read"},
		{"marks deleted", func(dir string) error { return os.Remove(wal(dir, "marks-0.wal")) }, 15, "journal: its marks are gone"},
		{"connects deleted", func(dir string) error { return os.Remove(wal(dir, "connects.wal")) }, 15, "connects.wal: it is gone"},
		{"connects damaged", flip("connects.wal", 60), 15, "connects.wal at offset 0"},
		{"marks damaged", flip("marks-0.wal", 25), 15, "marks-0.wal at offset 0"},
		{"connects emptied", func(dir string) error { return os.Truncate(wal(dir, "connects.wal"), 0) }, 15, "connects.wal: it is empty"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := threeBatches(t, true)
			if err := tt.lose(dir); err != nil {
				t.Fatal(err)
			}
			lost(t, dir, tt.requests, tt.want)
			if name, damaged := strings.CutSuffix(tt.name, " damaged"); damaged {
				kept, err := filepath.Glob(wal(dir, name+"*.damaged"))
				if err != nil || len(kept) != 1 {
					t.Errorf("kept: %v, %v", kept, err)
				}
			}
		})
	}
}

// TestFlippedBitsAreNamed damages frames in the middle and at the end: what is
// before and after is kept, and the report says where what was lost.
func TestFlippedBitsAreNamed(t *testing.T) {
	for _, frame := range []int{1, 2, 3} {
		t.Run(fmt.Sprint(frame), func(t *testing.T) {
			dir := threeBatches(t, false)
			starts := frameStarts(t, wal(dir, "000000.wal"))
			change(t, wal(dir, "000000.wal"), func(data []byte) []byte { data[starts[frame]+40] ^= 4; return data })
			records := 10
			if frame == 1 {
				records = 11 // the final metadata are in it
			}
			report := lost(t, dir, 10, fmt.Sprintf("%d records of the run lost", records),
				fmt.Sprintf("journal/000000.wal at offset %d (%d bytes): damaged there", starts[frame], starts[frame+1]-starts[frame]))
			if len(report.Lost.Places) != 1 || report.TornBytes != 0 {
				t.Errorf("%+v", report)
			}
			if _, err := os.Stat(wal(dir, "000000.wal.damaged")); err != nil {
				t.Errorf("the damaged segment was not kept: %v", err)
			}
		})
	}
}

// TestTornWriteIsNoLoss cuts the last write short, which is what a kill or a
// power loss leaves, with zeros after it or without.
func TestTornWriteIsNoLoss(t *testing.T) {
	for _, zeros := range []int{0, 3000} {
		dir := threeBatches(t, false)
		starts := frameStarts(t, wal(dir, "000000.wal"))
		change(t, wal(dir, "000000.wal"), func(data []byte) []byte {
			return append(data[:starts[3]+50:starts[3]+50], make([]byte, zeros)...)
		})
		report, err := output.Recover(dir)
		if err != nil || report.Err() != nil || report.TornBytes != int64(50+zeros) || report.TornRecords != 10 || report.Verdict != "interrupted" {
			t.Errorf("%d zeros: %+v, %v, %v, want %d torn bytes", zeros, report, err, report.Err(), 50+zeros)
		}
		if !strings.Contains(report.Text("D"), "the last write was cut short: ") {
			t.Errorf("it is not told: %s", report.Text("D"))
		}
		if n := len(tableRows(t, dir, "requests")); n != 10 {
			t.Errorf("%d zeros: %d requests, want 10", zeros, n)
		}
	}
}

// TestTruncatedJournalIsALossBeyondTheLastWrite: half of the rows were gone
// and it passed for a write that the kill had cut short.
func TestTruncatedJournalIsALossBeyondTheLastWrite(t *testing.T) {
	dir := threeBatches(t, false)
	starts := frameStarts(t, wal(dir, "000000.wal"))
	if err := os.Truncate(wal(dir, "000000.wal"), int64(starts[2]+50)); err != nil {
		t.Fatal(err)
	}
	lost(t, dir, 5, "20 records of the run lost", fmt.Sprintf("journal/000000.wal at offset %d", starts[2]), "it was cut off there")
}

// TestZerosOverAJournalAreALoss: a power loss leaves zeros at the end of a
// file, in place of the last write at most.
func TestZerosOverAJournalAreALoss(t *testing.T) {
	dir := threeBatches(t, false)
	starts := frameStarts(t, wal(dir, "000000.wal"))
	change(t, wal(dir, "000000.wal"), func(data []byte) []byte { clear(data[starts[2]:]); return data })
	lost(t, dir, 5, "20 records of the run lost", "it was cut off there")
}

// TestHugeLengthIsDamage: a length that reaches behind the end of the file, or
// is larger than any frame, hides nothing that comes after it.
func TestHugeLengthIsDamage(t *testing.T) {
	for _, length := range []uint32{1 << 20, 1<<32 - 1} {
		dir := threeBatches(t, false)
		starts := frameStarts(t, wal(dir, "000000.wal"))
		change(t, wal(dir, "000000.wal"), func(data []byte) []byte {
			binary.LittleEndian.PutUint32(data[starts[2]+4:], length)
			return data
		})
		lost(t, dir, 10, "10 records of the run lost")
	}
}

// TestLaterJournalIsLeftAlone: what a later version wrote is not set aside as damaged.
func TestLaterJournalIsLeftAlone(t *testing.T) {
	later := map[string]func(data []byte) []byte{
		"schema": func([]byte) []byte {
			return output.MetaFrame(`{"schema_version":99,"run_id":"RUN","agent":"local","catalog":{}}`)
		},
		"frame type": func(data []byte) []byte { return bytes.ReplaceAll(data, []byte("\xf7MJ1"), []byte("\xf7MJ2")) },
	}
	for name, make := range later {
		dir := threeBatches(t, false)
		change(t, wal(dir, "000000.wal"), make)
		before := tree(t, dir)
		if _, err := output.Recover(dir); err == nil || !strings.Contains(err.Error(), "use a later one") {
			t.Errorf("%s: got error %v, want one that says to use a later version", name, err)
		}
		if after := tree(t, dir); len(before) != len(after) {
			t.Errorf("%s: files changed", name)
		}
	}
}

// TestUnreadablePartIsALoss has one that was overwritten during the run.
func TestUnreadablePartIsALoss(t *testing.T) {
	for _, table := range []string{"requests", "iterations", "intervals"} {
		dir := threeBatches(t, true)
		part := filepath.Join(dir, table, "agent=local", "part-00000.parquet")
		if err := os.WriteFile(part, []byte("garbage"), 0o600); err != nil {
			t.Fatal(err)
		}
		report, err := output.Recover(dir)
		if err != nil || report.Err() == nil || !strings.Contains(report.Err().Error(), table+"/agent=local/part-00000.parquet") {
			t.Errorf("%s: %+v, %v, %v", table, report, err, report.Err())
		}
		if data, err := os.ReadFile(part); err != nil || string(data) != "garbage" {
			t.Errorf("%s: the part was changed: %v", table, err)
		}
	}
}

// TestDamagedSegmentFailsTheRunThatWroteIt: the run itself finds it when it
// compacts the segment, and must not pass.
func TestDamagedSegmentFailsTheRunThatWroteIt(t *testing.T) {
	sink := newSink(t, output.ParquetConfig{})
	sink.must(t, sink.Write(lawfulSamples(5, 1)), sink.Write(lawfulSamples(5, 1)))
	starts := frameStarts(t, wal(sink.dir, "000000.wal"))
	change(t, wal(sink.dir, "000000.wal"), func(data []byte) []byte { data[starts[1]+40] ^= 4; return data })
	if err := sink.Close(); err == nil || !strings.Contains(err.Error(), "the journal was damaged: 12 of 24 records") {
		t.Errorf("Close: got error %v, want the damage", err)
	}
	if n := len(tableRows(t, sink.dir, "requests")); n != 5 {
		t.Errorf("%d requests, want 5", n)
	}
}
