package mcp

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
)

// Keys of params._meta that every 2026-07-28 request carries (specification
// 2026-07-28, basic/index, _meta).
const (
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaClientInfo   = "io.modelcontextprotocol/clientInfo"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	metaLogLevel     = "io.modelcontextprotocol/logLevel" // only when it is asked for
)

// envelope turns a Request into the JSON-RPC message of the negotiated version
// and numbers requests from 1. Safe for concurrent use once setVersion returned.
type envelope struct {
	lastID atomic.Int64
	rules  atomic.Pointer[rules]
	client Implementation
	caps   json.RawMessage
}

// rules are what a negotiated version makes of a message.
type rules struct {
	Features
	version Version
	meta    []metaMember
}

// metaMember is one member of params._meta, raw says `"key":value`.
type metaMember struct {
	key string
	raw []byte
}

func newEnvelope(o *Options) *envelope {
	e := &envelope{client: o.Client, caps: o.Capabilities}
	e.rules.Store(&rules{Features: newestLegacy.Features(), version: ""})
	return e
}

// setVersion switches to the rules of v.
func (e *envelope) setVersion(v Version) {
	r := &rules{Features: v.Features(), version: v}
	if r.RequestMeta {
		client, err := json.Marshal(e.client)
		if err != nil {
			client = []byte("{}") // two strings always encode
		}
		for _, m := range []metaMember{
			{metaVersion, strconv.AppendQuote(nil, string(v))},
			{metaClientInfo, client},
			{metaCapabilities, e.caps},
		} {
			m.raw = append([]byte(`"`+m.key+`":`), m.raw...)
			r.meta = append(r.meta, m)
		}
	}
	e.rules.Store(r)
}

func (e *envelope) current() *rules { return e.rules.Load() }

func (e *envelope) nextID() int64 { return e.lastID.Add(1) }

// appendRequest appends the message to dst.
func (r *rules) appendRequest(dst []byte, id int64, req *Request) ([]byte, error) {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = strconv.AppendInt(dst, id, 10)
	dst = append(dst, `,"method":`...)
	dst = appendString(dst, req.Method)
	if req.Params == nil && !r.RequestMeta {
		return append(dst, '}'), nil
	}
	dst = append(dst, `,"params":`...)
	dst, err := r.appendParams(dst, req.Params)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", req.Method, err)
	}
	return append(dst, '}'), nil
}

// appendNotification appends a notification to dst.
func appendNotification(dst []byte, method string, params json.RawMessage) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","method":`...)
	dst = appendString(dst, method)
	if params != nil {
		dst = append(dst, `,"params":`...)
		dst = append(dst, params...)
	}
	return append(dst, '}')
}

var errParams = errors.New("params are not a JSON object")

// appendParams appends params with the version's _meta members spliced in.
// Members that params._meta already has stay as the caller wrote them.
func (r *rules) appendParams(dst, params []byte) ([]byte, error) {
	params = bytes.TrimSpace(params)
	if len(params) == 0 {
		params = []byte("{}")
	}
	if params[0] != '{' || params[len(params)-1] != '}' {
		return nil, errParams
	}
	if !r.RequestMeta {
		return append(dst, params...), nil
	}
	if bytes.Contains(params, []byte(`"_meta"`)) {
		s := scanObject(params)
		for m, ok := s.next(); ok; m, ok = s.next() {
			if m.named("_meta") {
				return r.spliceMeta(dst, params, m)
			}
		}
	}
	dst = append(dst, params[:len(params)-1]...)
	if skipSpace(params, 1) < len(params)-1 {
		dst = append(dst, ',')
	}
	dst = append(dst, `"_meta":{`...)
	for i, m := range r.meta {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, m.raw...)
	}
	return append(dst, "}}"...), nil
}

func (r *rules) spliceMeta(dst, params []byte, m member) ([]byte, error) {
	old := params[m.start:m.end]
	if old[0] != '{' {
		return nil, errors.New("params._meta is not a JSON object")
	}
	dst = append(dst, params[:m.start]...)
	dst = append(dst, '{')
	for _, ours := range r.meta {
		if lookup(old, ours.key) == nil {
			dst = append(dst, ours.raw...)
			dst = append(dst, ',')
		}
	}
	rest := old[skipSpace(old, 1):]
	if rest[0] == '}' && dst[len(dst)-1] == ',' {
		dst = dst[:len(dst)-1]
	}
	dst = append(dst, rest...)
	return append(dst, params[m.end:]...), nil
}

// setMember appends object to dst with the member key set to the raw value, in
// place of any it has. The object must be a JSON object or empty.
func setMember(dst, object []byte, key string, raw []byte) ([]byte, error) {
	object = bytes.TrimSpace(object)
	if len(object) == 0 {
		object = []byte("{}")
	}
	if object[0] != '{' || object[len(object)-1] != '}' {
		return nil, errParams
	}
	dst = append(dst, '{')
	dst = appendString(dst, key)
	dst = append(dst, ':')
	dst = append(dst, raw...)
	s := scanObject(object)
	for m, ok := s.next(); ok; m, ok = s.next() {
		if !m.named(key) {
			dst = append(dst, ',')
			dst = append(dst, object[m.at:m.end]...)
		}
	}
	return append(dst, '}'), nil
}

// appendString appends s as a JSON string. Method names are plain ASCII; the
// slow path is for what a user may make up.
func appendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, err := json.Marshal(s)
			if err != nil {
				quoted = []byte(`""`) // a string always encodes
			}
			return append(dst, quoted...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

// Header fields of 2026-07-28 that differ from message to message.
const (
	methodField = "Mcp-Method"
	nameField   = "Mcp-Name"
)

// nameMembers tells which member of params names the thing that a method works
// on, for the Mcp-Name header (specification 2026-07-28, basic/transports,
// standard headers; SEP-2663 for the tasks extension).
var nameMembers = map[string]string{
	"tools/call":     "name",
	"prompts/get":    "name",
	"resources/read": "uri",
	"tasks/get":      "taskId",
	"tasks/update":   "taskId",
	"tasks/cancel":   "taskId",
}

// nameHeader returns the value of Mcp-Name for req; ok is false when the
// request has none.
func nameHeader(req *Request) (value string, ok bool) {
	key, has := nameMembers[req.Method]
	if !has {
		return "", false
	}
	if req.Name != "" {
		return encodeHeader(req.Name), true
	}
	s, ok := lookupString(req.Params, key)
	return encodeHeader(s), ok
}

// checkMethod refuses a method that cannot stand in Mcp-Method, where that is sent: it
// has no encoding (specification 2026-07-28, basic/transports, standard headers).
func (r *rules) checkMethod(method string) error {
	if r.MethodHeaders && encodeHeader(method) != method {
		return fmt.Errorf("method %q: it cannot stand in the header %s", method, methodField)
	}
	return nil
}

// encodeHeader writes a string as a header value: plain when it is printable
// ASCII without outer blanks and does not look encoded itself, otherwise as
// =?base64?…?= of its UTF-8 (specification 2026-07-28, basic/transports, value
// encoding).
func encodeHeader(s string) string {
	const prefix, suffix = "=?base64?", "?="
	plain := strings.Trim(s, " \t") == s && (!strings.HasPrefix(s, prefix) || !strings.HasSuffix(s, suffix))
	for i := 0; plain && i < len(s); i++ {
		plain = s[i] == '\t' || s[i] >= 0x20 && s[i] <= 0x7e
	}
	if plain {
		return s
	}
	return prefix + base64.StdEncoding.EncodeToString([]byte(s)) + suffix
}
