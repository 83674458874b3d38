package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbench/mcp"
	"mcpbench/metrics"
)

// TestCallShowsEachRound judges a request whose first exchange took 30 ms, whose
// questions took the client 25 ms, and whose second exchange took 10 ms.
func TestCallShowsEachRound(t *testing.T) {
	at := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	reply := mcp.Reply{
		Rounds: 2, BytesIn: 1, Timing: mcp.Timing{Start: at(100), FirstByte: at(164), End: at(165)},
		More: &mcp.More{Trips: []mcp.Timing{
			{Start: at(100), FirstByte: at(129), End: at(130)}, {Start: at(155), FirstByte: at(164), End: at(165)},
		}},
	}
	c := &called{opened: true}
	c.judge(reply, nil, metrics.OK, 0)
	v := &callView{width: 80}
	v.conclude(c)
	var got []string
	for line := range strings.Lines(v.text.String()) {
		if strings.Contains(line, "round") || strings.Contains(line, "done") {
			got = append(got, strings.Join(strings.Fields(line), " "))
		}
	}
	want := []string{"done +65.00ms", "round 1 30.00ms sent at +0.00ms", "round 2 10.00ms sent at +55.00ms"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	data, err := json.Marshal(c.Timing)
	if wantJSON := `{"sent":100,"first_byte":164,"done":165,"rounds":[{"sent":100,"done":130},{"sent":155,"done":165}]}`; err != nil || string(data) != wantJSON {
		t.Errorf("JSON %s, %v; want %s", data, err, wantJSON)
	}
}
