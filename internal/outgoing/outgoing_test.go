package outgoing_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbench/internal/outgoing"
	"mcpbench/mcp"
)

func TestParseAddresses(t *testing.T) {
	for _, tt := range []struct{ text, want, err string }{
		{"127.0.0.2", "[127.0.0.2]", ""},
		{"127.0.0.2, 127.0.0.3", "[127.0.0.2 127.0.0.3]", ""},
		{"::1", "[::1]", ""},
		{"::ffff:127.0.0.2", "[127.0.0.2]", ""},
		{"localhost", "[]", `"localhost" is no IP address`},
		{"127.0.0.2,", "[]", `"" is no IP address`},
		{"127.0.0.2:80", "[]", `"127.0.0.2:80" is no IP address`},
		{"", "[]", `"" is no IP address`},
	} {
		got, err := outgoing.ParseAddresses(tt.text)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if fmt.Sprint(got) != tt.want || text != tt.err {
			t.Errorf("%q: %v, %q; want %s, %q", tt.text, got, text, tt.want, tt.err)
		}
	}
}

func TestForeignAddressIsRefusedBeforeAnythingIsSent(t *testing.T) {
	list, err := outgoing.ParseAddresses("127.0.0.1,192.0.2.1") // the second is for documentation (RFC 5737)
	if err != nil {
		t.Fatal(err)
	}
	if err := outgoing.CheckOurs(t.Context(), list[:1]); err != nil {
		t.Error(err)
	}
	err = outgoing.CheckOurs(t.Context(), list)
	if err == nil || !strings.Contains(err.Error(), "192.0.2.1 is no address of this machine") {
		t.Errorf("error %v", err)
	}
}

// seen is a server that notes from where it was called.
type seen struct {
	*httptest.Server
	mu   sync.Mutex
	from []string
}

func newSeen(t *testing.T) *seen {
	t.Helper()
	s := &seen{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := net.SplitHostPort(r.RemoteAddr)
		s.mu.Lock()
		s.from = append(s.from, host)
		s.mu.Unlock()
		body, _ := io.ReadAll(r.Body)
		id := "1"
		if _, after, ok := strings.Cut(string(body), `"id":`); ok {
			id = after[:strings.IndexAny(after, ",}")]
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}`, id)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *seen) addresses() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := slices.Clone(s.from)
	slices.Sort(out)
	return slices.Compact(out)
}

// connect opens n sessions, each in a slot of its own.
func connect(t *testing.T, url string, engine mcp.Engine, d *outgoing.Dialer, n int) (sessions []*mcp.Session) {
	t.Helper()
	for slot := range n {
		o := mcp.Options{Version: mcp.V20251125, Client: mcp.Implementation{Name: "t", Version: "1"}}
		s, err := mcp.Connect(t.Context(), &mcp.Streamable{URL: url, Engine: engine, DialContext: d.Slot(slot)}, o)
		if err != nil {
			t.Fatal(err)
		}
		sessions = append(sessions, s)
	}
	return sessions
}

func TestServerSeesSourcesInTurn(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("127.0.0.2 is an address of every machine only under Linux")
	}
	list, err := outgoing.ParseAddresses("127.0.0.2,127.0.0.3")
	if err != nil {
		t.Fatal(err)
	}
	for _, engine := range []mcp.Engine{mcp.EngineFast, mcp.EngineStd} {
		t.Run(string(engine), func(t *testing.T) {
			server, d := newSeen(t), &outgoing.Dialer{Sources: list}
			sessions := connect(t, server.URL, engine, d, 4)
			if diff := cmp.Diff([]string{"127.0.0.2", "127.0.0.3"}, server.addresses()); diff != "" {
				t.Error(diff)
			}
			if got := d.Held(); got != 4 {
				t.Errorf("%d connections are held, want one of each of 4 sessions", got)
			}
			for _, s := range sessions {
				if err := s.Close(t.Context()); err != nil {
					t.Error(err)
				}
			}
			if got := d.Held(); got != 0 {
				t.Errorf("%d connections are held after the end of all", got)
			}
		})
	}
}

func TestHeldIsTheMostToOneTarget(t *testing.T) {
	d := &outgoing.Dialer{}
	var open []net.Conn
	for i, n := range []int{1, 3, 2} {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		for slot := range n {
			c, err := d.Slot(slot)(context.Background(), "tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, c)
		}
		if want := []int64{1, 3, 3}[i]; d.Held() != want {
			t.Errorf("held %d after target %d, want %d", d.Held(), i, want)
		}
	}
	for range 2 { // closing twice counts once
		for _, c := range open {
			_ = c.Close()
		}
	}
	if d.Held() != 0 {
		t.Errorf("held %d after the end", d.Held())
	}
}
