// Command bench measures what a request costs the client: the processor time of
// the whole process, user and system, divided by its requests, against wrk on the
// same server, pair by pair.
//
//	cd internal/bench && go run . -mcpbench PATH
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

type options struct {
	program  string
	engine   string
	sessions int
	duration time.Duration
	pairs    int
	sse      bool
	stdio    bool
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	var o options
	var server string
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.StringVar(&o.program, "mcpbench", "", "the mcpbench program; empty: built from this tree")
	fs.StringVar(&o.engine, "engine", "auto", "--http-engine of mcpbench")
	fs.IntVar(&o.sessions, "c", 64, "sessions, and connections of wrk")
	fs.DurationVar(&o.duration, "d", 5*time.Second, "length of one run")
	fs.IntVar(&o.pairs, "pairs", 5, "pairs of runs")
	fs.BoolVar(&o.sse, "sse", false, "mcpbench gets event streams; wrk always gets JSON")
	fs.BoolVar(&o.stdio, "stdio", false, "8 stdio servers with 8 requests in flight each, instead of HTTP and wrk")
	fs.StringVar(&server, "serve", "", "internal: serve json or sse on a free port, or stdio")
	if err := fs.Parse(args); err != nil {
		return err
	}
	switch server {
	case "":
	case "stdio":
		return serveLines(os.Stdin, os.Stdout)
	default:
		return serveHere(server == "sse")
	}
	return compare(o)
}

func serveHere(sse bool) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	return serve(l, sse)
}

// compare runs the pairs and prints the table.
func compare(o options) error {
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if o.program == "" {
		o.program = filepath.Join(dir, "mcpbench")
		build := exec.Command("go", "build", "-o", o.program, "./cmd/mcpbench")
		build.Dir, build.Stderr = "../..", os.Stderr
		if err := build.Run(); err != nil {
			return fmt.Errorf("build mcpbench: %w", err)
		}
	}
	if o.stdio {
		return pipes(o, dir)
	}
	plain, stopPlain, err := startServer("json")
	if err != nil {
		return err
	}
	defer stopPlain()
	target := plain
	if o.sse {
		var stop func()
		if target, stop, err = startServer("sse"); err != nil {
			return err
		}
		defer stop()
	}
	fmt.Printf("%5s  %14s  %14s  %9s  %9s  %6s\n", "pair", "mcpbench µs", "wrk µs", "mcpbench/s", "wrk/s", "ratio")
	var ratios []float64
	for i := range o.pairs {
		ours, err := runMcpbench(o, target, dir)
		if err != nil {
			return err
		}
		theirs, err := runWrk(o, plain, dir)
		if err != nil {
			return err
		}
		ratio := ours.perRequest() / theirs.perRequest()
		ratios = append(ratios, ratio)
		fmt.Printf("%5d  %14.2f  %14.2f  %9.0f  %9.0f  %6.2f\n", i+1, ours.perRequest(), theirs.perRequest(),
			ours.rate(o.duration), theirs.rate(o.duration), ratio)
	}
	slices.Sort(ratios)
	fmt.Printf("ratio of client CPU a request: median %.2f, min %.2f, max %.2f\n",
		ratios[len(ratios)/2], ratios[0], ratios[len(ratios)-1])
	return nil
}

// pipes measures stdio: there is nothing to compare it with.
func pipes(o options, dir string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var all []float64
	for range o.pairs {
		out, _, err := measure(o.program, "run", "-t", "echo", "-a", arguments, "-c", "8", "--in-flight", "8",
			"-d", o.duration.String(), "-q", "--json", "-o", filepath.Join(dir, "results"), "--", self, "-serve", "stdio")
		if err != nil {
			return err
		}
		s, err := readSummary(out)
		if err != nil {
			return err
		}
		// That of the program alone: what wait tells has the servers in it.
		all = append(all, s.Soundness.CPU*1e6/float64(s.Requests.Total))
		fmt.Printf("%.2f µs a request, %.0f requests/s\n", all[len(all)-1], float64(s.Requests.Total)/o.duration.Seconds())
	}
	slices.Sort(all)
	fmt.Printf("client CPU a request: median %.2f µs, min %.2f, max %.2f\n", all[len(all)/2], all[0], all[len(all)-1])
	return nil
}

func startServer(kind string) (addr string, stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	cmd := exec.Command(self, "-serve", kind)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		_ = cmd.Process.Kill() // the only way it ends
		_ = cmd.Wait()
	}
	buf := make([]byte, 64)
	n, err := out.Read(buf)
	if err != nil {
		stop()
		return "", nil, err
	}
	return strings.TrimSpace(string(buf[:n])), stop, nil
}

// cost is what one client used for its requests.
type cost struct {
	cpu      time.Duration
	requests int64
}

func (c cost) perRequest() float64 {
	return float64(c.cpu.Microseconds()) / float64(max(1, c.requests))
}

func (c cost) rate(d time.Duration) float64 { return float64(c.requests) / d.Seconds() }

func measure(name string, args ...string) ([]byte, time.Duration, error) {
	cmd := exec.Command(name, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return nil, 0, fmt.Errorf("%s: %w\n%s", name, err, errs.String())
	}
	return out.Bytes(), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}

func runMcpbench(o options, addr, dir string) (cost, error) {
	out, cpu, err := measure(o.program, "run", "--url", "http://"+addr+"/mcp", "-t", "echo", "-a", arguments,
		"-c", strconv.Itoa(o.sessions), "-d", o.duration.String(), "-q", "--json", "-o", filepath.Join(dir, "results"), "--http-engine", o.engine)
	if err != nil {
		return cost{}, err
	}
	s, err := readSummary(out)
	if err != nil {
		return cost{}, err
	}
	return cost{cpu, s.Requests.Total}, nil
}

const arguments = `{"message":"0123456789"}`

type summary struct {
	Requests struct {
		Total int64 `json:"total"`
		OK    int64 `json:"ok"`
	} `json:"requests"`
	Soundness struct {
		CPU float64 `json:"cpu_s"`
	} `json:"soundness"`
}

// readSummary reads what a run printed; all its requests must have been ok.
func readSummary(out []byte) (s summary, err error) {
	if err := json.Unmarshal(out, &s); err != nil {
		return s, err
	}
	if s.Requests.OK != s.Requests.Total {
		return s, fmt.Errorf("only %d of %d requests were ok", s.Requests.OK, s.Requests.Total)
	}
	return s, nil
}

const script = `wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Accept"] = "application/json, text/event-stream"
wrk.body = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"message":"0123456789"}}}'
`

var wrkRequests = regexp.MustCompile(`(\d+) requests in`)

func runWrk(o options, addr, dir string) (cost, error) {
	file := filepath.Join(dir, "call.lua")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		return cost{}, err
	}
	out, cpu, err := measure("wrk", "-t1", "-c"+strconv.Itoa(o.sessions), "-d"+strconv.Itoa(int(o.duration.Seconds()))+"s",
		"-s", file, "http://"+addr+"/mcp")
	if err != nil {
		return cost{}, err
	}
	m := wrkRequests.FindSubmatch(out)
	if m == nil {
		return cost{}, errors.New("no number of requests in wrk's output")
	}
	n, err := strconv.ParseInt(string(m[1]), 10, 64)
	return cost{cpu, n}, err
}
