package scenarios

import (
	"time"

	"mcpbench/metrics"
	"mcpbench/scenarios/internal/script"
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
	Client      Client
	Feeders     []Feeder
	Thresholds  []metrics.Threshold
	Warmup      time.Duration
	WarmupGoal  *WarmupGoal   // of a warm-up whose length is not known beforehand, else nil
	Grace       time.Duration // default 5s
	Limits      Limits
	OutputDir   string // "" when the scenario names none
	// Unsupported lists keys that are known but not delivered yet, with their
	// places. run refuses a program that has any; check warns.
	Unsupported Problems
	Warnings    Problems
}

// Limits bound what one request may take.
type Limits struct {
	RequestTimeout time.Duration // default 30s
	ConnectTimeout time.Duration // default 10s, dial with handshake
	// StepTimeout bounds a step with all its pages and rounds, IterationTimeout an
	// iteration with all its steps and pauses; 0 is no limit.
	StepTimeout, IterationTimeout time.Duration
	ResponseBytes                 int64 // of one message; default 16 MiB
	HeaderBytes                   int64 // of an HTTP response; default 1 MiB
	// StderrHead and StderrTail are how many bytes of the beginning and of the end of
	// what a server's processes print on stderr are kept; default 2 MiB each.
	StderrHead, StderrTail int64
}

// OnLoss says what follows when a session is lost: its server ends it, its process
// dies, or the server does not know it any more.
type OnLoss uint8

// Values of OnLoss.
const (
	LossReopens OnLoss = iota // a new session takes its place
	LossEnds                  // its place stays empty
	LossAborts                // the run ends
)

// Server is one server under test.
type Server struct {
	Name      string
	Transport string // http, sse (HTTP+SSE) or stdio
	// AnyHTTP says that nobody chose the transport: it is http, and may become sse
	// when the server speaks only that.
	AnyHTTP  bool
	Embedded bool // the demo target, started by mcpbench itself
	URL      string
	Headers  []Header
	Command  string
	Args     []string
	Env      []string // KEY=VALUE of the child, inherited ones included, sorted
	Dir      string   // working directory of the child; "" is the current one
	Protocol string   // pinned version, or ""

	SharedProcess bool // stdio: one process for all sessions
	Connections   int  // HTTP: at most so many for all sessions; 0: each has its own
	OnLoss        OnLoss

	Feeders []string // that headers read
}

// Header is one HTTP header whose value may hold ${{ session.index }} expressions.
type Header struct {
	Name  string
	Value Template
}

// Flow is what one iteration does, and what a session does once, after it was
// opened and before it is closed.
type Flow struct {
	Name string
	// Steps, Before and After are the steps that make rows of results, each once,
	// in the order of the file: also those within control steps and called flows.
	Steps, Before, After []*Step
	// Do, DoBefore and DoAfter say when each of them is performed.
	Do, DoBefore, DoAfter []*Action

	// Feeders are those that are read in iterations, FeedersOnce those that are read
	// once a session; sorted.
	Feeders, FeedersOnce []string
}

// StepKind says what a step does.
type StepKind uint8

// Step kinds.
const (
	// StepRequest makes the request Method.
	StepRequest StepKind = iota
	// StepSubscribe starts the subscription that Render and Topics describe.
	StepSubscribe
	// StepUnsubscribe ends the subscription named Handle.
	StepUnsubscribe
	// StepWait waits for the notification Name of the subscription named Handle,
	// or of any when Handle is "".
	StepWait
	// StepNotify sends the notification Method.
	StepNotify
)

// Step is one compiled operation, usually one request. It is immutable and
// safe for concurrent use, each caller with an Env of its own.
type Step struct {
	ID   string // as shown in results, unique within its flow
	Kind StepKind
	// Method is the JSON-RPC method; that of a subscription depends on the
	// version, and this is the one up to 2025-11-25; of a wait it is wait_for.
	Method string
	// Name is the tool, prompt or resource of the step for tables and
	// tallies; an expression stands in it as {expr}, so that a resource with
	// many URIs stays one name. "" where the method has none.
	Name string
	// RequestName is what the Mcp-Name header carries (tool or prompt name,
	// resource URI) when it holds no expression, else "".
	RequestName string
	AllPages    bool          // lists only: follow nextCursor to the end
	Timeout     time.Duration // of the whole request; 0: Limits.RequestTimeout
	Progress    bool          // ask for progress notifications
	IdleTimeout time.Duration // the longest silence between them; 0 is no limit
	LogLevel    string        // of 2026-07-28: log messages about the request from that level on; "" is none
	Handle      string        // name of a subscription: the one that is made, ended or listened to
	// Notification is the whole name of what a wait waits for, such as
	// notifications/resources/updated.
	Notification string
	Tags         map[string]string
	Checks       []string // names, in the order of the bits of Check

	cancel   *Spread      // when to cancel; nil is never
	generate *generator   // makes the params; nil is Render
	expect   *expectation // nil: nothing
	output   int          // place in Checks of valid_output, from 1; 0 when there is none
	params   paramsTemplate
	checks   []*script.Expression
	saves    []*script.Expression
	saved    []string      // the names of saves
	shape    *script.Shape // of the result, when there are checks or saves
	vars     map[string]any
}

// Env is what the expressions of one iteration see. A worker keeps one and sets
// the fields anew for each iteration. It must not be used by two goroutines at
// once, nor copied after its first use. In steps that a session has once,
// Iteration is the session's place too, so that random values differ.
type Env struct {
	Seed      uint64 // of the run
	Group     int    // index into Program.Groups
	Session   int    // session.index: the session's place in its group, from 0
	Iteration uint64 // iteration.index: arrival index within the group, from 0
	Protocol  string // protocol: the negotiated version
	// Data are the rows of the feeders, by name; only read.
	Data map[string]any
	// Tools are those of the server, for the steps that need them; nil: not known.
	Tools *Tools

	saved   map[string]any // by name, of this iteration
	forked  bool           // by Fork
	anew    []string       // names saved since Fork, each once; kept only when forked
	args    map[string]any // of the call that is being performed
	repeat  int            // turn of the innermost repeat
	salt    uint64         // see script.Inputs
	scratch script.Runner
	draws   draws
}

// Response is what a step's checks look at.
type Response struct {
	Result  []byte        // the JSON-RPC result object
	Elapsed time.Duration // the variable elapsed: the request's service time
	OK      bool          // the outcome so far; only then something is saved
	Page    int           // of a listing, from 0
	Tool    string        // that was called, when the step does not name it
}
