package nulltarget_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"mcpbench/internal/nulltarget"
	"mcpbench/mcp"
)

func options() mcp.Options {
	return mcp.Options{Version: mcp.V20251125, Client: mcp.Implementation{Name: "t", Version: "1"}}
}

type pipe struct{ t *nulltarget.Target }

func (pipe) Kind() string { return "stdio" }

func (p pipe) Dial(_ context.Context, o mcp.Options) (mcp.Conn, error) {
	r, w, err := p.t.Pipe()
	if err != nil {
		return nil, err
	}
	return mcp.NewPipe(r, w, o), nil
}

func TestNullTargetAnswersEveryRequest(t *testing.T) {
	before := runtime.NumGoroutine()
	target, err := nulltarget.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, transport := range map[string]mcp.Transport{
		"fast": &mcp.Streamable{URL: target.URL, Engine: mcp.EngineFast},
		"std":  &mcp.Streamable{URL: target.URL, Engine: mcp.EngineStd},
		"pipe": pipe{target},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := mcp.Connect(t.Context(), transport, options())
			if err != nil {
				t.Fatal(err)
			}
			for range 100 {
				r, err := s.Call(t.Context(), mcp.Request{Method: "tools/call", Params: []byte(`{"name":"null","arguments":{}}`)})
				if err != nil || r.ToolError || len(r.Result) == 0 {
					t.Fatalf("reply %s, %v", r.Result, err)
				}
			}
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	if err := target.Close(); err != nil {
		t.Error(err)
	}
	if _, _, err := target.Pipe(); err == nil {
		t.Error("a closed target makes pipes")
	}
	for deadline := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines are left of %d", runtime.NumGoroutine(), before)
		}
	}
}

// TestCloseEndsWhatIsOpen closes the target under its clients.
func TestCloseEndsWhatIsOpen(t *testing.T) {
	target, err := nulltarget.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	http, err := mcp.Connect(t.Context(), &mcp.Streamable{URL: target.URL}, options())
	if err != nil {
		t.Fatal(err)
	}
	lines, err := mcp.Connect(t.Context(), pipe{target}, options())
	if err != nil {
		t.Fatal(err)
	}
	if err := target.Close(); err != nil {
		t.Error(err)
	}
	for _, s := range []*mcp.Session{http, lines} {
		if _, err := s.Call(t.Context(), mcp.Request{Method: "ping"}); err == nil {
			t.Error("a closed target answers")
		}
		_ = s.Close(t.Context())
	}
}
