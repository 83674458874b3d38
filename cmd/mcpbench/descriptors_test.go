package main

import (
	"testing"

	"mcpbench/scenarios"
)

// TestTooFewDescriptorsAreToldWithWhatFits holds the estimate against counts by hand.
func TestTooFewDescriptorsAreToldWithWhatFits(t *testing.T) {
	web := scenarios.Server{Transport: "http"}
	group := func(server, sessions, inFlight int) scenarios.Group {
		return scenarios.Group{Server: server, Sessions: sessions, InFlight: inFlight}
	}
	tests := []struct {
		name    string
		servers []scenarios.Server
		groups  []scenarios.Group
		stream  bool
		limit   int
		want    string
	}{
		{"enough", []scenarios.Server{web}, []scenarios.Group{group(0, 200, 1)}, false, 240, ""},
		{
			"http",
			[]scenarios.Server{web},
			[]scenarios.Group{group(0, 200, 1)},
			false, 60,
			"the load of 200 sessions needs about 240 file descriptors, and this process may have 60: about 20 sessions fit; raise the limit (ulimit -n 240), or have fewer sessions or shared connections",
		},
		{
			"nothing fits",
			[]scenarios.Server{web},
			[]scenarios.Group{group(0, 1, 1)},
			false, 30,
			"the load of 1 session needs about 41 file descriptors, and this process may have 30: about 0 sessions fit; raise the limit (ulimit -n 41), or have fewer sessions or shared connections",
		},
		{
			"both ends, a stream and four requests at once",
			[]scenarios.Server{{Transport: "http", Embedded: true}},
			[]scenarios.Group{group(0, 10, 4)},
			true, 100,
			"the load of 10 sessions needs about 140 file descriptors, and this process may have 100: about 6 sessions fit; raise the limit (ulimit -n 140), or have fewer sessions or shared connections",
		},
		{
			"processes",
			[]scenarios.Server{{Transport: "stdio"}, {Transport: "stdio", SharedProcess: true}},
			[]scenarios.Group{group(0, 20, 2), group(1, 1000, 1)},
			false, 100,
			"the load of 20 sessions needs about 124 file descriptors, and this process may have 100: about 14 sessions fit; raise the limit (ulimit -n 124), or have fewer sessions or shared connections",
		},
		{"shared connections", []scenarios.Server{{Transport: "http", Connections: 8}}, []scenarios.Group{group(0, 5000, 1), group(0, 5, 1)}, false, 60, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := &scenarios.Program{Servers: tt.servers, Groups: tt.groups}
			if got := descriptorsOf(p, func(int) bool { return tt.stream }).lack(tt.limit, 40); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}
