package output_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbench/output"
)

// names lists everything in a folder, folders too.
func names(tb testing.TB, dir string) []string {
	tb.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		out = append(out, strings.TrimPrefix(path, dir))
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

// TestForeignFolderIsNotWrittenInto: it got a journal/lock.
func TestForeignFolderIsNotWrittenInto(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"run.json of another program":      {"run.json": `{"name": "x", "schema_version": 1, "run_id": "7"}`},
		"run.json and a diary":             {"run.json": `[1, 2]`, "journal/2026-12-01.md": "dear diary"},
		"another program's journal":        {"journal/000000.wal": "\x00\x01etcd", "journal/lock": "42"},
		"names of ours, and nothing in it": {"journal/000000.wal": "", "journal/connects.wal": "", "journal/marks-0.wal": ""},
		"no magic":                         {"run.json": "", "journal/connects.wal": "\xf7MJ"},
		"tables of another program":        {"run.json": "{}", "requests/agent=local/part-00000.parquet": "PAR1PAR1"},
	} {
		dir := t.TempDir()
		for name, text := range files {
			path := filepath.Join(dir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		before := append(names(t, dir), tree(t, dir)...)
		_, err := output.Recover(dir)
		_, openErr := output.Open(dir, &bytes.Buffer{})
		if err == nil || openErr == nil {
			t.Errorf("%s: no error", name)
		}
		if diff := cmp.Diff(before, append(names(t, dir), tree(t, dir)...)); diff != "" {
			t.Errorf("%s: files changed (-before +after):\n%s", name, diff)
		}
	}
}

// TestBrokenRunFileIsMadeAnew: a run.json that was cut off kept the rows of an
// intact journal from becoming tables. It is made from the journal, or when
// that is gone from the parts alone.
func TestBrokenRunFileIsMadeAnew(t *testing.T) {
	for name, text := range map[string]string{
		"truncated": `{"schema_version": 1, "run_`, "empty": "", "garbage": "\x00\xff", "another kind": `{"a": 1}`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := threeBatches(t, true)
			path := filepath.Join(dir, "run.json")
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			gone := copyFolder(t, dir)
			if report, err := output.Recover(dir); err != nil || report.Err() != nil || report.Rows.Requests != 5 {
				t.Errorf("%+v, %v", report, err)
			}
			wantRunFile(t, dir)
			if data, err := os.ReadFile(path + ".damaged"); err != nil || string(data) != text {
				t.Errorf("the file that could not be read was not kept: %v", err)
			}
			if err := os.RemoveAll(filepath.Join(gone, "journal")); err != nil {
				t.Fatal(err)
			}
			lost(t, gone, 10, "journal: it is gone")
			wantRunFile(t, gone)
		})
	}
	dir := threeBatches(t, true)
	if err := os.Remove(filepath.Join(dir, "run.json")); err != nil {
		t.Fatal(err)
	}
	if report, err := output.Recover(dir); err != nil || report.Err() != nil || report.Rows.Requests != 5 {
		t.Errorf("deleted: %+v, %v", report, err)
	}
	wantRunFile(t, dir)
}

// wantRunFile checks what run.json has from the start of the run.
func wantRunFile(t *testing.T, dir string) {
	t.Helper()
	var file output.RunFile
	data, err := os.ReadFile(filepath.Join(dir, "run.json"))
	if err := errors.Join(err, json.Unmarshal(data, &file)); err != nil || file.RunID != "RUN" || file.Mcpbench != "1.2.3" || file.EndedAt == nil {
		t.Errorf("run.json: %s, %v", data, err)
	}
}

func TestRunFileOfAnotherRunIsRefused(t *testing.T) {
	dir := threeBatches(t, false)
	data := []byte(`{"schema_version": 1, "run_id": "OTHER", "mcpbench": "1.2.3"}`)
	if err := os.WriteFile(filepath.Join(dir, "run.json"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := output.Recover(dir)
	if err == nil || !strings.Contains(err.Error(), "run.json is of run OTHER, and the journal of run RUN") {
		t.Errorf("got error %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "run.json")); err != nil { // as it says
		t.Fatal(err)
	}
	if report, err := output.Recover(dir); err != nil || report.Rows.Requests != 15 {
		t.Errorf("%+v, %v", report, err)
	}
}

// TestTwoRecoveriesAtOnce: the second said that the run was still running.
func TestTwoRecoveriesAtOnce(t *testing.T) {
	dir := threeBatches(t, false)
	var inner error
	asked := false
	_, err := output.RecoverWithSteps(dir, func(string) error {
		if !asked {
			asked = true
			_, inner = output.Recover(dir)
		}
		return nil
	})
	want := fmt.Sprintf("recover %s: %s is being recovered by another mcpbench (process %d): wait until it has ended", dir, dir, os.Getpid())
	if err != nil || !errors.Is(inner, output.ErrRecovering) || inner.Error() != want {
		t.Errorf("the first: %v; the second:\n%v, want\n%s", err, inner, want)
	}
	finished(t, dir)
}

// TestOpenCompletesAFolderAndSaysSo is what every command that reads a folder does.
func TestOpenCompletesAFolderAndSaysSo(t *testing.T) {
	sink := newSink(t, output.ParquetConfig{})
	sink.must(t, sink.folder.WriteRun(&output.RunFile{RunID: "RUN", StartedAt: t0}), sink.Write(arrival(0, 0, 1)))
	dir := copyFolder(t, sink.dir)

	var notes bytes.Buffer
	r, err := output.Open(sink.dir, &notes)
	if err != nil || !r.Running || r.Run.RunID != "RUN" || !strings.Contains(notes.String(), "still running: these are the results so far") {
		t.Errorf("while it runs: %+v, %v, %q", r, err, &notes)
	}
	sink.must(t, sink.Close())

	notes.Reset()
	r, err = output.Open(dir, &notes)
	if err != nil || r.Running || r.Run.Verdict != "interrupted" || !strings.HasPrefix(notes.String(), dir+": recovered 1 request from 1 journal segment") {
		t.Errorf("after a kill: %+v, %v, %q", r, err, &notes)
	}
	notes.Reset()
	if r, err = output.Open(dir, &notes); err != nil || r.Run.Verdict != "interrupted" || notes.Len() > 0 {
		t.Errorf("complete: %+v, %v, %q", r, err, &notes)
	}

	lossy := threeBatches(t, true)
	if err := os.Remove(wal(lossy, "000001.wal")); err != nil {
		t.Fatal(err)
	}
	for range 2 { // each time that it is opened
		notes.Reset()
		if r, err := output.Open(lossy, &notes); err != nil || r.Run.Verdict != "error" || !strings.Contains(notes.String(), "000001.wal") {
			t.Errorf("with a loss: %+v, %v, %q", r, err, &notes)
		}
	}
	if _, err := output.Open(t.TempDir(), &notes); !errors.Is(err, output.ErrNotResults) {
		t.Errorf("a folder of another kind: %v", err)
	}
}

// TestRecoverWhereverTheFolderIs has names that mean something to a pattern,
// a link to the folder, and things in the journal that are no files.
func TestRecoverWhereverTheFolderIs(t *testing.T) {
	base := threeBatches(t, true)
	for _, name := range []string{"a[1]*?", "link"} {
		dir := filepath.Join(t.TempDir(), name)
		place := dir
		if name == "link" {
			place += "-to"
		}
		err := os.CopyFS(place, os.DirFS(base))
		if name == "link" {
			err = errors.Join(err, os.Symlink(place, dir))
		}
		if err := errors.Join(err, os.Mkdir(wal(place, "000007.wal"), 0o755)); err != nil {
			t.Fatal(err)
		}
		report, err := output.Recover(dir)
		if err != nil || report.Err() != nil || report.Rows.Requests != 5 || readSummary(t, place).Requests.Total != 15 {
			t.Errorf("%s: %+v, %v, %d requests in the summary", name, report, err, readSummary(t, place).Requests.Total)
		}
	}
}

// TestRunFileThatMayNotBeReadIsNotBroken: it must not be set aside and replaced.
func TestRunFileThatMayNotBeReadIsNotBroken(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may read everything")
	}
	dir := threeBatches(t, false)
	path := filepath.Join(dir, "run.json")
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := output.Recover(dir); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("got error %v, want that it may not be read", err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}
