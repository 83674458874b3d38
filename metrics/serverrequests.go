package metrics

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// ServerRequestSummary counts what the servers asked of the clients by one
// method, and how long the answers took that were no refusals.
type ServerRequestSummary struct {
	Method     string     `json:"method"`
	Count      int64      `json:"count"`
	Refused    int64      `json:"refused"`    // of these, answered with an error
	Unanswered int64      `json:"unanswered"` // of these, taken back or cut before an answer
	Answer     *Quantiles `json:"answer_ms"`
}

// Reply says what came of a request of a server.
type Reply uint8

// Replies.
const (
	Answered Reply = iota
	Refused
	Unanswered
)

// ServerRequests counts the requests of servers. The zero value is ready. It is
// safe for concurrent use.
type ServerRequests struct {
	mu      sync.Mutex // guards methods
	methods map[string]*serverRequests
}

type serverRequests struct {
	count, refused, unanswered int64
	took                       distribution // of those answered
}

// maxServerMethods bounds the methods that are told apart: a server chooses their names.
const maxServerMethods = 16

// Add counts one request that was over after took.
func (r *ServerRequests) Add(method string, took time.Duration, reply Reply) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.methods[method]
	if m == nil {
		if len(r.methods) >= maxServerMethods {
			method = "other methods"
		}
		if r.methods == nil {
			r.methods = map[string]*serverRequests{}
		}
		if m = r.methods[method]; m == nil {
			m = &serverRequests{}
			r.methods[method] = m
		}
	}
	m.count++
	switch reply {
	case Answered:
		m.took.record(took)
	case Refused:
		m.refused++
	case Unanswered:
		m.unanswered++
	}
}

// Summary returns the counts so far, by method.
func (r *ServerRequests) Summary() []ServerRequestSummary {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []ServerRequestSummary
	for _, method := range slices.Sorted(maps.Keys(r.methods)) {
		m := r.methods[method]
		out = append(out, ServerRequestSummary{
			Method: method, Count: m.count, Refused: m.refused, Unanswered: m.unanswered, Answer: m.took.quantiles(nil),
		})
	}
	return out
}
