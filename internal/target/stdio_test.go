package target_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpbench/internal/target"
)

// pipe is a stdio server and a client on it, in one process.
type pipe struct {
	*mcp.ClientSession
	in     *io.PipeWriter // the server's input
	served chan error     // what ServeStdio returned
}

// connect starts ServeStdio on pipes and opens a session of the given version.
func connect(ctx context.Context, t *testing.T, tg *target.Target, version string) *pipe {
	t.Helper()
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	p := &pipe{in: toServer, served: make(chan error, 1)}
	go func() {
		p.served <- tg.ServeStdio(ctx, fromClient, toClient)
		_ = toClient.Close()
		_ = fromClient.Close()
	}()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "0"}, nil)
	session, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: fromServer, Writer: toServer},
		&mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	p.ClientSession = session
	return p
}

// end closes the server's input and waits for the server.
func (p *pipe) end(t *testing.T) {
	t.Helper()
	_ = p.Close()
	if err := <-p.served; err != nil {
		t.Errorf("ServeStdio: %v", err)
	}
}

func call(t *testing.T, s *mcp.ClientSession, tool string, args map[string]any) (*mcp.CallToolResult, error) {
	t.Helper()
	return s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
}

// timeCall returns the virtual time that a call took.
func timeCall(t *testing.T, s *mcp.ClientSession, tool string, args map[string]any) time.Duration {
	t.Helper()
	start := time.Now()
	if _, err := call(t, s, tool, args); err != nil {
		t.Errorf("call %s: %v", tool, err)
	}
	return time.Since(start)
}

var hi = map[string]any{"message": "hi"}

func TestStdioSpeaksEveryVersion(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tg := target.New(target.Config{})
				p := connect(t.Context(), t, tg, version)
				if got := p.InitializeResult().ProtocolVersion; got != version {
					t.Errorf("negotiated %s, want %s", got, version)
				}
				res, err := call(t, p.ClientSession, "echo", hi)
				if err != nil || textOf(t, res) != "hi" {
					t.Errorf("echo = %v, %v", res, err)
				}
				p.end(t)
				wantSessions := int64(1)
				if version == "2026-07-28" {
					wantSessions = 0
				}
				s := tg.Stats()
				if s.SessionsOpened != wantSessions || s.SessionsClosed != wantSessions {
					t.Errorf("sessions opened and closed = %d, %d, want %d", s.SessionsOpened, s.SessionsClosed, wantSessions)
				}
				if got, want := s.Tools["echo"], (target.Counts{Received: 1, OK: 1}); got != want {
					t.Errorf("echo counts = %+v, want %+v", got, want)
				}
			})
		})
	}
}

func TestDelaysTakeTheirTime(t *testing.T) {
	const ms = time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		tg := target.New(target.Config{Delay: target.Delay{Low: 5 * ms}})
		p := connect(t.Context(), t, tg, "2025-11-25")
		defer p.end(t)
		if got := timeCall(t, p.ClientSession, "echo", hi); got != 5*ms {
			t.Errorf("echo took %v, want 5ms", got)
		}
		if got := timeCall(t, p.ClientSession, "delay", map[string]any{"ms": 1.5}); got != 6500*time.Microsecond {
			t.Errorf("delay 1.5 took %v, want 6.5ms", got)
		}
		start := time.Now()
		if err := p.Ping(t.Context(), nil); err != nil {
			t.Errorf("ping: %v", err)
		}
		if got := time.Since(start); got != 0 {
			t.Errorf("ping took %v, want no delay", got)
		}
		if _, err := p.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "demo://text/1"}); err != nil {
			t.Errorf("read: %v", err)
		}
		if got := time.Since(start); got != 5*ms {
			t.Errorf("resources/read took %v, want 5ms", got)
		}
	})
}

func TestSeedRepeatsDelays(t *testing.T) {
	draw := func(t *testing.T, seed uint64) []time.Duration {
		t.Helper()
		var delays []time.Duration
		synctest.Test(t, func(t *testing.T) {
			p := connect(t.Context(), t, target.New(target.Config{
				Delay: target.Delay{Shape: target.Exponential, Low: 10 * time.Millisecond}, Seed: seed,
			}), "2025-11-25")
			defer p.end(t)
			for range 50 {
				delays = append(delays, timeCall(t, p.ClientSession, "echo", hi))
			}
		})
		return delays
	}
	first := draw(t, 1)
	if again := draw(t, 1); !slices.Equal(first, again) {
		t.Errorf("the same seed drew %v, then %v", first, again)
	}
	if other := draw(t, 2); slices.Equal(first, other) {
		t.Error("another seed drew the same delays")
	}
}

// The freeze holds every session and every method back, and its length is exact.
func TestFreezeStopsTheWholeServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const freeze = 400 * time.Millisecond
		tg := target.New(target.Config{Freeze: target.Freeze{Every: 3, For: freeze}})
		a := connect(t.Context(), t, tg, "2025-11-25")
		defer a.end(t)
		b := connect(t.Context(), t, tg, "2025-11-25")
		defer b.end(t)
		for i, session := range []*pipe{a, b, a} {
			if got := timeCall(t, session.ClientSession, "echo", hi); got != 0 {
				t.Errorf("call %d took %v, want 0", i, got)
			}
		}
		time.Sleep(100 * time.Millisecond) // virtual
		var wait sync.WaitGroup
		start := time.Now()
		wait.Go(func() {
			if err := b.Ping(t.Context(), nil); err != nil {
				t.Errorf("ping: %v", err)
			}
			if got := time.Since(start); got != freeze-100*time.Millisecond {
				t.Errorf("ping during the freeze took %v, want 300ms", got)
			}
		})
		if got := timeCall(t, a.ClientSession, "echo", hi); got != freeze-100*time.Millisecond {
			t.Errorf("call during the freeze took %v, want 300ms", got)
		}
		wait.Wait()
	})
}

// A call that was at work when the freeze began is held back by it too.
func TestFreezeHoldsAnswersBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tg := target.New(target.Config{Freeze: target.Freeze{Every: 1, For: time.Second}})
		a := connect(t.Context(), t, tg, "2025-11-25")
		defer a.end(t)
		b := connect(t.Context(), t, tg, "2025-11-25")
		defer b.end(t)
		var wait sync.WaitGroup
		wait.Go(func() {
			if got := timeCall(t, b.ClientSession, "delay", map[string]any{"ms": 10}); got != time.Second {
				t.Errorf("the call at work took %v, want 1s", got)
			}
		})
		synctest.Wait()
		if got := timeCall(t, a.ClientSession, "echo", hi); got != 0 {
			t.Errorf("the call that starts the freeze took %v, want 0", got)
		}
		wait.Wait()
	})
}

func TestErrorShares(t *testing.T) {
	const n = 1000
	synctest.Test(t, func(t *testing.T) {
		tg := target.New(target.Config{ErrorRate: 0.2, RPCErrorRate: 0.1, Seed: 7})
		p := connect(t.Context(), t, tg, "2025-11-25")
		defer p.end(t)
		var got target.Counts
		for range n {
			got.Received++
			res, err := call(t, p.ClientSession, "echo", hi)
			rpc, isRPC := errors.AsType[*jsonrpc.Error](err)
			switch {
			case isRPC && rpc.Code == -32603:
				got.RPCErrors++
			case err != nil:
				t.Fatalf("echo: %v", err)
			case res.IsError:
				got.ToolErrors++
			default:
				got.OK++
			}
		}
		if counted := tg.Stats().Tools["echo"]; counted != got {
			t.Errorf("the target counted %+v, the client %+v", counted, got)
		}
		// Standard deviations: below 13 and 10.
		if got.ToolErrors < 150 || got.ToolErrors > 250 || got.RPCErrors < 60 || got.RPCErrors > 140 {
			t.Errorf("%+v of %d, want about 200 tool errors and 100 JSON-RPC errors", got, n)
		}
	})
}

func TestStdioEndsWithRequestsOpen(t *testing.T) {
	open := func(ctx context.Context, t *testing.T) (*pipe, chan error) {
		t.Helper()
		p := connect(ctx, t, target.New(target.Config{}), "2025-11-25")
		answered := make(chan error, 1)
		go func() {
			res, err := call(t, p.ClientSession, "delay", map[string]any{"ms": 60_000})
			if err == nil && res.IsError {
				err = errors.New(textOf(t, res))
			}
			answered <- err
		}()
		synctest.Wait()
		return p, answered
	}
	t.Run("end of input", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			p, answered := open(t.Context(), t)
			_ = p.in.Close()
			if err := <-p.served; err != nil {
				t.Errorf("ServeStdio: %v", err)
			}
			if got := time.Since(start); got != 0 {
				t.Errorf("ended after %v, want at once", got)
			}
			if err := <-answered; err == nil {
				t.Error("the open call was answered")
			}
			_ = p.Close()
		})
	})
	t.Run("end of context", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			ctx, cancel := context.WithCancel(t.Context())
			p, answered := open(ctx, t)
			cancel()
			if err := <-p.served; err != nil {
				t.Errorf("ServeStdio: %v", err)
			}
			if got := time.Since(start); got != 0 {
				t.Errorf("ended after %v, want at once", got)
			}
			if err := <-answered; err == nil {
				t.Error("the open call was answered")
			}
			_ = p.Close()
		})
	})
}

func TestStdioWritesOnlyMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fromClient, toServer := io.Pipe()
		var out strings.Builder
		served := make(chan error, 1)
		go func() { served <- target.New(target.Config{}).ServeStdio(t.Context(), fromClient, &out) }()
		_, _ = io.WriteString(toServer, fmt.Sprintf(initialize, "2025-11-25")+"\n")
		synctest.Wait()
		_ = toServer.Close()
		if err := <-served; err != nil {
			t.Fatalf("ServeStdio: %v", err)
		}
		if got := out.String(); strings.Count(got, "\n") != 1 || !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":1,"result":`) {
			t.Errorf("wrote %q, want one answer", got)
		}
	})
}

func TestRandomBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := connect(t.Context(), t, target.New(target.Config{}), "2025-11-25")
		defer p.end(t)
		for _, size := range []int{0, 1, 11, 1000, 4 << 20} {
			res, err := call(t, p.ClientSession, "random_bytes", map[string]any{"size": size})
			if err != nil || res.IsError || len(textOf(t, res)) != size {
				t.Errorf("random_bytes %d: %d bytes, error %v", size, len(textOf(t, res)), err)
			}
		}
		for _, size := range []any{-1, 4<<20 + 1, "ten", nil} {
			res, err := call(t, p.ClientSession, "random_bytes", map[string]any{"size": size})
			if err != nil || !res.IsError {
				t.Errorf("random_bytes %v = %v, %v, want isError", size, res, err)
			}
		}
	})
}

func textOf(t *testing.T, res *mcp.CallToolResult) string {
	t.Helper()
	if res == nil || len(res.Content) != 1 {
		t.Errorf("want one content, got %+v", res)
		return ""
	}
	content, ok := res.Content[0].(*mcp.TextContent)
	if !ok {
		t.Errorf("content is %s", fmt.Sprintf("%T", res.Content[0]))
		return ""
	}
	return content.Text
}
