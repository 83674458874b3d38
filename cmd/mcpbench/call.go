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
	"time"

	"github.com/spf13/cobra"

	"mcpbench/driver"
	"mcpbench/mcp"
	"mcpbench/metrics"
	"mcpbench/output"
	"mcpbench/scenarios"
)

// callFlags are the flags of call.
type callFlags struct {
	targetFlags
	args, params string
	json         bool
	noColor      bool
}

func newCallCommand(s streams) *cobra.Command {
	f := &callFlags{}
	cmd := &cobra.Command{
		Use:   "call [flags] METHOD|TOOL [-- COMMAND ARG...]",
		Short: "Make one request and show every frame and its timing",
		Long: "call opens one session, makes one request and shows all that went over the wire, with\n" +
			"times since the start. A name with a slash, and ping, is a method and sent as it is; any\n" +
			"other is a tool. Without a server it asks the demo target. The exit code is 0 when the\n" +
			"outcome is ok, else 1.",
		Example: "  mcpbench call echo -a '{\"message\":\"hello\"}'\n" +
			"  mcpbench call resources/read --params '{\"uri\":\"docs://a\"}' --url http://127.0.0.1:8080/mcp",
		RunE: func(cmd *cobra.Command, args []string) error {
			args, f.command = splitAtDash(cmd, args)
			request, err := f.request(cmd, s, args)
			if err != nil {
				return err
			}
			return interruptible(cmd.Context(), func(ctx context.Context) error { return f.call(ctx, s, request) })
		},
	}
	f.register(cmd.Flags())
	cmd.Flags().StringVarP(&f.args, "args", "a", "", "arguments of the tool: `JSON`, @FILE or - (default {})")
	cmd.Flags().StringVar(&f.params, "params", "", "params of the method: `JSON`, @FILE or -")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object")
	cmd.Flags().BoolVar(&f.noColor, "no-color", false, "no colours (also NO_COLOR)")
	return cmd
}

// request checks the usage and returns what to send. Nothing was sent yet.
func (f *callFlags) request(cmd *cobra.Command, s streams, args []string) (mcp.Request, error) {
	var req mcp.Request
	if err := fromEnvironment(cmd.Flags(), len(f.command) > 0, s.env); err != nil {
		return req, err
	}
	if err := f.validate(); err != nil {
		return req, err
	}
	switch {
	case len(args) == 0:
		return req, usage("name a tool or a method, for instance\n  mcpbench call echo\n  mcpbench call tools/list")
	case len(args) > 1:
		return req, usage("one request at a time, got %s", strings.Join(args, ", "))
	case cmd.ArgsLenAtDash() >= 0 && len(f.command) == 0:
		return req, usage("no command after --")
	}
	name := args[0]
	req.Timeout = f.timeout
	if strings.Contains(name, "/") || name == "ping" {
		if f.args != "" {
			return req, usage("-a is for tools; the params of method %s go with --params", name)
		}
		req.Method = name
		if f.params == "" {
			return req, nil
		}
		params, err := s.objectFlag("--params", f.params)
		req.Params = params
		return req, err
	}
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

// callFrameText is how much of a message call shows.
const callFrameText = 256 << 10

// called is what call prints.
type called struct {
	Server          mcp.Implementation `json:"server_info"`
	Transport       string             `json:"transport"`
	ProtocolVersion mcp.Version        `json:"protocol_version"`
	HTTPEngine      mcp.Engine         `json:"http_engine,omitempty"`
	Frames          []output.Frame     `json:"frames"`
	Timing          callTiming         `json:"timing_ms"`
	RequestBytes    int                `json:"request_bytes"`
	ResponseBytes   int                `json:"response_bytes"`
	Outcome         string             `json:"outcome"`
	ErrorCode       int32              `json:"error_code,omitempty"`
	Error           string             `json:"error,omitempty"`

	answered bool
}

// callTiming has milliseconds: the first four last so long, the rest are since
// the start.
type callTiming struct {
	Spawn     float64 `json:"spawn,omitempty"`
	TCP       float64 `json:"tcp,omitempty"`
	TLS       float64 `json:"tls,omitempty"`
	Handshake float64 `json:"handshake"`
	Sent      float64 `json:"sent"`
	FirstByte float64 `json:"first_byte"`
	Done      float64 `json:"done"`
}

func inMS(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// call makes the request and prints what there was to see, also of one that failed.
func (f *callFlags) call(ctx context.Context, s streams, req mcp.Request) error {
	q, err := f.quickConfig(s)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	c := &called{Frames: []output.Frame{}}
	watch := func(frame *mcp.Frame, mask *scenarios.Masker) {
		shown := newFrame(frame, mask, callFrameText)
		hide(&shown, mask)
		mu.Lock()
		defer mu.Unlock()
		c.Frames = append(c.Frames, shown)
	}
	p, err := openProbe(ctx, s, &f.targetFlags, q, watch)
	if err == nil {
		err = c.make(ctx, p, req)
		p.close(ctx)
	} else if exit, ok := errors.AsType[*exitError](err); ok && exit.code == metrics.ExitUsage {
		return err
	}
	mu.Lock()
	defer mu.Unlock()
	// Frames are shown when they are whole; a request is whole before its answer.
	slices.SortStableFunc(c.Frames, func(a, b output.Frame) int { return int(a.OffsetNS - b.OffsetNS) })
	if perr := f.show(s, c); perr != nil {
		return failure("print the call: %w", perr)
	}
	if err != nil {
		return err
	}
	if c.Outcome != metrics.OK.String() {
		return &exitError{code: metrics.ExitError}
	}
	return nil
}

// make makes the request and judges it. The error is one of preparing it.
func (c *called) make(ctx context.Context, p *probe, req mcp.Request) error {
	info := p.session.Info()
	c.Server, c.Transport, c.ProtocolVersion, c.HTTPEngine = info.Server, info.Transport, info.Version, info.Engine
	if !info.Version.Features().Has(req.Method) {
		return failure("%s does not exist in protocol version %s; pin another with --protocol", req.Method, info.Version)
	}
	reply, err := p.session.Call(ctx, req)
	outcome, code := driver.Classify(ctx, reply, err)
	c.answered = true
	c.Outcome, c.ErrorCode = outcome.String(), code
	if err != nil {
		c.Error = err.Error()
	}
	c.RequestBytes, c.ResponseBytes = reply.BytesOut, reply.BytesIn
	c.Timing = callTiming{
		Spawn: inMS(info.Spawn), TCP: inMS(info.TCP), TLS: inMS(info.TLS), Handshake: inMS(info.Handshake),
		Sent: inMS(reply.Timing.Start), FirstByte: inMS(reply.Timing.FirstByte), Done: inMS(reply.Timing.End),
	}
	return nil
}

func (f *callFlags) show(s streams, c *called) error {
	if f.json {
		enc := json.NewEncoder(s.out)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(c)
	}
	v := callView{color: output.UseColor(isTerminal(s.out), f.noColor, s.getenv)}
	v.call(c)
	_, err := s.out.Write(v.text.Bytes())
	return err
}
