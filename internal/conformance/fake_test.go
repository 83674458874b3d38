package conformance

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// fake is a Streamable HTTP server written by hand, for what no SDK server can
// be made to do. It has sessions and speaks every version before 2026-07-28.
type fake struct {
	// answer writes the response to the tools/call with this number, from 1.
	// nil: a good result.
	answer func(w http.ResponseWriter, id json.RawMessage, call int)
	// forget reports whether the session of this call is lost before it.
	forget func(call int) bool
	// refuse makes every initialize fail with status 503.
	refuse bool

	url string

	mu       sync.Mutex
	sessions map[string]bool
	calls    int
	opened   int
	deleted  int
}

func startFake(t *testing.T, f *fake) *fake {
	t.Helper()
	f.sessions = map[string]bool{}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	f.url = server.URL + "/mcp"
	return f
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodPost:
		f.post(w, r)
	case http.MethodDelete:
		f.mu.Lock()
		defer f.mu.Unlock()
		if !f.sessions[r.Header.Get("Mcp-Session-Id")] {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		delete(f.sessions, r.Header.Get("Mcp-Session-Id"))
		f.deleted++
		w.WriteHeader(http.StatusNoContent)
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

func (f *fake) post(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct{ ProtocolVersion string }
	}
	if err := json.Unmarshal(body, &m); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	session := r.Header.Get("Mcp-Session-Id")
	if m.Method == "initialize" {
		f.initialize(w, m.ID, m.Params.ProtocolVersion)
		return
	}
	call, known := f.count(m.Method, session)
	switch {
	case !known:
		http.Error(w, "no such session", http.StatusNotFound)
	case m.ID == nil:
		w.WriteHeader(http.StatusAccepted)
	case m.Method == "tools/list":
		reply(w, m.ID, `{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}`)
	case m.Method == "tools/call" && f.answer != nil:
		f.answer(w, m.ID, call)
	case m.Method == "tools/call":
		reply(w, m.ID, goodResult)
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown method"}}`, m.ID)
	}
}

const goodResult = `{"content":[{"type":"text","text":"hi"}]}`

func (f *fake) initialize(w http.ResponseWriter, id json.RawMessage, version string) {
	if f.refuse {
		http.Error(w, "no room", http.StatusServiceUnavailable)
		return
	}
	f.mu.Lock()
	f.opened++
	session := fmt.Sprintf("session-%d", f.opened)
	f.sessions[session] = true
	f.mu.Unlock()
	w.Header().Set("Mcp-Session-Id", session)
	reply(w, id, fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{"tools":{}},"serverInfo":{"name":"fake","version":"1"}}`, version))
}

// count numbers a call, forgets its session when it is time to, and says
// whether the server knows the session.
func (f *fake) count(method, session string) (call int, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if method == "tools/call" {
		f.calls++
		if f.forget != nil && f.forget(f.calls) {
			delete(f.sessions, session)
		}
	}
	return f.calls, f.sessions[session]
}

func reply(w http.ResponseWriter, id json.RawMessage, result string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

// freezer answers well, and stands still for a time after every so many calls,
// in all sessions alike.
type freezer struct {
	every  int
	length time.Duration

	mu    sync.Mutex
	until time.Time
}

func (z *freezer) answer(w http.ResponseWriter, id json.RawMessage, call int) {
	z.mu.Lock()
	wait := time.Until(z.until)
	if call%z.every == 0 {
		z.until = time.Now().Add(max(wait, 0) + z.length)
	}
	z.mu.Unlock()
	if wait > 0 {
		time.Sleep(wait) // the fault itself
	}
	reply(w, id, goodResult)
}
