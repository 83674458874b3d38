package metrics

import "strings"

// Units for messages, in order of size.
const (
	timeUnitNames = "ns, us, ms, s, m or h"
	byteUnitNames = "B, kB, MB, GB, KiB, MiB or GiB"
)

// checkUnit checks that the unit fits aggregate and metric.
func (p *parser) checkUnit(t *Threshold, at, unitAt int) {
	info, what := metricTable[t.Metric], t.Agg+"("+t.Metric+")"
	switch {
	case t.Agg == "count":
		if t.Unit != "" {
			p.fail(unitAt, "%s is a number without a unit, found %q", what, cut(t.Unit))
		}
	case info.kind == kindTime:
		if _, ok := timeUnits[t.Unit]; !ok {
			p.fail(unitAt, "%s is a time and needs a unit: %s", what, timeUnitNames)
		}
	case info.kind == kindBytes && t.Agg == "rate":
		size, ok := strings.CutSuffix(t.Unit, "/s")
		if _, known := byteUnits[size]; !ok || !known {
			p.fail(unitAt, "%s is in bytes per second and needs a unit such as MiB/s", what)
		}
	case info.kind == kindBytes:
		if _, ok := byteUnits[t.Unit]; !ok {
			p.fail(unitAt, "%s is in bytes and needs a unit: %s", what, byteUnitNames)
		}
	default:
		p.checkRate(t, at, unitAt)
	}
}

// checkRate checks the unit of rate over something counted: per second, or a
// share in % or between 0 and 1.
func (p *parser) checkRate(t *Threshold, at, unitAt int) {
	info, what := metricTable[t.Metric], "rate("+t.Metric+")"
	sharable := info.share
	for _, tag := range t.Tags {
		// One outcome is a share of all requests or arrivals.
		sharable = sharable || tag.Key == "outcome"
	}
	switch t.Unit {
	case "/s":
		if !info.perSec {
			p.fail(unitAt, "%s is a share of %s: write a value in %%", what, info.of)
		}
	case "%", "":
		whole := 1.0
		if t.Unit == "%" {
			whole = 100
		}
		switch {
		case !sharable:
			p.fail(unitAt, "%s is per second: write a value such as 500/s", what)
		case t.Value > whole && t.Unit == "":
			p.fail(at, "%s without a unit is a share from 0 to 1: write a value in %%%s", what, orPerSecond(info))
		case t.Value > whole:
			p.fail(at, "%s cannot be above 100%%", what)
		}
	default:
		p.fail(unitAt, "%s has no unit %q: write a value in %s", what, cut(t.Unit), rateUnits(info, sharable))
	}
}

func orPerSecond(info metricInfo) string {
	if info.perSec {
		return " or /s"
	}
	return ""
}

func rateUnits(info metricInfo, sharable bool) string {
	if !sharable {
		return "/s"
	}
	return "%" + orPerSecond(info)
}
