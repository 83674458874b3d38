package scenarios

import "mcpbench/metrics"

// Catalog assigns the ids that samples carry: groups in the order of the
// program, steps group by group (before, steps, after), one target for each server in use. What is
// only known once a session is open, and the protocol versions, are left out.
func (p *Program) Catalog() *metrics.Catalog {
	cat := &metrics.Catalog{}
	targets := map[int]int{} // by server
	for i := range p.Groups {
		g := &p.Groups[i]
		target, ok := targets[g.Server]
		if !ok {
			target = len(cat.Targets)
			targets[g.Server] = target
			s := &p.Servers[g.Server]
			cat.Targets = append(cat.Targets, metrics.TargetInfo{Server: s.Name, Transport: s.Transport})
		}
		flow := &p.Flows[g.Flow]
		cat.Groups = append(cat.Groups, metrics.GroupInfo{Name: g.Name, Flow: flow.Name, Open: g.Open, Target: target})
		for _, part := range []struct {
			name  string
			steps []*Step
		}{{metrics.PartBefore, flow.Before}, {"", flow.Steps}, {metrics.PartAfter, flow.After}} {
			for _, s := range part.steps {
				method := s.Method
				if (s.Kind == StepSubscribe || s.Kind == StepUnsubscribe) && p.Servers[g.Server].Protocol == modernVersion {
					method = "subscriptions/listen"
				}
				cat.Steps = append(cat.Steps, metrics.StepInfo{
					ID: s.ID, Group: i, Method: method, Name: s.Name, Checks: s.Checks, Progress: s.Progress, Part: part.name, Tags: s.Tags,
				})
			}
		}
	}
	return cat
}
