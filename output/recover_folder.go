package output

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// ErrNotResults says that a folder is not the results folder of a run.
var ErrNotResults = errors.New("not a results folder of mcpbench")

// found is what a look at a folder has found. Nothing was changed by it.
type found struct {
	run    *RunFile // nil when it cannot be read
	runErr error    // why not
	names  []string // the files of the journal
}

// look tells a results folder by run.json, by the frames of its journal or by
// the metadata of its parts: whatever of them can still be read. In a folder
// that is none nothing must be written.
func look(dir string) (*found, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("open results folder: %w", bare(err))
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("it is a file: %w", ErrNotResults)
	}
	f := &found{}
	if f.names, err = journalNames(dir); err != nil {
		return nil, err
	}
	// What may not be read, or not by this version, is not broken.
	if f.run, f.runErr = readRun(dir); f.runErr == nil || errors.Is(f.runErr, errLater) || errors.Is(f.runErr, errUnread) {
		return f, f.runErr
	}
	for _, name := range f.names {
		path := filepath.Join(dir, journalFolder, name)
		if _, err := firstMeta(path); err == nil || errors.Is(err, errLater) {
			return f, err
		}
	}
	if meta, err := metaOfParts(dir); meta != nil {
		return f, err
	}
	if errors.Is(f.runErr, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: there is no %s in it", ErrNotResults, runName)
	}
	return nil, f.runErr
}

// needsRecovery reports whether the run has ended without finishing its files.
func (f *found) needsRecovery() bool {
	return f.run == nil || f.run.EndedAt == nil || slices.ContainsFunc(f.names, isSegment)
}

// bare is what the system says, without the path.
func bare(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// readRun reads run.json. A file of another kind or of a later version is an error.
func readRun(dir string) (*RunFile, error) {
	path := filepath.Join(dir, runName)
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read %s: %w: it is no file", runName, ErrNotResults)
	}
	var data []byte
	if err == nil {
		data, err = os.ReadFile(filepath.Clean(path))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read %s: %w", runName, bare(err))
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errUnread, runName, bare(err))
	}
	var keys struct {
		SchemaVersion int     `json:"schema_version"`
		RunID         string  `json:"run_id"`
		Mcpbench      *string `json:"mcpbench"`
	}
	if err := json.Unmarshal(data, &keys); err != nil {
		return nil, fmt.Errorf("read %s: %w", runName, err)
	}
	if keys.SchemaVersion > SchemaVersion && keys.RunID != "" {
		return nil, laterVersion(runName, keys.SchemaVersion)
	}
	if keys.SchemaVersion == 0 || keys.RunID == "" || keys.Mcpbench == nil {
		return nil, fmt.Errorf("read %s: %w: it has no schema_version, run_id or mcpbench", runName, ErrNotResults)
	}
	r := &RunFile{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("read %s: %w", runName, err)
	}
	return r, nil
}

// errUnread says that the system did not let us read a file: it may be whole.
var errUnread = errors.New("read")

// journalNames lists the files of a folder's journal, nil when it has none. What
// is no plain file is none of ours.
func journalNames(dir string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(dir, journalFolder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the journal: %w", bare(err))
	}
	var names []string
	for _, e := range entries {
		if info, err := os.Stat(filepath.Join(dir, journalFolder, e.Name())); err == nil && info.Mode().IsRegular() {
			names = append(names, e.Name())
		}
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

// metaOfParts reads the metadata of the run from the first part that has any;
// nil when none has.
func metaOfParts(dir string) (*journalMeta, error) {
	for _, table := range tableNames {
		parts, err := listParts(dir, table, "")
		if err != nil {
			return nil, err
		}
		for _, part := range parts {
			meta, err := metaOfPart(part)
			if meta != nil || errors.Is(err, errLater) {
				return meta, err
			}
		}
	}
	return nil, nil
}

func metaOfPart(path string) (*journalMeta, error) {
	file, err := os.Open(filepath.Clean(path))
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it is only read
	pf, err := openPartFile(file, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, err
	}
	text, ok := pf.Lookup(journalKey)
	if !ok {
		return nil, ErrNotResults
	}
	m, err := parseMeta([]byte(text))
	if err != nil {
		return nil, err
	}
	if text, ok := pf.Lookup(runKey); ok {
		m.Run = &RunFile{}
		if err := json.Unmarshal([]byte(text), m.Run); err != nil {
			m.Run = nil
		}
	}
	return m, nil
}
