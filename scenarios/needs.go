package scenarios

import "iter"

// NeedsStream tells that the flow of a group uses something that a server of the
// versions with a handshake may send on the standalone stream of HTTP: progress,
// log messages, what subscriptions and waits are about, and requests of its own.
// Some servers lose these, or hang, without such a stream.
func (p *Program) NeedsStream(group int) bool {
	if p.Client.Asked() {
		return true
	}
	for s := range p.Flows[p.Groups[group].Flow].all() {
		if s.Progress || s.Kind == StepSubscribe || s.Kind == StepWait || s.Method == "logging/setLevel" {
			return true
		}
	}
	return false
}

// RowIsRequest tells that each row of the results is one request that a server
// counts too: no step waits, notifies or subscribes, and nothing takes several rounds.
func (p *Program) RowIsRequest() bool {
	for i := range p.Flows {
		for s := range p.Flows[i].all() {
			if s.Kind != StepRequest || s.generate != nil || s.output > 0 {
				return false
			}
		}
	}
	return !p.Client.Asked()
}

// all goes through the steps of a flow in the order in which they run.
func (f *Flow) all() iter.Seq[*Step] {
	return func(yield func(*Step) bool) {
		for _, list := range [][]*Step{f.Before, f.Steps, f.After} {
			for _, s := range list {
				if !yield(s) {
					return
				}
			}
		}
	}
}

// Watched returns the notifications that the waits of the flow take from the
// whole session, each once.
func (f *Flow) Watched() []string {
	var out []string
	seen := map[string]bool{}
	for s := range f.all() {
		if s.Kind == StepWait && s.Handle == "" && !seen[s.Notification] {
			seen[s.Notification] = true
			out = append(out, s.Notification)
		}
	}
	return out
}
