package driver

import (
	"context"
	"fmt"
	"time"

	"mcpbench/mcp"
	"mcpbench/metrics"
	"mcpbench/scenarios"
)

// Session is one simulated client, as *mcp.Session provides it. Call may be
// used concurrently. One that is no *mcp.Session needs to be a Listener too for
// steps that are no plain requests.
type Session interface {
	Call(ctx context.Context, req mcp.Request) (mcp.Reply, error)
	Info() mcp.Info
	Close(ctx context.Context) error
}

// Dial opens a session for a slot. o has Base, OnAnomaly, OnAsked and Watch set,
// which the session must be given; the rest of the options is the caller's.
type Dial func(ctx context.Context, slot int, o mcp.Options) (Session, error)

// Plan is a program made ready to run: ids are assigned and each group knows
// how to reach its server.
type Plan struct {
	Catalog *metrics.Catalog
	Groups  []GroupPlan
	Warmup  time.Duration // recorded, but left out of the results
	// WarmupGoal, unless nil, ends the warm-up in place of Warmup.
	WarmupGoal *scenarios.WarmupGoal
	Grace      time.Duration // for work in flight when the load ends
	Seed       uint64
	// OnClock, if set, is told the wall time of offset 0 before any sample is recorded.
	OnClock func(t0 time.Time)
	// Watch, if set, may have a session observed: it is given the options of each
	// before it is dialled, with the number that it has in the results. It may be
	// called from any goroutine.
	Watch func(group int, session uint32, o *mcp.Options)
}

// GroupPlan is one load group of a Plan.
type GroupPlan struct {
	scenarios.Group
	Before         []*scenarios.Step // once a session
	Steps          []*scenarios.Step
	After          []*scenarios.Step   // once a session
	DoBefore       []*scenarios.Action // when the steps are performed, and what around them
	Do             []*scenarios.Action
	DoAfter        []*scenarios.Action
	FirstBefore    uint16   // index of Before[0] in Catalog.Steps
	FirstStep      uint16   // index of Steps[0] in Catalog.Steps
	FirstAfter     uint16   // index of After[0] in Catalog.Steps
	Watched        []string // notifications that waits take from the whole session
	Target         int      // index into Catalog.Targets
	RequestTimeout time.Duration
	ConnectTimeout time.Duration
	StepTimeout    time.Duration // of a step with all its requests; 0: none
	IterTimeout    time.Duration // of an iteration; 0: none
	RenewAfter     int64         // iterations after which a session is replaced; 0: never
	NeedsTools     bool          // a step needs to know the server's tools
	AllowWrites    bool          // generate may choose tools that are not hinted read-only
	Pacer          string        // of an open load: PacerEconomical (also "") or PacerPrecise
	Dial           Dial
	OnLoss         scenarios.OnLoss // when a session is lost
	Feeds          *scenarios.Feeds // rows for iterations; nil: none
	SessionFeeds   *scenarios.Feeds // rows for what a session does once; nil: none
}

// NewPlan makes a plan of a program. dial gives, for each group by its index,
// the way to its server.
func NewPlan(p *scenarios.Program, seed uint64, dial func(group int) Dial) (*Plan, error) {
	plan := &Plan{Catalog: p.Catalog(), Warmup: p.Warmup, WarmupGoal: p.WarmupGoal, Grace: p.Grace, Seed: seed}
	plan.Catalog.Protocols = protocols()
	if len(p.Groups) > 255 {
		return nil, fmt.Errorf("scenario %s has %d load groups, at most 255 are possible", p.Name, len(p.Groups))
	}
	if len(plan.Catalog.Steps) >= int(metrics.NoStep) {
		return nil, fmt.Errorf("scenario %s has more than %d steps", p.Name, metrics.NoStep-1)
	}
	next := 0
	place := func(steps []*scenarios.Step) uint16 {
		first := next
		next += len(steps)
		return uint16(first) //nolint:gosec // bounded just above
	}
	for i, g := range p.Groups {
		flow := &p.Flows[g.Flow]
		plan.Groups = append(plan.Groups, GroupPlan{
			Group: g, Before: flow.Before, Steps: flow.Steps, After: flow.After,
			NeedsTools: p.NeedsTools(i),
			DoBefore:   flow.DoBefore, Do: flow.Do, DoAfter: flow.DoAfter,
			FirstBefore: place(flow.Before), FirstStep: place(flow.Steps), FirstAfter: place(flow.After),
			Watched: flow.Watched(), Target: plan.Catalog.Groups[i].Target,
			RequestTimeout: p.Limits.RequestTimeout, ConnectTimeout: p.Limits.ConnectTimeout,
			StepTimeout: p.Limits.StepTimeout, IterTimeout: p.Limits.IterationTimeout, RenewAfter: g.Life.Iterations,
			Dial: dial(i), OnLoss: p.Servers[g.Server].OnLoss,
		})
	}
	return plan, nil
}

// protocols is Catalog.Protocols: "" and then every version, oldest first.
func protocols() []string {
	out := []string{""}
	vs := mcp.Versions()
	for i := range vs {
		out = append(out, string(vs[len(vs)-1-i]))
	}
	return out
}

// protoIndex returns the index of v in protocols().
func protoIndex(v mcp.Version) uint8 {
	for i, p := range protocols() {
		if p == string(v) {
			return uint8(i)
		}
	}
	return 0
}
