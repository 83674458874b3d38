package metrics

// Catalog tells what the ids in samples stand for. It is complete before the
// first sample and never changes after.
type Catalog struct {
	Groups    []GroupInfo
	Steps     []StepInfo
	Targets   []TargetInfo
	Protocols []string // protocol versions, indexed by Sample.Proto; index 0 is ""
}

// GroupInfo describes one load group.
type GroupInfo struct {
	Name, Flow string
	Open       bool   // arrivals come at their own times
	Target     int    // index into Catalog.Targets
	Pacer      string // of an open group: how its arrivals are released
}

// StepInfo describes one step of one group.
type StepInfo struct {
	ID     string // step name as shown, unique within its group
	Group  int    // index into Catalog.Groups
	Method string
	Name   string // tool, prompt or resource template; "" where the method has none
	Checks []string
	Tags   map[string]string
	// Progress tells that its requests ask for progress notifications.
	Progress bool `json:",omitempty"`
	// Part is PartBefore or PartAfter for a step that a session has once. Its
	// requests are no part of the load: they are recorded in the phase setup.
	Part string `json:",omitempty"`
}

// Parts of a flow beside the steps of an iteration.
const (
	PartBefore = "before"
	PartAfter  = "after"
)

// TargetInfo describes one server × transport × version. Transport, Era,
// ProtocolVersion, ServerName and ServerVersion are what the first session
// negotiated.
type TargetInfo struct {
	Server, Transport         string
	ProtocolVersion           string
	ServerName, ServerVersion string
	Era                       string   // legacy or modern
	Probe                     []string // how that was found out, when nothing was pinned
	HTTPEngine                string   // fast or std; "" on stdio
}
