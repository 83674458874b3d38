package scenarios

import (
	"encoding/json"
	"fmt"

	"mcpbench/scenarios/internal/grammar"
	"mcpbench/scenarios/internal/syntax"
)

// Client is what the simulated client declares and how it answers a server. The
// zero value declares nothing. It is immutable.
type Client struct {
	Elicitation, Sampling, Roots bool // declared capabilities

	action             string
	content            *paramsTemplate // nil: made from the schema that the server asks with
	said, roots        *paramsTemplate // {text, model, reason}, {roots}
	userDelay, aiDelay Spread
	vars               map[string]any
}

// Answers are what one session answers a server that asks.
type Answers struct {
	Action string // accept, decline or cancel an elicitation
	// Content is what is filled into the form, a JSON object; nil leaves it to
	// the schema that the server asks with: its defaults, else its smallest values.
	Content []byte
	// Text, Model and StopReason are of the message of a sampling.
	Text, Model, StopReason string
	Roots                   []string // file URIs

	ElicitationDelay, SamplingDelay Spread
}

// Asked tells that the client declares something that a server may ask for.
func (c *Client) Asked() bool { return c.Elicitation || c.Sampling || c.Roots }

// Answers returns the answers of a session. They depend on Seed, Group and
// Session of env only; Iteration is set. An error is an expression that failed.
func (c *Client) Answers(env *Env) (Answers, error) {
	env.Iteration = uint64(env.Session) //nolint:gosec // a place in a group
	a := Answers{Action: c.action, ElicitationDelay: c.userDelay, SamplingDelay: c.aiDelay}
	if c.content != nil {
		var err error
		if a.Content, err = c.content.appendTo(nil, env, c.vars); err != nil {
			return Answers{}, fmt.Errorf("client.answers.elicitation.content: %w", err)
		}
	}
	var said struct{ Text, Model, Reason string }
	var roots struct{ Roots []string }
	for _, part := range []struct {
		name string
		from *paramsTemplate
		to   any
	}{{"sampling", c.said, &said}, {"roots", c.roots, &roots}} {
		if part.from == nil {
			continue
		}
		data, err := part.from.appendTo(nil, env, c.vars)
		if err != nil {
			return Answers{}, fmt.Errorf("client.answers.%s: %w", part.name, err)
		}
		if err := json.Unmarshal(data, part.to); err != nil { // of our own making
			return Answers{}, fmt.Errorf("client.answers.%s: %w", part.name, err)
		}
	}
	a.Text, a.Model, a.StopReason, a.Roots = said.Text, said.Model, said.Reason, roots.Roots
	return a, nil
}

// Defaults of the answers; a test holds them against the grammar's tags.
const (
	defaultAction = "accept"
	defaultText   = "stub answer"
	defaultModel  = "mcpbench"
	defaultReason = "endTurn"
)

// client compiles what the client declares and answers.
func (c *compiler) client() Client {
	in := &c.file.Client
	out := Client{
		Elicitation: in.Capabilities.Elicitation, Sampling: in.Capabilities.Sampling, Roots: in.Capabilities.Roots,
		action: defaultAction, vars: c.vars,
	}
	answers := in.Answers.Node
	for _, q := range []struct {
		key      string
		declared bool
	}{{"elicitation", out.Elicitation}, {"sampling", out.Sampling}, {"roots", out.Roots}} {
		if key := answers.Key(q.key); key != nil && !q.declared {
			c.fault(key, syntax.Join(in.Answers.Path, q.key), "a server asks for %s only if it is declared: add capabilities: {%s: true}", q.key, q.key)
		}
	}
	if e := in.Answers.Elicitation; e != nil {
		if e.Action != "" {
			out.action = e.Action
		}
		out.userDelay = c.spread(e.Delay, e.Path+".delay")
		if n := e.Content.Node; n != nil {
			if out.action != defaultAction {
				c.fault(e.Node.Key("content"), e.Path+".content", "content does not go with action: %s, which sends none", out.action)
			}
			b := c.answerBuilder()
			b.value(n, e.Path+".content")
			content := b.finish(placeClient)
			out.content = &content
		}
	}
	out.said = c.sampling(in.Answers.Sampling, &out)
	out.roots = c.roots(&in.Answers)
	return out
}

// sampling compiles the message of the model.
func (c *compiler) sampling(s *grammar.Sampling, out *Client) *paramsTemplate {
	b := c.answerBuilder()
	b.raw("{")
	if s == nil {
		s = &grammar.Sampling{}
	}
	for _, part := range []struct {
		name, key, fallback string
		from                grammar.Template
	}{
		{"text", "text", defaultText, s.Text},
		{"model", "model", defaultModel, s.Model},
		{"reason", "stop_reason", defaultReason, s.StopReason},
	} {
		if b.member(part.name); part.from.Node != nil {
			b.scalar(part.from.Node, syntax.Join(s.Path, part.key))
		} else {
			b.quoted(part.fallback)
		}
	}
	b.raw("}")
	out.aiDelay = c.spread(s.Delay, s.Path+".delay")
	said := b.finish(placeClient + 1)
	return &said
}

func (c *compiler) roots(a *grammar.Answers) *paramsTemplate {
	b := c.answerBuilder()
	b.raw(`{"roots":[`)
	for i, root := range a.Roots {
		if root.Node == nil {
			continue
		}
		if i > 0 {
			b.raw(",")
		}
		path := fmt.Sprintf("%s.roots[%d]", a.Path, i)
		parts := b.scalar(root.Node, path)
		// Specification 2025-11-25, client/roots: a root is a file:// URI.
		if len(parts) > 0 && parts[0].Expr == nil && !isFileURI(parts[0].Text) {
			c.fault(root.Node, path, "a root is a URI that begins with file://")
		}
	}
	b.raw("]}")
	roots := b.finish(placeClient + 2)
	return &roots
}

func isFileURI(text string) bool {
	const scheme = "file://"
	return len(text) >= len(scheme) && text[:len(scheme)] == scheme
}

// answerBuilder builds what is made once a session, before it is opened.
func (c *compiler) answerBuilder() *paramsBuilder {
	return &paramsBuilder{compiler: c, scope: &scope{unknown: map[string]string{
		"iteration": "the client's answers are made once a session",
		"protocol":  "the client's answers are made before the version is negotiated",
		"saved":     "the client's answers are made before any step",
		"args":      "the client's answers belong to no flow",
		"loop":      "the client's answers belong to no flow",
		"data":      "the client's answers belong to no flow",
	}}}
}
