package metrics_test

import (
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"mcpbench/metrics"
)

func checkCache(t *testing.T, id string, got *metrics.CacheSummary, samples []metrics.Sample) {
	t.Helper()
	var ttls []int64
	scopes := map[string]int64{}
	for _, s := range samples {
		if s.Extra != nil && s.Extra.HasCache {
			ttls = append(ttls, s.Extra.CacheTTL)
			scopes[s.Extra.CacheScope]++
		}
	}
	delete(scopes, "") // missing
	var want *metrics.CacheSummary
	if len(ttls) > 0 {
		want = &metrics.CacheSummary{Count: int64(len(ttls)), TTLMin: slices.Min(ttls), TTLMax: slices.Max(ttls), Scopes: scopes}
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("%s cache (-want +got):\n%s", id, diff)
	}
}
