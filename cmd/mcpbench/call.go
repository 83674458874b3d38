package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"mcpbench/driver"
	"mcpbench/mcp"
	"mcpbench/metrics"
	"mcpbench/output"
)

// callFlags are the flags of call.
type callFlags struct {
	targetFlags
	scenario     string
	tool         string
	args, params string
	getStream    string
	engine       string
	json         bool
	noColor      bool
}

func newCallCommand(s streams) *cobra.Command {
	f := &callFlags{}
	cmd := &cobra.Command{
		Use:   "call [flags] METHOD|TOOL [-- COMMAND ARG...]",
		Short: "Make one request and show every frame and its timing",
		Long: "call opens one session, makes one request and shows all that goes over the wire, as it\n" +
			"goes, with times since the start. A name with a slash, ping and initialize are methods\n" +
			"and sent as they are; any other is a tool. Without a server it asks the demo target. The\n" +
			"exit code is 0 when the outcome is ok, else 1.",
		Example: "  mcpbench call echo -a '{\"message\":\"hello\"}'\n" +
			"  mcpbench call resources/read --params '{\"uri\":\"docs://a\"}' --url http://127.0.0.1:8080/mcp\n" +
			"  mcpbench call tools/list --scenario bench.yaml --server catalogue",
		RunE: func(cmd *cobra.Command, args []string) error {
			args, f.command = splitAtDash(cmd, args)
			if err := f.check(cmd, s); err != nil {
				return err
			}
			req, err := f.request(s, args)
			if err != nil {
				return err
			}
			a, err := f.aim(s)
			if err != nil {
				return err
			}
			return interruptible(cmd.Context(), func(ctx context.Context) error { return f.call(ctx, s, a, req) })
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return mcp.Methods(), cobra.ShellCompDirectiveNoFileComp
		},
	}
	f.register(cmd.Flags())
	fs := cmd.Flags()
	fs.StringVar(&f.scenario, "scenario", "", "take the server from this scenario `FILE`; --server names it when there are several")
	fs.StringVarP(&f.tool, "tool", "t", "", "call the tool of this `NAME`, whatever the name looks like")
	fs.StringVarP(&f.args, "args", "a", "", "arguments of the tool: `JSON`, @FILE or - (default {})")
	fs.StringVar(&f.params, "params", "", "params of the method: `JSON`, @FILE or -")
	fs.StringVar(&f.getStream, "get-stream", "auto", "legacy HTTP: open the GET stream: auto, always or never")
	fs.StringVar(&f.engine, "http-engine", "auto", "auto, fast or std")
	fs.BoolVar(&f.json, "json", false, "print one JSON object")
	fs.BoolVar(&f.noColor, "no-color", false, "no colours (also NO_COLOR)")
	withEnv(fs, "get-stream", "http-engine")
	return cmd
}

// check checks the flags.
func (f *callFlags) check(cmd *cobra.Command, s streams) error {
	if err := fromEnvironment(cmd.Flags(), len(f.command) > 0 || f.scenario != "", s.env); err != nil {
		return err
	}
	if cmd.ArgsLenAtDash() >= 0 && len(f.command) == 0 {
		return usage("no command after --")
	}
	target := f.targetFlags
	if f.scenario != "" {
		if f.named() {
			return usage("name the server once: --scenario, --url, --mcp-config, or a command after --")
		}
		target.server = "" // it is one of the scenario's
	}
	return errors.Join(
		target.validate(),
		oneOf("get-stream", f.getStream, []string{"auto", "always", "never"}),
		oneOf("http-engine", f.engine, []string{"auto", "fast", "std"}),
	)
}

// aim returns the server to ask.
func (f *callFlags) aim(s streams) (*aim, error) {
	if f.scenario != "" {
		sc, err := s.loadScenario(f.scenario, s.loadOptions(nil))
		if err != nil {
			return nil, err
		}
		return f.aimIn(s, sc, f.server)
	}
	q, err := f.quickConfig(s)
	if err != nil {
		return nil, err
	}
	return f.aimAt(s, q)
}

// request returns what to send.
func (f *callFlags) request(s streams, args []string) (mcp.Request, error) {
	req := mcp.Request{Timeout: f.timeout}
	switch {
	case len(args) == 0 && f.tool == "":
		return req, usage("name a tool or a method, for instance\n  mcpbench call echo\n  mcpbench call tools/list")
	case len(args) > 1 || len(args) == 1 && f.tool != "":
		return req, usage("one request at a time, got %s", strings.Join(slices.Concat(args, nonEmpty(f.tool)), ", "))
	case f.args == "-" && f.scenario == "-" || f.params == "-" && f.scenario == "-":
		return req, usage("standard input can be read once only")
	case f.tool == "" && isMethod(args[0]):
		return f.methodRequest(s, req, args[0])
	}
	name := slices.Concat(args, nonEmpty(f.tool))[0]
	if f.params != "" {
		return req, usage("--params is for methods; the arguments of tool %s go with -a", name)
	}
	req.Method, req.Name = "tools/call", name
	arguments := []byte("{}")
	if f.args != "" {
		var err error
		if arguments, err = s.objectFlag("-a", f.args); err != nil {
			return req, err
		}
	}
	quoted, err := json.Marshal(name)
	if err != nil {
		return req, usage("tool %q: %w", name, err)
	}
	req.Params = fmt.Appendf(nil, `{"name":%s,"arguments":%s}`, quoted, arguments)
	return req, nil
}

func (f *callFlags) methodRequest(s streams, req mcp.Request, method string) (mcp.Request, error) {
	switch {
	case f.args != "":
		return req, usage("-a is for tools; the params of method %s go with --params, a tool of this name with -t", method)
	case strings.HasPrefix(method, "notifications/"):
		return req, usage("%s has no answer; call makes requests", method)
	}
	req.Method = method
	if f.params == "" {
		return req, nil
	}
	var err error
	req.Params, err = s.objectFlag("--params", f.params)
	return req, err
}

// isMethod tells a method from the name of a tool.
func isMethod(name string) bool {
	return strings.Contains(name, "/") || slices.Contains(mcp.Methods(), name)
}

func nonEmpty(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

// objectFlag is jsonFlag for what must be a JSON object.
func (s streams) objectFlag(flag, value string) ([]byte, error) {
	data, err := s.jsonFlag(flag, value)
	if err != nil {
		return nil, err
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(data, &object); err != nil || object == nil {
		if at, ok := errors.AsType[*json.SyntaxError](err); ok {
			return nil, usage("%s: not JSON at byte %d: %w\n  %s", flag, at.Offset, err, oneLineOf(string(data), 200))
		}
		return nil, usage("%s: a JSON object is needed, not %s", flag, oneLineOf(string(data), 60))
	}
	var b bytes.Buffer
	if err := json.Compact(&b, data); err != nil {
		return nil, usage("%s: %w", flag, err)
	}
	return b.Bytes(), nil
}

func oneLineOf(text string, most int) string {
	text, cut := output.CutText(strings.Join(strings.Fields(text), " "), most)
	if cut > 0 {
		text += "…"
	}
	return text
}

// call makes the request and shows what there is to see, also of one that fails.
func (f *callFlags) call(ctx context.Context, s streams, a *aim, req mcp.Request) error {
	mask := a.scenario.Masker()
	w := newCallWatch(mask)
	c := &called{Frames: []output.Frame{}, mask: mask}
	var work sync.WaitGroup
	var err error
	work.Go(func() {
		defer w.end()
		err = f.make(ctx, a, w, c, req)
	})
	shown := f.show(s, w, c)
	work.Wait()
	c.place(w)
	if shown == nil {
		shown = f.conclude(s, c)
	}
	switch {
	case shown != nil:
		return failure("print the call: %w", shown)
	case err != nil && (f.json || !isTerminal(s.out)):
		return err // on a terminal it was shown already
	case c.Outcome != metrics.OK.String():
		return &exitError{code: metrics.ExitError}
	}
	return nil
}

// make opens the session, makes the request, judges it, and closes the session.
// The error is one of the session.
func (f *callFlags) make(ctx context.Context, a *aim, w *callWatch, c *called, req mcp.Request) error {
	o := mcp.Options{OnFrame: w.frame, OnAnomaly: w.anomaly, Stderr: w, GetStream: f.getStream == "always"}
	if req.Method == "tools/call" {
		o.ParamHeaders = &mcp.ParamHeaders{} // some versions want some arguments in headers
	}
	p, err := a.open(ctx, &f.targetFlags, &dialer{engine: mcp.Engine(f.engine)}, o)
	if err != nil {
		return c.refused(err)
	}
	defer p.close(ctx)
	if err := p.reopenFor(ctx, req.Method); err != nil {
		return c.refused(err)
	}
	c.session(p.session.Info())
	reply, err := p.session.Call(ctx, req)
	outcome, code := driver.Classify(ctx, reply, err)
	c.judge(reply, err, outcome, code)
	if outcome.Failed() {
		w.mute(true) // what is asked for the hint is not what was asked for
		c.Hint = c.mask.Text(p.hint(ctx, req, reply, err))
		w.mute(false)
	}
	return nil
}

// refused notes a session that was not opened.
func (c *called) refused(err error) error {
	c.Outcome = metrics.ClientError.String()
	if e, ok := errors.AsType[*connectError](err); ok {
		c.Outcome, c.ErrorCode = e.outcome.String(), e.code
	}
	c.Error = c.mask.Text(err.Error())
	exit, ok := errors.AsType[*exitError](err)
	if !ok {
		return err
	}
	return &exitError{code: exit.code, err: errors.New(c.Error)}
}

// session notes what is known of an open session.
func (c *called) session(info mcp.Info) {
	c.opened = true
	c.Server, c.Transport, c.ProtocolVersion, c.HTTPEngine = info.Server, info.Transport, info.Version, info.Engine
	c.Timing.Spawn, c.Timing.TCP, c.Timing.TLS = inMS(info.Spawn), inMS(info.TCP), inMS(info.TLS)
	c.Timing.Handshake = inMS(info.Handshake)
}

// judge notes what came of the request.
func (c *called) judge(reply mcp.Reply, err error, outcome metrics.Outcome, code int32) {
	c.Outcome, c.ErrorCode = outcome.String(), code
	switch {
	case err != nil:
		c.Error = c.mask.Text(err.Error())
	case reply.ToolError:
		c.Error = c.mask.Text(saidOf(reply, nil))
	}
	c.HTTPStatus, c.Notifications, c.Rounds = reply.HTTPStatus, reply.Notifications, reply.Rounds
	c.RequestBytes, c.ResponseBytes = reply.BytesOut, reply.BytesIn
	t := reply.Timing
	c.made, c.sent = true, t.Start
	c.Timing.Sent, c.Timing.Done = inMS(t.Start), inMS(t.End)
	if m := reply.More; m != nil {
		for _, trip := range m.Trips {
			c.Timing.Rounds = append(c.Timing.Rounds, roundTiming{Sent: inMS(trip.Start), Done: inMS(trip.End)})
		}
	}
	if t.FirstByte < t.End || reply.HTTPStatus > 0 || reply.BytesIn > 0 {
		c.Timing.FirstByte = inMS(t.FirstByte)
	}
}

// place tells the first byte of an event stream, its header, from the first event.
func (c *called) place(w *callWatch) {
	if !c.made {
		return
	}
	head, event := w.stream(c.sent)
	if head >= 0 {
		c.Timing.FirstByte = inMS(head)
	}
	if event >= 0 {
		c.Timing.FirstEvent = inMS(event)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	c.Anomalies, c.NotShown = w.anomalies, w.left
}
