package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"

	"github.com/google/go-cmp/cmp"
)

// Answers of servers to server/discover, to which several tests come back.
var (
	legacyList = mcptest.Answer{Result: `{"resultType":"complete","supportedVersions":["2025-11-25","2025-06-18"],"capabilities":{}}`}
	text400    = mcptest.Answer{Status: 400, Type: "text/plain", Raw: "sessionid must be provided"}
	html404    = mcptest.Answer{Status: 404, Type: "text/html", Raw: "<html>"}
	text405    = mcptest.Answer{Status: 405, Type: "text/plain", Raw: "Method not allowed"}
)

func unsupported(list string) mcptest.Answer {
	return mcptest.Answer{Status: 400, Error: `{"code":-32022,"message":"no","data":{"supported":[` + list + `],"requested":"2026-07-28"}}`}
}

func rpcError(status int, code int) mcptest.Answer {
	return mcptest.Answer{Status: status, Error: fmt.Sprintf(`{"code":%d,"message":"no"}`, code)}
}

var errProbeLimit = errors.New("probe limit")

// negotiate probes within a limit, and checks that what is told of it makes sense.
func negotiate(t *testing.T, tr, fallback mcp.Transport, o mcp.Options) (mcp.Decision, error) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Second, errProbeLimit)
	defer cancel()
	d, err := mcp.Probe(ctx, tr, fallback, o)
	if err == nil && d.Tried[len(d.Tried)-1].Answer != d.Version {
		t.Errorf("decided for %s after %v", d.Version, d.Tried)
	}
	for i, a := range d.Tried {
		if last := i == len(d.Tried)-1; a.Err == nil && (!last || err != nil) || a.String() == "" {
			t.Errorf("attempt %d of %d: %v", i+1, len(d.Tried), a)
		}
	}
	return d, err
}

// Wire tests 30, 32 and 35: what each answer over Streamable HTTP means.
func TestProbeHTTP(t *testing.T) {
	const discover, initialize = "server/discover", "initialize"
	modern, legacy, only := []string{discover}, []string{discover, initialize, "notifications/initialized", "DELETE"}, []string{discover}
	tests := []struct {
		name     string
		discover mcptest.Answer
		want     mcp.Version
		messages []string
		text     string // of the error
	}{
		{"modern", mcptest.Answer{}, mcp.V20260728, modern, ""},
		{"only legacy listed (go-sdk stateful)", legacyList, mcp.V20251125, legacy, ""},
		{"older ones listed", mcptest.Answer{Result: `{"supportedVersions":["2024-11-05","2025-03-26"]}`}, mcp.V20250326, legacy, ""},
		{"none in common", mcptest.Answer{Result: `{"supportedVersions":["2031-01-01"]}`}, "", only, "offers 2031-01-01"},
		{"-32022, newest in common", unsupported(`"2031-01-01","2025-11-25","2025-06-18"`), mcp.V20251125, legacy, ""},
		{"-32022, offers what it refused", unsupported(`"2026-07-28","2025-06-18"`), mcp.V20250618, legacy, ""},
		{"-32022, offers only what it refused", unsupported(`"2026-07-28"`), "", only, "no common protocol version"},
		{"-32022, nothing in common", unsupported(`"2031-01-01"`), "", only, "offers 2031-01-01"},
		{"-32022, empty list", unsupported(``), "", only, "no common protocol version"},
		{"-32022 without data", rpcError(400, -32022), "", only, "no common protocol version"},
		{"-32020", rpcError(400, -32020), "", only, "a modern one"},
		{"-32021", mcptest.Answer{Status: 400, Error: `{"code":-32021,"message":"no","data":{"requiredCapabilities":{"sampling":{}}}}`}, "", only, "sampling"},
		{"200 -32601", rpcError(200, -32601), mcp.V20251125, legacy, ""},
		{"404 -32601", rpcError(404, -32601), mcp.V20251125, legacy, ""},
		{"200 -32602", rpcError(200, -32602), mcp.V20251125, legacy, ""},
		{"200 code 0 (go-sdk)", rpcError(200, 0), mcp.V20251125, legacy, ""},
		{"400 -32000 (TypeScript)", mcptest.Answer{Status: 400, JSON: `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: Server not initialized"},"id":null}`}, mcp.V20251125, legacy, ""},
		{"400 text", text400, mcp.V20251125, legacy, ""},
		{"400 empty", mcptest.Answer{Status: 400}, mcp.V20251125, legacy, ""},
		{"404 html", html404, mcp.V20251125, legacy, ""},
		{"405", text405, mcp.V20251125, legacy, ""},
		{"406", mcptest.Answer{Status: 406}, mcp.V20251125, legacy, ""},
		{"415", mcptest.Answer{Status: 415}, mcp.V20251125, legacy, ""},
		{"422", mcptest.Answer{Status: 422}, mcp.V20251125, legacy, ""},
		{"200 HTML", mcptest.Answer{Type: "text/html", Raw: "<html>"}, mcp.V20251125, legacy, ""},
		{"202", mcptest.Answer{Status: 202}, mcp.V20251125, legacy, ""},
		{"a result of another kind", mcptest.Answer{Result: `{"tools":[]}`}, mcp.V20251125, legacy, ""},
		{"401", mcptest.Answer{Status: 401, Header: map[string]string{"Www-Authenticate": "Bearer"}}, "", only, "authentication comes first"},
		{"403", mcptest.Answer{Status: 403}, "", only, "authentication comes first"},
		{"401 with a JSON-RPC error", rpcError(401, -32001), "", only, "authentication comes first"},
		{"429", mcptest.Answer{Status: 429}, "", only, "429"},
		{"500", mcptest.Answer{Status: 500}, "", only, "500"},
		{"500 with a JSON-RPC error", rpcError(500, -32603), "", only, "-32603"},
		{"503", mcptest.Answer{Status: 503, Raw: "busy", Type: "text/plain"}, "", only, "503"},
		{"302", mcptest.Answer{Status: 302, Header: map[string]string{"Location": "/x"}}, "", only, "/x"},
		{"nothing", mcptest.Answer{Silent: true}, "", only, "probe limit"},
		{"a cut connection", mcptest.Answer{Cut: true}, "", only, "server/discover"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			overHTTP(t, func(h onHTTP) {
				p := &mcptest.Peer{SessionID: "s"}
				if tt.name != "modern" {
					p.On("server/discover", tt.discover)
				}
				tr := serveHTTP(h.T, p, h.engine)
				fallback := mcp.LegacySSE(*tr)
				d, err := negotiate(h.T, tr, &fallback, mcp.Options{})
				if d.Version != tt.want || d.Transport != tr || (err == nil) != (tt.want != "") {
					h.Errorf("decided for %s, %v", d.Version, err)
				}
				if tt.text != "" {
					contains(h.T, err, tt.text)
				}
				if d := cmp.Diff(tt.messages, p.Methods()); d != "" {
					h.Errorf("messages (-want +got)\n%s", d)
				}
			})
		})
	}
}

// Wire test 35: when the POST of initialize is refused too, the GET decides.
func TestProbeLegacySSE(t *testing.T) {
	get := func(a mcptest.Answer) *mcptest.Answer { return &a }
	tests := []struct {
		name     string
		refusals []mcptest.Answer // of the POSTs to the URL of the stream
		get      *mcptest.Answer  // nil: the stream of HTTP+SSE
		streams  int              // GETs made
		text     string           // "": it is HTTP+SSE
	}{
		{"go-sdk, 400", []mcptest.Answer{text400, text400}, nil, 1, ""},
		{"TypeScript, 404", []mcptest.Answer{html404, html404}, nil, 1, ""},
		{"mcp-go, 405", []mcptest.Answer{text405, text405}, nil, 1, ""},
		{"400 with a JSON-RPC error", []mcptest.Answer{rpcError(400, -32000), rpcError(400, -32000)}, nil, 1, ""},
		{"406", []mcptest.Answer{text405, {Status: 406}}, nil, 0, "406"},
		{"401", []mcptest.Answer{text405, {Status: 401}}, nil, 0, "401"},
		{"409", []mcptest.Answer{text405, {Status: 409}}, nil, 0, "409"},
		{"503", []mcptest.Answer{text405, {Status: 503}}, nil, 0, "503"},
		{"200 with an error", []mcptest.Answer{text405, rpcError(200, -32603)}, nil, 0, "-32603"},
		{"a modern server that refuses initialize", []mcptest.Answer{text405, unsupported(`"2026-07-28"`)}, nil, 0, "offers 2026-07-28"},
		{"nothing", []mcptest.Answer{text405, {Silent: true}}, nil, 0, "probe limit"},
		{"GET 405", []mcptest.Answer{text405, text405}, get(text405), 1, "neither Streamable HTTP (initialize: HTTP status 405: Method not allowed) nor HTTP+SSE (HTTP status 405"},
		{"GET 404", []mcptest.Answer{html404, html404}, get(html404), 1, "neither"},
		{"GET without an endpoint", []mcptest.Answer{text400, text400}, get(mcptest.Answer{Frames: []mcptest.Frame{{Raw: ": ok\n\n"}}, Hold: true}), 1, "no endpoint event"},
		{"GET of another origin", []mcptest.Answer{text400, text400}, get(mcptest.Answer{Frames: []mcptest.Frame{endpoint("http://evil/")}, Hold: true}), 1, "another origin"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			overHTTP(t, func(h onHTTP) {
				p := (&mcptest.Peer{}).On("POST /sse", tt.refusals...)
				if tt.get != nil {
					p.On("GET", *tt.get)
				}
				sse := serveSSE(h.T, p, h.engine)
				http := mcp.Streamable(*sse)
				start := time.Now()
				d, err := negotiate(h.T, &http, sse, mcp.Options{})
				if tt.text != "" {
					contains(h.T, err, tt.text)
				} else if err != nil || d.Version != mcp.V20251125 || d.Transport != mcp.Transport(sse) {
					h.Errorf("decided for %s over %v, %v", d.Version, d.Transport, err)
				}
				if got := len(p.Received("GET")); got != tt.streams {
					h.Errorf("%d streams, want %d: %v", got, tt.streams, p.Methods())
				}
				if took := time.Since(start); strings.Contains(tt.text, "endpoint") && took != 5*time.Second {
					h.Errorf("took %v", took)
				}
				if _, err := negotiate(h.T, &http, nil, mcp.Options{}); err == nil || len(p.Received("GET")) != tt.streams {
					h.Errorf("without a fallback: %v", err)
				}
			})
		})
	}
}

// With HTTP+SSE named nothing else is tried; a pinned version leaves only the
// transport open, and is not asked about.
func TestProbePinned(t *testing.T) {
	tests := []struct {
		name     string
		over     string // http, sse or refused: a server of HTTP+SSE behind either
		version  mcp.Version
		messages []string
		want     mcp.Version
		kind     string
	}{
		{"sse", "sse", "", []string{"GET", "initialize", "notifications/initialized"}, mcp.V20251125, "sse"},
		{"sse 2024-11-05", "sse", mcp.V20241105, []string{"GET", "initialize", "notifications/initialized"}, mcp.V20241105, "sse"},
		{"http 2025-06-18", "http", mcp.V20250618, []string{"initialize", "notifications/initialized"}, mcp.V20250618, "http"},
		{"http 2026-07-28", "http", mcp.V20260728, []string{"server/discover"}, mcp.V20260728, "http"},
		{"refused 2024-11-05", "refused", mcp.V20241105, []string{"initialize", "GET", "initialize", "notifications/initialized"}, mcp.V20241105, "sse"},
		{"refused 2026-07-28", "refused", mcp.V20260728, []string{"server/discover"}, "", "http"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			overHTTP(t, func(h onHTTP) {
				p := &mcptest.Peer{}
				sse := serveSSE(h.T, p, h.engine)
				var tr, fallback mcp.Transport = sse, nil
				switch tt.over {
				case "http":
					tr = serveHTTP(h.T, p, h.engine)
				case "refused":
					http := mcp.Streamable(*sse)
					tr, fallback = &http, sse
				}
				d, err := negotiate(h.T, tr, fallback, mcp.Options{Version: tt.version})
				if d.Version != tt.want || d.Transport.Kind() != tt.kind || (err == nil) != (tt.want != "") {
					h.Errorf("decided for %s over %s, %v", d.Version, d.Transport.Kind(), err)
				}
				if d := cmp.Diff(tt.messages, p.Methods()); d != "" {
					h.Errorf("messages (-want +got)\n%s", d)
				}
			})
		})
	}
	_, err := mcp.Probe(t.Context(), &mcp.Streamable{URL: "http://h/"}, nil, mcp.Options{Version: "2031-01-01"})
	contains(t, err, "unknown protocol version")
}

// Negotiate hands out the session that it found, open.
func TestNegotiate(t *testing.T) {
	for _, want := range []mcp.Version{mcp.V20260728, mcp.V20250618} {
		overHTTP(t, func(h onHTTP) {
			p := &mcptest.Peer{SessionID: "s", Versions: []string{string(want)}}
			s, d, err := mcp.Negotiate(h.Context(), serveHTTP(h.T, p, h.engine), nil, mcp.Options{GetStream: true})
			if err != nil || d.Version != want || s.Info().Version != want || s.Info().Requested != "" {
				h.Fatalf("decided for %s, %v", d.Version, err)
			}
			defer closeSession(h.T, s)
			if _, err := s.Call(h.Context(), echo); err != nil {
				h.Error(err)
			}
			synctest.Wait()
			if got := len(p.Received("GET")); (got == 1) != (want == mcp.V20250618) {
				h.Errorf("%d GETs", got)
			}
		})
	}
}
