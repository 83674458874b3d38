package target_test

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpbench/internal/target"
)

func TestListenRefusesOtherAddresses(t *testing.T) {
	for _, addr := range []string{":0", "0.0.0.0:0", "[::]:0", "192.0.2.1:80", "example.com:80", "127.0.0.1", ""} {
		server, err := target.New(target.Config{}).Listen(t.Context(), addr)
		if err == nil {
			_ = server.Close()
			t.Errorf("listens on %q", addr)
		}
	}
	server, err := target.New(target.Config{AllowRemote: true}).Listen(t.Context(), "0.0.0.0:0")
	if err != nil {
		t.Fatalf("when told to: %v", err)
	}
	_ = server.Close()
}

// Real time: the SDK's HTTP server cannot run in a bubble without a listener
// of its own, and the grace is two seconds.
func TestCloseCutsWhatIsOpen(t *testing.T) {
	tg := target.New(target.Config{StatsDir: t.TempDir()})
	ctx, cancel := context.WithCancel(t.Context())
	server, err := tg.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var sessions []*mcp.ClientSession
	answers := make(chan error)
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		session, err := connectHTTP(t, server.URL, version) // the first keeps a GET stream open
		if err != nil {
			t.Fatal(err)
		}
		sessions = append(sessions, session)
		go func() {
			_, err := call(t, session, "delay", map[string]any{"ms": 600_000})
			answers <- err
		}()
	}
	for tg.Stats().Tools["delay"].Received < 2 {
		time.Sleep(time.Millisecond) // until both calls are at work
	}
	start := time.Now()
	cancel()
	if err := server.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if took := time.Since(start); took > 4*time.Second {
		t.Errorf("close took %v", took)
	}
	<-server.Done()
	for range sessions {
		if err := <-answers; err == nil {
			t.Log("a call of ten minutes was answered") // cut calls of the SDK may end either way
		}
	}
	for _, s := range sessions {
		_ = s.Close()
	}
	s := tg.Stats()
	if s.Requests.Received != s.Requests.OK+s.Requests.ToolErrors+s.Requests.RPCErrors {
		t.Errorf("after the end requests are still open: %+v", s.Requests)
	}
}

// The handler alone, behind somebody else's server, serves all versions too.
func TestHandler(t *testing.T) {
	server := httptest.NewServer(target.New(target.Config{LeakBytes: 1 << 10}).Handler())
	defer server.Close()
	for _, version := range versions {
		session, err := connectHTTP(t, server.URL+target.Path, version)
		if err != nil {
			t.Fatalf("%s: connect: %v", version, err)
		}
		if res, err := call(t, session, "echo", hi); err != nil || textOf(t, res) != "hi" {
			t.Errorf("%s: echo = %v, %v", version, res, err)
		}
		if err := session.Close(); err != nil {
			t.Errorf("%s: close: %v", version, err)
		}
	}
}

// Real time, as above.
func TestCloseLetsAnswersOut(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		tg, server := listen(t, target.Config{})
		session, err := connectHTTP(t, server.URL, version)
		if err != nil {
			t.Fatal(err)
		}
		answer := make(chan error)
		go func() {
			_, err := call(t, session, "delay", map[string]any{"ms": 300})
			answer <- err
		}()
		for tg.Stats().Tools["delay"].Received < 1 {
			time.Sleep(time.Millisecond) // until the call is at work
		}
		go func() { _ = server.Close() }() // the clean-up waits for it and reads its error
		if err := <-answer; err != nil {
			t.Errorf("%s: the open call: %v", version, err)
		}
		_ = session.Close()
	}
}
