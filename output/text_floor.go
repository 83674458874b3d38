package output

import (
	"fmt"
	"strings"

	"mcpbench/metrics"
)

// floors puts what was measured beside what this machine reaches against nothing,
// and says where that was near.
func (r *textSummary) floors() {
	s := &r.s.Soundness
	for i := range s.Calibration {
		label := ""
		if i == 0 {
			label = "floor"
		}
		r.fact(label, floorItems(&s.Calibration[i])...)
	}
	for _, note := range s.Notes {
		if note != metrics.NoteClosed { // the lines of the groups have said it
			r.paragraph(strings.Repeat(" ", labelWidth), r.warn("! ")+Escape(note))
		}
	}
}

func floorItems(k *metrics.Calibration) []string {
	floor := k.Transport + " " + formatMS(k.FloorUS/1000)
	if k.P50US != nil && *k.P50US > 0 {
		floor += fmt.Sprintf(": %.2g%% of service p50 %s", 100*k.FloorUS / *k.P50US, formatMS(*k.P50US/1000))
	}
	items := []string{floor, fmt.Sprintf("at most %s/s with %s", groupDigits(int64(k.CeilingPS)), plural(int64(k.Sessions), "session"))}
	if k.Lateness99 != nil {
		items = append(items, fmt.Sprintf("at %s lateness p99 %s", perSecond(k.RatePerS), formatMS(*k.Lateness99)))
	}
	return items
}
