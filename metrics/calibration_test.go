package metrics_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbench/metrics"
)

// TestFloorIsComparedWithItsOwnTransport has two targets: what went over stdio
// says nothing of the floor of HTTP.
func TestFloorIsComparedWithItsOwnTransport(t *testing.T) {
	catalog := &metrics.Catalog{
		Groups: []metrics.GroupInfo{{Name: "web", Target: 0}, {Name: "old", Target: 1}, {Name: "pipe", Target: 2}},
		Targets: []metrics.TargetInfo{
			{Server: "web", Transport: "http"}, {Server: "old", Transport: "sse"}, {Server: "pipe", Transport: "stdio"},
		},
		Steps: []metrics.StepInfo{
			{ID: "a", Group: 0, Method: "ping"}, {ID: "b", Group: 1, Method: "ping"}, {ID: "c", Group: 2, Method: "ping"},
		},
		Protocols: []string{""},
	}
	c, stop := startCollector(t, metrics.CollectorConfig{Catalog: catalog})
	for i := range 9 {
		for step, took := range []time.Duration{200 * time.Microsecond, 200 * time.Microsecond, 20 * time.Microsecond} {
			s := request(time.Duration(i)*time.Millisecond, took)
			s.Step, s.Group = uint16(step), uint8(step)
			c.Record(s)
		}
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	lateness := 0.3
	http := metrics.Calibration{
		Transport: "http", FloorUS: 12, CeilingPS: 50000, Sessions: 64, RatePerS: 20000, Lateness99: &lateness, PlannedPerS: 25001,
	}
	stdio := metrics.Calibration{Transport: "stdio", FloorUS: 8, CeilingPS: 100000, Sessions: 2}
	got := c.Summary(metrics.RunInfo{Calibration: []metrics.Calibration{http, stdio}}).Soundness
	if got.FloorUS == nil || *got.FloorUS != 12 {
		t.Errorf("floor %v, want that of http", got.FloorUS)
	}
	want := []string{
		metrics.NoteClosed,
		"over http 25001 requests/s were planned, more than half of the 50000/s that this machine reaches against nothing",
		"over stdio the median service time, 20µs, is less than 3 times the floor of this machine, 8µs: much of it is the load generator",
	}
	if diff := cmp.Diff(want, got.Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	if got.Verdict != metrics.Sound {
		t.Errorf("verdict %s: a floor makes no run unsound", got.Verdict)
	}
	for i, p50 := range []float64{200, 20} {
		k := got.Calibration[i]
		if k.P50US == nil || *k.P50US < 0.999*p50 || *k.P50US > 1.001*p50 {
			t.Errorf("%s: p50 %v, want %v", k.Transport, k.P50US, p50)
		}
	}
}

func TestFloorsAtTheirLimitsWarnNot(t *testing.T) {
	c, stop := startCollector(t, metrics.CollectorConfig{Catalog: oracleCatalog()})
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	k := metrics.Calibration{Transport: "http", FloorUS: 12, CeilingPS: 50000, PlannedPerS: 25000}
	got := c.Summary(metrics.RunInfo{Calibration: []metrics.Calibration{k}}).Soundness
	for _, note := range got.Notes {
		if note != metrics.NoteClosed {
			t.Errorf("note %q", note)
		}
	}
	if got.Calibration[0].P50US != nil {
		t.Errorf("p50 %v of nothing", *got.Calibration[0].P50US)
	}
}
