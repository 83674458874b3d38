package mcptest

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Peer is a scripted MCP server. Its zero value speaks every version, hands out
// no server session, has the tool echo and answers what a client must ask. On
// scripts other behaviour. Safe for concurrent use once it serves.
type Peer struct {
	// Versions are those it speaks, newest first; nil means all five.
	Versions []string
	// SessionID is handed out in the answer to initialize; "" hands out none.
	SessionID string

	mu       sync.Mutex
	scripts  map[string][]Answer
	received []Received
	pipes    int                      // served
	replies  map[string]chan struct{} // by id: the client answered
	feed     chan string              // see Frame.OnGet
}

// Received is one message the peer got, or one GET or DELETE.
type Received struct {
	At         time.Time
	HTTPMethod string      // "" over stdio
	Header     http.Header // nil over stdio
	URL        string      // HTTP+SSE: path and query
	Conn       int         // over stdio: which connection it came on, from 1
	Method     string      // JSON-RPC method; "GET" or "DELETE" for those; "" for a response
	ID         string      // as JSON text, "" when there is none
	Batch      []Received  // the messages of an array, whose Method is then "batch"
	Params     json.RawMessage
	Body       string
}

// Answer is what the peer does with one message. In its texts $ID stands for the
// id of the message and $TOKEN for its progress token, both as JSON text, and
// $LAST for its Last-Event-ID header; $1 to $9 stand for the ids of a batch.
type Answer struct {
	Delay  time.Duration
	Result string // JSON text of the result
	Error  string // or: of the error object
	JSON   string // or: of the whole message
	Raw    string // or: the body (HTTP) or output (stdio) as it stands
	// Frames come before the result, each as an SSE event or a line.
	Frames []Frame
	// SSE makes the HTTP answer an event stream even without frames.
	SSE bool
	// Status, Type and Header are for HTTP. Status 0 is 200 for a request and 202
	// for the rest; Type "" is the Content-Type that fits.
	Status int
	Type   string
	Header map[string]string
	// Silent answers with nothing at all: over HTTP until the client goes.
	Silent bool
	// Hold keeps an HTTP stream open until the client goes.
	Hold bool
	// Feed keeps a GET stream open for the frames that other answers have for it.
	Feed bool
	// Cut breaks the connection after what was written: the socket, or both pipes.
	// Over HTTP+SSE it is the stream's.
	Cut bool
	// End ends the stream of HTTP+SSE in order after what was written.
	End bool
	// Lag is how long the POST of HTTP+SSE is answered after the message came.
	Lag time.Duration
}

// Frame is one SSE event or line.
type Frame struct {
	Delay time.Duration
	JSON  string
	Event string // SSE: name
	ID    string // SSE: id
	Raw   string // instead of all these: as it stands
	// Await is the id, as JSON text, of a request in the frame: the peer goes on
	// when the client has answered it.
	Await string
	// OnGet sends it, over HTTP, on the GET stream with a Feed, of which there is one.
	OnGet bool
}

// Versions lists the five protocol versions, newest first.
var Versions = []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// On scripts the answers to a method, or to "GET", "DELETE" and "batch": one for each time
// it comes, the last one for all that follow.
func (p *Peer) On(method string, answers ...Answer) *Peer {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.scripts == nil {
		p.scripts = make(map[string][]Answer)
	}
	p.scripts[method] = answers
	return p
}

// feeding returns the channel to the GET stream with a Feed.
func (p *Peer) feeding() chan string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.feed == nil {
		p.feed = make(chan string)
	}
	return p.feed
}

// Received returns what came so far, only the given methods if there are any.
func (p *Peer) Received(methods ...string) []Received {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(methods) == 0 {
		return slices.Clone(p.received)
	}
	var some []Received
	for _, r := range p.received {
		if slices.Contains(methods, r.Method) {
			some = append(some, r)
		}
	}
	return some
}

// Methods returns the methods of what came so far, in order; responses are "".
func (p *Peer) Methods() []string {
	var all []string
	for _, r := range p.Received() {
		all = append(all, r.Method)
	}
	return all
}

// take records a message and decides on its answer.
func (p *Peer) take(r Received) Answer {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.received = append(p.received, r)
	if r.Method == "" && r.ID != "" {
		select {
		case p.replied(r.ID) <- struct{}{}:
		default: // nobody will ever ask
		}
	}
	if a, ok := p.scripted(r.Method); ok {
		return p.withSession(r, a)
	}
	return p.withSession(r, p.standard(r))
}

// replied returns the channel on which it is told that the client answered a
// request of the peer. The caller holds p.mu.
func (p *Peer) replied(id string) chan struct{} {
	if p.replies == nil {
		p.replies = make(map[string]chan struct{})
	}
	if p.replies[id] == nil {
		p.replies[id] = make(chan struct{}, 1024)
	}
	return p.replies[id]
}

// await waits for the client's answer to the frame's request, if it is to; false
// when ctx ended first.
func (p *Peer) await(ctx context.Context, f *Frame, r Received) bool {
	if f.Await == "" {
		return true
	}
	p.mu.Lock()
	replied := p.replied(fill(f.Await, r))
	p.mu.Unlock()
	select {
	case <-replied:
		return true
	case <-ctx.Done():
		return false
	}
}

// scripted returns the next answer of a script, if there is one. The caller holds p.mu.
func (p *Peer) scripted(method string) (a Answer, ok bool) {
	script := p.scripts[method]
	if len(script) == 0 {
		return Answer{}, false
	}
	if len(script) > 1 {
		p.scripts[method] = script[1:]
	}
	return script[0], true
}

func (p *Peer) withSession(r Received, a Answer) Answer {
	if r.Method != "initialize" || p.SessionID == "" || a.Status >= 300 {
		return a
	}
	header := map[string]string{"Mcp-Session-Id": p.SessionID}
	maps.Copy(header, a.Header)
	a.Header = header
	return a
}

func (p *Peer) standard(r Received) Answer {
	switch r.Method {
	case "initialize":
		return Answer{Result: p.InitializeResult(member(r.Params, "protocolVersion"))}
	case "server/discover":
		list, err := json.Marshal(p.versions())
		if err != nil {
			list = []byte("[]") // strings always encode
		}
		return Answer{Result: `{"resultType":"complete","supportedVersions":` + string(list) +
			`,"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private",` +
			`"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"peer","version":"1"}}}`}
	case "ping":
		return Answer{Result: `{}`}
	case "tools/list":
		return Answer{Result: `{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}`}
	case "tools/call":
		return Answer{Result: `{"content":[{"type":"text","text":"ok"}]}`}
	case "batch":
		return p.each(r.Batch)
	case "GET", "DELETE":
		if r.Method == "DELETE" && p.SessionID != "" {
			return Answer{Status: http.StatusNoContent}
		}
		return Answer{Status: http.StatusMethodNotAllowed}
	}
	if r.ID == "" || r.Method == "" {
		return Answer{}
	}
	return Answer{Error: `{"code":-32601,"message":"Method not found"}`}
}

// each answers a batch by one array, last to first, with what answers each message
// alone. The caller holds p.mu.
func (p *Peer) each(all []Received) Answer {
	var answers []string
	for _, r := range slices.Backward(all) {
		a, ok := p.scripted(r.Method)
		if !ok {
			a = p.standard(r)
		}
		if m := a.message(r); m != "" {
			answers = append(answers, m)
		}
	}
	if answers == nil {
		return Answer{}
	}
	return Answer{JSON: "[" + strings.Join(answers, ",") + "]"}
}

func (p *Peer) versions() []string {
	if p.Versions == nil {
		return Versions
	}
	return p.Versions
}

// InitializeResult is the standard result: the version asked for when the peer
// speaks it, its newest legacy one otherwise.
func (p *Peer) InitializeResult(asked string) string {
	version := ""
	for _, v := range p.versions() {
		if v != "2026-07-28" && (version == "" || v == asked) {
			version = v
		}
	}
	return `{"protocolVersion":"` + version + `","capabilities":{"tools":{}},"serverInfo":{"name":"peer","version":"1"}}`
}

// message returns the JSON-RPC message of an answer, "" when it has none.
func (a *Answer) message(r Received) string {
	switch {
	case a.JSON != "":
		return fill(a.JSON, r)
	case a.Result != "":
		return fill(`{"jsonrpc":"2.0","id":$ID,"result":`+a.Result+`}`, r)
	case a.Error != "":
		return fill(`{"jsonrpc":"2.0","id":$ID,"error":`+a.Error+`}`, r)
	}
	return ""
}

// fill puts what a message brought into a text.
func fill(text string, r Received) string {
	var params struct {
		Meta struct {
			Token json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	}
	token := "null"
	if json.Unmarshal(r.Params, &params) == nil && params.Meta.Token != nil {
		token = string(params.Meta.Token)
	}
	pairs := []string{"$ID", r.ID, "$TOKEN", token, "$LAST", r.Header.Get("Last-Event-Id")}
	for i, one := range r.Batch {
		pairs = append(pairs, "$"+strconv.Itoa(i+1), one.ID)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// member returns a string member of a JSON object, "" when there is none.
func member(object json.RawMessage, name string) string {
	var m map[string]json.RawMessage
	var s string
	if json.Unmarshal(object, &m) != nil || json.Unmarshal(m[name], &s) != nil {
		return ""
	}
	return s
}

// decode splits a message; a body that is none has no method.
func decode(body []byte) Received {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	r := Received{At: time.Now(), Body: string(body)}
	var all []json.RawMessage
	if json.Unmarshal(body, &all) == nil && all != nil {
		r.Method = "batch"
		for _, one := range all {
			r.Batch = append(r.Batch, decode(one))
		}
		return r
	}
	if json.Unmarshal(body, &m) == nil {
		r.ID, r.Method, r.Params = string(m.ID), m.Method, m.Params
	}
	return r
}
