package mcp

import (
	"context"
	"encoding/json"
	"fmt"
)

// Canned is an Answerer without a user or a model: what it says is fixed, or made
// by a function. The zero value answers with no roots, with an empty text, and
// accepts every elicitation with an empty form. See Ready.
type Canned struct {
	Roots       CannedRoots
	Sampling    CannedSampling
	Elicitation CannedElicitation
}

// Wait takes the time that a user or a model would take. It returns early, with
// an error, when ctx ends. It may be called from several goroutines at once.
type Wait func(ctx context.Context) error

// CannedRoots answers roots/list.
type CannedRoots struct {
	List []Root
	Wait Wait // nil: at once
}

// Root is a root of the client: a file URI, and a name or "".
type Root struct {
	URI  string `json:"uri"`
	Name string `json:"name,omitempty"`
}

// CannedSampling answers sampling/createMessage with one text.
type CannedSampling struct {
	Text       string
	Model      string // "": mcpbench
	StopReason string // "": endTurn
	// Make, if set, makes the text in place of Text.
	Make func(ctx context.Context, q Question) (string, error)
	Wait Wait // nil: at once
}

// CannedElicitation answers elicitation/create. A url is never opened; accepting
// it only says so.
type CannedElicitation struct {
	Action string // accept, decline or cancel; "" is accept
	// Content is what the form holds when accepted, a JSON object or nil.
	Content json.RawMessage
	// Fill adds what the requested schema has and Content has not: each property
	// with its default, or else the smallest value that is valid.
	Fill bool
	// Make, if set, makes the content in place of Content.
	Make func(ctx context.Context, q Question) (json.RawMessage, error)
	Wait Wait // nil: at once
}

// Ready returns the Answerer, with everything encoded that is fixed. What c points
// to must not change any more. An error means that c has an unknown action or a
// content that is no object.
func (c Canned) Ready() (Answerer, error) {
	a := &readyMade{Canned: c}
	roots := c.Roots.List
	if roots == nil {
		roots = []Root{} // must not be null
	}
	var err error
	if a.roots, err = json.Marshal(map[string][]Root{"roots": roots}); err != nil {
		return nil, fmt.Errorf("roots: %w", err)
	}
	if a.said, err = a.message(c.Sampling.Text); err != nil {
		return nil, err
	}
	switch c.Elicitation.Action {
	case "", "accept":
		a.accepts = true
		a.plain = json.RawMessage(`{"action":"accept"}`)
	case "decline", "cancel":
		a.plain = json.RawMessage(`{"action":"` + c.Elicitation.Action + `"}`)
	default:
		return nil, fmt.Errorf("elicitation: unknown action %q; known are accept, decline, cancel", c.Elicitation.Action)
	}
	if a.form, err = a.content(c.Elicitation.Content, nil); err != nil {
		return nil, err
	}
	return a, nil
}

// readyMade is a Canned that is ready.
type readyMade struct {
	Canned
	accepts            bool
	roots, said, plain json.RawMessage
	form               json.RawMessage // accepted with the fixed content alone
}

// Answer implements Answerer.
func (a *readyMade) Answer(ctx context.Context, q Question) (json.RawMessage, error) {
	switch q.Method {
	case "roots/list":
		return a.roots, wait(ctx, a.Roots.Wait)
	case "sampling/createMessage":
		return a.sample(ctx, q)
	case "elicitation/create":
		return a.elicit(ctx, q)
	}
	return nil, &RPCError{Code: codeMethodNotFound, Message: "Method not found"}
}

func wait(ctx context.Context, w Wait) error {
	if w == nil {
		return ctx.Err()
	}
	return w(ctx)
}

func (a *readyMade) sample(ctx context.Context, q Question) (json.RawMessage, error) {
	c := &a.Sampling
	if err := wait(ctx, c.Wait); err != nil || c.Make == nil {
		return a.said, err
	}
	made, err := c.Make(ctx, q)
	if err != nil {
		return nil, err
	}
	return a.message(made)
}

// message is the result of a sampling that says so.
func (a *readyMade) message(say string) (json.RawMessage, error) {
	model, reason := a.Sampling.Model, a.Sampling.StopReason
	if model == "" {
		model = "mcpbench"
	}
	if reason == "" {
		reason = "endTurn"
	}
	r := appendString([]byte(`{"role":"assistant","content":{"type":"text","text":`), say)
	r = appendString(append(r, `},"model":`...), model)
	r = appendString(append(r, `,"stopReason":`...), reason)
	return append(r, '}'), nil
}

func (a *readyMade) elicit(ctx context.Context, q Question) (json.RawMessage, error) {
	c := &a.Elicitation
	if err := wait(ctx, c.Wait); err != nil {
		return nil, err
	}
	if mode, _ := lookupString(q.Params, "mode"); !a.accepts || mode == "url" {
		return a.plain, nil
	}
	if c.Make == nil && !c.Fill {
		return a.form, nil
	}
	content := c.Content
	if c.Make != nil {
		var err error
		if content, err = c.Make(ctx, q); err != nil {
			return nil, err
		}
	}
	var schema json.RawMessage
	if c.Fill {
		schema = lookup(q.Params, "requestedSchema")
	}
	return a.content(content, schema)
}

// content is the result of an elicitation that is accepted, with the content and
// what the schema adds to it.
func (*readyMade) content(content, schema json.RawMessage) (json.RawMessage, error) {
	if len(content) == 0 {
		content = json.RawMessage("{}")
	}
	if start := skipSpace(content, 0); start == len(content) || content[start] != '{' || !json.Valid(content) {
		return nil, fmt.Errorf("elicitation: the content is no JSON object: %s", excerpt(content))
	}
	r := appendForm([]byte(`{"action":"accept","content":`), content, schema)
	return append(r, '}'), nil
}
