package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"mcpbench/mcp"
)

func opSampling(ctx context.Context, r *row) error {
	return r.asks(ctx, r.sampling, "sampling/createMessage", "sampling")
}

func opRoots(ctx context.Context, r *row) error {
	return r.asks(ctx, r.roots, "roots/list", "roots")
}

func opElicitation(ctx context.Context, r *row) error {
	return r.asks(ctx, r.elicitation, "elicitation/create", "elicitation")
}

func opURL(ctx context.Context, r *row) error {
	return r.asks(ctx, r.link, "elicitation/create", `"url"`)
}

// asks calls a tool that asks for something which the client declares by a word in
// its capabilities.
func (r *row) asks(ctx context.Context, a asked, method, word string) error {
	if !strings.Contains(string(r.version.Capabilities(true, true, true)), word) {
		return skip("the version cannot declare " + strings.Trim(word, `"`))
	}
	before := r.count(method, false)
	reply, err := r.tool(ctx, a.tool, a.arguments, nil)
	said := words(reply)
	if err != nil {
		said = err.Error()
	}
	for _, lack := range []string{"session does not support", "stateless servers cannot", "stateless server cannot"} {
		if strings.Contains(said, lack) {
			return skip("the server says that its " + lack + " this")
		}
	}
	if err := right(a, reply, err); err != nil {
		return err
	}
	rounds := 1
	if !r.version.Features().ServerRequests {
		rounds = 2 // the question is an answer, and the call is made again
	}
	// A server may remember what it asked before.
	asked := r.count(method, false) - before
	if reply.Rounds != rounds || asked != 1 && r.count(method, false) == 0 {
		return fmt.Errorf("%d rounds, asked %d times", reply.Rounds, asked)
	}
	return nil
}

// count returns how often the server asked by this method.
func (r *row) count(method string, refused bool) (count int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.asked {
		if a.Method == method && a.Refused == refused && !a.Cancelled {
			count++
		}
	}
	return count
}

// opUndeclared has a session of its own that declares nothing, though it could answer.
func opUndeclared(ctx context.Context, r *row) error {
	s, err := r.connect(ctx, r.undeclared())
	if err != nil {
		return err
	}
	shared := r.s
	r.s = s
	defer func() { r.s = shared }()
	before := r.count("sampling/createMessage", true)
	reply, err := r.tool(ctx, r.sampling.tool, r.sampling.arguments, nil)
	verdict := r.notAsked(ctx, reply, err, r.count("sampling/createMessage", true)-before)
	if err := s.Close(ctx); err != nil {
		return err
	}
	return verdict
}

// undeclared are options without capabilities. What is refused is what the operation
// is about, and not an oddity.
func (r *row) undeclared() mcp.Options {
	o := r.options(false)
	tell := o.OnAnomaly
	o.OnAnomaly = func(kind mcp.Anomaly, detail string) {
		if kind != mcp.AnomalyServerRequestRefused {
			tell(kind, detail)
		}
	}
	return o
}

func (r *row) notAsked(ctx context.Context, reply mcp.Reply, err error, refusals int) error {
	fault, ok := errors.AsType[*mcp.ProtocolError](err)
	said := words(reply)
	if err != nil {
		said = err.Error()
	}
	switch {
	case err == nil && !reply.ToolError:
		return fmt.Errorf("it was answered: %s", reply.Result)
	case ok && fault.Kind == mcp.FaultInputRequired && !r.version.Features().ServerRequests:
		return nil
	case refusals == 1:
		return nil // with -32601, as the tests of the client show
	case strings.Contains(said, "session does not support"), strings.Contains(said, "stateless servers cannot"):
		return skip("the server says that it cannot ask")
	}
	names, listed := r.names(ctx, "tools/list", "tools", "name")
	if listed == nil && !slices.Contains(names, r.sampling.tool) {
		return skip("the server hides the tool from clients that do not declare sampling")
	}
	return fmt.Errorf("%d refusals, %s", refusals, said)
}

// opClose ends the session: nothing of it may be left.
func opClose(ctx context.Context, r *row) error {
	if r.s == nil {
		return errors.New("there is no session")
	}
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := r.s.Close(bounded); err != nil {
		return err
	}
	if reply, err := r.call(ctx, "tools/list", "{}", nil); err == nil {
		return fmt.Errorf("a request after the end: %s", reply.Result)
	}
	if r.transport == "stdio" {
		if n := processesWith(r.t, r.mark); n > 0 {
			return fmt.Errorf("%d processes of the server are left", n)
		}
	}
	for began := time.Now(); r.goroutines() > 1; { // one is ours
		if time.Since(began) > 2*time.Second {
			return fmt.Errorf("%d goroutines are left", r.goroutines()-1)
		}
		time.Sleep(10 * time.Millisecond) // the runtime's own bookkeeping of ended goroutines
	}
	return nil
}
