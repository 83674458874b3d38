package scenarios

import (
	"time"

	"mcpbench/metrics"
)

// Program is a compiled scenario: checked, with templates and expressions
// parsed and names resolved to indexes. It is immutable and safe for concurrent use.
type Program struct {
	Name        string
	Description string
	Tags        map[string]string
	Servers     []Server
	Groups      []Group
	Flows       []Flow
	Thresholds  []metrics.Threshold
	Warmup      time.Duration
	Grace       time.Duration // default 5s
	Limits      Limits
	OutputDir   string // "" when the scenario names none
	// Unsupported lists keys that are known but not delivered yet, with their
	// places. run refuses a program that has any; check warns.
	Unsupported []Problem
	Warnings    []Problem
}

// Limits bound what one request may take.
type Limits struct {
	RequestTimeout time.Duration // default 30s
	ConnectTimeout time.Duration // default 10s, dial with handshake
}

// Server is one server under test.
type Server struct {
	Name      string
	Transport string // http or stdio
	Embedded  bool   // the demo target, started by mcpbench itself
	URL       string
	Headers   []Header
	Command   string
	Args      []string
	Env       []string // KEY=VALUE of the child, inherited ones included, sorted
	Dir       string   // working directory of the child; "" is the current one
	Protocol  string   // pinned version, or ""
}

// Header is one HTTP header whose value may hold ${{ session.index }} expressions.
type Header struct {
	Name  string
	Value Template
}

// Group is one load group.
type Group struct {
	Name         string
	Server       int // index into Program.Servers
	Flow         int // index into Program.Flows
	Open         bool
	Sessions     int           // closed: sessions; open: max_sessions
	Think        time.Duration // closed: pause between iterations of a session
	Process      string        // open: constant or poisson
	Rate         float64       // open: arrivals per second
	DropWhenFull bool          // open: on_saturation: drop
	QueueLimit   int           // open: arrivals that may wait; 0 is no limit
	Duration     time.Duration // 0: none
	Iterations   int64         // of all sessions together; 0: no limit
	InFlight     int           // requests in flight on one session, at least 1
}

// Flow is a named list of steps.
type Flow struct {
	Name  string
	Steps []*Step
}
