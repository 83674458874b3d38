package mcp_test

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"

	"github.com/google/go-cmp/cmp"
)

// What a request looks like on the wire is the same from both engines, but for
// the order of the fields.
func TestRequestsOfBothEngines(t *testing.T) {
	for _, v := range mcp.Versions() {
		var seen [2][]mcptest.Received
		for i, engine := range engines {
			synctest.Test(t, func(t *testing.T) {
				p := &mcptest.Peer{SessionID: "s"}
				tr := serveHTTP(t, p, engine)
				tr.URL = "http://ann:pw@mcptest:80/mcp%20x?q=1&r=%2F#frag"
				tr.Header = http.Header{"x-a": {"1", " 2 "}, "Mcp-Name": {"mine"}, "accept": {"no"}, "Content-Length": {"7"}, "host": {"h"}}
				s := connect(t, tr, mcp.Options{Version: v})
				for _, method := range []string{"tools/list", "tools/call"} {
					if _, err := s.Call(t.Context(), mcp.Request{Method: method, Params: []byte(`{"name":"é"}`)}); err != nil {
						t.Error(err)
					}
				}
				closeSession(t, s)
				for _, r := range p.Received() {
					r.At = time.Time{}
					seen[i] = append(seen[i], r)
				}
			})
		}
		if d := cmp.Diff(seen[1], seen[0]); d != "" {
			t.Errorf("%s (-std +fast)\n%s", v, d)
		}
	}
}

func TestChoiceOfEngine(t *testing.T) {
	tests := []struct {
		tr   mcp.Streamable
		want mcp.Engine
		text string
	}{
		{mcp.Streamable{}, mcp.EngineFast, ""},
		{mcp.Streamable{Engine: mcp.EngineAuto}, mcp.EngineFast, ""},
		{mcp.Streamable{Engine: mcp.EngineStd}, mcp.EngineStd, ""},
		{mcp.Streamable{Header: http.Header{"connection": {"close"}}}, mcp.EngineStd, ""},
		{mcp.Streamable{Engine: mcp.EngineFast, Header: http.Header{"Expect": {"100-continue"}}}, "", "the header Expect needs engine std"},
		{mcp.Streamable{URL: "http://größe/"}, mcp.EngineStd, ""},
		{mcp.Streamable{Engine: "slow"}, "", `unknown HTTP engine "slow": it is auto, fast or std`},
	}
	for i, tt := range tests {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &mcptest.Peer{}
				tr := p.HTTP(t)
				tr.Engine, tr.Header = tt.tr.Engine, tt.tr.Header
				if tt.tr.URL != "" {
					tr.URL = tt.tr.URL
				}
				if tt.text != "" {
					_, err := mcp.Connect(t.Context(), tr, mcp.Options{})
					contains(t, err, tt.text)
					return
				}
				if got := connect(t, tr, mcp.Options{}).Info().Engine; got != tt.want {
					t.Errorf("engine %q, want %q", got, tt.want)
				}
			})
		})
	}
}
