package scenarios

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"mcpbench/internal/nearest"
	"mcpbench/scenarios/internal/grammar"
	"mcpbench/scenarios/internal/syntax"
)

// alone are the operations that are no plain request, with the keys of a step
// that go with them.
var alone = map[string][]string{
	"connect":     {"when", "sample"},
	"disconnect":  {"when", "sample"},
	"think":       {"when", "sample"},
	"random":      {"when", "sample", "on_error"},
	"parallel":    {"when", "sample", "on_error"},
	"repeat":      {"when", "sample", "on_error"},
	"flow":        {"when", "sample", "on_error"},
	"subscribe":   {"id", "tags", "as", "check", "timeout", "when", "sample", "on_error"},
	"unsubscribe": {"id", "tags", "check", "timeout", "when", "sample", "on_error"},
	"wait_for":    {"id", "tags", "check", "save", "when", "sample", "on_error"},
	"notify":      {"id", "tags", "timeout", "when", "sample", "on_error"},
}

// settings are the keys of a step beside its operation that go with some only.
var settings = []string{
	"id", "check", "timeout", "progress", "idle_timeout", "log_level", "cancel", "as", "save", "when", "sample", "on_error", "tags", "expect",
}

// together finds the keys of a step that do not go with its operation.
func (c *compiler) together(s *grammar.Step) {
	with := slices.DeleteFunc(slices.Clone(settings), func(key string) bool { return key == "as" })
	op := ""
	for _, key := range s.Node.Keys() {
		if keys, ok := alone[key]; ok {
			op, with = key, keys
		}
	}
	for _, key := range settings {
		n := s.Node.Key(key)
		if n == nil || slices.Contains(with, key) {
			continue
		}
		path := syntax.Join(s.Path, key)
		switch {
		case op == "":
			c.fault(n, path, "as names a subscription and goes with subscribe only")
		case op == "wait_for" && key == "timeout":
			c.fault(n, path, "the timeout of wait_for stands in it: wait_for: {timeout: 3s}")
		default:
			c.fault(n, path, "%s does not go with %s", key, op)
		}
	}
	if op != "" {
		return
	}
	if n := s.Node.Key("idle_timeout"); n != nil && !s.Progress {
		c.fault(n, s.Path+".idle_timeout", "idle_timeout counts anew from each progress notification; add progress: true")
	}
	if n := s.Node.Key("cancel"); n != nil {
		for _, l := range []*grammar.List{s.ToolsList, s.ResourcesList, s.ResourceTemplatesList, s.PromptsList} {
			if l != nil && l.AllPages {
				c.fault(n, s.Path+".cancel", "cancel is for one request and does not go with all_pages")
			}
		}
	}
}

// listening writes what a step says that is no request of the protocol's own
// table, and returns its method, "" when it is none of these.
func (b *paramsBuilder) listening(s *grammar.Step, out *Step) string {
	switch {
	case s.Subscribe != nil:
		out.Kind, out.Handle = StepSubscribe, s.As
		b.subscribe(s, out)
		return "resources/subscribe"
	case s.Unsubscribe != nil:
		out.Kind, out.Handle, out.Name = StepUnsubscribe, s.Unsubscribe.Handle, s.Unsubscribe.Handle
		return "resources/unsubscribe"
	case s.WaitFor != nil:
		w := s.WaitFor
		out.Kind, out.Handle = StepWait, w.From
		out.Timeout = b.limit(w.Place, "timeout", w.Timeout, 0)
		out.Name, out.Notification = b.notification(w)
		return "wait_for"
	case s.Request != nil:
		return b.message(s.Request, "request")
	case s.Notify != nil:
		out.Kind = StepNotify
		return b.message(s.Notify, "notify")
	}
	return ""
}

// lists are the lists whose changes a subscription may be about, with the
// notifications that tell of them.
var lists = []struct {
	name, notification string
	of                 func(*grammar.Subscribe) bool
}{
	{"tools", "tools/list_changed", func(s *grammar.Subscribe) bool { return s.Tools }},
	{"prompts", "prompts/list_changed", func(s *grammar.Subscribe) bool { return s.Prompts }},
	{"resources", "resources/list_changed", func(s *grammar.Subscribe) bool { return s.Resources }},
}

// subscribe writes what the subscription is about: {uris, tools, prompts, resources}.
func (b *paramsBuilder) subscribe(s *grammar.Step, out *Step) {
	in := s.Subscribe
	var names []string
	b.member("uris").raw("[")
	for i, uri := range in.URIs {
		if uri.Node == nil {
			continue
		}
		if i > 0 {
			b.raw(",")
		}
		b.named(uri.Node, fmt.Sprintf("%s.uris[%d]", in.Path, i), out)
		names = append(names, out.Name)
	}
	b.raw("]")
	for _, l := range lists {
		if l.of(in) {
			b.member(l.name).raw("true")
			names = append(names, l.name)
		}
	}
	out.Name, out.RequestName = strings.Join(names, ", "), ""
	if len(names) == 0 && in.Node.Lookup("uris") == nil {
		b.fault(s.Node.Key("subscribe"), in.Path, "subscribe wants uris, or one of tools, prompts and resources")
	}
	if n := s.Node.Lookup("as"); n != nil && n.Kind == syntax.String && s.As == "" {
		b.fault(n, s.Path+".as", "must not be empty")
	}
}

// message writes the params of a message written by hand, and returns its method.
func (b *paramsBuilder) message(m *grammar.Message, op string) string {
	path := m.Path + ".method"
	if m.Method == "" {
		if n := m.Node.Lookup("method"); n != nil && n.Kind == syntax.String {
			b.fault(n, path, "must not be empty")
		}
		return ""
	}
	isNotification := strings.HasPrefix(m.Method, "notifications/")
	instead := map[string]string{
		"initialize": "the session makes it by itself", "subscriptions/listen": "use subscribe, which keeps it open",
		"notifications/initialized": "the session sends it by itself", "notifications/cancelled": "use cancel: on the step whose request it is about",
	}[m.Method]
	switch {
	case instead != "":
		b.fault(m.Node.Lookup("method"), path, "%s is not sent by hand: %s", m.Method, instead)
	case isNotification && op == "request":
		b.fault(m.Node.Lookup("method"), path, "%s is a notification; send it with notify", m.Method)
	}
	if n := m.Params.Node; n != nil {
		for i, p := range n.Pairs {
			if i > 0 {
				b.raw(",")
			}
			b.quoted(p.Key.Text)
			b.raw(":")
			b.value(p.Value, syntax.Join(m.Path+".params", p.Key.Text))
		}
	}
	return m.Method
}

// notifications are those that a server may send about something else than a
// request of ours.
var notifications = []string{
	"resources/updated", "resources/list_changed", "tools/list_changed", "prompts/list_changed",
	"message", "tasks/status", "tasks", "elicitation/complete",
}

// notification returns what a wait waits for: its short name and its whole one.
func (b *paramsBuilder) notification(w *grammar.WaitFor) (short, whole string) {
	const prefix = "notifications/"
	if w.Notification == "" {
		if n := w.Node.Lookup("notification"); n != nil && n.Kind == syntax.String {
			b.fault(n, w.Path+".notification", "must not be empty")
		}
		return "", ""
	}
	short = strings.TrimPrefix(w.Notification, prefix)
	switch {
	case slices.Contains(notifications, short):
		return short, prefix + short
	case short == "progress" || short == "cancelled":
		b.fault(w.Node.Lookup("notification"), w.Path+".notification", "%s is about one request; see progress: and cancel: of its step", short)
	case short != w.Notification: // written in full
		return w.Notification, w.Notification
	default:
		if hint := nearest.DidYouMean(short, notifications); hint != "" {
			b.fault(w.Node.Lookup("notification"), w.Path+".notification", "unknown notification %q%s; write one that the protocol does not define in full", short, hint)
		}
	}
	return w.Notification, w.Notification
}

// subscription is one that a step of a flow makes.
type subscription struct {
	made    compiled
	ended   bool
	inSteps bool
}

// subscriptions looks up the names of subscriptions in the order in which the
// steps run. Those made before are there for all steps; one made in an iteration
// is there for that iteration's later steps.
func (c *compiler) subscriptions(before, steps, after []compiled) {
	known, all := map[string]*subscription{}, map[string]*subscription{}
	walk := func(list []compiled, inSteps bool) {
		for _, s := range list {
			c.subscription(s, inSteps, known, all)
		}
	}
	walk(before, false)
	session := maps.Clone(known)
	walk(steps, true)
	for _, s := range steps {
		made := all[s.Handle]
		if s.Kind == StepSubscribe && (s.Handle == "" || made != nil && made.made.Step == s.Step && !made.ended) {
			c.warn(s.from.Node.Key("subscribe"), s.from.Path, "the subscription is made in each iteration and ended in none; end it with unsubscribe, or make it in before")
		}
	}
	known = session
	walk(after, false)
}

// subscription checks one step's use of a name.
func (c *compiler) subscription(s compiled, inSteps bool, known, all map[string]*subscription) {
	at := s.from
	switch s.Kind {
	case StepSubscribe:
		if s.Handle == "" {
			return
		}
		if other := all[s.Handle]; other != nil {
			c.fault(at.Node.Lookup("as"), at.Path+".as", "subscription %q is made twice in this flow (first on line %d)", s.Handle, other.made.from.Node.Lookup("as").Line)
			return
		}
		made := &subscription{made: s, inSteps: inSteps}
		known[s.Handle], all[s.Handle] = made, made
	case StepUnsubscribe:
		n, path := at.Unsubscribe.Node.Lookup("handle"), at.Unsubscribe.Path+".handle"
		made := c.lookSubscription(n, path, s.Handle, known, all)
		if made == nil {
			return
		}
		if inSteps && !made.inSteps {
			c.fault(n, path, "subscription %q is made once a session; end it in after", s.Handle)
			return
		}
		made.ended = true
		delete(known, s.Handle)
	case StepWait:
		if s.Handle == "" {
			return
		}
		if made := c.lookSubscription(at.WaitFor.Node.Lookup("from"), at.WaitFor.Path+".from", s.Handle, known, all); made != nil {
			c.brings(s, made)
		}
	case StepRequest, StepNotify:
	}
}

func (c *compiler) lookSubscription(n *syntax.Node, path, name string, known, all map[string]*subscription) *subscription {
	made := known[name]
	switch {
	case made != nil || name == "" || n == nil:
	case all[name] != nil && all[name].ended:
		c.fault(n, path, "subscription %q was ended before this step", name)
	case all[name] != nil:
		c.fault(n, path, "subscription %q belongs to one iteration and is gone here", name)
	default:
		c.fault(n, path, "no step before this one makes a subscription %q%s", name, nearest.DidYouMean(name, slices.Sorted(maps.Keys(known))))
	}
	return made
}

// brings checks that a subscription can bring what a wait waits for.
func (c *compiler) brings(wait compiled, made *subscription) {
	in, w := made.made.from.Subscribe, wait.from.WaitFor
	short := strings.TrimPrefix(wait.Notification, "notifications/")
	n, path := w.Node.Lookup("notification"), w.Path+".notification"
	switch short {
	case "":
	case "resources/updated":
		if len(in.URIs) == 0 {
			c.fault(n, path, "subscription %q has no uris, so it brings no resources/updated", wait.Handle)
		}
		return
	default:
		for _, l := range lists {
			if l.notification != short {
				continue
			}
			if !l.of(in) {
				c.fault(n, path, "subscription %q is not about %s, so it brings no %s; add %s: true", wait.Handle, l.name, short, l.name)
			}
			return
		}
		c.fault(n, path, "a subscription brings resources/updated and changes of lists; leave out from to wait for %s", short)
	}
}
