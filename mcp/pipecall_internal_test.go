package mcp

import (
	"context"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// A call that hangs for long takes one place, whatever the others do; ids go up
// and none is given out twice.
func TestCallTable(t *testing.T) {
	var last atomic.Int64
	next := func() int64 { return last.Add(1) }
	var table callTable
	if table.find(1) != nil {
		t.Error("found in an empty table")
	}
	var held []*call
	hold := func(n int) {
		for range n {
			k := &call{}
			table.add(k, next)
			held = append(held, k)
		}
	}
	hold(1)
	before := int64(0)
	for range 10_000 {
		k := &call{}
		table.add(k, next)
		if k.id <= before || table.find(k.id) != k {
			t.Fatalf("id %d after %d", k.id, before)
		}
		before = k.id
		table.remove(k)
		if table.find(k.id) != nil {
			t.Fatal("found after its removal")
		}
	}
	if len(table.places) != 8 {
		t.Errorf("%d places for two calls", len(table.places))
	}
	hold(1000)
	for _, k := range held {
		if table.find(k.id) != k || table.find(k.id+int64(len(table.places))) != nil {
			t.Fatalf("call %d is lost", k.id)
		}
	}
	if n := len(table.places); n != 2048 || table.used != 1001 {
		t.Errorf("%d places, %d used", n, table.used)
	}
}

// writes counts writes and keeps what was written.
type writes struct {
	io.WriteCloser
	n    int
	text strings.Builder
	gate chan struct{} // each write waits for a word
}

func (w *writes) Write(b []byte) (int, error) {
	<-w.gate
	w.n++
	w.text.Write(b)
	return len(b), nil
}

func (w *writes) Close() error { return nil }

// Lines that wait while another write is under way go out together, in order.
func TestJoinedWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, far := io.Pipe()
		w := &writes{gate: make(chan struct{})}
		c := startPipe(r, w, nil, Options{}.withDefaults())
		for _, method := range []string{"a", "b", "c", "d"} {
			go func() { _ = c.Notify(context.WithoutCancel(t.Context()), method, nil) }() // some are never written
			synctest.Wait()
		}
		w.gate <- struct{}{}
		w.gate <- struct{}{}
		synctest.Wait()
		want := ""
		for _, method := range []string{"a", "b", "c", "d"} {
			want += `{"jsonrpc":"2.0","method":"` + method + "\"}\n"
		}
		if w.n != 2 || w.text.String() != want {
			t.Errorf("%d writes: %s", w.n, w.text.String())
		}
		if err := far.Close(); err != nil {
			t.Error(err)
		}
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
