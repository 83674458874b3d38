package output

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"mcpbench/metrics"
)

// RecoverReport says what Recover found and did.
type RecoverReport struct {
	RunID    string
	Segments int       // journal segments that became Parquet parts
	Rows     TableRows // of these segments
	// TornBytes were after the last whole frame of a segment: a write that the
	// kill cut short.
	TornBytes int64
	// Gaps is the number of places where bytes were damaged between good frames.
	// LostRecords is what the damaged frames held, LostBytes their size. Such a
	// segment is kept, as NAME.damaged.
	Gaps                   int
	LostRecords, LostBytes int64
	// Aside names files of the journal that are no segments of this run: kept,
	// under the name NAME.damaged when theirs was that of a segment.
	Aside []string
	// Partials is the number of unfinished files removed.
	Partials int
	// Verdict is that of run.json, interrupted when the run had not ended by itself.
	Verdict string
	// Summarized says that summary.json was written here.
	Summarized bool
}

// Recover finishes the files of a run that was killed: the segments of its
// journal become Parquet parts, unfinished files are removed, and summary.json,
// the runs table and run.json say what came of it. What can be read is kept,
// what cannot is counted in the report. On an error nothing is lost: the
// journal is left for another attempt, and a repeated call changes nothing. The
// error is ErrRunning while the run goes on, and ErrNotResults when dir is no
// results folder.
func Recover(dir string) (RecoverReport, error) {
	var report RecoverReport
	if err := resultsFolder(dir); err != nil {
		return report, fmt.Errorf("recover %s: %w", dir, err)
	}
	f := &Folder{path: dir}
	if err := f.lockRun(); err != nil {
		return report, fmt.Errorf("recover %s: %w", dir, err)
	}
	r := recovery{dir: dir, report: &report}
	if err := r.run(); err != nil {
		return report, fmt.Errorf("recover %s: %w", dir, errors.Join(err, f.unlock()))
	}
	if err := f.endRun(); err != nil {
		return report, fmt.Errorf("recover %s: %w", dir, err)
	}
	return report, nil
}

// recovery is one call of Recover.
type recovery struct {
	dir    string
	report *RecoverReport
	file   *RunFile     // run.json, nil when it cannot be read
	meta   *journalMeta // of the run, nil when no journal file has any
	block  tableBlock
}

func (r *recovery) run() error {
	file, fileErr := readRun(r.dir)
	if fileErr == nil {
		r.file, r.report.RunID = file, file.RunID
	}
	names, err := journalNames(r.dir)
	if err != nil {
		return err
	}
	r.findMeta(names)
	if r.file == nil {
		if r.meta == nil || r.meta.Run == nil || !errors.Is(fileErr, fs.ErrNotExist) {
			return fileErr
		}
		r.file, r.report.RunID = r.meta.Run, r.meta.RunID
	}
	if err := r.removePartials(); err != nil {
		return err
	}
	for _, name := range names {
		if err := r.recoverFile(name); err != nil {
			return err
		}
	}
	if err := r.emptyTables(); err != nil {
		return err
	}
	return r.conclude()
}

// findMeta looks for the metadata of the run: the last that any file of the
// journal has, and best those of the connects, which all runs have.
func (r *recovery) findMeta(names []string) {
	for _, name := range names {
		if name != connectsName && !isSegment(name) {
			continue
		}
		m := lastMeta(filepath.Join(r.dir, journalFolder, name))
		if m != nil && (r.file == nil || m.RunID == r.file.RunID) {
			r.meta = m
		}
	}
}

// lastMeta returns the last metadata of a journal file, nil when it has none.
func lastMeta(path string) *journalMeta {
	frames, file, err := openFrames(path)
	if err != nil {
		return nil
	}
	defer func() { _ = file.Close() }() // it was only read
	var last *journalMeta
	for {
		f, err := frames.next()
		if err != nil {
			return last
		}
		if !isMeta(f) {
			if last != nil {
				return last // the final metadata come with the first rows
			}
			continue
		}
		d := decoder{rest: f.payload[1:]}
		if m, err := d.meta(); err == nil {
			last = m
		}
	}
}

// recoverFile does what is due with one file of the journal.
func (r *recovery) recoverFile(name string) error {
	number, ok := segmentNumber(name)
	if !ok {
		if name != connectsName && name != lockName {
			r.report.Aside = append(r.report.Aside, name)
		}
		return nil
	}
	path := filepath.Join(r.dir, journalFolder, name)
	var fallback *journalMeta
	if r.meta != nil {
		m := *r.meta
		m.Segment = number
		fallback = &m
	}
	out, err := compactSegment(r.dir, r.report.RunID, number, &r.block, fallback, nil)
	switch {
	case errors.Is(err, errNoFrames) && tornOnly(path):
		r.report.TornBytes += out.damage.TornBytes
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("remove an empty segment: %w", err)
		}
		return nil
	case errors.Is(err, errForeign), errors.Is(err, errNoMetadata), errors.Is(err, errNoFrames):
		r.report.Aside = append(r.report.Aside, name)
		return setAside(path)
	case err != nil:
		return err
	}
	r.report.Segments++
	r.report.Rows.add(out.rows)
	r.report.TornBytes += out.damage.TornBytes
	r.report.Gaps += out.damage.Gaps
	r.report.LostRecords += out.damage.LostRecords
	r.report.LostBytes += out.damage.LostBytes
	return nil
}

// removePartials removes what a kill left unfinished, by the names that we give.
func (r *recovery) removePartials() error {
	names := []string{runName, summaryName, scenarioName, probeName}
	for i := range names {
		names[i] = filepath.Join(r.dir, names[i]+partialSuffix)
	}
	for _, table := range append(slices.Clone(tableNames), "runs") {
		found, err := filepath.Glob(filepath.Join(r.dir, table, "agent=*", "part-*.parquet"+partialSuffix))
		if err != nil {
			return fmt.Errorf("list unfinished parts: %w", err)
		}
		names = append(names, found...)
	}
	for _, name := range names {
		err := os.Remove(name)
		if err == nil {
			r.report.Partials++
		} else if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove an unfinished file: %w", err)
		}
	}
	return nil
}

// tableNames are the tables that come from the journal.
var tableNames = []string{"requests", "iterations", "sessions", "intervals", "load"}

// emptyTables leaves the schema of tables that got no part at all.
func (r *recovery) emptyTables() error {
	t := &segmentTables{folder: r.dir, block: &r.block}
	defer t.end()
	meta := r.metaOrNone()
	if err := t.use(meta); err != nil {
		return err
	}
	for table, openTable := range map[string]func() error{
		"requests":   func() error { _, err := t.openRequests(); return err },
		"iterations": func() error { _, err := open(t, &t.iterations, "iterations"); return err },
		"sessions":   func() error { _, err := open(t, &t.sessions, "sessions"); return err },
		"intervals":  func() error { _, err := open(t, &t.intervals, "intervals"); return err },
		"load":       func() error { _, err := open(t, &t.load, "load"); return err },
	} {
		parts, err := r.parts(table)
		if err == nil && len(parts) == 0 {
			err = openTable()
		}
		if err != nil {
			return err
		}
	}
	if err := t.complete(); err != nil {
		return err
	}
	return t.publish()
}

// metaOrNone stands in for the metadata of a run that was killed before its
// journal had any.
func (r *recovery) metaOrNone() *journalMeta {
	if r.meta != nil {
		return r.meta
	}
	c := ParquetConfig{RunID: r.report.RunID, Catalog: &metrics.Catalog{Protocols: []string{""}}, Run: r.file, T0: r.file.StartedAt}
	m := c.meta()
	return &m
}

// parts lists the complete parts of a table in the order of their numbers.
func (r *recovery) parts(table string) ([]string, error) {
	parts, err := filepath.Glob(filepath.Join(r.dir, table, "agent=*", "part-*.parquet"))
	if err != nil {
		return nil, fmt.Errorf("list parts of %s: %w", table, err)
	}
	slices.SortFunc(parts, func(a, b string) int { return partNumber(a) - partNumber(b) })
	return parts, nil
}

// conclude writes what is known only at the end, unless the run did it itself.
func (r *recovery) conclude() error {
	if r.file.EndedAt != nil {
		r.report.Verdict = r.file.Verdict
		return nil
	}
	meta := r.metaOrNone()
	f := &Folder{path: r.dir}
	s, err := readSummary(r.dir)
	if err != nil {
		if s, err = r.summarize(meta); err != nil {
			return fmt.Errorf("summarize the rows: %w", err)
		}
		if err := f.WriteSummary(s); err != nil {
			return err
		}
		r.report.Summarized = true
	}
	file := *r.file
	ended := file.StartedAt
	if meta.T0 != 0 {
		t0 := time.UnixMicro(meta.T0).UTC()
		file.Clock.T0 = &t0
		ended = t0.Add(time.Duration((s.WarmupS + s.DurationS) * float64(time.Second)))
	}
	file.EndedAt = &ended
	file.Targets, file.Thresholds, file.Verdict, file.ExitCode = s.Targets, s.Thresholds, s.Verdict, &s.ExitCode
	c := ParquetConfig{Folder: f, RunID: file.RunID, Agent: meta.Agent, Catalog: meta.Catalog, Run: &file, T0: time.UnixMicro(meta.T0)}
	if err := WriteRuns(c, s); err != nil {
		return err
	}
	if err := f.WriteRun(&file); err != nil {
		return err
	}
	r.report.Verdict = file.Verdict
	return nil
}

// readSummary reads the summary of a run that was killed after it had one.
func readSummary(dir string) (*metrics.Summary, error) {
	data, err := os.ReadFile(filepath.Join(filepath.Clean(dir), summaryName))
	if err != nil {
		return nil, err
	}
	s := &metrics.Summary{}
	if err := json.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("read %s: %w", summaryName, err)
	}
	return s, nil
}
