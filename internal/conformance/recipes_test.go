package conformance

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestRecipesRun runs every recipe of docs/cookbook.md for a second: those with the
// demo target as they are, the others against a server that has what they speak of.
func TestRecipesRun(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "data", "tenants.csv"), []byte("tenant,token\na,token-a\nb,token-b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	shop := &shop{tenants: map[string]int{}, users: map[string]int{}}
	plain := overHTTP(shop.server())
	for name, handler := range map[string]http.Handler{
		"CATALOGUE_URL": overHTTP(catalogue()), "API_URL": shop.guard(plain), "BOOKING_URL": plain, "DOCS_URL": plain,
	} {
		server := httptest.NewServer(handler)
		t.Cleanup(server.Close)
		t.Setenv(name, server.URL)
	}

	seen := map[string]bool{}
	for _, text := range documentedScenarios(t)["cookbook"] {
		_, name, _ := strings.Cut(text, "\nname: ")
		name, _, _ = strings.Cut(name, "\n")
		seen[name] = true
		t.Run(name, func(t *testing.T) {
			runRecipe(t, dir, name, text)
		})
	}
	if len(seen) != 12 {
		t.Errorf("%d recipes, want 12", len(seen))
	}
	shop.mu.Lock()
	defer shop.mu.Unlock()
	if len(shop.tenants) != 2 || shop.tenants["a token-a"] == 0 || shop.tenants["b token-b"] == 0 {
		t.Errorf("tenants that called: %v, want a and b with the token of each", shop.tenants)
	}
	if len(shop.users) != 1 || shop.users["accept map[confirm:true]"] == 0 {
		t.Errorf("answers of the user: %v, want that of the recipe only", shop.users)
	}
}

// runRecipe runs a recipe for a second in the folder of its data.
func runRecipe(t *testing.T, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, name+".yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r := bench(t, []string{file, "-d", "1s"})
	if name == "task" {
		if r.exit != 2 || !strings.Contains(r.log, "not supported yet: ") {
			t.Errorf("exit %d, want 2 and what is not supported yet", r.exit)
		}
		return
	}
	if r.exit != 0 || r.summary == nil {
		t.Fatalf("exit %d, want 0", r.exit)
	}
	sum := r.summary
	if sum.Requests.Total < 5 || sum.Requests.Failed != 0 || sum.Iterations.Completed == 0 {
		t.Errorf("requests %+v, iterations %+v", sum.Requests, sum.Iterations)
	}
	for _, c := range sum.Checks {
		if c.Failed > 0 || c.Passed == 0 {
			t.Errorf("check %+v", c)
		}
	}
}

// shop is the server of the recipes that the demo target cannot serve.
type shop struct {
	mu      sync.Mutex
	tenants map[string]int // requests by tenant and token
	users   map[string]int // answers of users
}

func overHTTP(server *mcp.Server) http.Handler {
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
}

// guard lets in who has the token of a tenant.
func (s *shop) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tenant := r.Header.Get("X-Tenant")
		token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok || tenant == "" || token != "token-"+tenant {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		s.mu.Lock()
		s.tenants[tenant+" "+token]++
		s.mu.Unlock()
		next.ServeHTTP(w, r)
	})
}

type document struct {
	Document int `json:"document"`
}

// server has a tool for each recipe, and documents to subscribe to.
func (s *shop) server() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "shop", Version: "1"}, &mcp.ServerOptions{
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
	// Subscribing is offered only where there are resources.
	server.AddResourceTemplate(&mcp.ResourceTemplate{Name: "text", URITemplate: "docs://text/{id}"},
		func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{}, nil
		})
	mcp.AddTool(server, &mcp.Tool{Name: "whoami"},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return said("you"), nil, nil
		})
	mcp.AddTool(server, &mcp.Tool{Name: "edit"},
		func(ctx context.Context, _ *mcp.CallToolRequest, in document) (*mcp.CallToolResult, any, error) {
			uri := fmt.Sprintf("docs://text/%d", in.Document)
			return said("edited"), nil, server.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: uri})
		})
	mcp.AddTool(server, &mcp.Tool{Name: "book"}, s.book)
	return server
}

type seat struct {
	Seat string `json:"seat"`
}

// book asks the user before it answers, in the way of the version that is spoken.
func (s *shop) book(_ context.Context, r *mcp.CallToolRequest, in seat) (*mcp.CallToolResult, any, error) {
	answer, ok := r.Params.InputResponses["user"].(*mcp.ElicitResult)
	if !ok {
		question := &mcp.ElicitParams{Mode: "form", Message: "Book " + in.Seat + "?", RequestedSchema: map[string]any{
			"type": "object", "required": []string{"confirm"}, "properties": map[string]any{"confirm": map[string]any{"type": "boolean"}},
		}}
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"user": question}, RequestState: "asked"}, nil, nil
	}
	s.mu.Lock()
	s.users[fmt.Sprint(answer.Action, " ", answer.Content)]++
	s.mu.Unlock()
	return said("booked"), nil, nil
}

// catalogue has 10,000 tools on ten pages, and a prompt that names one of them.
func catalogue() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "catalogue", Version: "1"}, &mcp.ServerOptions{PageSize: 1000})
	for i := range 10_000 {
		server.AddTool(&mcp.Tool{Name: fmt.Sprintf("tool_%04d", i), InputSchema: map[string]any{"type": "object"}},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return said("done"), nil })
	}
	server.AddPrompt(&mcp.Prompt{Name: "find_tool", Arguments: []*mcp.PromptArgument{{Name: "task", Required: true}}},
		func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "tool_4711"}}}}, nil
		})
	return server
}

func said(words string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: words}}}
}
