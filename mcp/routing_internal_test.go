package mcp

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

// routed is what came of one message.
type routed struct {
	replies   []string // sent to the server
	questions []string // methods the Answerer was asked
	settled   bool     // our request with id 1 got its answer
	failed    bool     // by an error
	asked     []Asked
	progress  int
	anomalies map[Anomaly]int
}

// allAnswer answers every question and notes it. Only the test's goroutine reads it
// after the desk has ended.
type allAnswer struct{ r *routed }

func (a allAnswer) Answer(_ context.Context, q Question) (json.RawMessage, error) {
	a.r.questions = append(a.r.questions, q.Method)
	return json.RawMessage(`{"q":1}`), nil
}

// routeOptions are those of a session that records into r.
func routeOptions(r *routed, capabilities string) Options {
	r.anomalies = make(map[Anomaly]int)
	return (Options{
		Base: time.Now(), Capabilities: json.RawMessage(capabilities), Answers: allAnswer{r},
		OnAsked:   func(a Asked) { r.asked = append(r.asked, a) },
		OnAnomaly: func(a Anomaly, _ string) { r.anomalies[a]++ },
	}).withDefaults()
}

// recording returns an inbox whose answers go nowhere but into r.
func recording(o *Options, env *envelope, r *routed) inbox {
	note := func(payload []byte) { r.replies = append(r.replies, string(payload)) }
	return newInbox(o, env, note, func(payload []byte) error { note(payload); return nil })
}

// routePipe routes a message over stdio, with a request of id 1 in flight.
func routePipe(v Version, capabilities string, data []byte) *routed {
	r := new(routed)
	o := routeOptions(r, capabilities)
	c := &pipeConn{router: newRouter(&o, newEnvelope(&o), AnomalyStdoutNoise)}
	c.env.setVersion(v)
	in := recording(&c.o, c.env, r)
	c.carrier, c.inbox = c, &in
	k := c.begin(&Request{Method: "tools/call"})
	k.sent = 0
	c.message(&textLine{text: data}, slices.Clone(data), nil)
	c.inbox.desk.wait()
	r.settled, r.failed, r.progress = k.answered, k.err != nil, k.reply.Progress
	return r
}

// routeHTTP routes the same as an event of the stream of such a request.
func routeHTTP(v Version, capabilities string, data []byte) *routed {
	r := new(routed)
	c := &httpConn{o: routeOptions(r, capabilities)}
	c.env = newEnvelope(&c.o)
	c.tokens.o, c.tokens.env = &c.o, c.env
	c.env.setVersion(v)
	c.inbox = recording(&c.o, c.env, r)
	x := &exchange{conn: c, rules: c.env.current(), id: 1}
	done, err := x.message(slices.Clone(data))
	c.inbox.desk.wait()
	r.settled, r.failed, r.progress = done, err != nil, x.reply.Progress
	return r
}

// FuzzRouting: whatever a server sends, of each kind, with each id and params, in
// each version, is taken for what it is: a request, and nothing else, is answered,
// exactly once and under its own id; only what was declared reaches the Answerer;
// only a response settles our request.
func FuzzRouting(f *testing.F) {
	ids := []string{`1`, `0`, `"1"`, `1.0`, `null`, `{"a":1}`, `[1]`, `true`, `"\u0031"`, ``}
	methods := []string{`"ping"`, `"roots/list"`, `"sampling/createMessage"`, `"elicitation/create"`, `"no/such"`, `"notifications/cancelled"`, `"notifications/progress"`, `7`, `null`, ``}
	params := []string{``, `null`, `{}`, `[]`, `{"mode":"url"}`, `{"mode":"form","requestedSchema":{}}`, `{"tools":[]}`, `{"requestId":1}`, `{"progressToken":1,"progress":0}`}
	for i, id := range ids {
		for j, method := range methods {
			f.Add(uint8(i+j), id, method, params[(i+j)%len(params)], ``, uint8(i))
			f.Add(uint8(j), id, method, params[(2*i+j)%len(params)], ``, uint8(2))
		}
		f.Add(uint8(i), id, ``, ``, `"result":{}`, uint8(2))
		f.Add(uint8(i), id, ``, ``, `"error":{"code":1,"message":""}`, uint8(2))
	}
	declared := []string{`{}`, `{"roots":{}}`, `{"roots":{},"sampling":{"tools":{}},"elicitation":{"form":{},"url":{}}}`, `{"sampling":{},"elicitation":{}}`}
	f.Fuzz(func(t *testing.T, version uint8, id, method, params, rest string, capabilities uint8) {
		v := Versions()[int(version)%len(Versions())]
		caps := declared[int(capabilities)%len(declared)]
		text := `{"jsonrpc":"2.0"`
		for _, m := range []struct{ name, value string }{{"id", id}, {"method", method}, {"params", params}} {
			if m.value != "" {
				if !json.Valid([]byte(m.value)) || strings.TrimSpace(m.value) != m.value {
					return
				}
				text += `,"` + m.name + `":` + m.value
			}
		}
		if rest != "" {
			text += "," + rest
		}
		text += "}"
		var members map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &members) != nil {
			return
		}
		pipe, http := routePipe(v, caps, []byte(text)), routeHTTP(v, caps, []byte(text))
		checkRouting(t, v, members, pipe)
		checkRouting(t, v, members, http)
		if !slices.Equal(pipe.replies, http.replies) || !slices.Equal(pipe.questions, http.questions) {
			t.Errorf("%s: over stdio %+v, over HTTP %+v", text, pipe, http)
		}
	})
}

func checkRouting(t *testing.T, v Version, members map[string]json.RawMessage, r *routed) {
	t.Helper()
	method, id := members["method"], members["id"]
	switch {
	case method != nil && id != nil && v == V20260728:
		if len(r.replies)+len(r.questions)+len(r.asked) != 0 || r.anomalies[AnomalyServerRequestForbidden] != 1 {
			t.Errorf("a request in %s: %+v", v, r)
		}
	case method != nil && id != nil:
		checkAnswered(t, v, members, r)
	case len(r.replies)+len(r.questions)+len(r.asked) != 0:
		t.Errorf("what is no request was answered: %+v", r)
	}
	if method != nil && r.settled {
		t.Errorf("it settled our request: %+v", r)
	}
	if r.progress != 0 && (id != nil || string(method) == "") {
		t.Errorf("it counts as progress: %+v", r)
	}
}

// checkAnswered checks what came of a request in a version that has them.
func checkAnswered(t *testing.T, v Version, members map[string]json.RawMessage, r *routed) {
	t.Helper()
	if len(r.replies) != 1 || len(r.asked) != 1 || len(r.questions) > 1 {
		t.Fatalf("a request in %s: %+v", v, r)
	}
	var reply map[string]json.RawMessage
	if err := json.Unmarshal([]byte(r.replies[0]), &reply); err != nil {
		t.Fatalf("%v in %s", err, r.replies[0])
	}
	if string(reply["id"]) != string(members["id"]) || string(reply["jsonrpc"]) != `"2.0"` || (reply["result"] == nil) == (reply["error"] == nil) {
		t.Errorf("answered %s", r.replies[0])
	}
	var method string
	_ = json.Unmarshal(members["method"], &method) // then it is ""
	refused := reply["error"] != nil
	if refused != r.asked[0].Refused || refused != (r.anomalies[AnomalyServerRequestRefused] == 1) || r.asked[0].Method != method {
		t.Errorf("told %+v, anomalies %v, answered %s", r.asked, r.anomalies, r.replies[0])
	}
	switch {
	case method == "ping" && !refused && string(reply["result"]) != `{}`:
		t.Errorf("ping was answered %s", r.replies[0])
	case method != "ping" && refused == (len(r.questions) == 1):
		t.Errorf("asked %v, answered %s", r.questions, r.replies[0])
	case len(r.questions) == 1 && serverRequests[method] == 0:
		t.Errorf("the Answerer was asked %s", method)
	}
}

// FuzzInputRequired: a result that asks for input is refused or leads to a retry
// that is the same request with every answer and the state as it came.
func FuzzInputRequired(f *testing.F) {
	for _, s := range []string{
		`{"inputRequests":{"k":{"method":"roots/list"}},"requestState":"\u00e9\/"}`, `{"requestState":""}`, `{"inputRequests":{}}`,
		`{"inputRequests":{"":{"method":"elicitation/create","params":{"mode":"url"}},"a\"b":{"method":"sampling/createMessage","params":null}},"content":null}`,
		`{"inputRequests":{"k":{"method":"roots/list"},"\u006b":{"method":"roots/list"}},"inputRequests":null}`, `{"inputRequests":[],"requestState":7}`, `{}`,
	} {
		f.Add([]byte(s), []byte(`{"name":"t","requestState":"old","_meta":{"progressToken":1}}`))
		f.Add([]byte(s), []byte(` {} `))
		f.Add([]byte(s), []byte(``))
	}
	may := declared{true, true, true, true, true}
	f.Fuzz(func(t *testing.T, result, params []byte) {
		var asked, call map[string]json.RawMessage
		if json.Unmarshal(result, &asked) != nil || asked == nil || len(params) > 0 && (json.Unmarshal(params, &call) != nil || call == nil) {
			return
		}
		in, err := readInputRequired("tools/call", result, &may, V20260728.Features())
		if err != nil {
			return
		}
		for i := range in.asks {
			in.asks[i].answer = json.RawMessage(`{"n":1}`)
		}
		checkRetry(t, asked, call, in.params(params))
	})
}

// checkRetry checks the params of a retry after a result and the params of the call.
func checkRetry(t *testing.T, asked, call map[string]json.RawMessage, retry []byte) {
	t.Helper()
	member := func(of map[string]json.RawMessage, name string) (m map[string]json.RawMessage) {
		if raw := of[name]; raw != nil {
			if err := json.Unmarshal(raw, &m); err != nil {
				t.Fatalf("%s: %v in %s", name, err, raw)
			}
		}
		return m
	}
	var got map[string]json.RawMessage
	if err := json.Unmarshal(retry, &got); err != nil {
		t.Fatalf("%v in %s", err, retry)
	}
	requests, responses := member(asked, "inputRequests"), member(got, "inputResponses")
	for key := range requests {
		if string(responses[key]) != `{"n":1}` {
			t.Errorf("no answer to %q in %s", key, retry)
		}
	}
	state := string(asked["requestState"])
	if state == "null" {
		state = ""
	}
	if string(got["requestState"]) != state || len(responses) != len(requests) {
		t.Errorf("%s after %s", retry, asked)
	}
	for key, value := range call {
		if key != "inputResponses" && key != "requestState" && string(got[key]) != string(value) {
			t.Errorf("%s is %s, was %s", key, got[key], value)
		}
	}
}
