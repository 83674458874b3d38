package driver_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
	"testing"

	"mcpbench/driver"
	"mcpbench/mcp"
	"mcpbench/metrics"
	"mcpbench/pool"
)

func TestClassify(t *testing.T) {
	over := errors.New("the run is over")
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(over)
	dialTimeout, cancel2 := context.WithCancelCause(t.Context())
	cancel2(pool.ErrDialTimeout)
	for _, tc := range []struct {
		name string
		ctx  context.Context
		r    mcp.Reply
		err  error
		want metrics.Outcome
		code int32
	}{
		{"ok", t.Context(), mcp.Reply{}, nil, metrics.OK, 0},
		{"tool error", t.Context(), mcp.Reply{ToolError: true}, nil, metrics.ToolError, 0},
		{"cut by the end of the run", ended, mcp.Reply{}, fmt.Errorf("read: %w", over), metrics.Interrupted, 0},
		{"cut, and only the context's error is told", ended, mcp.Reply{}, fmt.Errorf("read: %w", context.Canceled), metrics.Interrupted, 0},
		{"an answer that came as the run ended counts as what it is", ended, mcp.Reply{}, &mcp.RPCError{Code: -32603}, metrics.RPCError, -32603},
		{"a dial limit", dialTimeout, mcp.Reply{}, fmt.Errorf("dial: %w", pool.ErrDialTimeout), metrics.Timeout, driver.TimeoutConnect},
		{"a request limit", t.Context(), mcp.Reply{}, fmt.Errorf("call: %w", &mcp.TimeoutError{Limit: 1}), metrics.Timeout, 1},
		{"no descriptor left", t.Context(), mcp.Reply{}, &mcp.TransportError{Op: "dial", Err: syscall.EMFILE}, metrics.ClientError, int32((&mcp.TransportError{Err: syscall.EMFILE}).Class())},
		{"no port left", t.Context(), mcp.Reply{}, &mcp.TransportError{Op: "dial", Err: syscall.EADDRNOTAVAIL}, metrics.ClientError, int32((&mcp.TransportError{Err: syscall.EADDRNOTAVAIL}).Class())},
		{"refused", t.Context(), mcp.Reply{}, &mcp.TransportError{Op: "dial", Err: syscall.ECONNREFUSED}, metrics.TransportError, int32((&mcp.TransportError{Err: syscall.ECONNREFUSED}).Class())},
		{"cut short", t.Context(), mcp.Reply{}, &mcp.TransportError{Op: "read", Err: io.ErrUnexpectedEOF}, metrics.TransportError, int32((&mcp.TransportError{Err: io.ErrUnexpectedEOF}).Class())},
		{"exit code", t.Context(), mcp.Reply{}, &mcp.ExitError{Code: 3}, metrics.ProcessExit, 3},
		{"killed", t.Context(), mcp.Reply{}, &mcp.ExitError{Code: -1, Signal: 9}, metrics.ProcessExit, 9},
		{"http status", t.Context(), mcp.Reply{}, &mcp.HTTPError{Status: 503}, metrics.HTTPError, 503},
		{"limit", t.Context(), mcp.Reply{}, &mcp.LimitError{Limit: 2}, metrics.LimitExceeded, 2},
		{"protocol", t.Context(), mcp.Reply{}, &mcp.ProtocolError{Kind: 4}, metrics.ProtocolError, 4},
		{"rpc", t.Context(), mcp.Reply{}, &mcp.RPCError{Code: 0}, metrics.RPCError, 0},
		{"rpc code beyond the column", t.Context(), mcp.Reply{}, &mcp.RPCError{Code: 1 << 40}, metrics.RPCError, 1<<31 - 1},
		{"cancelled on purpose", t.Context(), mcp.Reply{}, fmt.Errorf("call: %w", &mcp.CancelledError{Sent: 5, Stopped: 7}), metrics.Cancelled, 0},
		{"cancelled as the run ended", ended, mcp.Reply{}, &mcp.CancelledError{Sent: 5}, metrics.Cancelled, 0},
		{"a silence", t.Context(), mcp.Reply{}, &mcp.TimeoutError{Limit: mcp.TimeoutIdle}, metrics.Timeout, int32(mcp.TimeoutIdle)},
		{"an answer of ours that failed", t.Context(), mcp.Reply{}, &mcp.AnswerError{Method: "roots/list", Err: errors.New("?")}, metrics.ScriptError, 0},
		{"an answer of ours that the run cut", ended, mcp.Reply{}, &mcp.AnswerError{Method: "roots/list", Err: over}, metrics.Interrupted, 0},
		{"a subscription that ended", t.Context(), mcp.Reply{}, fmt.Errorf("wait: %w", mcp.ErrSubscriptionEnded), metrics.TransportError, int32(mcp.ClassEnded)},
		{"a subscription that ended with the run", ended, mcp.Reply{}, over, metrics.Interrupted, 0},
		{"version", t.Context(), mcp.Reply{}, &mcp.VersionError{}, metrics.ProtocolError, 0},
		{"anything else", t.Context(), mcp.Reply{}, errors.New("?"), metrics.TransportError, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, code := driver.Classify(tc.ctx, tc.r, tc.err)
			if got != tc.want || code != tc.code {
				t.Errorf("Classify = %v, %d; want %v, %d", got, code, tc.want, tc.code)
			}
		})
	}
}
