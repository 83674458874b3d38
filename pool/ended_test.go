package pool_test

import (
	"context"
	"testing"

	"mcpbench/pool"
)

// Of a free place to dial and an ended context the context decides.
func TestNothingIsDialledForAnEndedContext(t *testing.T) {
	p := pool.New(pool.Config{Size: 64}, func(context.Context, int) (*session, error) {
		t.Error("dialled")
		return &session{}, nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, s := range p.Slots() {
		if _, err := s.Session(ctx); err == nil {
			t.Error("no error")
		}
	}
}
