package target

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Counts are the requests of one kind. Received is the sum of the other three
// and of what is still being worked on.
type Counts struct {
	Received   int64 `json:"received"`
	OK         int64 `json:"ok"`
	ToolErrors int64 `json:"tool_errors"` // results with isError
	RPCErrors  int64 `json:"rpc_errors"`
}

// Stats are the counters of a target. A JSON-RPC request is counted once, where
// the SDK hands it over; what the SDK refuses before that (a malformed message,
// an unknown method, an unknown session) is not counted.
type Stats struct {
	Requests      Counts            `json:"requests"`
	Methods       map[string]Counts `json:"methods"`
	Tools         map[string]Counts `json:"tools"` // tools/call by name; UnknownTool for names that do not exist
	Notifications int64             `json:"notifications"`

	SessionsOpened  int64 `json:"sessions_opened"`  // initialize answered with a result
	SessionsClosed  int64 `json:"sessions_closed"`  // DELETE answered 2xx, or end of stdin
	SessionsRefused int64 `json:"sessions_refused"` // see Config.RefuseSessions and MaxSessions
}

// UnknownTool stands in Stats.Tools for every name that is not a tool.
const UnknownTool = "(unknown)"

func newStats() Stats {
	return Stats{Methods: map[string]Counts{}, Tools: map[string]Counts{}}
}

func (c Counts) plus(d Counts) Counts {
	return Counts{
		Received:   c.Received + d.Received,
		OK:         c.OK + d.OK,
		ToolErrors: c.ToolErrors + d.ToolErrors,
		RPCErrors:  c.RPCErrors + d.RPCErrors,
	}
}

// add adds o to s.
func (s *Stats) add(o Stats) {
	s.Requests = s.Requests.plus(o.Requests)
	for method, c := range o.Methods {
		s.Methods[method] = s.Methods[method].plus(c)
	}
	for tool, c := range o.Tools {
		s.Tools[tool] = s.Tools[tool].plus(c)
	}
	s.Notifications += o.Notifications
	s.SessionsOpened += o.SessionsOpened
	s.SessionsClosed += o.SessionsClosed
	s.SessionsRefused += o.SessionsRefused
}

type sessionEvent uint8

const (
	opened sessionEvent = iota
	closed
	refused
)

// counters guards Stats.
type counters struct {
	mu    sync.Mutex
	stats Stats
}

func (c *counters) snapshot() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	s.Methods = maps.Clone(s.Methods)
	s.Tools = maps.Clone(s.Tools)
	return s
}

func (c *counters) notified() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Notifications++
}

func (c *counters) session(e sessionEvent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch e {
	case opened:
		c.stats.SessionsOpened++
	case closed:
		c.stats.SessionsClosed++
	case refused:
		c.stats.SessionsRefused++
	}
}

func (c *counters) received(method, tool string) { c.bump(method, tool, Counts{Received: 1}) }

func (c *counters) answered(method, tool string, res mcp.Result, err error) {
	switch result, isCall := res.(*mcp.CallToolResult); {
	case err != nil:
		c.bump(method, tool, Counts{RPCErrors: 1})
	case isCall && result != nil && result.IsError:
		c.bump(method, tool, Counts{ToolErrors: 1})
	default:
		c.bump(method, tool, Counts{OK: 1})
	}
}

// bump adds d to the total, to its method and, when tool is not empty, to its tool.
func (c *counters) bump(method, tool string, d Counts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Requests = c.stats.Requests.plus(d)
	c.stats.Methods[method] = c.stats.Methods[method].plus(d)
	if method != callMethod {
		return
	}
	if !isTool(tool) {
		tool = UnknownTool // a name that the client made up must not become a map key
	}
	c.stats.Tools[tool] = c.stats.Tools[tool].plus(d)
}

// writeStats writes the counters into Config.StatsDir, if there is one, under
// the name of this process. A reader never sees half a file.
func (t *Target) writeStats() error {
	if t.cfg.StatsDir == "" {
		return nil
	}
	data, err := json.MarshalIndent(t.Stats(), "", "  ")
	if err != nil {
		return fmt.Errorf("encode counters: %w", err)
	}
	if err := os.MkdirAll(t.cfg.StatsDir, 0o750); err != nil {
		return fmt.Errorf("write counters: %w", err)
	}
	name := filepath.Join(t.cfg.StatsDir, strconv.Itoa(os.Getpid())+".json")
	partial := name + ".partial"
	if err := os.WriteFile(partial, append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("write counters: %w", err)
	}
	if err := os.Rename(partial, name); err != nil {
		return fmt.Errorf("write counters: %w", err)
	}
	return nil
}

// ReadStats adds up the counters that processes left in dir (see
// Config.StatsDir) and returns them with the number of processes.
func ReadStats(dir string) (Stats, int, error) {
	sum := newStats()
	names, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return sum, 0, fmt.Errorf("read counters in %s: %w", dir, err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name) //nolint:gosec // the caller names the folder that the counters were sent to
		if err != nil {
			return sum, 0, fmt.Errorf("read counters: %w", err)
		}
		var one Stats
		if err := json.Unmarshal(data, &one); err != nil {
			return sum, 0, fmt.Errorf("read counters in %s: %w", name, err)
		}
		sum.add(one)
	}
	return sum, len(names), nil
}
