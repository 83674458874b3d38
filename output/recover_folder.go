package output

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ErrNotResults says that a folder is not the results folder of a run.
var ErrNotResults = errors.New("not a results folder of mcpbench")

// NeedsRecovery reports whether dir is a results folder whose run has ended
// without finishing its files. The error is ErrRunning while the run goes on,
// and ErrNotResults when dir is no results folder.
func NeedsRecovery(dir string) (bool, error) {
	if err := resultsFolder(dir); err != nil {
		return false, err
	}
	names, err := journalNames(dir)
	if err != nil {
		return false, err
	}
	run, err := readRun(dir)
	if err == nil && run.EndedAt != nil && !slices.ContainsFunc(names, isSegment) {
		return false, nil
	}
	if len(names) == 0 {
		return true, nil
	}
	lock, err := takeLock(dir)
	if err != nil {
		return false, err
	}
	return true, lock.Close()
}

// Complete recovers dir when it needs that; done is false when it does not.
// The error is ErrRunning while its run goes on: the folder may then be read as
// it is. Commands call it for each folder that they open.
func Complete(dir string) (report RecoverReport, done bool, err error) {
	if needs, err := NeedsRecovery(dir); !needs {
		return RecoverReport{}, false, err
	}
	report, err = Recover(dir)
	return report, err == nil, err
}

// resultsFolder tells a results folder by run.json or its journal.
func resultsFolder(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("open results folder: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is a file: %w", dir, ErrNotResults)
	}
	for _, name := range []string{runName, filepath.Join(journalFolder, segmentName(0)), filepath.Join(journalFolder, connectsName)} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
			return nil
		}
	}
	return fmt.Errorf("%w: there is no %s in it", ErrNotResults, runName)
}

// readRun reads run.json. A file of another kind or of a later version is an error.
func readRun(dir string) (*RunFile, error) {
	data, err := os.ReadFile(filepath.Join(filepath.Clean(dir), runName))
	if err != nil {
		return nil, err
	}
	r := &RunFile{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("read %s: %w", runName, err)
	}
	if r.SchemaVersion == 0 || r.RunID == "" {
		return nil, fmt.Errorf("read %s: %w: it has no schema_version or run_id", runName, ErrNotResults)
	}
	if r.SchemaVersion > SchemaVersion {
		return nil, fmt.Errorf("read %s: schema version %d, and this mcpbench knows %d: use a later one", runName, r.SchemaVersion, SchemaVersion)
	}
	return r, nil
}

// journalNames lists the journal of a folder, nil when it has none.
func journalNames(dir string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(dir, journalFolder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the journal: %w", err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, nil
}

func isSegment(name string) bool { _, ok := segmentNumber(name); return ok }

// segmentNumber reads the number from the name of a segment.
func segmentNumber(name string) (int, bool) {
	digits, ok := strings.CutSuffix(name, ".wal")
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	return n, err == nil && n >= 0 && segmentName(n) == name
}

// partNumber is -1 for a file that is no part of ours.
func partNumber(path string) int {
	name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), "part-"), ".parquet")
	if n, err := strconv.Atoi(name); err == nil {
		return n
	}
	return -1
}

// tornOnly reports whether a file without a whole frame holds nothing but the
// first bytes of one, or nothing at all.
func tornOnly(path string) bool {
	file, err := os.Open(filepath.Clean(path))
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }() // it is only read
	start := make([]byte, len(frameMagic))
	n, err := io.ReadFull(file, start)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return false
	}
	info, err := file.Stat()
	if err != nil || !strings.HasPrefix(frameMagic, string(start[:n])) {
		return false
	}
	next, err := newFrameReader(file, info.Size()).search(1)
	return err == nil && next < 0
}
