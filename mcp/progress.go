package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// maxKnownTokens is of how many requests that are over a caller's own token is
	// still known.
	maxKnownTokens = 64
	// maxOrdered is on how many streams the order of one request's progress is watched.
	maxOrdered = 8
	// ownPrefix is what the session's own tokens begin with. They are strings: some
	// servers turn numbers into floating-point ones, or into strings.
	ownPrefix = `"mcpbench-`
)

// tokens ties progress notifications to the running requests whose token they bear,
// wherever they arrive (specification 2025-11-25, basic/utilities/progress): servers
// send them on the stream of the request, on the standalone one, or now here, now
// there. A Conn has one; only requests with a token touch it. The zero value
// lacks only o and env. Safe for concurrent use.
type tokens struct {
	o   *Options
	env *envelope

	mu      sync.Mutex
	running map[string]*tracker // by tokenKey
	known   []string            // tokens of requests that are over, a ring
	oldest  int                 // in known
}

// tracker is what a request has that is not plain. While the request runs it
// belongs to tokens.mu, but for bounds.
type tracker struct {
	key    string  // of its token, "" without one
	bounds *bounds // nil: Request.Timeout is all

	over               bool
	notes, good, bytes int // notifications, those in order, size of all
	first, last        time.Duration
	gaps               []time.Duration
	values             []lastValue
}

// lastValue is the progress last heard of on one stream. Between streams there is
// no order.
type lastValue struct {
	stream int64
	value  float64
}

// plain reports whether a request has neither wants nor a token of its caller's.
func plain(req *Request) bool {
	// The one letter is found missing much faster than the word.
	return req.Wants == nil && (bytes.IndexByte(req.Params, 'T') < 0 || !bytes.Contains(req.Params, []byte(`"progressToken"`)))
}

// follow makes a tracker for a request that is not plain, before its message is
// made, and puts into its Params what it wants: a token, a log level. tell cancels it, see bounds.
func (s *tokens) follow(req *Request, id int64, tell func()) (*tracker, error) {
	w := req.Wants
	if w == nil {
		w = &Wants{}
	}
	t := &tracker{}
	// initialize must not be cancelled (specification, basic/utilities/cancellation).
	if req.Method == "initialize" && w.CancelAfter > 0 {
		without := *w
		without.CancelAfter = 0
		w = &without
	}
	if w.IdleTimeout > 0 || w.CancelAfter > 0 {
		t.bounds = newBounds(w, req.Timeout, s.o.now(), tell)
	}
	var err error
	meta := lookup(req.Params, "_meta")
	if w.LogLevel != "" && s.env.current().RequestLogLevel && lookup(meta, metaLogLevel) == nil {
		if req.Params, err = withMeta(req.Params, metaLogLevel, appendString(nil, w.LogLevel)); err != nil {
			return nil, err
		}
	}
	token := lookup(meta, "progressToken")
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case token != nil: // the caller's; of equal ones the latest counts
		t.key = tokenKey(token)
	case w.Progress || w.IdleTimeout > 0: // without a token no progress would come
		token = s.fresh(id)
		t.key = string(token)
		if req.Params, err = withMeta(req.Params, "progressToken", token); err != nil {
			return nil, err
		}
	}
	if t.key != "" {
		if s.running == nil {
			s.running = make(map[string]*tracker)
		}
		s.running[t.key] = t
	}
	return t, nil
}

// fresh returns a token that no running request has.
func (s *tokens) fresh(id int64) []byte {
	token := append(strconv.AppendInt([]byte(ownPrefix), id, 10), '"')
	for s.running[string(token)] != nil {
		token = append(token[:len(token)-1], `x"`...)
	}
	return token
}

// withMeta returns params with a member of _meta set to the raw value.
func withMeta(params []byte, key string, raw []byte) ([]byte, error) {
	meta, err := setMember(nil, lookup(params, "_meta"), key, raw)
	if err != nil {
		return nil, errors.New("params._meta is not a JSON object")
	}
	return setMember(nil, params, "_meta", meta)
}

// tokenKey returns what equal tokens have in common, "" when it is neither a string
// nor a number. A server may write the same token otherwise than it was sent.
func tokenKey(token []byte) string {
	if len(token) == 0 {
		return ""
	}
	if token[0] == '"' {
		if s, ok := text(token); ok {
			return `"` + s + `"`
		}
		return ""
	}
	f, ok := jsonNumber(token)
	if ok && f == math.Trunc(f) && math.Abs(f) <= 1<<53 {
		return strconv.FormatInt(int64(f), 10)
	}
	if ok {
		return string(token)
	}
	return ""
}

// take credits a progress notification to the request whose token it bears and
// returns its tracker, nil when there is none. stream tells apart the streams within
// which the order counts; at is when it arrived.
func (s *tokens) take(m *message, size int, stream int64, at time.Duration) *tracker {
	token := lookup(m.params, "progressToken")
	key := tokenKey(token)
	value, isNumber := jsonNumber(lookup(m.params, "progress"))
	s.mu.Lock()
	t := s.running[key]
	late := t == nil && s.wasKnown(key)
	inOrder := true
	if t != nil {
		if inOrder = isNumber && t.inOrder(stream, value); inOrder {
			t.stamp(at)
		}
		t.notes++
		t.bytes += size
	}
	s.mu.Unlock()
	switch {
	case late:
		s.o.OnAnomaly(AnomalyProgressLate, excerpt(m.params))
	case t == nil:
		s.o.OnAnomaly(AnomalyProgressToken, excerpt(m.params))
	case !inOrder:
		s.o.OnAnomaly(AnomalyProgressValue, excerpt(m.params))
	}
	if t != nil && t.bounds != nil {
		t.bounds.progress(at)
	}
	return t
}

// jsonNumber reads a JSON number.
func jsonNumber(raw json.RawMessage) (float64, bool) {
	if len(raw) == 0 || raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	return f, err == nil
}

// inOrder reports whether a value increases, as far as that can be told: within
// its stream, and never twice the same.
func (t *tracker) inOrder(stream int64, value float64) bool {
	here := -1
	for i, v := range t.values {
		if v.stream == stream {
			here = i
			if value <= v.value {
				return false
			}
		}
		if value == v.value {
			return false
		}
	}
	switch {
	case here >= 0:
		t.values[here].value = value
	case len(t.values) < maxOrdered:
		t.values = append(t.values, lastValue{stream, value})
	}
	return true
}

// stamp times a notification in order.
func (t *tracker) stamp(at time.Duration) {
	if t.good++; t.good == 1 {
		t.first = at
	} else if len(t.gaps) < MaxGaps {
		t.gaps = append(t.gaps, at-t.last)
	}
	t.last = at
}

// wasKnown reports whether a token was that of a request which is over.
func (s *tokens) wasKnown(key string) bool {
	if digits, ok := strings.CutPrefix(key, ownPrefix); ok {
		id, err := strconv.ParseInt(strings.TrimSuffix(digits, `"`), 10, 64)
		if err == nil && id >= 1 && id <= s.env.lastID.Load() {
			return true
		}
	}
	return key != "" && slices.Contains(s.known, key)
}

// end says that a request is over: what comes for it is late, nothing more is due.
// Safe to call again.
func (s *tokens) end(t *tracker) {
	if t.bounds != nil {
		t.bounds.end()
	}
	if t.key == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.over {
		return
	}
	t.over = true
	if s.running[t.key] == t {
		delete(s.running, t.key)
	}
	switch {
	case s.wasKnown(t.key):
	case len(s.known) < maxKnownTokens:
		s.known = append(s.known, t.key)
	default:
		s.known[s.oldest] = t.key
		s.oldest = (s.oldest + 1) % maxKnownTokens
	}
}

// fill adds what came to the reply of a request that is over.
func (s *tokens) fill(t *tracker, r *Reply) {
	if t.key == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Notifications += t.notes
	r.Progress += t.good
	r.BytesIn += t.bytes
	if t.good > 0 {
		r.More = &More{First: t.first, Last: t.last, Gaps: t.gaps}
	}
}
