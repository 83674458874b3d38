package search_test

import (
	"math/rand/v2"
	"testing"

	"mcpbench/internal/search"
)

// find runs a search and returns what it found, and in how many probes.
func find(c search.Config, holds func(level float64) bool) (held, failed float64, sure bool, probes int) {
	s := search.New(c)
	for {
		level, ok := s.Next()
		if !ok {
			held, failed, sure = s.Result()
			return held, failed, sure, probes
		}
		probes++
		s.Report(holds(level))
	}
}

func TestFindsTheCapacity(t *testing.T) {
	for _, capacity := range []float64{10, 11, 137, 400, 999.5} {
		for _, whole := range []bool{false, true} {
			c := search.Config{From: 10, To: 1000, Precision: 0.05, Whole: whole}
			held, failed, sure, probes := find(c, func(level float64) bool { return level <= capacity })
			if !sure || held > capacity || failed <= capacity || failed > held*1.05+1 || probes > 25 {
				t.Errorf("capacity %v: held %v, failed %v, sure %v after %d probes", capacity, held, failed, sure, probes)
			}
		}
	}
}

func TestEndsOfTheRange(t *testing.T) {
	c := search.Config{From: 10, To: 1000, Precision: 0.05}
	if held, failed, sure, probes := find(c, func(float64) bool { return false }); held != 0 || failed != 10 || sure || probes != 2 {
		t.Errorf("nothing holds: held %v, failed %v, sure %v after %d probes", held, failed, sure, probes)
	}
	if held, failed, sure, probes := find(c, func(float64) bool { return true }); held != 1000 || failed != 0 || !sure || probes != 10 {
		t.Errorf("all holds: held %v, failed %v, sure %v after %d probes", held, failed, sure, probes)
	}
}

// TestNoiseAtTheEdge: near the capacity a level holds by chance, far from it never
// does otherwise than it should. What is found is near.
func TestNoiseAtTheEdge(t *testing.T) {
	const capacity = 300.0
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		held, _, _, probes := find(search.Config{From: 10, To: 5000, Precision: 0.05}, func(level float64) bool {
			switch {
			case level < 0.95*capacity:
				return true
			case level > 1.05*capacity:
				return false
			}
			return rng.Float64() < 0.5
		})
		if held < 0.9*capacity || held > 1.1*capacity || probes > search.MaxProbes {
			t.Errorf("seed %d: held %v after %d probes", seed, held, probes)
		}
	}
}
