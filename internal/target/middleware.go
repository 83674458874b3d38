package target

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// codeRefused is in the range that JSON-RPC 2.0 §5.1 leaves to implementations.
const codeRefused = -32000

const callMethod = "tools/call"

var errStopped = errors.New("the server is shutting down")

// receive counts each request once and lets it pass the delays and faults.
func (s *surface) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if strings.HasPrefix(method, "notifications/") {
			s.count.notified()
			return next(ctx, method, req)
		}
		tool := toolOf(req)
		s.count.received(method, tool)
		res, err := s.answer(ctx, method, req, next)
		s.count.answered(method, tool, res, err)
		return res, err
	}
}

func (s *surface) answer(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	if err := s.thaw(ctx); err != nil {
		return nil, err
	}
	if method == "initialize" {
		return s.open(ctx, method, req, next)
	}
	if s.cfg.RefuseSessions && isModern(req) {
		s.count.session(refused)
		return nil, &jsonrpc.Error{Code: codeRefused, Message: "the server refuses every request"}
	}
	res, err := s.serve(ctx, method, req, next)
	// A freeze that began meanwhile holds this answer back too.
	if err := s.thaw(ctx); err != nil {
		return nil, err
	}
	if method == callMethod {
		s.freezer.answered()
	}
	return res, err
}

// open answers initialize, or refuses the session.
func (s *surface) open(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	if s.cfg.MaxSessions > 0 {
		s.admit.Lock()
		defer s.admit.Unlock()
	}
	if s.cfg.RefuseSessions || s.full() {
		s.count.session(refused)
		return nil, &jsonrpc.Error{Code: codeRefused, Message: "the server refuses the session: no room for one more"}
	}
	res, err := next(ctx, method, req)
	if err == nil {
		s.initialized.Store(true)
		s.count.session(opened)
	}
	return res, err
}

// full reports whether MaxSessions sessions are live. The one that asks has
// no parameters yet and is not counted.
func (s *surface) full() bool {
	if s.cfg.MaxSessions == 0 {
		return false
	}
	live := 0
	for session := range s.server.Sessions() {
		if session.InitializeParams() != nil {
			live++
		}
	}
	return live >= s.cfg.MaxSessions
}

func (s *surface) serve(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	switch method {
	case callMethod:
		f := s.draw()
		if err := s.sleep(ctx, f.delay); err != nil {
			return nil, err
		}
		s.leak(s.cfg.LeakBytes)
		if f.rpcError {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "injected error"}
		}
		if f.toolError {
			return &mcp.CallToolResult{IsError: true, Content: text("injected error")}, nil
		}
	case "resources/read", "prompts/get", "completion/complete":
		if err := s.sleep(ctx, s.draw().delay); err != nil {
			return nil, err
		}
	}
	return next(ctx, method, req)
}

// thaw waits until no freeze is on.
func (s *surface) thaw(ctx context.Context) error {
	for d := s.freezer.remaining(); d > 0; d = s.freezer.remaining() {
		if err := s.sleep(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// sleep waits for d, or until the request is cancelled or the server ends.
func (s *surface) sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.stop:
		return errStopped
	}
}

// toolOf returns the name of the tool that a tools/call names, otherwise "".
func toolOf(req mcp.Request) string {
	if p, ok := req.GetParams().(*mcp.CallToolParamsRaw); ok && p != nil {
		return p.Name
	}
	return ""
}

// isModern reports whether req is self-describing, as 2026-07-28 wants it.
func isModern(req mcp.Request) bool {
	params := req.GetParams()
	if params == nil {
		return false
	}
	_, ok := params.GetMeta()[mcp.MetaKeyProtocolVersion]
	return ok
}
