package main

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mcpbench/driver"
	"mcpbench/mcp"
)

// targetFlags name the server under test; run and discover share them.
type targetFlags struct {
	urls           []string
	mcpConfig      string
	server         string
	headers        []string
	bearerEnv      string
	protocol       string
	transport      string
	connectTimeout time.Duration
	timeout        time.Duration
	command        []string // after --
}

func (t *targetFlags) register(fs *pflag.FlagSet) {
	fs.StringArrayVar(&t.urls, "url", nil, "`URL` of the MCP endpoint, or NAME=URL for one server of a scenario (repeat)")
	fs.StringVar(&t.mcpConfig, "mcp-config", "", "editor configuration `FILE` to take the server from (.mcp.json and the like)")
	fs.StringVar(&t.server, "server", "", "`NAME` of the server in --mcp-config")
	fs.StringArrayVarP(&t.headers, "header", "H", nil, "HTTP header `K:V` for every request (repeat)")
	fs.StringVar(&t.bearerEnv, "bearer-env", "", "environment `NAME` that holds a bearer token")
	fs.StringVar(&t.protocol, "protocol", "", "protocol `VERSION` to pin (default: the newest that the server speaks)")
	fs.StringVar(&t.transport, "transport", "auto", "auto, stdio, http or sse")
	fs.DurationVar(&t.connectTimeout, "connect-timeout", 10*time.Second, "limit of opening a session, handshake included")
	fs.DurationVar(&t.timeout, "timeout", 30*time.Second, "limit of one request, from the send to the full answer")
	withEnv(fs, "url", "mcp-config", "server", "bearer-env", "protocol", "transport", "connect-timeout", "timeout")
}

// named reports whether the flags name a server.
func (t *targetFlags) named() bool {
	return len(t.urls) > 0 || t.mcpConfig != "" || len(t.command) > 0
}

// validate checks what can be checked without a scenario.
func (t *targetFlags) validate() error {
	ways := 0
	for _, given := range []bool{len(t.urls) > 0, t.mcpConfig != "", len(t.command) > 0} {
		if given {
			ways++
		}
	}
	switch {
	case ways > 1:
		return usage("name the server once: --url, --mcp-config with --server, or a command after --")
	case t.mcpConfig != "" && t.server == "":
		return usage("--mcp-config needs --server NAME")
	case t.mcpConfig == "" && t.server != "":
		return usage("--server needs --mcp-config FILE")
	case strings.Contains(t.protocol, ","):
		return usage("not supported yet: --protocol with several versions")
	case t.timeout <= 0 || t.connectTimeout <= 0:
		return usage("--timeout and --connect-timeout must be positive")
	}
	switch t.transport {
	case "auto":
	case "stdio":
		if len(t.urls) > 0 {
			return usage("--transport stdio needs a command after --, not --url")
		}
	case "http", "sse":
		if len(t.command) > 0 {
			return usage("--transport %s needs --url, not a command", t.transport)
		}
	default:
		return usage("--transport %q: must be auto, stdio, http or sse", t.transport)
	}
	return nil
}

// runFlags are the flags of run.
type runFlags struct {
	targetFlags
	tool, args string
	sessions   int
	rate       string
	arrivals   string
	duration   time.Duration
	iterations int64
	warmup     time.Duration
	thresholds []string
	getStream  string
	grace      time.Duration
	pacer      string
	procs      int
	engine     string
	sourceIP   string
	sources    []netip.Addr // of sourceIP
	find       findFlags
	calibrate  bool
	inFlight   int
	out        string
	json       bool
	progress   string
	quiet      bool
	verbose    bool
	logFormat  string
	noColor    bool
	vars       map[string]string
	seed       uint64
	tags       map[string]string
	only       []string
	writes     bool
	dryRun     bool
	frames     string
	frameLog   *frameLog // of frames, once it is open; nil: none

	profiles profiles

	// decided is what the server was found to speak when it was asked for the
	// tool's schema; nil: it was not asked, or a version is pinned.
	decided *mcp.Decision
	// probeFailed is why the server could not be asked for the tool's schema:
	// the run then ends before it begins, with a summary that says so.
	probeFailed error
}

func (f *runFlags) register(fs *pflag.FlagSet) {
	f.targetFlags.register(fs)
	fs.StringVarP(&f.tool, "tool", "t", "", "quick run of one tool by `NAME`")
	fs.StringVarP(&f.args, "args", "a", "", "its arguments: `JSON`, @FILE or - (default: made from the tool's input schema)")
	fs.IntVarP(&f.sessions, "sessions", "c", 1, "concurrent sessions; with -r the most that are open")
	fs.StringVarP(&f.rate, "rate", "r", "", "open load: arrivals as `N[/s|/m]`")
	fs.StringVar(&f.arrivals, "arrivals", "constant", "open load: constant or poisson")
	fs.DurationVarP(&f.duration, "duration", "d", 10*time.Second, "length of the measured phase")
	fs.Int64VarP(&f.iterations, "iterations", "n", 0, "iterations of all sessions together; without -d there is then no time limit")
	fs.DurationVar(&f.warmup, "warmup", 0, "time before the measured phase; recorded, but left out of the results")
	fs.StringArrayVar(&f.thresholds, "threshold", nil, "pass or fail `EXPR`, as in 'p99(latency) < 250ms' (repeat)")
	fs.StringVar(&f.getStream, "get-stream", "auto", "legacy HTTP: open the GET stream: auto, always or never")
	fs.DurationVar(&f.grace, "grace", 5*time.Second, "time that open requests may take at the end")
	fs.StringVar(&f.pacer, "pacer", "auto", "auto, precise or economical")
	fs.IntVar(&f.procs, "procs", 0, "processors to use (GOMAXPROCS; default: all, one of two that a closed load shares with its target)")
	fs.StringVar(&f.engine, "http-engine", "auto", "auto, fast or std")
	fs.StringVar(&f.sourceIP, "source-ip", "", "local `ADDRESS[,ADDRESS…]` to dial HTTP servers from, in turn by session")
	fs.BoolVar(&f.calibrate, "calibrate", false, "first measure this machine's own floor, against a target that does nothing")
	f.find.register(fs)
	fs.IntVar(&f.inFlight, "in-flight", 1, "requests in flight on one session")
	fs.StringVarP(&f.out, "out", "o", "results", "folder for results; each run makes `DIR`/RUN_ID")
	fs.BoolVar(&f.json, "json", false, "print the summary as one JSON object")
	fs.StringVar(&f.progress, "progress", "auto", "auto, bar, line or none")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "print nothing on stderr but errors")
	fs.BoolVarP(&f.verbose, "verbose", "v", false, "log more")
	fs.StringVar(&f.logFormat, "log-format", "console", "console or json")
	fs.BoolVar(&f.noColor, "no-color", false, "no colours (also NO_COLOR)")
	fs.Var((*pairs)(&f.vars), "var", "scenario variable `K=V` (repeat)")
	fs.Uint64Var(&f.seed, "seed", 1, "seed of everything random")
	fs.BoolVar(&f.writes, "allow-writes", false, "let generate choose tools that are not hinted read-only")
	fs.StringArrayVar(&f.only, "only", nil, "run only the `GROUP` of the scenario (repeat)")
	fs.Var((*pairs)(&f.tags), "tag", "label `K=V` kept with the results (repeat)")
	fs.BoolVar(&f.dryRun, "dry-run", false, "print the plan and one rendered request of each step; nothing is sent")
	fs.StringVar(&f.frames, "frames", "", "log what goes over the wire to `FILE`: JSON lines, secrets hidden, at most 64 MiB")
	fs.StringVar(&f.profiles.cpu, "cpuprofile", "", "write a processor profile of mcpbench itself to `FILE`")
	fs.StringVar(&f.profiles.mem, "memprofile", "", "write a heap profile of mcpbench itself to `FILE`")
	fs.StringVar(&f.profiles.trace, "trace", "", "write an execution trace of mcpbench itself to `FILE`")
	withEnv(fs, "sessions", "rate", "arrivals", "duration", "iterations", "warmup", "get-stream", "grace", "pacer",
		"procs", "http-engine", "source-ip", "in-flight", "out", "json", "progress", "log-format", "seed")
	for _, name := range []string{"var", "tag"} {
		fs.Lookup(name).DefValue = "" // pflag would show an empty list
	}
	for _, name := range []string{
		"report", "prometheus", "agents", "bus", "shard", "start-at",
	} {
		notYetFlag(fs, name, false)
	}
	for _, name := range []string{"otel", "distributed"} {
		notYetFlag(fs, name, true)
	}
	notYetFlag(fs, "dashboard", false)
	fs.Lookup("dashboard").NoOptDefVal = "127.0.0.1:0"
}

func (f *runFlags) validate(cmd *cobra.Command) error {
	if err := f.targetFlags.validate(); err != nil {
		return err
	}
	switch {
	case f.sessions < 1:
		return usage("-c %d: at least one session is needed", f.sessions)
	case f.iterations < 0 || (f.iterations == 0 && cmd.Flags().Changed("iterations")):
		return usage("-n %d: at least one iteration is needed", f.iterations)
	case f.duration <= 0:
		return usage("-d %v: must be positive", f.duration)
	case f.warmup < 0 || f.grace < 0:
		return usage("--warmup and --grace must not be negative")
	case f.out == "":
		return usage("-o: name a folder")
	case f.inFlight < 1:
		return usage("--in-flight %d: at least one is needed", f.inFlight)
	case f.procs < 0:
		return usage("--procs %d: must be positive", f.procs)
	case f.pacer == driver.PacerPrecise && !driver.HasPrecisePacer:
		return usage("--pacer precise: there is none on this system; use economical")
	case f.args != "" && f.tool == "":
		return usage("-a needs -t TOOL")
	}
	for _, c := range []struct {
		flag, value string
		allowed     []string
	}{
		{"arrivals", f.arrivals, []string{"constant", "poisson"}},
		{"get-stream", f.getStream, []string{"auto", "always", "never"}},
		{"pacer", f.pacer, []string{"auto", "precise", "economical"}},
		{"http-engine", f.engine, []string{"auto", "fast", "std"}},
		{"progress", f.progress, []string{"auto", "bar", "line", "none"}},
		{"log-format", f.logFormat, []string{"console", "json"}},
	} {
		if err := oneOf(c.flag, c.value, c.allowed); err != nil {
			return err
		}
	}
	if err := f.find.parse(cmd); err != nil {
		return err
	}
	return f.parseSources(cmd.Context())
}

func oneOf(flag, value string, allowed []string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return usage("--%s %q: must be one of %s", flag, value, strings.Join(allowed, ", "))
}
