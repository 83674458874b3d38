package output

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/oklog/ulid/v2"

	"mcpbench/metrics"
)

// partialSuffix marks a file that is still being written. No reader looks at
// such a file; only a complete one is renamed to its final name.
const partialSuffix = ".partial"

// Files of a results folder.
const (
	runName      = "run.json"
	summaryName  = "summary.json"
	scenarioName = "scenario.resolved.yaml"
	probeName    = "probe"
)

// NewRunID returns a new run id: a ULID, so that the names of results folders
// sort by the time of their start.
func NewRunID() string {
	return ulid.MustNew(ulid.Timestamp(time.Now()), rand.Reader).String()
}

// Folder is the results folder of one run. Its methods may be called by one
// goroutine at a time.
type Folder struct {
	path string
	lock *os.File // held from NewParquet to the last WriteRun, or nil
	// damaged are files of the journal that stay, under another name, when the
	// rest of it goes.
	damaged []string
}

// Create makes the folder DIR/RUN_ID with all its parents and proves that
// files can be written in it. The error names the path and says what to do.
func Create(dir, runID string) (*Folder, error) {
	if dir == "" || runID == "" {
		return nil, fmt.Errorf("create results folder: need a folder and a run id, have %q and %q", dir, runID)
	}
	path := filepath.Join(dir, runID)
	if _, err := os.Lstat(path); err == nil {
		return nil, folderError(path, fs.ErrExist)
	}
	if err := makeFolder(path); err != nil {
		return nil, folderError(path, err)
	}
	probe := filepath.Join(path, probeName+partialSuffix)
	if err := os.WriteFile(probe, []byte(runID), 0o600); err != nil {
		return nil, folderError(path, err)
	}
	if err := os.Remove(probe); err != nil {
		return nil, folderError(path, err)
	}
	return &Folder{path: path}, nil
}

// Path returns the folder's path: DIR/RUN_ID, relative when DIR was.
func (f *Folder) Path() string { return f.path }

// WriteRun writes run.json. It is called at the start, after NewParquet, and
// again at the end; the later call replaces the file whole. With EndedAt set it is the last word
// about the run: the lock that NewParquet took is given up, and the journal is
// removed unless a segment is left that could not be compacted. It then comes
// after Parquet.Close, WriteRuns and WriteSummary, so that a kill before it
// leaves a folder that Recover finishes.
func (f *Folder) WriteRun(r *RunFile) error {
	data, err := encodeJSON(r.normal())
	if err != nil {
		return fmt.Errorf("encode run.json: %w", err)
	}
	if err := f.write(runName, data); err != nil || r.EndedAt == nil {
		return err
	}
	return f.endRun()
}

// WriteSummary writes summary.json, the same object that WriteJSON prints.
func (f *Folder) WriteSummary(s *metrics.Summary) error {
	data, err := encodeSummary(s)
	if err != nil {
		return fmt.Errorf("encode summary.json: %w", err)
	}
	return f.write(summaryName, data)
}

// WriteScenario writes scenario.resolved.yaml. The caller has masked secrets.
func (f *Folder) WriteScenario(yaml []byte) error {
	return f.write(scenarioName, yaml)
}

// write puts a file in place whole or not at all.
func (f *Folder) write(name string, data []byte) error {
	path := filepath.Join(f.path, name)
	file, err := os.Create(filepath.Clean(path + partialSuffix))
	if err != nil {
		return writeError(path, err)
	}
	if _, err = file.Write(data); err != nil {
		err = errors.Join(err, file.Close())
	} else {
		err = publish(file, path)
	}
	if err != nil {
		_ = os.Remove(path + partialSuffix) // it is of no use to anybody
		return writeError(path, err)
	}
	return nil
}

// publish makes a written file durable under its final name and closes it.
func publish(file *os.File, path string) error {
	if err := file.Sync(); err != nil {
		return errors.Join(err, file.Close())
	}
	if err := file.Close(); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func makeFolder(path string) error {
	return os.MkdirAll(path, 0o755) //nolint:gosec // results are for others to read; the umask has the last word
}

// syncDir makes a rename in dir durable. File systems that cannot sync a
// folder say EINVAL or ENOTSUP; the rename holds there all the same.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" { // a folder cannot be synced there
		return nil
	}
	d, err := os.Open(filepath.Clean(dir))
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return errors.Join(err, d.Close())
}

// unwritableError is a file that could not be written. What the system says names
// the unfinished file too, so path is named once.
type unwritableError struct {
	path string
	err  error
}

func (e *unwritableError) Error() string {
	return fmt.Sprintf("write %s: %v%s", e.path, e.err, advice(e.err))
}
func (e *unwritableError) Unwrap() error { return e.err }

func writeError(path string, err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	} else if e, ok := errors.AsType[*os.LinkError](err); ok {
		err = e.Err
	}
	return &unwritableError{path, err}
}

// folderError names the part of path that is in the way, when one is.
func folderError(path string, err error) error {
	if errors.Is(err, syscall.ENOTDIR) || errors.Is(err, fs.ErrExist) {
		for p := path; ; p = filepath.Dir(p) {
			if info, statErr := os.Stat(p); statErr == nil {
				if !info.IsDir() {
					return fmt.Errorf("create results folder %s: %s is a file, not a folder: name another folder with -o", path, p)
				}
				break
			}
			if p == filepath.Dir(p) {
				break
			}
		}
	}
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("create results folder %s: it exists already, and a run never writes into the folder of another", path)
	}
	return fmt.Errorf("create results folder %s: %w%s", path, err, advice(err))
}

func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

func isReadOnly(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}

// advice says what can be done about err, or nothing.
func advice(err error) string {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return ": name a folder that you may write with -o"
	case errors.Is(err, syscall.EROFS):
		return ": name a folder on a file system that can be written with -o"
	case isFull(err):
		return ": free some space, or name a folder elsewhere with -o"
	}
	return ""
}

// TableBytes returns the size of the complete parts of a table.
func (f *Folder) TableBytes(table string) (int64, error) {
	parts, err := listParts(f.path, table, "")
	if err != nil {
		return 0, err
	}
	var total int64
	for _, part := range parts {
		info, err := os.Stat(part)
		if err != nil {
			return 0, fmt.Errorf("list parts of %s: %w", table, err)
		}
		total += info.Size()
	}
	return total, nil
}

// listParts lists the parts of a table, of all agents, in the order of their
// numbers; with the suffix of unfinished files, those.
func listParts(folder, table, suffix string) ([]string, error) {
	agents, err := os.ReadDir(filepath.Join(folder, table))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list parts of %s: %w", table, err)
	}
	var parts []string
	for _, agent := range agents {
		if !agent.IsDir() || !strings.HasPrefix(agent.Name(), "agent=") {
			continue
		}
		dir := filepath.Join(folder, table, agent.Name())
		files, err := os.ReadDir(dir)
		if err != nil {
			return nil, fmt.Errorf("list parts of %s: %w", table, err)
		}
		for _, file := range files {
			if name, ok := strings.CutSuffix(file.Name(), suffix); ok && partNumber(name) >= 0 {
				parts = append(parts, filepath.Join(dir, file.Name()))
			}
		}
	}
	slices.SortStableFunc(parts, func(a, b string) int {
		return partNumber(strings.TrimSuffix(a, suffix)) - partNumber(strings.TrimSuffix(b, suffix))
	})
	return parts, nil
}

// partNumber is -1 for a file that is no part of ours.
func partNumber(path string) int {
	digits, prefix := strings.CutPrefix(filepath.Base(path), "part-")
	digits, suffix := strings.CutSuffix(digits, ".parquet")
	if n, err := strconv.Atoi(digits); err == nil && prefix && suffix && n >= 0 {
		return n
	}
	return -1
}
