package output_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"mcpbench/output"
)

// smallDisk mounts a file system of some size, or skips the test.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("mounting a tmpfs needs root")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("no tmpfs can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// ballast takes n bytes of a disk.
func ballast(t *testing.T, dir string, n int) string {
	t.Helper()
	path := filepath.Join(dir, "ballast")
	if err := os.WriteFile(path, make([]byte, n), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestFullFileSystem fills a small file system, once while the journal grows
// and once while a segment becomes parts. The run ends with an error that says
// so, what could be written stays readable, and once there is room the folder
// is recovered where it is, with all rows before the error.
func TestFullFileSystem(t *testing.T) {
	const size = 4096 // KiB
	for partRows, room := range map[int]int{0: 300, 4000: 500} {
		t.Run(fmt.Sprint(partRows), func(t *testing.T) {
			disk := smallDisk(t, fmt.Sprint(size, "k"))
			weight := ballast(t, disk, (size-room)<<10)
			dir, written := fill(t, disk, partRows)
			for _, table := range []string{"requests", "iterations"} { // whatever is there is whole
				tableRows(t, dir, table)
			}
			if _, err := output.Recover(dir); err != nil && !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("Recover on the full disk: %v", err)
			}
			if err := os.Remove(weight); err != nil {
				t.Fatal(err)
			}
			report, err := output.Recover(dir)
			if err != nil || report.Err() != nil {
				t.Fatalf("Recover: %+v, %v, %v", report, err, report.Err())
			}
			rows := tableRows(t, dir, "iterations")
			if uint64(len(rows)) != written || len(tableRows(t, dir, "requests")) != len(rows) {
				t.Errorf("%d iterations, want %d: %+v", len(rows), written, report)
			}
		})
	}
}

// fill records arrivals until the disk is full, and ends the run as it does then.
func fill(t *testing.T, disk string, partRows int) (dir string, written uint64) {
	t.Helper()
	folder, err := output.Create(disk, "RUN")
	if err != nil {
		t.Fatal(err)
	}
	p, err := output.NewParquet(output.ParquetConfig{Folder: folder, RunID: "RUN", Catalog: testCatalog(), T0: t0, PartRows: partRows})
	if err := errors.Join(err, folder.WriteRun(&output.RunFile{RunID: "RUN", StartedAt: t0})); err != nil {
		t.Fatal(err)
	}
	for err == nil {
		if err = p.Write(arrival(written, 0, 1)); err == nil {
			written++
		}
	}
	if !errors.Is(err, syscall.ENOSPC) || written == 0 {
		t.Fatalf("Write: %v after %d requests", err, written)
	}
	if err := p.Close(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Close: %v, want the full disk", err)
	}
	ended, code := t0, 1
	err = folder.WriteRun(&output.RunFile{RunID: "RUN", Verdict: "error", EndedAt: &ended, ExitCode: &code})
	if err != nil && !errors.Is(err, syscall.ENOSPC) {
		t.Error(err)
	}
	if err := output.Unlock(folder); err != nil { // as the end of the process does
		t.Fatal(err)
	}
	return folder.Path(), written
}

// TestReadOnlyFolder: a complete one can be opened, another can not be
// recovered, and it is said what to do.
func TestReadOnlyFolder(t *testing.T) {
	disk := smallDisk(t, "8m")
	copied := func(name, from string) string {
		if err := os.CopyFS(filepath.Join(disk, name), os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(disk, name)
	}
	base := threeBatches(t, false)
	dir, complete := copied("cut", base), copied("complete", base)
	if _, err := output.Recover(complete); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("", disk, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Skipf("no file system can be made read-only here: %v", err)
	}
	if report, err := output.Recover(complete); err != nil || !report.Complete {
		t.Errorf("complete: %+v, %v", report, err)
	}
	_, err := output.Recover(dir)
	want := fmt.Sprintf("recover %s: write %s: read-only file system: copy the folder to where it can be written and recover the copy", dir, wal(dir, "lock"))
	if err == nil || err.Error() != want {
		t.Errorf("got error\n%v, want\n%s", err, want)
	}
}
