package output

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// RecoverReport says what Recover found and did.
type RecoverReport struct {
	RunID string
	// Complete says that there was nothing to do.
	Complete bool
	Segments int       // journal segments that became Parquet parts
	Rows     TableRows // made of the journal
	// Interrupted is the number of iterations that got their row here: they were
	// due or under way when the run was cut off, at At since the clock started.
	// Sessions were open then.
	Interrupted, Sessions int64
	At                    time.Duration
	// TornBytes were after the last whole frame of a file, and TornRecords are
	// missing there: a write that the end of the run cut short.
	TornBytes, TornRecords int64
	// Unjournalled attempts to open a session are missing in the summary: there
	// was no room for them in the journal.
	Unjournalled int64
	// Lost is what was recorded and could not be read; nil is nothing. The files
	// that it was in are kept, as NAME.damaged.
	Lost *Losses
	// Aside names files of the journal that are none of this run: kept, under
	// the name NAME.damaged when theirs was that of a segment.
	Aside []string
	// Partials is the number of unfinished files removed.
	Partials int
	// Verdict is that of run.json: interrupted when the run had not ended by
	// itself, error when something was lost.
	Verdict string
	// Summarized says that summary.json was written here.
	Summarized bool
}

// Err says what was lost; nil when nothing was. Such a run has failed, whatever
// could be saved of it.
func (r *RecoverReport) Err() error {
	if r.Lost == nil {
		return nil
	}
	return r.Lost.Err()
}

// Err is an error that names the losses.
func (l *Losses) Err() error {
	var b strings.Builder
	if l.Records > 0 {
		fmt.Fprintf(&b, "%s of the run lost (%s)", counted(l.Records, "record"), formatBytes(l.Bytes))
	} else {
		b.WriteString("something of the run is lost")
	}
	for i, p := range l.Places {
		if i == maxNamed {
			fmt.Fprintf(&b, "; and at %s", counted(int64(len(l.Places)-i), "other place"))
			break
		}
		fmt.Fprintf(&b, "; %s", p.text())
	}
	b.WriteString("; everything else is kept")
	return errors.New(b.String())
}

// maxNamed is how many losses one line names.
const maxNamed = 3

func (l *Loss) text() string {
	if l.Offset > 0 || l.Bytes > 0 {
		return fmt.Sprintf("%s at offset %d (%s): %s", l.File, l.Offset, counted(l.Bytes, "byte"), l.Reason)
	}
	return l.File + ": " + l.Reason
}

func counted(n int64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// Text is what a person is told of the recovery of a folder; each line ends
// with a newline.
func (r *RecoverReport) Text(dir string) string {
	if r.Complete {
		return fmt.Sprintf("%s: complete already, verdict %s\n", dir, r.Verdict)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: recovered %s from %s, verdict %s\n", dir, counted(r.Rows.Requests, "request"),
		counted(int64(r.Segments), "journal segment"), r.Verdict)
	if r.Summarized {
		fmt.Fprintf(&b, "  cut off after %s: %s due or under way without a known end, %s open\n",
			r.At.Round(time.Millisecond), counted(r.Interrupted, "iteration"), counted(r.Sessions, "session"))
	}
	if r.TornBytes > 0 || r.TornRecords > 0 {
		fmt.Fprintf(&b, "  the last write was cut short: %s left out", formatBytes(r.TornBytes))
		if r.TornRecords > 0 {
			fmt.Fprintf(&b, ", %s", counted(r.TornRecords, "record"))
		}
		b.WriteString("\n")
	}
	if r.Unjournalled > 0 {
		fmt.Fprintf(&b, "  the journal had no room for %s to open a session: the summary lacks them\n", counted(r.Unjournalled, "attempt"))
	}
	if r.Lost != nil {
		for i := range r.Lost.Places {
			fmt.Fprintf(&b, "  lost: %s\n", r.Lost.Places[i].text())
		}
	}
	for _, name := range r.Aside {
		fmt.Fprintf(&b, "  left alone: %s/%s\n", journalFolder, name)
	}
	return b.String()
}

// Results is a results folder that can be read.
type Results struct {
	Path string
	Run  *RunFile
	// Running says that the run goes on: the folder is what there is of it so far.
	Running bool
}

// Open is how a command opens a results folder that it wants to read. One whose
// run was killed is completed first, and what was done, or is lost, is told on
// notices. A folder in which a run goes on is read as it is. The errors are
// those of Recover.
func Open(dir string, notices io.Writer) (*Results, error) {
	report, err := Recover(dir)
	r := &Results{Path: dir, Running: errors.Is(err, ErrRunning)}
	if err != nil && !r.Running {
		return nil, err
	}
	note := ""
	switch {
	case r.Running:
		note = dir + ": still running: these are the results so far\n"
	case !report.Complete:
		note = report.Text(dir)
	case report.Lost != nil:
		note = fmt.Sprintf("%s: %v\n", dir, report.Err())
	}
	if _, err := io.WriteString(notices, note); err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	if r.Run, err = readRun(dir); err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	return r, nil
}
