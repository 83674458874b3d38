package query_test

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

// fake is an MCP server of protocol version 2025-11-25 that notes when it has
// answered each call of the tool echo, by the argument n.
type fake struct {
	url string

	mu       sync.Mutex
	answered map[int64]time.Time
	received int64
}

func newFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{answered: map[int64]time.Time{}}
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	f.url = s.URL
	return f
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodPost:
		f.post(w, r)
	case http.MethodDelete:
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
		Params struct {
			Name      string
			Arguments struct{ N *int64 }
		}
	}
	if err := json.Unmarshal(body, &m); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	switch {
	case m.Method == "initialize":
		w.Header().Set("Mcp-Session-Id", "one")
		reply(w, m.ID, "result", `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"fake","version":"1"}}`)
	case m.ID == nil:
		w.WriteHeader(http.StatusAccepted)
	case m.Method == "tools/list":
		reply(w, m.ID, "result", `{"tools":[{"name":"echo","inputSchema":{"type":"object"}},{"name":"fail","inputSchema":{"type":"object"}}]}`)
	case m.Method == "tools/call" && m.Params.Name == "fail":
		reply(w, m.ID, "error", `{"code":-32000,"message":"as asked"}`)
	case m.Method == "tools/call":
		reply(w, m.ID, "result", `{"content":[{"type":"text","text":"hi"}]}`)
		if f, ok := w.(http.Flusher); ok {
			f.Flush() // the answer is on its way before it counts
		}
		f.note(m.Params.Arguments.N)
	default:
		reply(w, m.ID, "error", `{"code":-32601,"message":"unknown method"}`)
	}
}

func (f *fake) note(n *int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.received++
	if n != nil {
		f.answered[*n] = time.Now()
	}
}

func (f *fake) count() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.received
}

func reply(w http.ResponseWriter, id json.RawMessage, member, value string) {
	w.Header().Set("Content-Type", "application/json")
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%q:%s}`, id, member, value)
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	_, _ = io.WriteString(w, body)
}
