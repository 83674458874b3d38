package feed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
)

// list is rows of the scenario.
type list []Row

func newList(name string, rows []Row, wanted []string) (store, []string, error) {
	if len(rows) == 0 {
		return nil, nil, errors.New("the list has no rows")
	}
	var known []string
	for _, row := range rows {
		names := make([]string, 0, len(row))
		for n := range row {
			names = append(names, n)
		}
		slices.Sort(names)
		for _, n := range names {
			if !slices.Contains(known, n) {
				known = append(known, n)
			}
		}
	}
	columns, err := choose(fmt.Sprintf("the list of %s", name), wanted, known)
	if err != nil {
		return nil, nil, err
	}
	if len(wanted) == 0 {
		return list(rows), columns, nil
	}
	kept := make(list, len(rows))
	for i, row := range rows {
		kept[i] = Row{}
		for _, c := range columns {
			if v, ok := row[c]; ok {
				kept[i][c] = v
			}
		}
	}
	return kept, columns, nil
}

func (l list) fill(_ context.Context, n int64, dst Row) error {
	if n >= int64(len(l)) {
		return io.EOF
	}
	maps.Copy(dst, l[n])
	return nil
}

func (l list) rows() int64 { return int64(len(l)) }

func (l list) close() error { return nil }
