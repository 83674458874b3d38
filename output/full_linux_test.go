package output_test

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"mcpbench/output"
)

// TestFullFileSystem fills a small file system: the write that finds no room
// says so, and once there is room all rows before it are there.
func TestFullFileSystem(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounting a tmpfs needs root")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=512k"); err != nil {
		t.Skipf("no tmpfs can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		// The lock is still open: a run gives it up with its last word, which
		// finds no room here.
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	folder, err := output.Create(dir, "RUN")
	if err != nil {
		t.Fatal(err)
	}
	p, err := output.NewParquet(output.ParquetConfig{Folder: folder, RunID: "RUN", Catalog: testCatalog(), T0: t0})
	if err := errors.Join(err, folder.WriteRun(&output.RunFile{RunID: "RUN", StartedAt: t0})); err != nil {
		t.Fatal(err)
	}
	batch, written := lawfulSamples(100, 1), 0
	for err == nil {
		if err = p.Write(batch); err == nil {
			written += 100
		}
	}
	if !errors.Is(err, syscall.ENOSPC) || written == 0 {
		t.Fatalf("Write: %v after %d requests", err, written)
	}
	if err := p.Close(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Close: %v, want the full disk", err)
	}
	killed := copyFolder(t, folder.Path()) // where there is room
	report, err := output.Recover(killed)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(tables(t, killed)["requests"]); got != written || report.TornBytes != 0 {
		t.Errorf("%d requests, want %d: %+v", got, written, report)
	}
}
