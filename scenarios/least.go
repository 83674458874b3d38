package scenarios

import "time"

// LeastThink is the time that an iteration of the flow takes by its own pauses
// alone, at the least, when nothing of it fails and every answer comes at once.
// What depends on conditions or on chance counts as little as it may come to.
func (f *Flow) LeastThink() time.Duration { return leastOf(f.Do) }

// leastOf is the sum over actions that are performed one after the other.
func leastOf(actions []*Action) time.Duration {
	var sum time.Duration
	for _, a := range actions {
		sum += a.least()
	}
	return sum
}

func (a *Action) least() time.Duration {
	if a.Conditional() {
		return 0
	}
	switch a.Kind {
	case ActThink:
		return a.think.least()
	case ActRandom:
		return a.leastBranch()
	case ActParallel:
		var most time.Duration
		for _, branch := range a.Branches {
			for _, one := range branch {
				most = max(most, one.least())
			}
		}
		return most
	case ActRepeat:
		if a.count == nil && a.while == nil && a.turns > 0 {
			return time.Duration(a.turns) * leastOf(a.Branches[0])
		}
	case ActCall:
		return leastOf(a.Branches[0])
	case ActStep, ActConnect, ActDisconnect:
	}
	return 0
}

// leastBranch is that of the shortest of several branches.
func (a *Action) leastBranch() time.Duration {
	shortest := leastOf(a.Branches[0])
	for _, branch := range a.Branches[1:] {
		shortest = min(shortest, leastOf(branch))
	}
	return shortest
}

// least is the shortest time that may be drawn.
func (s Spread) least() time.Duration { return s.dist.Least() }
