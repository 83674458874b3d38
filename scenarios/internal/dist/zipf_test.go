package dist_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"mcpbench/scenarios/internal/dist"
)

// TestRanksFollowZipf is a chi-square test against the exact probabilities.
func TestRanksFollowZipf(t *testing.T) {
	const draws = 500_000
	for _, tt := range []struct {
		n uint64
		s float64
	}{{1, 0.99}, {2, 1}, {10, 0.01}, {10, 20}, {100, 0.5}, {1000, 0.99}, {1000, 1}, {1000, 1 + 1e-12}, {1000, 1.5}, {5000, 3}} {
		z, err := dist.NewZipf(tt.n, tt.s)
		if err != nil {
			t.Fatal(err)
		}
		counts := make([]int, tt.n)
		r := rand.New(rand.NewPCG(5, 6))
		for range draws {
			counts[z.Rank(r)]++ // out of range panics
		}
		var norm float64
		for k := range counts {
			norm += math.Pow(float64(k+1), -tt.s)
		}
		// Ranks expected less than 10 times are taken together.
		var chi, expected, observed float64
		cells := 0
		for k, c := range counts {
			expected += draws * math.Pow(float64(k+1), -tt.s) / norm
			observed += float64(c)
			if expected >= 10 || k == len(counts)-1 && expected > 0.01 {
				chi += (observed - expected) * (observed - expected) / expected
				expected, observed = 0, 0
				cells++
			}
		}
		// Wilson and Hilferty: exceeded once in 1000 fair samples.
		free := float64(max(cells-1, 1))
		limit := free * math.Pow(1-2/(9*free)+3.09*math.Sqrt(2/(9*free)), 3)
		if chi > limit {
			t.Errorf("n %d, s %v: chi-square %.1f of %v cells, at most %.1f", tt.n, tt.s, chi, cells, limit)
		}
	}
}

// TestZipfOfManyRanks compares the shares of powers of two with the exact sums,
// by Euler and Maclaurin where they are long.
func TestZipfOfManyRanks(t *testing.T) {
	const n, s, draws = 1 << 40, 0.99, 200_000
	z, err := dist.NewZipf(n, s)
	if err != nil {
		t.Fatal(err)
	}
	sum := func(to float64) float64 {
		var v float64
		const head = 1 << 12
		for k := 1.0; k <= min(to, head); k++ {
			v += math.Pow(k, -s)
		}
		if to > head {
			v += (math.Pow(to, 1-s)-math.Pow(head, 1-s))/(1-s) + (math.Pow(to, -s)-math.Pow(head, -s))/2
		}
		return v
	}
	var counts [41]int
	r := rand.New(rand.NewPCG(8, 9))
	for range draws {
		rank := z.Rank(r)
		for p := range counts {
			if rank < 1<<p {
				counts[p]++
			}
		}
	}
	for p, c := range counts {
		want := sum(float64(uint64(1)<<p)) / sum(n)
		if dev := 4.5*math.Sqrt(want*(1-want)/draws) + 1e-9; math.Abs(float64(c)/draws-want) > dev {
			t.Errorf("ranks below 2^%d: share %.5f, want %.5f ± %.5f", p, float64(c)/draws, want, dev)
		}
	}
}

func TestZipfWhatIsNotAllowed(t *testing.T) {
	for _, tt := range []struct {
		n    uint64
		s    float64
		want string
	}{
		{0, 1, "zipf wants 1 to 2^52 ranks, not 0"},
		{1 << 53, 1, "zipf wants 1 to 2^52 ranks"},
		{5, 0, "s of zipf must be more than 0 and at most 20, is 0"},
		{5, 21, "is 21"},
		{5, math.NaN(), "is NaN"},
	} {
		if _, err := dist.NewZipf(tt.n, tt.s); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("NewZipf(%d, %v): %v, want %q", tt.n, tt.s, err, tt.want)
		}
	}
}

func FuzzZipf(f *testing.F) {
	f.Add(uint64(1), 0.99, uint64(1))
	f.Add(uint64(1<<52), 1e-300, uint64(1))
	f.Add(uint64(1<<52), 20.0, uint64(1))
	f.Add(uint64(3), 1.0, uint64(1))
	f.Fuzz(func(t *testing.T, n uint64, s float64, seed uint64) {
		z, err := dist.NewZipf(n, s)
		if err != nil {
			return
		}
		r := rand.New(rand.NewPCG(seed, 0))
		for range 50 {
			if k := z.Rank(r); k >= n {
				t.Fatalf("rank %d of %d, s %v", k, n, s)
			}
		}
	})
}

func BenchmarkZipf(b *testing.B) {
	z, err := dist.NewZipf(50_000_000, 0.99)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	r := rand.New(rand.NewPCG(1, 2))
	for b.Loop() {
		z.Rank(r)
	}
}
