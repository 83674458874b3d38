package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// paramField is what the name of a header for an argument begins with.
const paramField = "Mcp-Param-"

// relistAfter is how long a list of tools counts as fresh when a server says that
// a header does not fit.
const relistAfter = time.Second

// ParamHeaders knows which arguments of a server's tools go into headers too:
// those whose schema has x-mcp-header (specification 2026-07-28, basic/transports,
// "Custom headers from tool parameters"). All sessions of one server share one. The
// first session in a version with such headers lists the tools for all, and after
// a call that was refused for its headers (-32020) the tools are listed anew for
// later calls; the refused one is not repeated. The zero value is ready for use,
// also concurrently.
type ParamHeaders struct {
	tools    atomic.Pointer[map[string][]paramHeader]
	requests atomic.Int64

	mu      sync.Mutex    // guards the fields below
	first   chan struct{} // closed when the tools were listed for the first time; nil before
	listing bool          // for another time
	listed  time.Time
}

// paramHeader is one argument that has a header.
type paramHeader struct {
	field string   // Mcp-Param-Region
	path  []string // of the members that lead to the argument
	kind  string   // string, integer or boolean
}

// headerRuleError is why a tool must not be used over HTTP.
type headerRuleError struct{ what string }

func (e *headerRuleError) Error() string { return e.what }

// load lists the tools unless that was tried, or is being tried, which it waits for.
// What fails is an anomaly: calls then go without such headers, and the server says
// what it thinks of that.
func (h *ParamHeaders) load(ctx context.Context, s *Session) {
	h.mu.Lock()
	first, mine := h.first, h.first == nil
	if mine {
		first = make(chan struct{})
		h.first = first
	}
	h.mu.Unlock()
	if !mine {
		select {
		case <-first:
		case <-ctx.Done():
		}
		return
	}
	defer close(first)
	if err := h.list(ctx, s); err != nil {
		s.o.OnAnomaly(AnomalyToolHeaders, "tools/list: "+err.Error())
		if ctx.Err() != nil {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.first = nil // it was not the server: the next session tries again
		}
	}
}

// list lists the tools and takes over what it finds.
func (h *ParamHeaders) list(ctx context.Context, s *Session) error {
	tools := map[string][]paramHeader{}
	for reply, err := range Pages(ctx, s, Request{Method: "tools/list", Params: []byte("{}"), Timeout: taskLimit}) {
		h.requests.Add(1)
		if err != nil {
			return err
		}
		for name, err := range learn(tools, reply.Result) {
			s.o.OnAnomaly(AnomalyToolHeaders, fmt.Sprintf("tool %s: %v", name, err))
		}
	}
	h.tools.Store(&tools)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listed = time.Now()
	return nil
}

// refused is called after -32020. It lists the tools anew unless that is being
// done or was done just now.
func (h *ParamHeaders) refused(s *Session) {
	h.mu.Lock()
	due := !h.listing && time.Since(h.listed) >= relistAfter
	h.listing = h.listing || due
	h.mu.Unlock()
	c, ok := s.conn.(*httpConn)
	if !due || !ok {
		return
	}
	started := c.spawn(func(ctx context.Context) {
		if err := h.list(ctx, s); err != nil {
			s.o.OnAnomaly(AnomalyToolHeaders, "tools/list: "+err.Error())
		}
		h.over()
	})
	if !started {
		h.over()
	}
}

// Requests counts the requests by which tools were listed, which nobody else sees.
func (h *ParamHeaders) Requests() int64 { return h.requests.Load() }

func (h *ParamHeaders) over() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listing = false
}

// appendTo appends the headers of a call to fields. params are those of
// tools/call, name is the tool's if the caller knows it.
func (h *ParamHeaders) appendTo(fields []headerField, name string, params []byte) []headerField {
	tools := h.tools.Load()
	if tools == nil || len(*tools) == 0 {
		return fields
	}
	if name == "" {
		name, _ = lookupString(params, "name")
	}
	headers := (*tools)[name]
	if len(headers) == 0 {
		return fields
	}
	arguments := lookup(params, "arguments")
	for i := range headers {
		if value, ok := headers[i].value(arguments); ok {
			fields = append(fields, headerField{headers[i].field, value})
		}
	}
	return fields
}

// value returns the header's value; ok is false when the argument is absent, null
// or not of its kind: what the server then says of the argument is its business.
func (p *paramHeader) value(arguments []byte) (value string, ok bool) {
	raw := arguments
	for _, key := range p.path {
		if len(raw) == 0 || raw[0] != '{' {
			return "", false
		}
		raw = lookup(raw, key)
	}
	switch p.kind {
	case "string":
		value, ok = text(raw)
		return encodeHeader(value), ok
	case "integer":
		n, ok := integer(raw)
		return strconv.FormatInt(n, 10), ok
	default:
		return string(raw), string(raw) == "true" || string(raw) == "false"
	}
}

// integer reads a JSON number that is a whole one, as -7, 7.0 or 7e0 are, within
// ±(2^53-1).
func integer(raw []byte) (int64, bool) {
	const most = 1<<53 - 1
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		f, ferr := strconv.ParseFloat(string(raw), 64)
		if ferr != nil || f < -most || f > most || f != float64(int64(f)) {
			return 0, false
		}
		n = int64(f)
	}
	return n, n >= -most && n <= most
}

// learn takes over the tools of one page that have such headers, and returns
// those that break the rules: a client must not use them over HTTP.
func learn(tools map[string][]paramHeader, result []byte) map[string]error {
	if !bytes.Contains(result, []byte("x-mcp-header")) {
		return nil
	}
	var page struct {
		Tools []struct {
			Name   string         `json:"name"`
			Schema map[string]any `json:"inputSchema"`
		} `json:"tools"`
	}
	if json.Unmarshal(result, &page) != nil {
		return nil // whoever asked for the list will tell
	}
	var bad map[string]error
	for _, t := range page.Tools {
		s := schemaWalk{names: map[string]bool{}}
		if err := s.object(t.Schema, nil); err != nil {
			if bad == nil {
				bad = map[string]error{}
			}
			bad[t.Name] = err
			continue
		}
		if len(s.found) > 0 {
			tools[t.Name] = s.found
		}
	}
	return bad
}

// schemaWalk collects the headers of one schema.
type schemaWalk struct {
	found []paramHeader
	names map[string]bool // in lower case
}

// object looks at a schema that is reached by properties alone.
func (s *schemaWalk) object(schema map[string]any, path []string) error {
	for _, key := range slices.Sorted(maps.Keys(schema)) {
		switch key {
		case "x-mcp-header":
			if len(path) == 0 {
				return &headerRuleError{"x-mcp-header is on the schema itself"}
			}
		case "properties":
			properties, _ := schema[key].(map[string]any)
			for _, name := range slices.Sorted(maps.Keys(properties)) {
				if err := s.property(properties[name], append(slices.Clip(path), name)); err != nil {
					return err
				}
			}
		case "default", "examples", "enum", "const", "description", "title":
			// values, not schemas
		default:
			if mentions(schema[key]) {
				return &headerRuleError{fmt.Sprintf("x-mcp-header is below %q, where it cannot be reached by properties alone", key)}
			}
		}
	}
	return nil
}

func (s *schemaWalk) property(value any, path []string) error {
	schema, ok := value.(map[string]any)
	if !ok {
		return nil // true or false
	}
	if raw, has := schema["x-mcp-header"]; has {
		name, _ := raw.(string)
		kind, _ := schema["type"].(string)
		where := strings.Join(path, ".")
		switch {
		case !isToken(name):
			return &headerRuleError{fmt.Sprintf("argument %s: x-mcp-header %q is no token", where, raw)}
		case s.names[strings.ToLower(name)]:
			return &headerRuleError{fmt.Sprintf("argument %s: x-mcp-header %q is there twice", where, name)}
		case kind != "string" && kind != "integer" && kind != "boolean":
			return &headerRuleError{fmt.Sprintf("argument %s: x-mcp-header on type %q", where, kind)}
		}
		s.names[strings.ToLower(name)] = true
		s.found = append(s.found, paramHeader{field: paramField + name, path: path, kind: kind})
	}
	return s.object(schema, path)
}

// mentions reports whether x-mcp-header is a key anywhere in a value.
func mentions(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if key == "x-mcp-header" || mentions(inner) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, mentions)
	}
	return false
}

// HeaderRules returns why a client must not use a tool over HTTP, nil when it
// may: the rules for x-mcp-header in its input schema, for those who show lists.
func HeaderRules(inputSchema []byte) error {
	if !bytes.Contains(inputSchema, []byte("x-mcp-header")) {
		return nil
	}
	var schema map[string]any
	if err := json.Unmarshal(inputSchema, &schema); err != nil {
		return err
	}
	return (&schemaWalk{names: map[string]bool{}}).object(schema, nil)
}

// headersRefused reports whether err is -32020: a header does not fit the message.
func headersRefused(err error) bool {
	e, ok := errors.AsType[*RPCError](err)
	return ok && e.Code == codeHeaderMismatch
}

// hint returns what the error's data says of the way out, for those errors of
// which a client knows it.
func (e *RPCError) hint() string {
	switch e.Code {
	case codeMissingCapability:
		var data struct {
			Required map[string]json.RawMessage `json:"requiredCapabilities"`
		}
		if json.Unmarshal(e.Data, &data) == nil && len(data.Required) > 0 {
			return "; the client would have to declare " + strings.Join(slices.Sorted(maps.Keys(data.Required)), ", ")
		}
	case codeUnsupportedVersion:
		var data struct {
			Supported []string `json:"supported"`
		}
		if json.Unmarshal(e.Data, &data) == nil && len(data.Supported) > 0 {
			return "; the server offers " + joinVersions(data.Supported)
		}
	}
	return e.toOpen()
}
