package metrics

import (
	"fmt"
	"slices"
	"strings"

	"mcpbench/internal/nearest"
)

// Tags that every step or group carries. A step may have more of its own.
var (
	groupTags = []string{"group", "server", "transport", "protocol_version"}
	stepTags  = append([]string{"step", "method", "name"}, groupTags...)
)

// Resolve checks that the tags of the threshold name something in the catalog.
// The error is a *ThresholdError. A protocol version is not checked while that
// of a target is not known yet.
func (t *Threshold) Resolve(cat *Catalog) error {
	info := metricTable[t.Metric]
	if info.open && !slices.ContainsFunc(cat.Groups, func(g GroupInfo) bool { return g.Open }) {
		return t.fault(t.metricOffset, "%s is measured in an open load only, and no group has arrivals", t.Metric)
	}
	for _, tag := range t.Tags {
		if tag.Key == "outcome" || tag.Key == "check" {
			continue
		}
		if err := t.resolveTag(cat, tag); err != nil {
			return err
		}
	}
	checks, any, progress := []string{}, false, false
	for i := range t.candidates(cat) {
		if t.matches(cat, i) {
			any = true
			if info.scope == scopeStep {
				checks = append(checks, cat.Steps[i].Checks...)
				progress = progress || cat.Steps[i].Progress
			}
		}
	}
	if !any && len(t.Tags) > 0 {
		return t.fault(t.Tags[0].keyOffset, "nothing has all of %s", t.tagList())
	}
	switch {
	case t.Metric == "checks":
		return t.resolveChecks(checks)
	case t.Metric == "gap" && !progress:
		return t.fault(t.metricOffset, "gap is the time between progress notifications, and no step that the threshold selects has progress: true")
	}
	return nil
}

// resolveChecks checks that there are checks, and the one that is named.
func (t *Threshold) resolveChecks(checks []string) error {
	if len(checks) == 0 {
		return t.fault(t.metricOffset, "no step that the threshold selects has a check")
	}
	for _, tag := range t.Tags {
		if tag.Key == "check" && !slices.Contains(checks, tag.Value) {
			return t.fault(tag.valueOffset, "no check is named %q%s", tag.Value, nearest.DidYouMeanOf(tag.Value, checks))
		}
	}
	return nil
}

// resolveTag checks one tag by itself.
func (t *Threshold) resolveTag(cat *Catalog, tag Tag) error {
	keys, values := slices.Clone(t.builtinTags()), []string{}
	for i := range t.candidates(cat) {
		if !t.measured(cat, i) {
			if v, ok := t.tagOf(cat, i, tag.Key); ok && tag.Key == "step" && v == tag.Value {
				return t.fault(tag.valueOffset, "step %q runs once a session and is no part of the load", tag.Value)
			}
			continue
		}
		v, ok := t.tagOf(cat, i, tag.Key)
		if ok {
			values = append(values, v)
		}
		if metricTable[t.Metric].scope == scopeStep {
			for key := range cat.Steps[i].Tags {
				keys = append(keys, key)
			}
		}
	}
	switch {
	case tag.Key == "protocol_version" && slices.Contains(values, ""):
		return nil
	case slices.Contains(values, tag.Value):
		return nil
	case len(values) > 0 || slices.Contains(keys, tag.Key):
		return t.fault(tag.valueOffset, "no %s is %q%s", tag.Key, tag.Value, nearest.DidYouMeanOf(tag.Value, values))
	case slices.Contains(stepTags, tag.Key):
		return t.fault(tag.keyOffset, "%s is not measured by %s: it takes %s", t.Metric, tag.Key, strings.Join(keys, ", "))
	}
	return t.fault(tag.keyOffset, "nothing carries a tag %q%s", tag.Key, nearest.DidYouMean(tag.Key, keys))
}

func (t *Threshold) builtinTags() []string {
	if metricTable[t.Metric].scope == scopeGroup {
		return groupTags
	}
	return stepTags
}

// candidates is the number of steps or groups that the tags select among.
func (t *Threshold) candidates(cat *Catalog) int {
	if metricTable[t.Metric].scope == scopeGroup {
		return len(cat.Groups)
	}
	return len(cat.Steps)
}

// measured reports whether the i-th step or group is part of the load: what a
// session has once is not.
func (t *Threshold) measured(cat *Catalog, i int) bool {
	return metricTable[t.Metric].scope == scopeGroup || cat.Steps[i].Part == ""
}

// matches reports whether the i-th step or group is measured and carries all tags.
func (t *Threshold) matches(cat *Catalog, i int) bool {
	if !t.measured(cat, i) {
		return false
	}
	for _, tag := range t.Tags {
		if tag.Key == "outcome" || tag.Key == "check" {
			continue
		}
		v, ok := t.tagOf(cat, i, tag.Key)
		unknown := tag.Key == "protocol_version" && v == ""
		if !ok || v != tag.Value && !unknown {
			return false
		}
	}
	return true
}

// tagOf returns a tag of the i-th step or group.
func (t *Threshold) tagOf(cat *Catalog, i int, key string) (value string, ok bool) {
	group := i
	if metricTable[t.Metric].scope == scopeStep {
		step := &cat.Steps[i]
		switch key {
		case "step":
			return step.ID, true
		case "method":
			return step.Method, true
		case "name":
			return step.Name, true
		}
		if value, ok = step.Tags[key]; ok && !slices.Contains(groupTags, key) {
			return value, true
		}
		group = step.Group
	}
	g := &cat.Groups[group]
	if key == "group" {
		return g.Name, true
	}
	if g.Target >= len(cat.Targets) {
		return "", false
	}
	target := &cat.Targets[g.Target]
	switch key {
	case "server":
		return target.Server, true
	case "transport":
		return target.Transport, true
	case "protocol_version":
		return target.ProtocolVersion, true
	}
	return "", false
}

// tag returns the value of a tag of the threshold.
func (t *Threshold) tag(key string) (string, bool) {
	for _, tag := range t.Tags {
		if tag.Key == key {
			return tag.Value, true
		}
	}
	return "", false
}

func (t *Threshold) tagList() string {
	list := make([]string, len(t.Tags))
	for i, tag := range t.Tags {
		list[i] = tag.Key + "=" + quoteTag(tag.Value)
	}
	return strings.Join(list, ", ")
}

func (t *Threshold) fault(offset int, format string, args ...any) error {
	return &ThresholdError{Expr: t.Expr, Offset: offset, Message: fmt.Sprintf(format, args...)}
}
