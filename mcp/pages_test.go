package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"
)

// Wire test 19: which cursors lead on, in which version.
func TestPages(t *testing.T) {
	page := func(next string) mcptest.Answer { return mcptest.Answer{Result: `{"tools":[]` + next + `}`} }
	tests := []struct {
		name    string
		version mcp.Version
		params  string
		pages   []mcptest.Answer
		cursors []string // sent, "-" is none
		fault   mcp.ProtocolFault
	}{
		{"one page", mcp.V20251125, "", []mcptest.Answer{page("")}, []string{"-"}, 0},
		{"null ends", mcp.V20251125, "", []mcptest.Answer{page(`,"nextCursor":null`)}, []string{"-"}, 0},
		{"three pages", mcp.V20251125, `{"_meta":{"x":1},"cursor":"start"}`, []mcptest.Answer{page(`,"nextCursor":"p2"`), page(`,"nextCursor":"p\u00333"`), page("")}, []string{`"start"`, `"p2"`, `"p\u00333"`}, 0},
		{"legacy: empty ends", mcp.V20251125, "", []mcptest.Answer{page(`,"nextCursor":""`)}, []string{"-"}, 0},
		{"modern: empty is a cursor", mcp.V20260728, "", []mcptest.Answer{page(`,"nextCursor":""`), page("")}, []string{"-", `""`}, 0},
		{"modern: empty again is a loop", mcp.V20260728, "", []mcptest.Answer{page(`,"nextCursor":""`)}, []string{"-", `""`}, mcp.FaultCursor},
		{"loop of two", mcp.V20251125, "", []mcptest.Answer{page(`,"nextCursor":"a"`), page(`,"nextCursor":"b"`), page(`,"nextCursor":"a"`)}, []string{"-", `"a"`, `"b"`}, mcp.FaultCursor},
		{"number", mcp.V20251125, "", []mcptest.Answer{page(`,"nextCursor":2`)}, []string{"-"}, mcp.FaultCursor},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			overHTTP(t, func(h onHTTP) {
				t, engine := h.T, h.engine
				cursors, last := followPages(t, engine, tt.version, tt.params, tt.pages)
				if tt.fault != 0 {
					wantFault(t, last, tt.fault)
				} else if last != nil {
					t.Error(last)
				}
				if !slices.Equal(cursors, tt.cursors) {
					t.Errorf("cursors %q, want %q", cursors, tt.cursors)
				}
			})
		})
	}
}

// followPages lists tools from a server with those pages. It returns the cursors
// that were sent and the last error, and checks that each request was yielded.
func followPages(t *testing.T, engine mcp.Engine, v mcp.Version, params string, pages []mcptest.Answer) (cursors []string, last error) {
	t.Helper()
	p := (&mcptest.Peer{}).On("tools/list", pages...)
	s := connect(t, serveHTTP(t, p, engine), mcp.Options{Version: v})
	req := mcp.Request{Method: "tools/list"}
	if params != "" {
		req.Params = []byte(params)
	}
	yields := 0
	for r, err := range mcp.Pages(t.Context(), s, req) {
		yields++
		last = err
		if r.Result == nil || r.BytesIn == 0 {
			t.Errorf("page %d without its reply", yields)
		}
	}
	for _, r := range p.Received("tools/list") {
		cursors = append(cursors, rawCursor(string(r.Params)))
	}
	if yields != len(cursors) {
		t.Errorf("%d yields for %d requests", yields, len(cursors))
	}
	return cursors, last
}

func TestPagesKeepsOtherParams(t *testing.T) {
	overHTTP(t, func(h onHTTP) {
		t, engine := h.T, h.engine
		p := (&mcptest.Peer{}).On("tools/list", mcptest.Answer{Result: `{"nextCursor":"b"}`}, mcptest.Answer{Result: `{}`})
		s := connect(t, serveHTTP(t, p, engine), mcp.Options{})
		for _, err := range mcp.Pages(t.Context(), s, mcp.Request{Method: "tools/list", Params: []byte(`{"cursor":"a", "_meta":{"cursor":1}}`)}) {
			if err != nil {
				t.Error(err)
			}
		}
		if got := string(p.Received("tools/list")[1].Params); got != `{"cursor":"b","_meta":{"cursor":1}}` {
			t.Errorf("params %s", got)
		}
	})
}

// counter gives a new cursor for ever.
type counter struct {
	n      int
	failAt int
}

func (*counter) Info() mcp.Info { return mcp.Info{Version: mcp.V20251125} }

func (c *counter) Call(context.Context, mcp.Request) (mcp.Reply, error) {
	c.n++
	if c.n == c.failAt {
		return mcp.Reply{BytesOut: 1}, errBoom
	}
	return mcp.Reply{Result: fmt.Appendf(nil, `{"nextCursor":"%d"}`, c.n)}, nil
}

var errBoom = errors.New("boom")

func TestPagesLimit(t *testing.T) {
	c := &counter{}
	yields, last := 0, error(nil)
	for _, err := range mcp.Pages(t.Context(), c, mcp.Request{Method: "tools/list"}) {
		yields++
		last = err
	}
	if e, ok := errors.AsType[*mcp.LimitError](last); !ok || e.Limit != mcp.LimitPages || c.n != 1000 || yields != 1000 {
		t.Errorf("%v after %d requests and %d yields", last, c.n, yields)
	}
}

func TestPagesStops(t *testing.T) {
	c := &counter{failAt: 3}
	var errs []error
	for r, err := range mcp.Pages(t.Context(), c, mcp.Request{}) {
		errs = append(errs, err)
		if err != nil && r.BytesOut != 1 {
			t.Error("the failed page's reply is lost")
		}
	}
	if len(errs) != 3 || !errors.Is(errs[2], errBoom) {
		t.Errorf("got %v", errs)
	}
	c = &counter{}
	for _, err := range mcp.Pages(t.Context(), c, mcp.Request{}) {
		if err != nil {
			t.Error(err)
		}
		break
	}
	if c.n != 1 {
		t.Errorf("%d requests after a break", c.n)
	}
}
