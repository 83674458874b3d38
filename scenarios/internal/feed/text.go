package feed

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"mcpbench/internal/nearest"
)

// text is how the rows of a file of CSV or JSON lines become values. It is
// immutable once its columns are chosen.
type text struct {
	file    string
	csv     bool
	comma   byte
	columns []string          // that rows have
	names   []string          // of CSV: of each field, "" where it is not wanted
	header  int64             // of CSV: where the first row begins
	line    int64             // the line there
	known   map[string]string // of JSON: the columns, so that a row need not make their names
	only    bool              // no others
}

func (t *text) framer() framer { return framer{csv: t.csv, comma: t.comma} }

// fill adds the values of a row to dst.
func (t *text) fill(row rawRow, dst Row) error {
	var err error
	switch {
	case row.long:
		err = fmt.Errorf("the row is longer than %d MiB", maxRow>>20)
	case !utf8.Valid(row.data):
		err = errors.New("the row is not UTF-8; save the file as UTF-8")
	case t.csv:
		err = t.fillCSV(row.data, dst)
	default:
		err = t.fillJSON(row.data, dst)
	}
	if err != nil {
		return &RowError{File: t.file, Line: row.line, Err: err}
	}
	return nil
}

// begin reads what comes before the first row: a byte order mark, and the names
// of CSV.
func (t *text) begin(s *scanner, wanted []string) error {
	t.header, t.line = 0, 1
	if err := skipMark(s); err != nil {
		return fmt.Errorf("%s: %w", t.file, err)
	}
	if t.csv {
		row, err := s.next()
		switch {
		case errors.Is(err, io.EOF):
			return fmt.Errorf("%s is empty; a CSV file begins with a line of names", t.file)
		case err != nil:
			return fmt.Errorf("read %s: %w", t.file, err)
		}
		if err := t.head(row, wanted); err != nil {
			return err
		}
	}
	t.header, t.line = s.off, s.line
	return nil
}

// head takes the names of columns.
func (t *text) head(row rawRow, wanted []string) error {
	var names []string
	var err error
	switch {
	case row.long || len(row.data) > 1<<20:
		err = errors.New("the line of names is longer than 1 MiB")
	case !utf8.Valid(row.data):
		err = errors.New("the line of names is not UTF-8; save the file as UTF-8")
	default:
		names, err = splitCSV(row.data, t.comma)
	}
	if err != nil {
		return &RowError{File: t.file, Line: row.line, Err: err}
	}
	var known []string
	for _, n := range names {
		switch {
		case n == "": // cannot be asked for
		case slices.Contains(known, n):
			return &RowError{File: t.file, Line: row.line, Err: fmt.Errorf("two columns are called %q", n)}
		default:
			known = append(known, n)
		}
	}
	if t.columns, err = choose(t.file, wanted, known); err != nil {
		return err
	}
	t.names = names
	for i, n := range names {
		if !slices.Contains(t.columns, n) {
			t.names[i] = ""
		}
	}
	return nil
}

// learn takes the columns of JSON, whose rows need not be alike, from the first
// ones, of which at least one must be good.
func (t *text) learn(first []rawRow, wanted []string) error {
	var known []string
	var bad error
	good := 0
	for _, row := range first {
		names, err := t.keys(row)
		if err != nil {
			if bad == nil {
				bad = err
			}
			continue
		}
		good++
		for _, n := range names {
			if !slices.Contains(known, n) {
				known = append(known, n)
			}
		}
	}
	if good == 0 && bad != nil {
		return bad
	}
	var err error
	if t.columns, err = choose(t.file, wanted, known); err != nil {
		return err
	}
	t.known, t.only = map[string]string{}, len(wanted) > 0
	for _, n := range t.columns {
		t.known[n] = n
	}
	return nil
}

// keys returns the names in a row of JSON.
func (t *text) keys(row rawRow) ([]string, error) {
	whole := text{file: t.file}
	values := Row{}
	if err := whole.fill(row, values); err != nil {
		return nil, err
	}
	names := make([]string, 0, len(values))
	for n := range values {
		names = append(names, n)
	}
	slices.Sort(names)
	return names, nil
}

// choose returns the columns to keep: the wanted ones of the known, or all.
func choose(file string, wanted, known []string) ([]string, error) {
	if len(wanted) == 0 {
		return known, nil
	}
	for _, w := range wanted {
		if !slices.Contains(known, w) {
			return nil, fmt.Errorf("%s has no column %q%s; it has %s", file, w, nearest.DidYouMean(w, known), listed(known))
		}
	}
	return slices.Clone(wanted), nil
}

// listed names columns, the first 20 of them.
func listed(names []string) string {
	const most = 20
	if len(names) == 0 {
		return "none"
	}
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// skipMark leaves out a byte order mark.
func skipMark(s *scanner) error {
	for len(s.buf) < 3 && !s.last {
		s.read()
	}
	if s.err != nil {
		return fmt.Errorf("read: %w", s.err)
	}
	if len(s.buf) >= 2 && (s.buf[0] == 0xff && s.buf[1] == 0xfe || s.buf[0] == 0xfe && s.buf[1] == 0xff) {
		return errors.New("is UTF-16; save it as UTF-8")
	}
	if strings.HasPrefix(string(s.buf[:min(3, len(s.buf))]), "\uFEFF") {
		s.use(3)
	}
	return nil
}
