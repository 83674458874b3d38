package main

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// news knows who subscribed to which resource: the library accepts subscriptions and
// leaves it to the program to serve them.
type news struct {
	server *server.MCPServer

	mu   sync.Mutex
	subs map[string]subscriber // by session, and by request of subscriptions/listen
}

type subscriber struct {
	session string          // of a legacy subscription
	listen  context.Context //nolint:containedctx // of subscriptions/listen: it leads to the stream
	id      any             // of subscriptions/listen
	uris    []string
}

func (n *news) hooks() *server.Hooks {
	h := &server.Hooks{}
	h.AddAfterSubscribe(func(ctx context.Context, _ any, r *mcp.SubscribeRequest, _ *mcp.EmptyResult) {
		n.change(session(ctx), func(s *subscriber) { s.uris = append(s.uris, r.Params.URI) })
	})
	h.AddAfterUnsubscribe(func(ctx context.Context, _ any, r *mcp.UnsubscribeRequest, _ *mcp.EmptyResult) {
		n.change(session(ctx), func(s *subscriber) {
			s.uris = slices.DeleteFunc(s.uris, func(uri string) bool { return uri == r.Params.URI })
		})
	})
	h.AddBeforeSubscriptionsListen(func(ctx context.Context, id any, r *mcp.SubscriptionsListenRequest) {
		n.change(listenKey(ctx, id), func(s *subscriber) {
			s.listen, s.id, s.uris = ctx, id, r.Params.Notifications.ResourceSubscriptions
		})
	})
	h.AddAfterSubscriptionsListen(func(ctx context.Context, id any, _ *mcp.SubscriptionsListenRequest, _ *mcp.SubscriptionsListenResult) {
		n.change(listenKey(ctx, id), func(s *subscriber) { s.uris = nil })
	})
	h.AddOnUnregisterSession(func(_ context.Context, s server.ClientSession) {
		n.change(s.SessionID(), func(s *subscriber) { s.uris = nil })
	})
	return h
}

func session(ctx context.Context) string { return server.ClientSessionFromContext(ctx).SessionID() }

// listenKey tells apart the streams; the sessions of 2026-07-28 over HTTP have no names.
func listenKey(ctx context.Context, id any) string {
	return fmt.Sprintf("%p %v", server.ClientSessionFromContext(ctx), id)
}

func (n *news) change(key string, change func(*subscriber)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.subs == nil {
		n.subs = map[string]subscriber{}
	}
	s := n.subs[key]
	s.session = key
	change(&s)
	if n.subs[key] = s; len(s.uris) == 0 {
		delete(n.subs, key)
	}
}

// updated tells those who subscribed to uri.
func (n *news) updated(uri string) {
	n.mu.Lock()
	var told []subscriber
	for _, s := range n.subs {
		if slices.Contains(s.uris, uri) {
			told = append(told, s)
		}
	}
	n.mu.Unlock()
	for _, s := range told {
		if s.listen == nil {
			_ = n.server.SendNotificationToSpecificClient(s.session, mcp.MethodNotificationResourceUpdated, map[string]any{"uri": uri})
			continue
		}
		meta := map[string]any{mcp.MetaKeySubscriptionID: s.id}
		_ = n.server.SendNotificationToClient(s.listen, mcp.MethodNotificationResourceUpdated, map[string]any{"uri": uri, "_meta": meta})
	}
}
