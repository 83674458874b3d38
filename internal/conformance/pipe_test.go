package conformance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"mcpbench/metrics"
)

// TestRowsFromALongPipe feeds PIPE_BYTES of JSON Lines through a pipe to a run; the
// command's memory stays under 64 MiB. Without PIPE_BYTES it is 50 MB.
func TestRowsFromALongPipe(t *testing.T) {
	size := int64(50_000_000)
	if s := os.Getenv("PIPE_BYTES"); s != "" {
		var err error
		if size, err = strconv.ParseInt(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	const row, most = 100_000, 64 << 10 // bytes, KiB
	rows := size / row
	dir := t.TempDir()
	pipe, file := filepath.Join(dir, "rows"), filepath.Join(dir, "s.yaml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	url := serve(t, bin.gosdkserver, "-mode", "stateless")
	text := `version: 1
data: {rows: {file: rows, format: jsonl, columns: [id], pick: unique}}
servers: {a: {url: "` + url + `"}}
load: {groups: {g: {sessions: 2, duration: 10m}}}
flows: {f: {steps: [{tools/call: {name: echo, arguments: {message: "${{ data.rows.id }}"}}}]}}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), bin.mcpbench, "run", file, "--json", "-q", "-o", filepath.Join(dir, "results"))
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	peak := 0
	err := func() error {
		w, err := os.OpenFile(pipe, os.O_WRONLY, 0) //nolint:gosec // our own
		if err != nil {
			return err
		}
		b := bufio.NewWriterSize(w, 1<<20)
		padding := strings.Repeat("x", row)
		for i := range rows {
			if _, err := fmt.Fprintf(b, "{\"id\":\"%d\",\"padding\":\"%s\"}\n", i, padding); err != nil {
				return err
			}
			if i%100 == 0 || i == rows-1 {
				peak = max(peak, peakOf(cmd.Process.Pid))
			}
		}
		if err := b.Flush(); err != nil {
			return err
		}
		return w.Close()
	}()
	if err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	var s metrics.Summary
	if err := json.Unmarshal(out.Bytes(), &s); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d rows of 100 kB, %d requests ok, at most %d MiB", rows, s.Requests.OK, peak>>10)
	if s.Requests.OK != rows || s.Requests.Total != rows {
		t.Errorf("requests %+v, want %d", s.Requests, rows)
	}
	if peak == 0 || peak > most {
		t.Errorf("the command took %d KiB, want at most %d", peak, most)
	}
}

// peakOf is the most memory that a process has had, in KiB; 0 when it is over.
func peakOf(pid int) int {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(data), "VmHWM:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	n, err := strconv.Atoi(fields[0])
	if err != nil {
		return 0
	}
	return n
}
