package mcp_test

import (
	"errors"
	"testing"
	"time"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"
)

// A status line is no answer yet: a request that runs out of time is a timeout,
// whatever status it had got.
func TestARefusalWithoutEndIsATimeout(t *testing.T) {
	overHTTP(t, func(h onHTTP) {
		p := (&mcptest.Peer{SessionID: "s"}).On("tools/call", mcptest.Answer{Status: 503, Raw: "busy", Type: "text/plain", Hold: true})
		s := connect(h.T, serveHTTP(h.T, p, h.engine), mcp.Options{Base: time.Now()})
		req := echo
		req.Timeout = time.Second
		_, err := s.Call(h.Context(), req)
		if _, ok := errors.AsType[*mcp.TimeoutError](err); !ok {
			h.Errorf("error %v, want a timeout", err)
		}
	})
}
