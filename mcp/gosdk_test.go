package mcp_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"

	gosdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// sdkServer is a server of the official SDK with a resource that changes when the
// tool touch is called, and a tool that closes its stream before it answers.
func sdkServer() *gosdk.Server {
	agrees := func(context.Context, *gosdk.SubscribeRequest) error { return nil }
	s := gosdk.NewServer(&gosdk.Implementation{Name: "sdk", Version: "1"}, &gosdk.ServerOptions{
		SubscribeHandler: agrees, UnsubscribeHandler: func(context.Context, *gosdk.UnsubscribeRequest) error { return nil },
	})
	s.AddResource(&gosdk.Resource{Name: "a", URI: "toy://a"}, func(context.Context, *gosdk.ReadResourceRequest) (*gosdk.ReadResourceResult, error) {
		return &gosdk.ReadResourceResult{}, nil
	})
	text := &gosdk.CallToolResult{Content: []gosdk.Content{&gosdk.TextContent{Text: "done"}}}
	gosdk.AddTool(s, &gosdk.Tool{Name: "touch"}, func(ctx context.Context, _ *gosdk.CallToolRequest, _ any) (*gosdk.CallToolResult, any, error) {
		return text, nil, s.ResourceUpdated(ctx, &gosdk.ResourceUpdatedNotificationParams{URI: "toy://a"})
	})
	gosdk.AddTool(s, &gosdk.Tool{Name: "slow"}, func(_ context.Context, r *gosdk.CallToolRequest, _ any) (*gosdk.CallToolResult, any, error) {
		if closes := r.Extra.CloseSSEStream; closes != nil {
			closes(gosdk.CloseSSEStreamArgs{RetryAfter: 10 * time.Millisecond})
		}
		time.Sleep(50 * time.Millisecond) // real time: the answer must not be there before the client asks
		return text, nil, nil
	})
	return s
}

// sdkHTTP serves s on the loopback interface.
func sdkHTTP(t *testing.T, s *gosdk.Server, engine mcp.Engine, o gosdk.StreamableHTTPOptions) *mcp.Streamable {
	t.Helper()
	srv := httptest.NewServer(gosdk.NewStreamableHTTPHandler(func(*http.Request) *gosdk.Server { return s }, &o))
	t.Cleanup(srv.Close)
	return &mcp.Streamable{URL: srv.URL, Engine: engine}
}

// sdkPipe serves s over pipes.
type sdkPipe struct {
	*testing.T
	server *gosdk.Server
}

func (sdkPipe) Kind() string { return "stdio" }

func (p sdkPipe) Dial(ctx context.Context, o mcp.Options) (mcp.Conn, error) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	var serving sync.WaitGroup
	serving.Go(func() { _ = p.server.Run(context.WithoutCancel(ctx), &gosdk.IOTransport{Reader: inR, Writer: outW}) }) // until its input ends
	p.Cleanup(serving.Wait)
	return mcp.NewPipe(outR, inW, o), nil
}

func call(name string) mcp.Request {
	return mcp.Request{Method: "tools/call", Params: []byte(`{"name":"` + name + `","arguments":{}}`), Timeout: 10 * time.Second}
}

// Wire test 10 with the official SDK and its event store.
func TestSDKResume(t *testing.T) {
	for _, engine := range engines {
		t.Run(string(engine), func(t *testing.T) {
			var a mcptest.Anomalies
			tr := sdkHTTP(t, sdkServer(), engine, gosdk.StreamableHTTPOptions{EventStore: gosdk.NewMemoryEventStore(nil)})
			s := connect(t, tr, mcp.Options{OnAnomaly: a.Tell})
			var calls sync.WaitGroup
			for range 10 {
				calls.Go(func() {
					if r, err := s.Call(t.Context(), call("slow")); err != nil || r.Result == nil {
						t.Errorf("got %+v, %v", r, err)
					}
				})
			}
			calls.Wait()
			if n := a.Counts()[mcp.AnomalyResumed]; n < 10 || n != len(a.Texts()) {
				t.Errorf("anomalies %q", a.Texts())
			}
		})
	}
}

// Subscriptions with the official SDK, in each version and over each transport: told
// of two changes, not told after the end, in which it is tolerated what it sends.
func TestSDKSubscriptions(t *testing.T) {
	for _, v := range mcp.Versions() {
		stateless := gosdk.StreamableHTTPOptions{Stateless: !v.Features().Handshake}
		for _, engine := range engines {
			t.Run(string(v)+" "+string(engine), func(t *testing.T) {
				if v == mcp.V20241105 {
					t.Skip("no GET stream")
				}
				testSDKSubscriptions(t, sdkHTTP(t, sdkServer(), engine, stateless), v)
			})
		}
		if v.Features().Handshake {
			t.Run(string(v)+" sse", func(t *testing.T) {
				server := sdkServer()
				srv := httptest.NewServer(gosdk.NewSSEHandler(func(*http.Request) *gosdk.Server { return server }, nil))
				t.Cleanup(srv.Close)
				testSDKSubscriptions(t, &mcp.LegacySSE{URL: srv.URL}, v)
			})
		}
		t.Run(string(v)+" stdio", func(t *testing.T) { testSDKSubscriptions(t, sdkPipe{t, sdkServer()}, v) })
	}
}

func testSDKSubscriptions(t *testing.T, tr mcp.Transport, v mcp.Version) {
	t.Helper()
	var a mcptest.Anomalies
	s := connect(t, tr, mcp.Options{Version: v, GetStream: true, OnAnomaly: a.Tell, Watch: []string{updated}})
	u, r, err := s.Subscribe(within(t, 10*time.Second), mcp.Filter{Resources: []string{"toy://a"}, ToolsListChanged: true})
	if err != nil {
		t.Fatal(err)
	}
	wantOrder(t, r)
	for range 2 {
		if _, err := s.Call(t.Context(), call("touch")); err != nil {
			t.Error(err)
		}
		n, err := u.Next(within(t, 10*time.Second))
		if err != nil || described(n) != updated+" toy://a" || n.At < r.Timing.End {
			t.Errorf("got %+v, %v", n, err)
		}
		if n, err := s.Await(within(t, 10*time.Second), updated); err != nil || described(n) != updated+" toy://a" {
			t.Errorf("watched: %+v, %v", n, err)
		}
	}
	if _, err := u.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := s.Call(t.Context(), call("touch")); err != nil {
		t.Error(err)
	}
	if n, err := s.Await(within(t, 50*time.Millisecond), updated); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("after the end: %+v, %v", n, err)
	}
	// An empty filter is acknowledged and ends.
	u, r, err = s.Subscribe(within(t, 10*time.Second), mcp.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	patience, ends := 50*time.Millisecond, context.DeadlineExceeded
	if !v.Features().Handshake {
		patience, ends = 10*time.Second, mcp.ErrSubscriptionEnded
	}
	if _, err := u.Next(within(t, patience)); !errors.Is(err, ends) {
		t.Errorf("an empty filter: %+v, %v", r, err)
	}
	if len(a.Texts()) != 0 {
		t.Errorf("anomalies %q", a.Texts())
	}
}

// A batch to the official SDK over each transport, which has two kinds of answer
// over Streamable HTTP.
func TestSDKBatch(t *testing.T) {
	type kind struct {
		name   string
		engine mcp.Engine
		json   bool
	}
	kinds := []kind{{name: "stdio"}}
	for _, engine := range engines {
		kinds = append(kinds, kind{string(engine) + " stream", engine, false}, kind{string(engine) + " JSON", engine, true})
	}
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			var tr mcp.Transport = sdkPipe{t, sdkServer()}
			if k.engine != "" {
				tr = sdkHTTP(t, sdkServer(), k.engine, gosdk.StreamableHTTPOptions{JSONResponse: k.json})
			}
			var a mcptest.Anomalies
			s := connect(t, tr, mcp.Options{Version: mcp.V20250326, OnAnomaly: a.Tell})
			list := mcp.Request{Method: "tools/list", Timeout: 10 * time.Second}
			replies, err := s.Batch(t.Context(), []mcp.Request{call("touch"), list, call("no such tool"), {Method: "ping"}})
			if err != nil {
				t.Fatal(err)
			}
			for i, r := range replies {
				wantOrder(t, r.Reply)
				refused, _ := errors.AsType[*mcp.RPCError](r.Err)
				if failed := refused != nil || r.Reply.ToolError; failed != (i == 2) || !failed && r.Err != nil {
					t.Errorf("request %d: %+v, %v", i, r.Reply, r.Err)
				}
			}
			if replies[3].Err != nil || string(replies[3].Reply.Result) != "{}" || len(a.Texts()) != 0 {
				t.Errorf("ping: %+v, anomalies %q", replies[3], a.Texts())
			}
		})
	}
}
