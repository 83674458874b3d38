package scenarios

// NeedsStream tells that the flow of a group uses something that a server of the
// versions with a handshake may send on the standalone stream of HTTP: progress,
// log messages, what subscriptions and waits are about, and requests of its own.
// Some servers lose these, or hang, without such a stream.
func (p *Program) NeedsStream(group int) bool {
	if p.Client.Asked() {
		return true
	}
	flow := &p.Flows[p.Groups[group].Flow]
	for _, list := range [][]*Step{flow.Before, flow.Steps, flow.After} {
		for _, s := range list {
			if s.Progress || s.Kind == StepSubscribe || s.Kind == StepWait || s.Method == "logging/setLevel" {
				return true
			}
		}
	}
	return false
}

// Watched returns the notifications that the waits of the flow take from the
// whole session, each once.
func (f *Flow) Watched() []string {
	var out []string
	seen := map[string]bool{}
	for _, list := range [][]*Step{f.Before, f.Steps, f.After} {
		for _, s := range list {
			if s.Kind == StepWait && s.Handle == "" && !seen[s.Notification] {
				seen[s.Notification] = true
				out = append(out, s.Notification)
			}
		}
	}
	return out
}
