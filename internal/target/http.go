package target

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// Path is where the MCP endpoint of the HTTP server lies.
	Path = "/mcp"

	// sessionIdle ends sessions whose client went away without a DELETE. It is
	// far above any pause of a client that still lives.
	sessionIdle = time.Hour

	// closeGrace is the time that open requests have at the end of a server.
	closeGrace = 2 * time.Second

	modernVersion = "2026-07-28"
)

// Handler returns the Streamable HTTP endpoint, under Path, for all protocol
// versions.
//
// One SDK handler cannot do that: with sessions it refuses 2026-07-28, without
// them it gives the older versions no session. So there are two over one
// server, and the version header chooses: 2026-07-28 demands it on every
// request (transports, "Protocol Version Header"), and a client of an older
// version sends an older one or none.
func (t *Target) Handler() http.Handler { return t.newSurface().handler(context.Background()) }

// handler is Handler for one surface; the end of streams ends the long-lived
// responses that wait for what the server may have to say.
func (s *surface) handler(streams context.Context) http.Handler {
	server := func(*http.Request) *mcp.Server { return s.server }
	stateless := mcp.NewStreamableHTTPHandler(server, &mcp.StreamableHTTPOptions{
		Stateless:    true,
		JSONResponse: s.cfg.JSONResponse,
		// In 2026-07-28 a client cancels by closing the stream.
		PropagateRequestCancellation: true,
		DisableLocalhostProtection:   s.cfg.AllowRemote,
	})
	stateful := mcp.NewStreamableHTTPHandler(server, &mcp.StreamableHTTPOptions{
		JSONResponse:               s.cfg.JSONResponse,
		SessionTimeout:             sessionIdle,
		DisableLocalhostProtection: s.cfg.AllowRemote,
	})
	mux := http.NewServeMux()
	mux.HandleFunc(Path, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || r.Header.Get("Mcp-Method") == "subscriptions/listen" {
			ctx, cancel := context.WithCancel(r.Context())
			defer cancel()
			defer context.AfterFunc(streams, cancel)()
			r = r.WithContext(ctx)
		}
		switch {
		case s.cfg.Stateless || r.Header.Get("MCP-Protocol-Version") >= modernVersion:
			stateless.ServeHTTP(w, r)
		case r.Method == http.MethodDelete:
			status := &statusWriter{ResponseWriter: w}
			stateful.ServeHTTP(status, r)
			if status.code/100 == 2 {
				s.count.session(closed)
			}
		default:
			stateful.ServeHTTP(w, r)
		}
	})
	return mux
}

// statusWriter keeps the status of a response without a body of interest.
type statusWriter struct {
	http.ResponseWriter
	code int
}

func (w *statusWriter) WriteHeader(code int) {
	w.code = code
	w.ResponseWriter.WriteHeader(code)
}

// Server is a target that listens.
type Server struct {
	URL string // of the MCP endpoint

	surface    *surface
	http       *http.Server
	endStreams context.CancelFunc
	unused     unusedConns
	served     chan struct{} // closed when serving ended
	err        error         // of serving; read after served

	closeOnce sync.Once
	closeErr  error
}

// Listen serves HTTP on addr, which must name a loopback address unless
// Config.AllowRemote is set ("127.0.0.1:0" takes a free port), until ctx ends
// or Close is called.
func (t *Target) Listen(ctx context.Context, addr string) (*Server, error) {
	if err := t.cfg.Validate(); err != nil {
		return nil, err
	}
	if !t.cfg.AllowRemote {
		if err := checkLoopback(addr); err != nil {
			return nil, err
		}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	streams, endStreams := context.WithCancel(context.WithoutCancel(ctx))
	s := &Server{
		URL:        "http://" + listener.Addr().String() + Path,
		surface:    t.newSurface(),
		endStreams: endStreams,
		served:     make(chan struct{}),
	}
	s.http = &http.Server{
		Handler:           s.surface.handler(streams),
		ReadHeaderTimeout: 10 * time.Second,
		ConnState:         s.unused.track,
	}
	go func() {
		defer close(s.served)
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.err = fmt.Errorf("serve %s: %w", s.URL, err)
		}
	}()
	context.AfterFunc(ctx, func() { _ = s.Close() }) // Close keeps its error for the next caller
	return s, nil
}

// checkLoopback refuses names that it would have to look up, but for
// localhost, and the empty host, which is every address of the machine.
func checkLoopback(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("listen on %q: %w", addr, err)
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("listen on %q: not a loopback address, and the demo server has no access control", addr)
}

// Done is closed when the server accepts no connections any more.
func (s *Server) Done() <-chan struct{} { return s.served }

// Close ends the server: open requests have two seconds to get their answers,
// then sessions and connections are cut. It returns when nothing of the server
// is left, and writes the counters (see Config.StatsDir). Safe to call
// more than once.
func (s *Server) Close() error {
	s.closeOnce.Do(func() { s.closeErr = s.close() })
	return s.closeErr
}

func (s *Server) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
	defer cancel()
	// The SDK drops the answers of a session that is being closed, so the open
	// requests come first; streams would keep Shutdown waiting for nothing.
	s.endStreams()
	s.unused.close()
	err := s.http.Shutdown(ctx)
	close(s.surface.stop)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.http.Close()
	}
	var sessions sync.WaitGroup
	for session := range s.surface.server.Sessions() {
		sessions.Go(func() { _ = session.Close() }) // its peer is gone: nobody to tell
	}
	sessions.Wait()
	<-s.served
	return errors.Join(err, s.err, s.surface.writeStats())
}

// unusedConns are the connections on which no request has come yet, such as a
// spare one that a client dialed. Shutdown would wait five seconds for each.
type unusedConns struct {
	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

func (u *unusedConns) track(conn net.Conn, state http.ConnState) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if state != http.StateNew {
		delete(u.conns, conn)
		return
	}
	if u.conns == nil {
		u.conns = map[net.Conn]struct{}{}
	}
	u.conns[conn] = struct{}{}
}

func (u *unusedConns) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for conn := range u.conns {
		_ = conn.Close() // nothing was said on it
	}
}
