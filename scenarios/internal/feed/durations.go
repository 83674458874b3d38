package feed

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// maxDurations bounds what Durations reads: 8 MiB of them.
const maxDurations = 1 << 20

// Durations reads a column of durations, such as of recorded think times, in the
// order of the source: text like 250ms, or a number of units; without a unit a
// number is an error. At most 1,048,576 rows are read; more, an empty cell, or
// any bad row is an error. Of s only the name and what tells the source count.
func Durations(ctx context.Context, s Spec, column string, unit time.Duration) ([]time.Duration, error) {
	s.Columns, s.Pick, s.OnEnd, s.Skew, s.Shard = []string{column}, Unique, Stop, 0, Shard{}
	f, err := Open(ctx, s)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read from
	var out []time.Duration
	row := Row{}
	for i := uint64(0); ; i++ {
		err := f.Fill(ctx, i, row)
		switch {
		case errors.Is(err, ErrEnd):
			return out, nil
		case err != nil:
			return nil, err
		case len(out) == maxDurations:
			return nil, fmt.Errorf("data.%s: %s has more than %d durations; take a sample of them", s.Name, f.source, maxDurations)
		}
		d, err := durationOf(row[column], unit)
		if err != nil {
			return nil, fmt.Errorf("data.%s: row %d of %s, column %q: %w", s.Name, i+1, f.source, column, err)
		}
		out = append(out, d)
	}
}

func durationOf(v any, unit time.Duration) (time.Duration, error) {
	var number float64
	switch v := v.(type) {
	case int:
		number = float64(v)
	case float64:
		number = v
	case string:
		text := strings.TrimSpace(v)
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			d, err := time.ParseDuration(text)
			if err != nil {
				return 0, fmt.Errorf("%.40q is not a duration such as 250ms", v)
			}
			return d, notNegative(d < 0, v)
		}
		number = f
	default:
		return 0, fmt.Errorf("%v is not a duration such as 250ms", v)
	}
	if unit == 0 {
		return 0, fmt.Errorf("%v has no unit: write 250ms, or say which unit the numbers are of", v)
	}
	ns := number * float64(unit)
	if math.IsNaN(ns) || ns >= math.MaxInt64 {
		return 0, fmt.Errorf("%v is out of range", v)
	}
	return time.Duration(math.Round(ns)), notNegative(ns < 0, v)
}

func notNegative(negative bool, v any) error {
	if negative {
		return fmt.Errorf("%v must not be negative", v)
	}
	return nil
}
