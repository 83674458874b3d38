package mcp

import (
	"context"
	"encoding/json"
	"time"
)

// Filter says what a subscription is about.
type Filter struct {
	Resources                                                  []string // URIs
	ToolsListChanged, PromptsListChanged, ResourcesListChanged bool
}

// Notification is a notification that was kept. Its Params are its own.
type Notification struct {
	Method string
	Params json.RawMessage
	At     time.Duration // it arrived, since Options.Base
}

// Subscription is a running subscription of a Session.
type Subscription struct{}

// Subscribe starts a subscription: resources/subscribe for each URI up to
// 2025-11-25, where list changes come unasked; subscriptions/listen in 2026-07-28.
// It returns when the server has acknowledged it. The Reply is that of the last
// request made.
func (s *Session) Subscribe(ctx context.Context, f Filter) (*Subscription, Reply, error) {
	return nil, Reply{}, errNotYet
}

// Next returns the oldest notification of the subscription that was not taken,
// or waits for one.
func (u *Subscription) Next(ctx context.Context) (Notification, error) {
	return Notification{}, errNotYet
}

// Close ends the subscription.
func (u *Subscription) Close(ctx context.Context) (Reply, error) { return Reply{}, errNotYet }

// Await returns the oldest notification with that method that was not taken, or
// waits for one. The method must be one of Options.Watch.
func (s *Session) Await(ctx context.Context, method string) (Notification, error) {
	return Notification{}, errNotYet
}
