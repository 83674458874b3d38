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

// Recover finishes the files of a run that was killed: the segments of its
// journal become Parquet parts, unfinished files are removed, what the run was
// waiting for gets its rows, and summary.json, the runs table and run.json say
// what came of it. What can be read is kept, and what was lost is in the report
// and in run.json. A complete folder is left as it is.
//
// On an error nothing is lost: the journal is left for another attempt, which
// goes on where this one ended. The error is ErrRunning while the run goes on,
// ErrRecovering while another does the same, and ErrNotResults when dir is no
// results folder; nothing is written into such a folder.
func Recover(dir string) (RecoverReport, error) { return recoverSteps(dir, nil) }

// recoverSteps is Recover. step, unless nil, is called before each step: tests
// stop the work there as a kill would.
func recoverSteps(dir string, step func(string) error) (RecoverReport, error) {
	for tries := 1; ; tries++ {
		report, err := recoverOnce(dir, step)
		if err == nil {
			return report, nil
		}
		if !errors.Is(err, errLockGone) || tries == lockTries {
			return report, fmt.Errorf("recover %s: %w", dir, adviseRecovery(err))
		}
	}
}

// lockTries is how often a folder is looked at anew because another has just
// finished its work on it.
const lockTries = 5

func recoverOnce(dir string, step func(string) error) (RecoverReport, error) {
	found, err := look(dir)
	if err != nil {
		return RecoverReport{}, err
	}
	if !found.needsRecovery() {
		return completeAlready(found.run), nil
	}
	f := &Folder{path: dir}
	if err := f.lockRun(lockOfRecover); err != nil {
		return RecoverReport{}, err
	}
	r := recovery{dir: dir, folder: f, report: &RecoverReport{}, step: step}
	if found, err = look(dir); err == nil { // another may have completed it in between
		err = r.run(found)
	}
	if err != nil {
		return *r.report, errors.Join(err, f.unlock())
	}
	return *r.report, f.endRun()
}

func completeAlready(run *RunFile) RecoverReport {
	return RecoverReport{Complete: true, RunID: run.RunID, Verdict: run.Verdict, Lost: run.Recovery}
}

// adviseRecovery says what can be done about a folder that cannot be written.
func adviseRecovery(err error) error {
	e, ok := errors.AsType[*unwritableError](err)
	if !ok {
		return err
	}
	what := ""
	switch {
	case isFull(e.err):
		what = ": free some space and recover it again, nothing is lost"
	case isReadOnly(e.err):
		what = ": copy the folder to where it can be written and recover the copy"
	}
	return fmt.Errorf("write %s: %w%s", e.path, e.err, what)
}

// recovery is one call of Recover.
type recovery struct {
	dir    string
	folder *Folder
	report *RecoverReport
	file   *RunFile     // run.json, or what the journal has of it
	meta   *journalMeta // of the run, nil when there is none in the journal and in the parts
	files  []*journalFile
	marks  []*mark
	broken map[string]bool // parts that cannot be read
	block  tableBlock
	step   func(string) error // see recoverSteps
}

// before is called before each step that a kill may prevent.
func (r *recovery) before(step string) error {
	if r.step == nil {
		return nil
	}
	return r.step(step)
}

func (r *recovery) run(found *found) error {
	if !found.needsRecovery() {
		*r.report = completeAlready(found.run)
		return nil
	}
	// First everything is looked at. Nothing is changed when that fails.
	for _, name := range found.names {
		if name == lockName {
			continue
		}
		f, err := scanFile(r.dir, name)
		if err != nil {
			return err
		}
		r.files = append(r.files, f)
	}
	slices.SortStableFunc(r.files, func(a, b *journalFile) int { return a.number - b.number })
	err := r.identify(found)
	if err != nil {
		return err
	}
	if r.marks, err = readMarks(r.dir, r.file.RunID); err != nil {
		return err
	}
	if err := r.audit(); err != nil {
		return err
	}
	if err := r.removePartials(); err != nil {
		return err
	}
	if found.run == nil && !errors.Is(found.runErr, fs.ErrNotExist) {
		if err := r.before("set run.json aside"); err != nil {
			return err
		}
		if err := setAside(filepath.Join(r.dir, runName)); err != nil {
			return err
		}
	}
	for _, f := range r.files {
		if err := r.recoverFile(f); err != nil {
			return err
		}
	}
	if err := r.emptyTables(); err != nil {
		return err
	}
	return r.conclude()
}

// identify finds out which run this is, and its metadata.
func (r *recovery) identify(found *found) error {
	metas := map[string]*journalMeta{} // by run
	var first *journalMeta
	for _, f := range r.files {
		m := f.meta
		if m == nil || f.aside && first != nil {
			continue
		}
		if first == nil || f.name == connectsName {
			first = m // all runs have connects, and a foreign segment may lie about
		}
		if old := metas[m.RunID]; old == nil || m.final() || !old.final() {
			metas[m.RunID] = m
		}
	}
	if first == nil {
		var err error
		if first, err = metaOfParts(r.dir); err != nil {
			return err
		}
		if first != nil {
			metas[first.RunID] = first
		}
	}
	r.file = found.run
	if r.file == nil {
		// found has it from somewhere
		r.file = first.Run
		if r.file == nil {
			r.file = &RunFile{RunID: first.RunID, StartedAt: time.UnixMicro(first.T0).UTC()}
		}
	}
	r.report.RunID, r.meta = r.file.RunID, metas[r.file.RunID]
	if r.meta == nil && first != nil {
		return fmt.Errorf("%s is of run %s, and the journal of run %s: put the right %[1]s there, or none, since the journal has what is needed",
			runName, r.file.RunID, first.RunID)
	}
	return nil
}

// final reports whether the metadata are those of a run whose clock has started.
func (m *journalMeta) final() bool { return m.Run != nil && m.Run.Clock.T0 != nil }

// recoverFile does what is due with one file of the journal.
func (r *recovery) recoverFile(f *journalFile) error {
	path := filepath.Join(r.dir, journalFolder, f.name)
	damaged := f.damage.Gaps > 0 || f.must > f.records
	switch {
	case f.aside:
		return nil
	case f.number < 0:
		known := f.name == connectsName || slices.Contains(markNames[:], f.name)
		if !known {
			r.report.Aside = append(r.report.Aside, f.name)
		} else if damaged {
			r.folder.damaged = append(r.folder.damaged, f.name)
		}
		return nil
	case !f.ours(r.file.RunID):
		r.report.Aside = append(r.report.Aside, f.name)
		return setAside(path)
	}
	r.report.TornBytes += f.damage.TornBytes
	if f.frames == 0 && !damaged { // the first write to it was cut short
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("remove an empty segment: %w", err)
		}
		return nil
	}
	if f.frames == 0 {
		r.report.Aside = append(r.report.Aside, f.name)
		return setAside(path)
	}
	if r.meta == nil {
		r.lose(Loss{
			File: filepath.Join(journalFolder, f.name), Bytes: f.size, Records: int64(f.records),
			Reason: "the metadata that tell what is in it are lost",
		})
		return setAside(path)
	}
	fallback := *r.meta
	fallback.Segment = f.number
	out, err := compactSegment(r.dir, r.file.RunID, sealed{f.number, max(f.records, f.must)}, &r.block, &fallback, r.step)
	if err != nil {
		return err
	}
	r.report.Segments++
	r.report.Rows.add(out.rows)
	return nil
}

// removePartials removes what a kill left unfinished, by the names that we give.
func (r *recovery) removePartials() error {
	names := []string{runName, summaryName, scenarioName, probeName}
	for i := range names {
		names[i] = filepath.Join(r.dir, names[i]+partialSuffix)
	}
	for _, table := range append(slices.Clone(tableNames), "runs") {
		found, err := listParts(r.dir, table, partialSuffix)
		if err != nil {
			return err
		}
		names = append(names, found...)
	}
	for _, name := range names {
		err := os.Remove(name)
		if err == nil {
			r.report.Partials++
		} else if !errors.Is(err, fs.ErrNotExist) {
			return writeError(name, err)
		}
	}
	return nil
}

// tableNames are the tables that come from the journal.
var tableNames = []string{"requests", "iterations", "sessions", "intervals", "load"}

// emptyTables leaves the schema of tables that got no part at all.
func (r *recovery) emptyTables() error {
	t := &segmentTables{folder: r.dir, block: &r.block, step: r.step}
	defer t.end()
	if err := t.use(r.metaOrNone()); err != nil {
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

// metaOrNone stands in for the metadata of a run that has none left.
func (r *recovery) metaOrNone() *journalMeta {
	if r.meta != nil {
		return r.meta
	}
	c := ParquetConfig{RunID: r.report.RunID, Catalog: &metrics.Catalog{Protocols: []string{""}}, Run: r.file, T0: r.file.StartedAt}
	m := c.meta()
	return &m
}

// parts lists the complete parts of a table in the order of their numbers.
func (r *recovery) parts(table string) ([]string, error) { return listParts(r.dir, table, "") }

// conclude writes what is known only at the end, unless the run did it itself.
func (r *recovery) conclude() error {
	file := *r.file
	file.Recovery = r.report.Lost
	if file.EndedAt != nil {
		r.report.Verdict = file.Verdict
		if r.report.Lost == nil {
			return nil
		}
		return r.folder.WriteRun(&file)
	}
	meta := r.metaOrNone()
	s, err := r.readSummary()
	if err != nil {
		if s, err = r.summarize(meta); err != nil {
			return fmt.Errorf("summarize the rows: %w", err)
		}
		r.report.Summarized = true
	}
	if lost := r.report.Lost; lost != nil { // also what the summary itself has found
		file.Recovery = lost
		s.Verdict, s.ExitCode, s.Error = metrics.VerdictError, metrics.ExitError, lost.Err().Error()
	}
	if r.report.Summarized || r.report.Lost != nil {
		if err := r.before("write the summary"); err != nil {
			return err
		}
		if err := r.folder.WriteSummary(s); err != nil {
			return err
		}
	}
	ended := file.StartedAt
	if meta.T0 != 0 {
		t0 := time.UnixMicro(meta.T0).UTC()
		file.Clock.T0 = &t0
		ended = t0.Add(max(r.report.At, time.Duration((s.WarmupS+s.DurationS)*float64(time.Second))))
	}
	file.EndedAt = &ended
	file.Targets, file.Thresholds, file.Verdict, file.ExitCode = s.Targets, s.Thresholds, s.Verdict, &s.ExitCode
	c := ParquetConfig{Folder: r.folder, RunID: file.RunID, Agent: meta.Agent, Catalog: meta.Catalog, Run: &file, T0: time.UnixMicro(meta.T0)}
	if err := r.before("write the runs"); err != nil {
		return err
	}
	if err := WriteRuns(c, s); err != nil {
		return err
	}
	if err := r.before("write run.json"); err != nil {
		return err
	}
	r.report.Verdict = file.Verdict
	return r.folder.WriteRun(&file)
}

// readSummary reads the summary of a run that was killed after it had one.
func (r *recovery) readSummary() (*metrics.Summary, error) {
	data, err := os.ReadFile(filepath.Join(filepath.Clean(r.dir), summaryName))
	if err != nil {
		return nil, err
	}
	s := &metrics.Summary{}
	if err := json.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("read %s: %w", summaryName, err)
	}
	if s.RunID != r.file.RunID {
		return nil, fmt.Errorf("read %s: it is of run %q", summaryName, s.RunID)
	}
	return s, nil
}
