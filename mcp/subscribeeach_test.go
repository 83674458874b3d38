package mcp_test

import (
	"fmt"
	"testing"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"

	"github.com/google/go-cmp/cmp"
)

// TestEachRequestOfASubscription is told of every request as it ends, and of none
// where another subscription has the resource already.
func TestEachRequestOfASubscription(t *testing.T) {
	const refused = `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32002,"message":"no"}}`
	peer := func() *mcptest.Peer {
		ok := mcptest.Answer{Result: `{}`}
		p := &mcptest.Peer{SessionID: "s"}
		p.On("resources/subscribe", ok, ok, ok, ok, mcptest.Answer{JSON: refused}, ok)
		return p.On("resources/unsubscribe", ok, mcptest.Answer{JSON: refused}, ok)
	}
	overAll(t, peer, func(o over) {
		t := o.T
		s := connect(t, o.transport, mcp.Options{Version: mcp.V20251125})
		var told []string
		each := func(r mcp.Reply, err error) {
			told = append(told, fmt.Sprint(len(sent(o.peer)), " ", r.Rounds, " ", err))
		}
		want := func(what string, lines ...string) {
			t.Helper()
			if d := cmp.Diff(lines, told); d != "" {
				t.Errorf("%s: told (-want +got)\n%s", what, d)
			}
			told = nil
		}
		u, err := s.SubscribeEach(t.Context(), resources("toy://c", "toy://a", "toy://b"), each)
		if err != nil {
			t.Fatal(err)
		}
		want("three", "1 1 <nil>", "2 1 <nil>", "3 1 <nil>")
		again, err := s.SubscribeEach(t.Context(), resources("toy://a", "toy://b"), each)
		if err != nil {
			t.Fatal(err)
		}
		want("again")
		if err := again.CloseEach(t.Context(), each); err != nil {
			t.Error(err)
		}
		want("the end of that")
		const second = "resources/subscribe toy://e: JSON-RPC error -32002: no"
		if _, err := s.SubscribeEach(t.Context(), resources("toy://d", "toy://e", "toy://f"), each); err == nil || err.Error() != second {
			t.Errorf("error %v, want %s", err, second)
		}
		want("the second refused", "4 1 <nil>", "5 1 "+second)
		const failed = "resources/unsubscribe toy://a: JSON-RPC error -32002: no"
		if err := u.CloseEach(t.Context(), each); err == nil || err.Error() != failed {
			t.Errorf("error %v, want %s", err, failed)
		}
		// The sixth undid the first half of the refused one.
		want("the end", "7 1 "+failed, "8 1 <nil>", "9 1 <nil>")
	})
}

// TestListenIsOneRequest: in 2026-07-28 a subscription is one request, and its end none.
func TestListenIsOneRequest(t *testing.T) {
	overBoth(t, func() *mcptest.Peer {
		return (&mcptest.Peer{}).On("subscriptions/listen", mcptest.Answer{Hold: true, Frames: []mcptest.Frame{
			{JSON: `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":$ID},"notifications":{"resourceSubscriptions":["toy://a","toy://b"]}}}`},
			{Delay: 3600e9},
		}})
	}, func(o over) {
		s := connect(o.T, o.transport, mcp.Options{Version: mcp.V20260728})
		n := 0
		each := func(_ mcp.Reply, err error) {
			if n++; err != nil {
				o.Error(err)
			}
		}
		u, err := s.SubscribeEach(o.Context(), resources("toy://a", "toy://b"), each)
		if err != nil || n != 1 {
			o.Fatalf("told of %d requests, %v; want 1", n, err)
		}
		if err := u.CloseEach(o.Context(), each); err != nil || n != 1 {
			o.Errorf("told of %d requests, %v; want 1", n, err)
		}
	})
}
