package mcp_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"
)

// A real process: one for all, whose exit all are told.
func TestSessionsShareAProcess(t *testing.T) {
	mcptest.NoLeaks(t)
	h := &mcp.Shared{Transport: mcptest.Process(t, mcptest.DiesAtCall)}
	for round := range 2 {
		all := joinAll(t, h, mcp.Options{Version: mcp.V20251125}, 4)
		spawned := 0
		var work sync.WaitGroup
		for _, s := range all {
			if i := s.Info(); i.Spawn > 0 && i.Handshake > 0 {
				spawned++
			}
			work.Go(func() {
				_, err := s.Call(t.Context(), echo)
				if e, ok := errors.AsType[*mcp.ExitError](err); !ok || e.Code != 7 {
					t.Error(fmt.Errorf("round %d: %w", round, err))
				}
			})
		}
		work.Wait()
		if spawned != 1 {
			t.Errorf("%d sessions started a process", spawned)
		}
		for _, s := range all {
			closeSession(t, s)
		}
	}
}
