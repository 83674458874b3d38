package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"mcpbench/internal/self"
	"mcpbench/scenarios"
)

func newRunCommand(s streams) *cobra.Command {
	f := &runFlags{}
	cmd := &cobra.Command{
		Use:   "run [SCENARIO | - | @NAME] [flags] [-- COMMAND ARG...]",
		Short: "Run a load against an MCP server",
		Long: "run opens sessions, replays a scenario and reports what every request took. Without\n" +
			"a scenario, a tool or a server it runs @quickstart on the demo target.",
		Example: "  mcpbench run\n" +
			"  mcpbench run -t search -a '{\"q\":\"tea\"}' -c 20 -d 10s --url http://127.0.0.1:8080/mcp\n" +
			"  mcpbench run bench.yaml -r 200/s -c 50",
		RunE: func(cmd *cobra.Command, args []string) error {
			args, f.command = splitAtDash(cmd, args)
			return runRun(cmd, s, f, args)
		},
		ValidArgsFunction: completeScenarios,
	}
	f.register(cmd.Flags())
	return cmd
}

// splitAtDash separates our arguments from the command after --.
func splitAtDash(cmd *cobra.Command, args []string) (own, command []string) {
	if at := cmd.ArgsLenAtDash(); at >= 0 {
		return args[:at], args[at:]
	}
	return args, nil
}

func completeScenarios(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var out []string
	for _, b := range scenarios.Bundled() {
		out = append(out, "@"+b.Name+"\t"+b.Description)
	}
	return out, cobra.ShellCompDirectiveDefault
}

// runRun checks the usage, then hands over to an execution.
func runRun(cmd *cobra.Command, s streams, f *runFlags, args []string) error {
	if err := checkRunUsage(cmd, s, f, args); err != nil {
		return err
	}
	var err error
	if f.frameLog, err = openFrames(f); err != nil { // also the server's schema is asked for only after this
		return err
	}
	err = runLoaded(cmd, s, f, args)
	// It is closed already, unless it did not come to a run.
	if cerr := f.frameLog.close(); cerr != nil && err == nil {
		err = failure("%w", cerr)
	}
	return err
}

func runLoaded(cmd *cobra.Command, s streams, f *runFlags, args []string) error {
	ctx := cmd.Context()
	var sc *scenarios.Scenario
	err := interruptible(ctx, func(ctx context.Context) (err error) {
		sc, err = f.scenario(ctx, s, args)
		return err
	})
	if err != nil {
		return err
	}
	o, err := f.overrides(cmd, s)
	if err != nil {
		return err
	}
	if len(args) == 0 { // a quick run has its target already
		o.URL, o.Command, o.ConfigFile, o.ConfigServer = nil, nil, "", ""
	}
	if err := sc.Override(o); err != nil {
		return usage("%w", err)
	}
	program, err := compile(sc)
	if err != nil {
		return err
	}
	if err := f.checkSources(program); err != nil {
		return err
	}
	for _, w := range program.Warnings {
		if !f.quiet {
			_, _ = fmt.Fprintln(s.err, "warning:", w.String())
		}
	}
	if err := f.find.prepared(program); err != nil {
		return err
	}
	if f.procs > 0 {
		runtime.GOMAXPROCS(f.procs)
	}
	if f.dryRun {
		return interruptible(ctx, func(context.Context) error { return dryRun(s, f, sc, program) })
	}
	if err := impossible(program, self.ReadLimits("/"), len(f.sources)); err != nil {
		return usage("%w", err)
	}
	e := &execution{
		streams: s, flags: f, scenario: sc, program: program, command: maskedCommand(cmd, args, f), failed: f.probeFailed,
		frames: f.frameLog,
	}
	if err := f.profiles.start(); err != nil {
		return failure("%w", errors.Join(err, f.profiles.stop()))
	}
	err = e.run(ctx)
	if perr := f.profiles.stop(); perr != nil && err == nil {
		err = failure("write the profiles: %w", perr)
	}
	return err
}

func checkRunUsage(cmd *cobra.Command, s streams, f *runFlags, args []string) error {
	if err := fromEnvironment(cmd.Flags(), len(f.command) > 0, s.env); err != nil {
		return err
	}
	if err := refuseNotYet(cmd.Flags()); err != nil {
		return err
	}
	switch {
	case len(args) > 1:
		return usage("one scenario at a time, got %s", strings.Join(args, ", "))
	case len(args) == 1 && f.tool != "":
		return usage("-t is for a quick run without a scenario; %s was given too", args[0])
	case cmd.ArgsLenAtDash() >= 0 && len(f.command) == 0:
		return usage("no command after --")
	}
	return f.validate(cmd)
}

// compile makes a program that may run: keys that do nothing yet are refused.
func compile(sc *scenarios.Scenario) (*scenarios.Program, error) {
	program, err := sc.Compile()
	if err != nil {
		return nil, usage("%w", err)
	}
	if len(program.Unsupported) > 0 {
		return nil, usage("%w", program.Unsupported)
	}
	return program, nil
}

// scenario returns what to run: a file, standard input, a built-in one, one
// tool, or the quickstart.
func (f *runFlags) scenario(ctx context.Context, s streams, args []string) (*scenarios.Scenario, error) {
	o := s.loadOptions(f.vars)
	switch {
	case len(args) == 1:
		return s.loadScenario(args[0], o)
	case f.tool != "":
		return f.quick(ctx, s, o)
	case f.named():
		return nil, f.suggest(ctx, s)
	}
	sc, err := scenarios.LoadBundled("quickstart", o)
	if err != nil {
		return nil, usage("%w", err)
	}
	return sc, nil
}

// quick makes the scenario of one tool.
func (f *runFlags) quick(ctx context.Context, s streams, o scenarios.LoadOptions) (*scenarios.Scenario, error) {
	q := scenarios.QuickConfig{
		Command: f.command, ConfigFile: f.mcpConfig, ConfigServer: f.server, Tool: f.tool, Options: o,
	}
	switch {
	case len(f.urls) > 1 || len(f.urls) == 1 && strings.Contains(strings.SplitN(f.urls[0], ":", 2)[0], "="):
		return nil, usage("a quick run has one server: --url URL")
	case len(f.urls) == 1:
		q.URL = f.urls[0]
	case !f.named():
		q.Embedded = "http"
	}
	var err error
	if q.Args, err = f.arguments(ctx, s, q); err != nil {
		return nil, err
	}
	q.Literal = f.args == "" // made from a server's schema, which is no place for expressions
	sc, err := scenarios.Quick(q)
	if err != nil {
		return nil, usage("%w", err)
	}
	return sc, nil
}

// arguments returns the tool's arguments as JSON: those given, or some made
// from the tool's input schema.
func (f *runFlags) arguments(ctx context.Context, s streams, q scenarios.QuickConfig) ([]byte, error) {
	if f.args == "" {
		return f.argumentsFromSchema(ctx, s, q)
	}
	return s.jsonFlag("-a", f.args)
}

// jsonFlag returns the value of a flag that is JSON, @FILE or - for standard input.
func (s streams) jsonFlag(flag, value string) ([]byte, error) {
	if value != "-" && !strings.HasPrefix(value, "@") {
		return []byte(value), nil
	}
	data, err := s.readInput(strings.TrimPrefix(value, "@"))
	if err != nil {
		return nil, usage("%s %s: %w", flag, value, err)
	}
	return data, nil
}

// overrides turns the flags in use into replacements of the scenario's values.
func (f *runFlags) overrides(cmd *cobra.Command, s streams) (scenarios.Overrides, error) {
	o := scenarios.Overrides{
		URL: f.urls, Command: f.command, ConfigFile: f.mcpConfig, ConfigServer: f.server,
		Rate: f.rate, Iterations: f.iterations, Protocol: f.protocol, Transport: f.transport,
		Thresholds: f.thresholds, Tags: f.tags, Only: f.only, From: map[string]string{},
	}
	fs := cmd.Flags()
	changed := func(name string) bool {
		flag := fs.Lookup(name)
		if from := source(flag); strings.HasPrefix(from, "MCPBENCH_") {
			o.From[name] = from
		}
		return flag.Changed
	}
	for _, name := range []string{"url", "mcp-config", "server", "rate", "iterations", "protocol", "transport"} {
		changed(name)
	}
	if changed("sessions") {
		o.Sessions = f.sessions
	}
	if changed("arrivals") {
		o.Process = f.arrivals
	}
	if changed("duration") {
		o.Duration = f.duration
	}
	if changed("warmup") {
		o.Warmup = &f.warmup
	}
	if changed("grace") {
		o.Grace = &f.grace
	}
	if changed("timeout") {
		o.RequestTimeout = f.timeout
	}
	if changed("connect-timeout") {
		o.ConnectTimeout = f.connectTimeout
	}
	if changed("in-flight") {
		o.InFlight = f.inFlight
	}
	if changed("out") {
		o.OutputDir = f.out
	}
	var err error
	o.Headers, err = f.headerValues(s)
	return o, err
}

// headerValues returns the headers of -H and --bearer-env.
func (t *targetFlags) headerValues(s streams) ([]scenarios.HeaderValue, error) {
	var out []scenarios.HeaderValue
	for _, text := range t.headers {
		h, err := scenarios.ParseHeader(text)
		if err != nil {
			return nil, usage("-H: %w", err)
		}
		h.Secret = true // a value typed on the command line is nobody else's business
		out = append(out, h)
	}
	if t.bearerEnv != "" {
		value, err := s.bearer(t.bearerEnv)
		if err != nil {
			return nil, err
		}
		out = append(out, scenarios.HeaderValue{Name: "Authorization", Value: value, Secret: true})
	}
	return out, nil
}

// maskedCommand is our own command line for run.json, without secrets.
func maskedCommand(cmd *cobra.Command, args []string, f *runFlags) []string {
	out := append([]string{"mcpbench", "run"}, args...)
	cmd.Flags().VisitAll(func(flag *flagType) {
		if !flag.Changed || source(flag) != "--"+flag.Name {
			return
		}
		switch flag.Name {
		case "header":
			for _, h := range f.headers {
				name, _, _ := strings.Cut(h, ":")
				out = append(out, "--header", name+":***")
			}
		case "var":
			for _, k := range slices.Sorted(mapKeys(f.vars)) {
				v := f.vars[k]
				if scenarios.SecretName(k) {
					v = "***"
				}
				out = append(out, "--var", k+"="+v)
			}
		case "url":
			for _, u := range f.urls {
				out = append(out, "--url", maskNamedURL(u))
			}
		default:
			out = append(out, "--"+flag.Name+"="+flag.Value.String())
		}
	})
	if len(f.command) > 0 {
		out = append(append(out, "--"), scenarios.MaskArguments(f.command)...)
	}
	return out
}

// loadOptions are what scenarios may read.
func (s streams) loadOptions(vars map[string]string) scenarios.LoadOptions {
	return scenarios.LoadOptions{Env: s.env, Vars: vars}
}

// loadScenario reads a scenario file, "-" or a built-in "@name".
func (s streams) loadScenario(name string, o scenarios.LoadOptions) (*scenarios.Scenario, error) {
	var sc *scenarios.Scenario
	var err error
	if strings.HasPrefix(name, "@") {
		sc, err = scenarios.LoadBundled(name, o)
	} else {
		var data []byte
		if data, err = s.readInput(name); err != nil {
			return nil, usage("%w", withNearFile(name, err))
		}
		shown := name
		if name == "-" {
			shown = "stdin"
		} else {
			o.Dir = dirOf(name)
		}
		sc, err = scenarios.Load(shown, data, o)
	}
	if err != nil {
		return nil, usage("%w", err)
	}
	return sc, nil
}
