package output_test

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"mcpbench/metrics"
	"mcpbench/output"
)

func TestFolderOfARunningRunIsLeftAlone(t *testing.T) {
	sink := newSink(t, output.ParquetConfig{})
	if err := sink.Write(lawfulSamples(5, 1)); err != nil {
		t.Fatal(err)
	}
	before := tree(t, sink.dir)
	_, recoverErr := output.Recover(sink.dir)
	other, err := output.NewParquet(output.ParquetConfig{Folder: sink.folder, RunID: "RUN", Catalog: testCatalog()})
	if other != nil {
		t.Error("a second run may write into the folder")
	}
	for _, err := range []error{recoverErr, err} {
		if !errors.Is(err, output.ErrRunning) || !strings.Contains(err.Error(), "still running (process ") {
			t.Errorf("got error %v, want ErrRunning with the process", err)
		}
	}
	if len(before) != len(tree(t, sink.dir)) {
		t.Error("files changed")
	}
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	// The journal's work is done, but the run has not said its last word.
	if _, err := output.Recover(sink.dir); !errors.Is(err, output.ErrRunning) {
		t.Errorf("after Close: got error %v, want ErrRunning", err)
	}
	ended := t0
	if err := sink.folder.WriteRun(&output.RunFile{RunID: "RUN", Verdict: "passed", EndedAt: &ended}); err != nil {
		t.Fatal(err)
	}
	if report, err := output.Recover(sink.dir); !report.Complete || err != nil {
		t.Errorf("after the end: %+v, %v, want nothing to do", report, err)
	}
	if _, err := os.Stat(filepath.Join(sink.dir, "journal")); err == nil {
		t.Error("the journal is still there")
	}
}

// TestKilledProcessLeavesAFolderThatIsRecovered runs the writer in a process
// of its own and kills it.
func TestKilledProcessLeavesAFolderThatIsRecovered(t *testing.T) {
	if dir := os.Getenv("OUTPUT_TEST_WRITER"); dir != "" {
		writeUntilKilled(t, dir)
	}
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestKilledProcessLeavesAFolderThatIsRecovered$")
	cmd.Env = append(os.Environ(), "OUTPUT_TEST_WRITER="+dir)
	out, err := cmd.StdoutPipe()
	if err := errors.Join(err, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "written\n" {
		t.Fatalf("the writer said %q, %v", line, err)
	}
	run := filepath.Join(dir, "RUN")
	if _, err := output.Recover(run); !errors.Is(err, output.ErrRunning) {
		t.Errorf("while it runs: got error %v, want ErrRunning", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	report, err := output.Recover(run)
	if err != nil || report.Rows.Requests != 100 || report.Verdict != metrics.VerdictInterrupted || report.Err() != nil {
		t.Errorf("Recover: %+v, %v, want 100 requests", report, err)
	}
}

func writeUntilKilled(t *testing.T, dir string) {
	t.Helper()
	folder, err := output.Create(dir, "RUN")
	if err != nil {
		t.Fatal(err)
	}
	p, err := output.NewParquet(output.ParquetConfig{Folder: folder, RunID: "RUN", Catalog: testCatalog(), T0: t0})
	err = errors.Join(err, folder.WriteRun(&output.RunFile{RunID: "RUN", StartedAt: t0}), p.Write(lawfulSamples(100, 1)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stdout.WriteString("written\n"); err != nil {
		t.Fatal(err)
	}
	select {} // until it is killed
}

func TestForeignFilesAreKept(t *testing.T) {
	sink := newSink(t, output.ParquetConfig{})
	if err := errors.Join(sink.folder.WriteRun(&output.RunFile{RunID: "RUN", StartedAt: t0}), sink.Write(lawfulSamples(10, 1))); err != nil {
		t.Fatal(err)
	}
	dir := copyFolder(t, sink.dir)
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	wal, err := os.ReadFile(filepath.Join(dir, "journal", "000000.wal"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{
		"journal/notes.txt":  []byte("mine"),
		"journal/000001.wal": []byte("no journal at all"),
		"journal/000002.wal": wal, // a copy would double the rows
		"journal/000003.wal": bytes.ReplaceAll(wal, []byte(`"RUN"`), []byte(`"ROW"`)),
		"journal/000004.wal": nil,
		"requests/readme":    []byte("mine too"),
	}
	for name, data := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, data, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	report, err := output.Recover(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(tables(t, dir)["requests"]); got != 10 || report.Segments != 1 {
		t.Errorf("%d requests, want 10: %+v", got, report)
	}
	for name, data := range files {
		if len(data) == 0 {
			continue
		}
		if strings.HasSuffix(name, ".wal") {
			name += ".damaged"
		}
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s: %v, or not what it was", name, err)
		}
	}
}

func TestFoldersThatAreNotOurs(t *testing.T) {
	file := func(name, text string) string {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	for _, c := range []struct{ name, dir, want string }{
		{"missing", filepath.Join(t.TempDir(), "x"), "no such file"},
		{"empty", t.TempDir(), "not a results folder of mcpbench: there is no run.json in it"},
		{"a file", filepath.Join(file("f", ""), "f"), "is a file: not a results folder"},
		{"broken run.json", file("run.json", `{"schema_version": 1`), "read run.json: unexpected end"},
		{"another's run.json", file("run.json", `{"name": "x"}`), "not a results folder of mcpbench: it has no schema_version, run_id or mcpbench"},
		{"later version", file("run.json", `{"schema_version": 99, "run_id": "X"}`), "run.json has schema version 99, and this mcpbench knows 1: use a later one"},
	} {
		if _, err := output.Recover(c.dir); err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "recover "+c.dir+": ") {
			t.Errorf("%s: got error %v, want one with %q", c.name, err, c.want)
		}
	}
}

// fullFile writes at most room bytes.
type fullFile struct {
	output.SegmentFile
	room *int
}

func (f fullFile) Write(data []byte) (int, error) {
	if len(data) <= *f.room {
		*f.room -= len(data)
		return f.SegmentFile.Write(data)
	}
	n, err := f.SegmentFile.Write(data[:*f.room])
	*f.room = 0
	return n, errors.Join(err, &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC})
}

func TestFullDiskKeepsWhatWasWritten(t *testing.T) {
	room := 20000
	sink := newSink(t, output.WithFiles(output.ParquetConfig{}, func(path string, file output.SegmentFile) output.SegmentFile {
		if !strings.HasSuffix(path, "000000.wal") {
			return file
		}
		return fullFile{file, &room}
	}))
	batch, written := lawfulSamples(20, 1), 0
	var err error
	for err == nil {
		if err = sink.Write(batch); err == nil {
			written += 20
		}
	}
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "000000.wal") || !strings.Contains(err.Error(), "free some space") {
		t.Errorf("Write: %v, want the file and what to do", err)
	}
	if again := sink.Write(batch); again == nil {
		t.Error("Write after a failure: no error")
	}
	if err := sink.Close(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Close: %v, want the first failure", err)
	}
	if got := len(tables(t, sink.dir)["requests"]); got != written || written == 0 {
		t.Errorf("%d requests in the table, want %d", got, written)
	}
}

func TestNothingRecordedIsAllRight(t *testing.T) {
	sink := newSink(t, output.ParquetConfig{})
	if err := sink.folder.WriteRun(&output.RunFile{RunID: "RUN", StartedAt: t0}); err != nil {
		t.Fatal(err)
	}
	dir := copyFolder(t, sink.dir)
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	report, err := output.Recover(dir)
	if err != nil || report.Verdict != metrics.VerdictInterrupted {
		t.Errorf("Recover: %+v, %v", report, err)
	}
	for table, rows := range tables(t, dir) {
		if parts, _ := filepath.Glob(filepath.Join(dir, table, "*", "*.parquet")); len(rows) != 0 || len(parts) != 1 {
			t.Errorf("%s: %d rows in %v, want an empty part", table, len(rows), parts)
		}
	}
}

// TestSlowCompactionMakesWriteWaitAndIsCounted: no row is lost for it, and the
// journal does not grow beyond its bound.
func TestSlowCompactionMakesWriteWaitAndIsCounted(t *testing.T) {
	hold := make(chan struct{})
	const backlog = 3
	sink := newSink(t, output.WithSteps(output.ParquetConfig{PartRows: 1, Backlog: backlog}, func(string) error {
		<-hold
		return nil
	}))
	most := make(chan int)
	go func() {
		for n := int64(0); n == 0; n, _ = sink.Waits() {
			runtime.Gosched()
		}
		segments, err := filepath.Glob(filepath.Join(sink.dir, "journal", "[0-9]*.wal"))
		if err != nil {
			t.Error(err)
		}
		most <- len(segments)
		for range cap(hold) + 10000 { // the compaction goes on slowly
			select {
			case hold <- struct{}{}:
			case <-most:
				return
			}
			if segments, err = filepath.Glob(filepath.Join(sink.dir, "journal", "[0-9]*.wal")); err != nil || len(segments) > backlog+2 {
				t.Errorf("%d segments, want at most %d, %v", len(segments), backlog+2, err)
			}
		}
	}()
	done := make(chan error, 1)
	go func() {
		var errs []error
		for range 12 {
			errs = append(errs, sink.Write(lawfulSamples(1, 1)))
		}
		done <- errors.Join(append(errs, sink.Close())...)
	}()
	// The first may be on its way from the queue to the compaction.
	if n := <-most; n < backlog+1 || n > backlog+2 {
		t.Errorf("%d segments while Write waits, want %d", n, backlog+2)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	close(most)
	if n, total := sink.Waits(); n == 0 || total <= 0 {
		t.Errorf("%d waits of %v, want some", n, total)
	}
	if got := len(tables(t, sink.dir)["requests"]); got != 12 {
		t.Errorf("%d requests, want 12", got)
	}
}

// plainRows are 1024 requests of a closed load without anything special.
func plainRows() []metrics.Sample {
	samples := randomSamples(1024, 1)
	for i := range samples {
		s := &samples[i]
		s.Outcome, s.Extra, s.Step, s.Group, s.Kind = metrics.OK, nil, 1, 0, metrics.KindStep
		s.Intended, s.Release, s.HasConnect = metrics.NoOffset, metrics.NoOffset, false
	}
	return samples
}

func TestWriteDoesNotAllocate(t *testing.T) {
	sink := newSink(t, output.ParquetConfig{})
	samples, gauges := plainRows(), make([]metrics.Gauges, 2)
	tallies := metrics.Tallies{
		Anomalies: map[string]int64{"odd_event": 3}, ServerRequests: []metrics.ServerRequestSummary{{Method: "ping", Count: 2, Answer: &metrics.Quantiles{Count: 2}}},
	}
	var at time.Duration
	if n := testing.AllocsPerRun(50, func() {
		at += 100 * time.Millisecond
		if err := errors.Join(sink.Write(samples), sink.WriteTallies(tallies), sink.WriteGauges(at, gauges)); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations for a batch of 1024 samples and a reading of the gauges, want 0", n)
	}
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkJournalWrite is the cost on the collector's goroutine, without any compaction.
func BenchmarkJournalWrite(b *testing.B) {
	samples := plainRows()
	sink := newSink(b, output.ParquetConfig{PartRows: 1 << 30, SegmentBytes: 1 << 40})
	wal := filepath.Join(sink.dir, "journal", "000000.wal")
	b.ReportAllocs()
	for b.Loop() {
		if err := sink.Write(samples); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(samples)), "ns/row")
	info, err := os.Stat(wal)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(info.Size())/float64(b.N*len(samples)), "B/row")
	if err := os.Truncate(wal, 0); err != nil { // nobody wants the parts
		b.Fatal(err)
	}
	_ = sink.Close() // of an empty segment
}

// BenchmarkRecord is journal and compaction together, by the CPU time of this process.
func BenchmarkRecord(b *testing.B) {
	samples := plainRows()
	sink := newSink(b, output.ParquetConfig{})
	var at time.Duration
	before := cpuTime(b)
	rows := 0
	for b.Loop() {
		for i := range samples {
			s := &samples[i]
			at += 10 * time.Microsecond
			s.Start, s.FirstByte, s.End = at, at+time.Millisecond+at%7919, at+2*time.Millisecond+at%7717
			s.Iteration++
		}
		if err := sink.Write(samples); err != nil {
			b.Fatal(err)
		}
		rows += len(samples)
	}
	if err := sink.Close(); err != nil {
		b.Fatal(err)
	}
	cpu := cpuTime(b) - before
	b.ReportMetric(float64(rows)/cpu.Seconds(), "rows/core-s")
	size, err := sink.folder.TableBytes("requests")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(size)/float64(rows), "B/row")
}
