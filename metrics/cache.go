package metrics

import "maps"

// CacheSummary says how long the answers of a step may be kept, by their own
// hints. Nothing is kept: each request is made. A hint without a valid time counts as 0.
type CacheSummary struct {
	Count  int64            `json:"count"` // answers with a hint
	TTLMin int64            `json:"ttl_ms_min"`
	TTLMax int64            `json:"ttl_ms_max"`
	Scopes map[string]int64 `json:"scopes"` // public, private, other
}

// cacheTotals is a CacheSummary in the making. The zero value is empty.
type cacheTotals struct {
	count, least, most int64
	scopes             map[string]int64 // nil before the first
}

func (t *cacheTotals) add(ttl int64, scope string) {
	if t.count == 0 {
		t.least, t.most = ttl, ttl
	}
	t.count++
	t.least, t.most = min(t.least, ttl), max(t.most, ttl)
	if scope == "" {
		return
	}
	if t.scopes == nil {
		t.scopes = map[string]int64{}
	}
	t.scopes[scope]++
}

// summary returns nil when there was no hint.
func (t *cacheTotals) summary() *CacheSummary {
	if t.count == 0 {
		return nil
	}
	return &CacheSummary{Count: t.count, TTLMin: t.least, TTLMax: t.most, Scopes: nonNil(maps.Clone(t.scopes))}
}
