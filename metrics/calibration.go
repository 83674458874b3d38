package metrics

import (
	"fmt"
	"time"
)

const (
	// leastFloors is how many times the floor a median must be to say more of the
	// server than of the load generator.
	leastFloors = 3
	// maxOfCeiling is the share of the ceiling from which on a planned rate is near
	// what this machine can make at all.
	maxOfCeiling = 0.5
)

// Calibration is what this machine reached against a target that does nothing,
// in this process, by the same engine.
type Calibration struct {
	Transport string  `json:"transport"`     // http or stdio
	FloorUS   float64 `json:"floor_us"`      // median service time of 1 session, closed
	CeilingPS float64 `json:"ceiling_per_s"` // requests per second of Sessions, closed
	Sessions  int     `json:"sessions"`
	// RatePerS is the planned rate of the open groups in iterations, 0 without any,
	// and Lateness99 the lateness of their pacer at it.
	RatePerS   float64  `json:"rate_per_s,omitempty"`
	Lateness99 *float64 `json:"lateness_p99_ms"` // nil without open groups
	// PlannedPerS is the planned rate in requests, as far as it is known beforehand.
	PlannedPerS float64  `json:"planned_per_s,omitempty"`
	P50US       *float64 `json:"p50_us"` // median service time of the run; nil when nothing was timed
}

// carriedBy reports whether a transport is of the calibration's kind.
func (k *Calibration) carriedBy(transport string) bool {
	return (transport == "stdio") == (k.Transport == "stdio")
}

// compare puts the floors beside what was measured.
func (c *Collector) compare(s *Soundness, calibrations []Calibration) {
	for _, k := range calibrations {
		var service distribution
		for i := range c.totals.steps {
			group := c.cfg.Catalog.Groups[c.cfg.Catalog.Steps[i].Group]
			if k.carriedBy(c.cfg.Catalog.Targets[group.Target].Transport) {
				service.merge(&c.totals.steps[i].service)
			}
		}
		if q := service.quantiles(nil); q != nil {
			p50 := q.P50 * 1000
			k.P50US = &p50
		}
		if s.FloorUS == nil || *s.FloorUS < k.FloorUS {
			floor := k.FloorUS
			s.FloorUS = &floor
		}
		s.Notes = append(s.Notes, k.warnings()...)
		s.Calibration = append(s.Calibration, k)
	}
}

// warnings say where the run came near what this machine can do at all.
func (k *Calibration) warnings() []string {
	var out []string
	if k.P50US != nil && *k.P50US < leastFloors*k.FloorUS {
		out = append(out, fmt.Sprintf("over %s the median service time, %s, is less than %d times the floor of this machine, %s: much of it is the load generator",
			k.Transport, micro(*k.P50US), leastFloors, micro(k.FloorUS)))
	}
	if k.PlannedPerS > maxOfCeiling*k.CeilingPS {
		out = append(out, fmt.Sprintf("over %s %.0f requests/s were planned, more than half of the %.0f/s that this machine reaches against nothing",
			k.Transport, k.PlannedPerS, k.CeilingPS))
	}
	return out
}

func micro(us float64) string { return short(time.Duration(us * float64(time.Microsecond))) }
