package output_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbench/metrics"
	"mcpbench/output"
)

func TestCreateMakesAnEmptyFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	f, err := output.Create(dir, "RUN")
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(dir, "RUN"); f.Path() != want {
		t.Errorf("path: got %s, want %s", f.Path(), want)
	}
	if names := list(t, f.Path()); len(names) != 0 {
		t.Errorf("the folder holds %v, want nothing", names)
	}
}

func list(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestCreateErrors(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "TAKEN"), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "FILE"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, dir, run string
		want           []string
	}{
		{"the folder is a file", file, "RUN", []string{file + " is a file, not a folder", "-o"}},
		{"a parent is a file", filepath.Join(file, "deep"), "RUN", []string{file + " is a file, not a folder", "-o"}},
		{"the run's folder is a file", dir, "FILE", []string{filepath.Join(dir, "FILE") + " is a file", "-o"}},
		{"another run's folder", dir, "TAKEN", []string{filepath.Join(dir, "TAKEN"), "exists already"}},
		{"no folder named", "", "RUN", []string{"need a folder"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := output.Create(c.dir, c.run)
			if err == nil {
				t.Fatal("got no error")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
		})
	}
}

func TestCreateWithoutPermission(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("permissions do not bind root")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	_, err := output.Create(dir, "RUN")
	if !errors.Is(err, os.ErrPermission) || !strings.Contains(err.Error(), dir) {
		t.Errorf("got error %v, want one of permission that names the folder", err)
	}
}

func TestRunIDsSort(t *testing.T) {
	var ids []string
	synctest.Test(t, func(*testing.T) {
		for range 5 {
			ids = append(ids, output.NewRunID())
			time.Sleep(time.Millisecond)
		}
	})
	if !sort.StringsAreSorted(ids) {
		t.Errorf("ids are not in the order of their making: %v", ids)
	}
	if len(ids[0]) != 26 {
		t.Errorf("id %q: %d characters, want 26", ids[0], len(ids[0]))
	}
}

func TestRunFileAtStartAndEnd(t *testing.T) {
	f, err := output.Create(t.TempDir(), "RUN")
	if err != nil {
		t.Fatal(err)
	}
	run := &output.RunFile{
		RunID: "RUN", Mcpbench: "1.2.3", Go: "go1.26.8", StartedAt: t0, Seed: 7,
		Host:     output.Host{OS: "linux", Arch: "amd64", CPUs: 2, Hostname: "h", GOMAXPROCS: 2},
		Command:  []string{"mcpbench", "run", "--url", "http://127.0.0.1:1/mcp"},
		Scenario: output.ScenarioRef{Name: "s", SHA256: "00"},
	}
	if err := f.WriteRun(run); err != nil {
		t.Fatal(err)
	}
	got := readJSON(t, filepath.Join(f.Path(), "run.json"))
	for key, want := range map[string]any{
		"schema_version": 1.0, "verdict": "running", "exit_code": nil, "ended_at": nil,
		"started_at": "2026-12-01T10:00:00.123456Z", "targets": []any{}, "thresholds": []any{},
		"clock": map[string]any{"t0": nil}, "seed": 7.0,
	} {
		if diff := cmp.Diff(want, got[key]); diff != "" {
			t.Errorf("%s at the start (-want +got):\n%s", key, diff)
		}
	}
	end, exit := t0.Add(time.Minute), 99
	run.EndedAt, run.ExitCode, run.Verdict, run.Clock.T0 = &end, &exit, metrics.VerdictFailed, &t0
	if err := f.WriteRun(run); err != nil {
		t.Fatal(err)
	}
	got = readJSON(t, filepath.Join(f.Path(), "run.json"))
	if got["verdict"] != "failed" || got["exit_code"] != 99.0 || got["ended_at"] != "2026-12-01T10:01:00.123456Z" {
		t.Errorf("at the end: %v", got)
	}
}

func readJSON(t *testing.T, path string) map[string]any {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var v map[string]any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestFolderFiles(t *testing.T) {
	f, err := output.Create(t.TempDir(), "RUN")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.WriteScenario([]byte("version: 1\n")), f.WriteSummary(failingRun())); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"scenario.resolved.yaml", "summary.json"}, list(t, f.Path())); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	var printed strings.Builder
	if err := output.WriteJSON(&printed, failingRun()); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(f.Path(), "summary.json"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(printed.String(), string(data)); diff != "" {
		t.Errorf("summary.json is not what --json prints (-printed +file):\n%s", diff)
	}
}

func TestWriteFailureKeepsTheOldFile(t *testing.T) {
	f, err := output.Create(t.TempDir(), "RUN")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.WriteScenario([]byte("old")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(f.Path(), "scenario.resolved.yaml.partial"), 0o750); err != nil {
		t.Fatal(err)
	}
	err = f.WriteScenario([]byte("new"))
	if !errors.Is(err, syscall.EISDIR) || strings.Count(err.Error(), "scenario.resolved.yaml") != 1 {
		t.Errorf("got error %v, want one that names the file once", err)
	}
	data, err := os.ReadFile(filepath.Join(f.Path(), "scenario.resolved.yaml"))
	if err != nil || string(data) != "old" {
		t.Errorf("the file holds %q (%v), want what it held", data, err)
	}
}

func TestTableBytes(t *testing.T) {
	sink := newSink(t, output.ParquetConfig{})
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(sink.parts(t, "requests")[0])
	if err != nil {
		t.Fatal(err)
	}
	if got, err := sink.folder.TableBytes("requests"); err != nil || got != info.Size() {
		t.Errorf("got %d bytes (%v), want %d", got, err, info.Size())
	}
}

func TestRunsTable(t *testing.T) {
	folder, err := output.Create(t.TempDir(), "RUN")
	if err != nil {
		t.Fatal(err)
	}
	s := failingRun()
	s.Tags = map[string]string{"team": "search"}
	s.Trials = []metrics.TrialSummary{{StartedAt: t0, DurationS: 80, Requests: s.Requests, Steps: s.Steps[:1]}}
	config := output.ParquetConfig{Folder: folder, Run: &output.RunFile{Mcpbench: "1.2.3", Go: "go1.26.8", Host: output.Host{Hostname: "h", OS: "linux", Arch: "amd64", CPUs: 2}}}
	if err := output.WriteRuns(config, s); err != nil {
		t.Fatal(err)
	}
	got := readRows(t, filepath.Join(folder.Path(), "runs", "agent=local", "part-00000.parquet"))
	if len(got) != 1 {
		t.Fatalf("%d rows, want 1", len(got))
	}
	for column, want := range map[string]string{
		"trial": "0", "target": "0", "verdict": "failed", "duration_ns": "80000000000",
		"labels.key_value.key": "team", "labels.key_value.value": "search",
		"versions.mcpbench": "1.2.3", "versions.protocol": "2026-07-28", "versions.server": "1.2",
		"host.hostname": "h", "host.cpus": "2", "counts.requests": "48210", "counts.failed": "31", "counts.checks_failed": "579",
		"quantiles.list.element.metric": "latency|service|ttfb|failed",
		"quantiles.list.element.p50_ns": "8200000|8100000|8000000|2000000",
	} {
		if got[0][column] != want {
			t.Errorf("%s: got %q, want %q", column, got[0][column], want)
		}
	}
}
