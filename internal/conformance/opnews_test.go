package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"mcpbench/mcp"
)

// names lists something to the last page and returns one member of each entry.
func (r *row) names(ctx context.Context, method, member, name string) (names []string, err error) {
	pages := 0
	for reply, err := range mcp.Pages(ctx, r.s, mcp.Request{Method: method, Timeout: r.limit()}) {
		if err != nil {
			return names, err
		}
		pages++
		var result map[string]json.RawMessage
		var entries []map[string]any
		if err := errors.Join(json.Unmarshal(reply.Result, &result), json.Unmarshal(result[member], &entries)); err != nil {
			return names, fmt.Errorf("%s: %w", reply.Result, err)
		}
		for _, e := range entries {
			text, _ := e[name].(string)
			names = append(names, text)
		}
	}
	if sorted := slices.Sorted(slices.Values(names)); len(slices.Compact(sorted)) != len(names) {
		return names, fmt.Errorf("some of %v came twice", names)
	}
	if pages < r.pages && method != "resources/templates/list" {
		return names, fmt.Errorf("%d pages, want %d", pages, r.pages)
	}
	return names, nil
}

func opTools(ctx context.Context, r *row) error {
	return r.lists(ctx, "tools", "name", r.tools...)
}

func opResources(ctx context.Context, r *row) error {
	var want []string
	if r.perItem {
		want = []string{"toy://item/0", "toy://item/10"}
	}
	return r.lists(ctx, "resources", "uri", want...)
}

func opPrompts(ctx context.Context, r *row) error {
	var prompt struct{ Name string }
	if err := json.Unmarshal([]byte(r.prompt.arguments), &prompt); err != nil {
		return err
	}
	return r.lists(ctx, "prompts", "name", prompt.Name)
}

func (r *row) lists(ctx context.Context, kind, member string, want ...string) error {
	if err := r.offers(ctx, kind, kind+"/list"); err != nil {
		return err
	}
	names, err := r.names(ctx, kind+"/list", kind, member)
	return contains(names, err, want...)
}

func contains(names []string, err error, want ...string) error {
	for _, name := range want {
		if err == nil && !slices.Contains(names, name) {
			err = fmt.Errorf("%s is not among %v", name, names)
		}
	}
	if err == nil && len(names) == 0 {
		err = errors.New("the list is empty")
	}
	return err
}

func opTemplates(ctx context.Context, r *row) error {
	names, err := r.names(ctx, "resources/templates/list", "resourceTemplates", "uriTemplate")
	return contains(names, err, r.template)
}

func opRead(ctx context.Context, r *row) error {
	reply, err := r.call(ctx, r.read.tool, r.read.arguments, nil)
	return right(r.read, reply, err)
}

// opMissing: -32002 up to 2025-11-25, -32602 after (specification, server/resources).
func opMissing(ctx context.Context, r *row) error {
	code := int64(-32002)
	if !r.version.Features().Handshake {
		code = -32602
	}
	reply, err := r.call(ctx, "resources/read", fmt.Sprintf(`{"uri":%q}`, r.missing), nil)
	return r.refused(reply, err, code)
}

func opPrompt(ctx context.Context, r *row) error {
	reply, err := r.call(ctx, r.prompt.tool, r.prompt.arguments, nil)
	return right(r.prompt, reply, err)
}

func opComplete(ctx context.Context, r *row) error {
	if err := r.offers(ctx, "completions", "completion/complete"); err != nil {
		return err
	}
	reply, err := r.call(ctx, r.completes.tool, r.completes.arguments, nil)
	return right(r.completes, reply, err)
}

// touches makes changes of a resource known to those who subscribed.
func (r *row) touches(ctx context.Context, uri string) error {
	for _, tool := range r.touch {
		arguments := "{}"
		if r.perItem {
			arguments = fmt.Sprintf(`{"uri":%q}`, uri)
		}
		if err := r.works(ctx, asked{tool: tool, arguments: arguments}, nil); err != nil {
			return err
		}
	}
	return nil
}

// opSubscribe is told of a change of one resource, ends that subscription, and is then
// told only of another: what comes for the first would come before.
func opSubscribe(ctx context.Context, r *row) error {
	r.keys++
	first, second := item(r.resource, r.keys*1000+len(r.mark)), item(r.another, r.keys)
	if r.perItem { // nobody else may touch them
		first, second = first+r.mark+r.name(), second+r.mark+r.name()
		first, second = strings.ReplaceAll(first, " ", "-"), strings.ReplaceAll(second, " ", "-")
	}
	ctx, cancel := r.waits(ctx)
	defer cancel()
	subscription, _, err := r.s.Subscribe(ctx, mcp.Filter{Resources: []string{first}})
	if err != nil {
		return err
	}
	if err := r.touches(ctx, first); err != nil {
		return err
	}
	if err := r.told(ctx, subscription.Next, first); err != nil {
		return fmt.Errorf("the subscription: %w", err)
	}
	if err := r.told(ctx, func(ctx context.Context) (mcp.Notification, error) { return r.s.Await(ctx, updated) }, first); err != nil {
		return fmt.Errorf("the session: %w", err)
	}
	if _, err := subscription.Close(ctx); err != nil {
		return fmt.Errorf("unsubscribe: %w", err)
	}
	if subscription, _, err = r.s.Subscribe(ctx, mcp.Filter{Resources: []string{second}}); err != nil {
		return err
	}
	if r.perItem { // otherwise one touch is of all
		err = r.touches(ctx, first)
	}
	if err := errors.Join(err, r.touches(ctx, second)); err != nil {
		return err
	}
	if err := r.told(ctx, func(ctx context.Context) (mcp.Notification, error) { return r.s.Await(ctx, updated) }, second); err != nil {
		return fmt.Errorf("after the end: %w", err)
	}
	_, err = subscription.Close(ctx)
	return err
}

// told demands that the next notification is about uri.
func (r *row) told(ctx context.Context, next func(context.Context) (mcp.Notification, error), uri string) error {
	n, err := next(ctx)
	if err != nil {
		return fmt.Errorf("no update came: %w", err)
	}
	if n.Method != updated || !strings.Contains(string(n.Params), `"`+uri+`"`) {
		return fmt.Errorf("got %s %s, want one of %s", n.Method, n.Params, uri)
	}
	return nil
}

func opListChanged(ctx context.Context, r *row) error {
	ctx, cancel := r.waits(ctx)
	defer cancel()
	subscription, _, err := r.s.Subscribe(ctx, r.grows)
	if err != nil {
		return err
	}
	r.keys++
	grow := r.grow
	grow.arguments = item(grow.arguments, r.keys)
	if err := r.works(ctx, asked{tool: grow.tool, arguments: grow.arguments}, nil); err != nil {
		return err
	}
	n, err := subscription.Next(ctx)
	if err != nil {
		return fmt.Errorf("no change came: %w", err)
	}
	if !strings.HasSuffix(n.Method, "/list_changed") {
		return fmt.Errorf("got %s", n.Method)
	}
	_, err = subscription.Close(ctx)
	return err
}

// opListen: what is acknowledged is what was asked for, and a subscription to nothing
// is ended by the server.
func opListen(ctx context.Context, r *row) error {
	if err := r.has("subscriptions/listen"); err != nil {
		return err
	}
	ctx, cancel := r.waits(ctx)
	defer cancel()
	uri := item(r.resource, 0)
	subscription, reply, err := r.s.Subscribe(ctx, mcp.Filter{Resources: []string{uri}, ToolsListChanged: true, PromptsListChanged: true, ResourcesListChanged: true})
	if err != nil {
		return err
	}
	for _, want := range []string{uri, `"toolsListChanged":true`, `"promptsListChanged":true`, `"resourcesListChanged":true`} {
		if !strings.Contains(string(reply.Result), want) {
			return fmt.Errorf("acknowledged without %s: %s", want, reply.Result)
		}
	}
	if _, err := subscription.Close(ctx); err != nil {
		return err
	}
	if subscription, _, err = r.s.Subscribe(ctx, mcp.Filter{}); err != nil {
		return err
	}
	if n, err := subscription.Next(ctx); !errors.Is(err, mcp.ErrSubscriptionEnded) {
		return fmt.Errorf("a subscription to nothing: %+v, %w", n, err)
	}
	_, err = subscription.Close(ctx)
	return err
}

// opLogging wants warnings: of four messages two come.
func opLogging(ctx context.Context, r *row) error {
	if err := r.offers(ctx, "logging", "logging/setLevel"); err != nil {
		return err
	}
	ctx, cancel := r.waits(ctx)
	defer cancel()
	level, levels := "warning", []string{"warning", "error"}
	if r.quiet != nil { // its levels are random
		level, levels = "debug", []string{""}
	}
	if err := r.drain(ctx); err != nil {
		return err
	}
	wants := &mcp.Wants{LogLevel: level}
	if r.version.Features().Has("logging/setLevel") {
		if _, err := r.call(ctx, "logging/setLevel", fmt.Sprintf(`{"level":%q}`, level), nil); err != nil {
			return fmt.Errorf("logging/setLevel: %w", err)
		}
	}
	if err := r.works(ctx, r.logs, wants); err != nil {
		return err
	}
	for _, want := range levels {
		n, err := r.s.Await(ctx, message)
		if err != nil {
			return fmt.Errorf("no message came: %w", err)
		}
		if !strings.Contains(string(n.Params), `"level":"`+want) {
			return fmt.Errorf("got %s, want level %s", n.Params, want)
		}
	}
	if r.quiet != nil {
		return r.works(ctx, *r.quiet, nil)
	}
	return nil
}

// drain takes the messages that came of themselves.
func (r *row) drain(ctx context.Context) error {
	for {
		done, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := r.s.Await(done, message); err != nil {
			return ctx.Err()
		}
	}
}
