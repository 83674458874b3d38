package mcp

import (
	"encoding/json"
	"math"
)

// CacheHints are what a server of 2026-07-28 says of how long a result may be kept
// (specification 2026-07-28, server/utilities/caching). This client keeps nothing.
type CacheHints struct {
	TTL   int64  // milliseconds; 0 also when it is missing, negative or no number
	Scope string // public or private; other for anything else, "" when it is missing
}

// maxTTL is the largest TTL: that a float64 holds exactly, 285,000 years.
const maxTTL = 1 << 53

// CacheHints returns the hints on a result of method. ok is false when it has
// none, and where version v does not define them: some servers send them all the same.
func (v Version) CacheHints(method string, result json.RawMessage) (h CacheHints, ok bool) {
	switch method {
	case "server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read":
	default:
		return h, false
	}
	if !v.Features().CacheHints {
		return h, false
	}
	s := scanObject(result)
	for m, more := s.next(); more; m, more = s.next() {
		value := result[m.start:m.end]
		switch {
		case m.named("ttlMs"):
			ms, _ := jsonNumber(value)
			h.TTL, ok = int64(math.Min(math.Max(ms, 0), maxTTL)), true
		case m.named("cacheScope"):
			h.Scope, ok = "other", true
			if name, _ := text(value); name == "public" || name == "private" {
				h.Scope = name
			}
		}
	}
	return h, ok
}
