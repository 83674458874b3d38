package mcp

import "sync"

// maxGivenUp is of how many requests given up a late answer is still known as one.
const maxGivenUp = 1024

// givenUp are requests whose answer nobody awaits any more. The zero value has
// none. Safe for concurrent use.
type givenUp struct {
	mu  sync.Mutex
	ids map[int64]struct{}
}

func (g *givenUp) add(id int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ids == nil {
		g.ids = make(map[int64]struct{})
	}
	if len(g.ids) >= maxGivenUp {
		for old := range g.ids {
			delete(g.ids, old)
			break
		}
	}
	g.ids[id] = struct{}{}
}

// take reports whether the request with that id was given up, and forgets it.
func (g *givenUp) take(id int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, ok := g.ids[id]
	delete(g.ids, id)
	return ok
}

// unexpected is the anomaly that an answer with that id is, which answers nothing
// that is awaited where it came. ok is false when the id is none of ours.
func (g *givenUp) unexpected(id int64, ok bool) Anomaly {
	if ok && g.take(id) {
		return AnomalyLateAnswer
	}
	return AnomalyUnknownID
}
