package target_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpbench/internal/target"
)

func TestResources(t *testing.T) {
	_, server := listen(t, target.Config{})
	session, err := connectHTTP(t, server.URL, "2025-11-25")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = session.Close() }()
	ctx := t.Context()

	seen := map[string]bool{}
	pages := 0
	for cursor := ""; ; {
		page, err := session.ListResources(ctx, &mcp.ListResourcesParams{Cursor: cursor})
		if err != nil {
			t.Fatal(err)
		}
		pages++
		for _, r := range page.Resources {
			seen[r.URI] = true
		}
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	if pages != 2 || len(seen) != 100 {
		t.Errorf("%d resources on %d pages, want 100 on 2", len(seen), pages)
	}
	for uri, want := range map[string]string{
		"demo://text/1": "resource 1", "demo://text/100": "resource 100", "demo://item/abc": "item abc",
	} {
		res, err := session.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
		if err != nil {
			t.Errorf("read %s: %v", uri, err)
			continue
		}
		want := []*mcp.ResourceContents{{URI: uri, MIMEType: "text/plain", Text: want}}
		if diff := cmp.Diff(want, res.Contents); diff != "" {
			t.Errorf("read %s (-want +got):\n%s", uri, diff)
		}
	}
	if _, err := session.ReadResource(ctx, &mcp.ReadResourceParams{URI: "demo://text/101"}); err == nil {
		t.Error("a resource that does not exist was read")
	}
	templates, err := session.ListResourceTemplates(ctx, nil)
	if err != nil || len(templates.ResourceTemplates) != 1 || templates.ResourceTemplates[0].URITemplate != "demo://item/{id}" {
		t.Errorf("templates = %+v, %v", templates, err)
	}
}

func TestPrompts(t *testing.T) {
	_, server := listen(t, target.Config{})
	session, err := connectHTTP(t, server.URL, "2025-11-25")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = session.Close() }()
	ctx := t.Context()

	prompt, err := session.GetPrompt(ctx, &mcp.GetPromptParams{Name: "greet", Arguments: map[string]string{"name": "Ada"}})
	if err != nil || prompt.Messages[0].Content.(*mcp.TextContent).Text != "Say hello to Ada." {
		t.Errorf("greet = %+v, %v", prompt, err)
	}
	if _, err := session.GetPrompt(ctx, &mcp.GetPromptParams{Name: "summarize"}); err == nil {
		t.Error("summarize without its argument was answered")
	}
}

func TestCompletion(t *testing.T) {
	_, server := listen(t, target.Config{})
	session, err := connectHTTP(t, server.URL, "2025-11-25")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = session.Close() }()
	ctx := t.Context()

	greet := &mcp.CompleteReference{Type: "ref/prompt", Name: "greet"}
	item := &mcp.CompleteReference{Type: "ref/resource", URI: "demo://item/{id}"}
	for _, tt := range []struct {
		ref         *mcp.CompleteReference
		name, value string
		want        []string
	}{
		{greet, "name", "A", []string{"Ada", "Alan"}},
		{greet, "name", "X", []string{}},
		{item, "id", "10", []string{"10", "100"}},
		{&mcp.CompleteReference{Type: "ref/prompt", Name: "summarize"}, "id", "9", []string{"9", "90", "91", "92", "93", "94", "95", "96", "97", "98", "99"}},
	} {
		res, err := session.Complete(ctx, &mcp.CompleteParams{
			Ref: tt.ref, Argument: mcp.CompleteParamsArgument{Name: tt.name, Value: tt.value},
		})
		if err != nil {
			t.Errorf("complete %q: %v", tt.value, err)
			continue
		}
		if diff := cmp.Diff(tt.want, res.Completion.Values); diff != "" {
			t.Errorf("complete %q (-want +got):\n%s", tt.value, diff)
		}
	}
	if _, err := session.Complete(ctx, &mcp.CompleteParams{Ref: greet, Argument: mcp.CompleteParamsArgument{Name: "age"}}); err == nil {
		t.Error("an unknown argument was completed")
	}
}

func TestFailLogsForClientsThatAsked(t *testing.T) {
	_, server := listen(t, target.Config{})
	for _, level := range []string{"", "error", "emergency"} {
		logged := 0
		client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "0"}, &mcp.ClientOptions{
			//nolint:staticcheck // deprecated with the feature, which the older versions have
			LoggingMessageHandler: func(context.Context, *mcp.LoggingMessageRequest) { logged++ },
		})
		session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: server.URL},
			&mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
		if err != nil {
			t.Fatal(err)
		}
		if level != "" {
			//nolint:staticcheck // as above
			if err := session.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: mcp.LoggingLevel(level)}); err != nil {
				t.Fatal(err)
			}
		}
		// The message comes before the answer on the same stream, and the
		// client handles notifications one after the other with answers.
		if _, err := call(t, session, "fail", nil); err != nil {
			t.Errorf("fail: %v", err)
		}
		_ = session.Close()
		want := 0
		if level == "error" {
			want = 1
		}
		if logged != want {
			t.Errorf("level %q: %d log messages, want %d", level, logged, want)
		}
	}
}
