package feed

import (
	"hash/fnv"
	"math/bits"
	"math/rand/v2"
	"sync"

	"mcpbench/scenarios/internal/dist"
)

// Pick is how the row of an arrival is chosen.
type Pick string

// Sequential gives arrival i row i. Unique does as well and never goes round, so
// that a row is given at most once in the whole run. Random gives each row with
// the same probability, Zipf the first ones more often.
const (
	Sequential Pick = "sequential" // also the empty one
	Random     Pick = "random"
	Unique     Pick = "unique"
	Zipf       Pick = "zipf"
)

// OnEnd is what happens after the last row.
type OnEnd string

// Recycle begins again with the first row, the default of sequential; Stop gives
// [ErrEnd], the default of unique.
const (
	Stop    OnEnd = "stop"
	Recycle OnEnd = "recycle"
)

// Format is how the rows of a file are written.
type Format string

// CSV is RFC 4180 with a line of names; JSONL is one JSON object on each line.
const (
	CSV     Format = "csv"
	JSONL   Format = "jsonl"
	Parquet Format = "parquet"
)

const defaultSkew = 0.99 // of YCSB

// drawer draws the rows of arrivals.
type drawer struct {
	seed uint64
	rows uint64
	zipf *dist.Zipf // nil: each row alike
	pool sync.Pool  // of *generator, for zipf
}

type generator struct {
	pcg rand.PCG
	rng *rand.Rand
}

func newDrawer(s Spec, rows int64) (*drawer, error) {
	h := fnv.New64a()
	h.Write([]byte(s.Name))
	// An odd multiplier keeps near groups apart; the generator mixes the rest.
	const spread = 0x9e3779b97f4a7c15
	d := &drawer{seed: s.Seed ^ h.Sum64() ^ uint64(s.Group+1)*spread, rows: uint64(rows)} //nolint:gosec // not negative
	d.pool.New = func() any {
		g := new(generator)
		g.rng = rand.New(&g.pcg)
		return g
	}
	if s.Pick != Zipf {
		return d, nil
	}
	skew := s.Skew
	if skew == 0 {
		skew = defaultSkew
	}
	z, err := dist.NewZipf(d.rows, skew)
	d.zipf = &z
	return d, err
}

// row returns the row of arrival i.
func (d *drawer) row(i uint64) int64 {
	if d.zipf != nil {
		g := d.pool.Get().(*generator)
		defer d.pool.Put(g)
		g.pcg.Seed(d.seed, i)
		return int64(d.zipf.Rank(g.rng)) //nolint:gosec // less than rows
	}
	var pcg rand.PCG
	pcg.Seed(d.seed, i)
	// D. Lemire, "Fast random integer generation in an interval", 2019: the upper
	// half of a product, what would make some rows more likely drawn again.
	high, low := bits.Mul64(pcg.Uint64(), d.rows)
	for low < -d.rows%d.rows {
		high, low = bits.Mul64(pcg.Uint64(), d.rows)
	}
	return int64(high) //nolint:gosec // less than rows
}
