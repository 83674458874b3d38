package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"mcpbench/driver"
	"mcpbench/internal/nearest"
	"mcpbench/internal/outgoing"
	"mcpbench/mcp"
	"mcpbench/metrics"
	"mcpbench/pool"
	"mcpbench/scenarios"
)

// probe is one session outside any load, to ask a server what it has.
type probe struct {
	session *mcp.Session
	timeout time.Duration
	target  *embedded
	pinned  bool // the version was chosen by the user
	// decision is what the server was found to speak.
	decision mcp.Decision
	// connect opens another session to the same server, in the version given.
	connect func(ctx context.Context, v mcp.Version) (*mcp.Session, error)
}

// aim is a server to be asked outside any load, before anything is sent to it.
type aim struct {
	scenario *scenarios.Scenario
	program  *scenarios.Program
	server   *scenarios.Server // of the program
}

// aimAt returns the server that the flags name. The error has the exit code.
func (t *targetFlags) aimAt(s streams, q scenarios.QuickConfig) (*aim, error) {
	q.Tool = "none" // the quick form wants one; only its server is used here
	sc, err := scenarios.Quick(q)
	if err != nil {
		return nil, usage("%w", err)
	}
	return t.aimIn(s, sc, "")
}

// aimIn returns the server of that name in a scenario, its only one if the name
// is empty.
func (t *targetFlags) aimIn(s streams, sc *scenarios.Scenario, name string) (*aim, error) {
	headers, err := t.headerValues(s)
	if err != nil {
		return nil, err
	}
	if err := sc.Override(scenarios.Overrides{Headers: headers, Protocol: t.protocol, Transport: t.transport}); err != nil {
		return nil, usage("%w", err)
	}
	program, err := compile(sc)
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range program.Servers {
		server := &program.Servers[i]
		if server.Name == name || name == "" && len(program.Servers) == 1 {
			return &aim{scenario: sc, program: program, server: server}, nil
		}
		names = append(names, server.Name)
	}
	if name == "" {
		return nil, usage("the scenario has several servers (%s): name one with --server", strings.Join(names, ", "))
	}
	return nil, usage("the scenario has no server %q%s; it has: %s", name, nearest.DidYouMean(name, names), strings.Join(names, ", "))
}

// openProbe opens a session to the server that the flags name. The error has the
// exit code.
func openProbe(ctx context.Context, s streams, t *targetFlags, q scenarios.QuickConfig) (*probe, error) {
	a, err := t.aimAt(s, q)
	if err != nil {
		return nil, err
	}
	return a.open(ctx, t, &dialer{}, mcp.Options{ParamHeaders: &mcp.ParamHeaders{}})
}

// open opens a session with the options of d and o, which it completes.
func (a *aim) open(ctx context.Context, t *targetFlags, d *dialer, o mcp.Options) (*probe, error) {
	target, err := startEmbedded(ctx, a.program)
	if err != nil {
		return nil, failure("%w", err)
	}
	d.server = a.server
	transport, fallback, err := d.transport(ctx, 0)
	if err != nil {
		return nil, usage("%w", errors.Join(err, target.discard()))
	}
	o.Client = mcp.Implementation{Name: "mcpbench", Version: version}
	if o.Base.IsZero() {
		o.Base = time.Now()
	}
	p := &probe{timeout: t.timeout, target: target, pinned: a.server.Protocol != ""}
	p.decision.Transport = transport
	p.connect = func(ctx context.Context, v mcp.Version) (*mcp.Session, error) {
		ctx, cancel := context.WithTimeoutCause(ctx, t.connectTimeout, &connectTimeoutError{t.connectTimeout})
		defer cancel()
		o := o
		o.Version = v
		var odd noise
		odd.watch(&o)
		session, decision, err := mcp.Negotiate(ctx, p.decision.Transport, fallback, o)
		if err = odd.explain(err); err != nil {
			outcome, code := driver.Classify(ctx, mcp.Reply{}, err)
			return nil, &connectError{outcome: outcome, code: code, err: err}
		}
		if p.session == nil {
			p.decision, fallback = decision, nil
		}
		return session, nil
	}
	if p.session, err = p.connect(ctx, mcp.Version(a.server.Protocol)); err != nil {
		return nil, failure("connect to the server: %w", errors.Join(err, target.discard()))
	}
	return p, nil
}

// reopenFor opens another session, in an older version, when nobody chose one and
// the newest does not have the method.
func (p *probe) reopenFor(ctx context.Context, method string) error {
	if p.pinned || p.session.Info().Version.Features().Has(method) {
		return nil
	}
	for _, v := range p.session.Info().Supported {
		if v.Known() && v.Features().Has(method) {
			session, err := p.connect(ctx, v)
			if err != nil {
				return failure("connect to the server: %w", err)
			}
			p.end(ctx)
			p.session = session
			return nil
		}
	}
	return nil
}

// connectTimeoutError is a session that was not open in time.
type connectTimeoutError struct{ limit time.Duration }

func (e *connectTimeoutError) Error() string { return fmt.Sprintf("no session within %v", e.limit) }

// Is makes it the timeout that outcomes know.
func (*connectTimeoutError) Is(target error) bool { return target == pool.ErrDialTimeout }

// connectError is a session that could not be opened.
type connectError struct {
	outcome metrics.Outcome
	code    int32
	err     error
}

func (e *connectError) Error() string { return e.err.Error() }
func (e *connectError) Unwrap() error { return e.err }

func (p *probe) close(ctx context.Context) {
	p.end(ctx)
	_ = p.target.discard() // what was asked has been answered
}

// end ends the session.
func (p *probe) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	_ = p.session.Close(ctx) // nothing is asked of it any more
}

// tool is an entry of tools/list as far as we look at it.
type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"inputSchema,omitempty"`
	Output      json.RawMessage `json:"outputSchema,omitempty"`
	Annotations *struct {
		ReadOnly    *bool `json:"readOnlyHint,omitempty"`
		Destructive *bool `json:"destructiveHint,omitempty"`
		Idempotent  *bool `json:"idempotentHint,omitempty"`
	} `json:"annotations,omitempty"`
	Execution struct {
		TaskSupport string `json:"taskSupport,omitempty"` // 2025-11-25
	} `json:"execution,omitzero"`
}

// readOnly tells that the tool is marked so.
func (t *tool) readOnly() bool {
	return t.Annotations != nil && t.Annotations.ReadOnly != nil && *t.Annotations.ReadOnly
}

// hints are the tool's annotations in words.
func (t *tool) hints() string {
	a := t.Annotations
	var out []string
	switch {
	case a == nil:
	case a.ReadOnly != nil && *a.ReadOnly:
		out = append(out, "read-only")
	case a.Destructive != nil && *a.Destructive:
		out = append(out, "destructive")
	}
	if a != nil && a.Idempotent != nil && *a.Idempotent && (a.ReadOnly == nil || !*a.ReadOnly) {
		out = append(out, "idempotent")
	}
	return strings.Join(out, ", ")
}

// arguments are the names of the tool's arguments, * after those required.
func (t *tool) arguments() string {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	if json.Unmarshal(t.InputSchema, &schema) != nil {
		return "?"
	}
	var out []string
	for _, name := range schema.Required {
		out = append(out, name+"*")
		delete(schema.Properties, name)
	}
	return strings.Join(append(out, sortedNames(schema.Properties)...), ", ")
}

func (p *probe) tools(ctx context.Context) ([]tool, error) {
	return list[tool](ctx, p, "tools/list", "tools", func(mcp.Reply) {})
}

// list follows a listing to its end; page is told of each page.
func list[T any](ctx context.Context, p *probe, method, member string, page func(mcp.Reply)) ([]T, error) {
	out := []T{}
	req := mcp.Request{Method: method, Params: []byte("{}"), Timeout: p.timeout}
	for reply, err := range mcp.Pages(ctx, p.session, req) {
		if err != nil {
			return nil, fmt.Errorf("%s: %w", method, err)
		}
		page(reply)
		var members map[string]json.RawMessage
		if err := json.Unmarshal(reply.Result, &members); err != nil {
			return nil, fmt.Errorf("%s: %w", method, err)
		}
		var items []T
		if err := json.Unmarshal(members[member], &items); err != nil {
			return nil, fmt.Errorf("%s: member %q of the result: %w", method, member, err)
		}
		out = append(out, items...)
	}
	return out, nil
}

// openSchemaProbe is openProbe with the frames in the log of --frames.
func (f *runFlags) openSchemaProbe(ctx context.Context, s streams, q scenarios.QuickConfig) (*probe, error) {
	a, err := f.aimAt(s, q)
	if err != nil {
		return nil, err
	}
	if err := f.frameLog.start(a.scenario.Masker()); err != nil {
		return nil, failure("--frames: %w", err)
	}
	o := mcp.Options{ParamHeaders: &mcp.ParamHeaders{}}
	f.frameLog.watchProbe(a.server.Name, &o)
	return a.open(ctx, &f.targetFlags, &dialer{outgoing: &outgoing.Dialer{Sources: f.sources}}, o)
}

// argumentsFromSchema asks the server for the tool and makes arguments from its
// input schema; {} when it lists no such tool: the calls then show what it says.
func (f *runFlags) argumentsFromSchema(ctx context.Context, s streams, q scenarios.QuickConfig) ([]byte, error) {
	if f.dryRun {
		return []byte("{}"), nil // nothing is sent
	}
	p, err := f.openSchemaProbe(ctx, s, q)
	if exit, ok := errors.AsType[*exitError](err); ok && exit.code == metrics.ExitError {
		f.probeFailed = err
		return []byte("{}"), nil
	}
	if err != nil {
		return nil, err
	}
	defer p.close(ctx)
	if !p.pinned {
		f.decided = &p.decision
	}
	tools, err := p.tools(ctx)
	if err != nil {
		f.probeFailed = fmt.Errorf("ask for the arguments of %s (give them with -a): %w", f.tool, err)
		return []byte("{}"), nil
	}
	for i := range tools {
		if tools[i].Name != f.tool {
			continue
		}
		args, err := scenarios.SampleArguments(tools[i].InputSchema)
		if err != nil {
			return nil, usage("make arguments for tool %s from its input schema: %w", f.tool, err)
		}
		return args, nil
	}
	return []byte("{}"), nil
}

// suggest lists the server's tools for a user who named a server and nothing
// to do with it. It is always an error.
func (f *runFlags) suggest(ctx context.Context, s streams) error {
	q, err := f.quickConfig(s)
	if err != nil {
		return err
	}
	p, err := openProbe(ctx, s, &f.targetFlags, q)
	if err != nil {
		return err
	}
	defer p.close(ctx)
	tools, err := p.tools(ctx)
	if err != nil {
		return usage("name a tool with -t, or a scenario (the server's tools could not be listed: %w)", err)
	}
	var b strings.Builder
	b.WriteString("name a tool with -t, or a scenario; the server has\n")
	for i := range tools {
		fmt.Fprintf(&b, "  %s(%s)\n", clean(tools[i].Name), clean(tools[i].arguments()))
	}
	if len(tools) > 0 {
		fmt.Fprintf(&b, "for instance\n  mcpbench run -t %s %s", shellQuote(clean(tools[0].Name)), f.targetText())
	}
	return usage("%s", b.String())
}

// targetText is the part of a command line that names the server.
func (t *targetFlags) targetText() string {
	switch {
	case len(t.urls) > 0:
		return "--url " + shellQuote(scenarios.MaskURL(t.urls[0]))
	case t.mcpConfig != "":
		return "--mcp-config " + shellQuote(t.mcpConfig) + " --server " + shellQuote(t.server)
	}
	words := scenarios.MaskArguments(t.command)
	for i, w := range words {
		words[i] = shellQuote(w)
	}
	return "-- " + strings.Join(words, " ")
}

// plainWord needs no quotes in a shell.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// shellQuote writes a word so that a POSIX shell reads it as it is.
func shellQuote(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// quickConfig is the target of the flags in the form of a quick run.
func (t *targetFlags) quickConfig(s streams) (scenarios.QuickConfig, error) {
	q := scenarios.QuickConfig{
		Command: t.command, ConfigFile: t.mcpConfig, ConfigServer: t.server, Options: s.loadOptions(nil),
	}
	switch len(t.urls) {
	case 0:
	case 1:
		q.URL = t.urls[0]
	default:
		return q, usage("one server at a time: --url URL")
	}
	if !t.named() {
		q.Embedded = "http"
	}
	return q, nil
}
