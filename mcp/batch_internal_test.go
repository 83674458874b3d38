package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// batchOracle says what becomes of the requests 1 to 3 of a batch when such bodies or
// events come, one after another, by encoding/json alone: "result", "error", or
// "" for what was not answered.
func batchOracle(texts []string) (outcomes [3]string) {
	for _, text := range texts {
		var all []json.RawMessage
		if json.Unmarshal([]byte(text), &all) != nil {
			all = []json.RawMessage{json.RawMessage(text)}
		}
		for _, one := range all {
			var m map[string]json.RawMessage
			if json.Unmarshal(one, &m) != nil || m["method"] != nil || m["jsonrpc"] == nil && m["result"] == nil && m["error"] == nil {
				continue // no response
			}
			i := strings.Index("123", string(m["id"]))
			if len(m["id"]) != 1 || i < 0 || outcomes[i] != "" {
				continue
			}
			outcomes[i] = "error"
			if bytes.HasPrefix(m["result"], []byte("{")) && m["error"] == nil && string(m["jsonrpc"]) == `"2.0"` {
				outcomes[i] = "result"
			}
		}
	}
	return outcomes
}

// FuzzBatch: whatever comes in answer to a batch over Streamable HTTP, each of its
// requests has one outcome, that of the first message with its id.
func FuzzBatch(f *testing.F) {
	const one, two, three = `{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":2,"error":{"code":1,"message":""}}`, `{"id":3,"result":{"a":[]},"jsonrpc":"2.0"}`
	for _, seed := range []string{
		"[" + one + "," + two + "," + three + "]", three + "\n[" + two + "]\n[" + one + "]", one, "", "[]", "[[]]", "[1,null,\"x\"," + one + "]",
		"[" + one + "," + one + "]\n" + two, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":""}}`,
		"[" + two + `,{"jsonrpc":"2.0","error":{"code":-32600,"message":""}}]`, `{"jsonrpc":"2.0","id":9,"result":{}}` + "\n" + three,
		`{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n" + one, `{"jsonrpc":"2.0","method":"notifications/message","params":{}}`,
		`[{"jsonrpc":"2.0","id":"1","result":{}},{"jsonrpc":"2.0","id":2,"result":[]},{"id":3,"result":{}}]`, "[" + one, "nonsense\n" + one, `{"log":"x","id":1}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, `\u`) || strings.ContainsAny(text, ".eE") && strings.ContainsAny(text, "+0") {
			return // other spellings of names and numbers, which the oracle does not read
		}
		r := new(routed)
		c := &httpConn{o: routeOptions(r, `{}`)}
		c.env = newEnvelope(&c.o)
		c.tokens.o, c.tokens.env = &c.o, c.env
		c.env.setVersion(V20250326)
		c.inbox = recording(&c.o, c.env, r)
		texts := strings.Split(text, "\n")
		router := newRouter(&c.o, c.env, AnomalyOddEvent)
		router.carrier, router.inbox, router.givenUp, router.tokens = batchCarrier{c}, &c.inbox, &c.givenUp, &c.tokens
		missing := errors.New("missing")
		list := Request{Method: "tools/list"}
		replies := router.batch(t.Context(), []Request{list, list, list}, func(_ context.Context, b *batch) error {
			router.own = b
			router.began(b, 0)
			x := &exchange{conn: c, router: &router, end: -1}
			for i, text := range texts {
				done, err := x.takeBatch([]byte(text))
				if err != nil || done {
					texts = texts[:i+1]
					return err
				}
			}
			return missing
		})
		checkBatch(t, replies, batchOracle(texts), missing)
		if router.calls.used != 0 || len(router.batches) != 0 {
			t.Errorf("%d calls are left, %d batches", router.calls.used, len(router.batches))
		}
	})
}

// checkBatch compares the replies with the outcomes. What was not answered failed,
// as missing or by what the server said of the whole.
func checkBatch(t *testing.T, replies []BatchReply, want [3]string, missing error) {
	t.Helper()
	for i, r := range replies {
		_, refused := errors.AsType[*RPCError](r.Err)
		_, broken := errors.AsType[*ProtocolError](r.Err)
		switch want[i] {
		case "result":
			if r.Err != nil || r.Reply.Result == nil {
				t.Errorf("request %d: %v", i+1, r.Err)
			}
		case "error":
			if !refused && !broken {
				t.Errorf("request %d: %v", i+1, r.Err)
			}
		default:
			if !refused && !broken && !errors.Is(r.Err, missing) {
				t.Errorf("request %d: %v", i+1, r.Err)
			}
		}
	}
}
