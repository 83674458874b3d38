package mcp

// tasksExtension is the name of the extension of 2026-07-28 (SEP-2663).
const tasksExtension = "io.modelcontextprotocol/tasks"

// need is a member of the server's capabilities object: a path to an object, or, with
// a flag, to an object in which the flag is true.
type need struct {
	in   versionSet
	path []string
	flag string
}

// needs lists what a server must declare for a method to be used: a request of the
// client, or a notification of the server. Several say that any one will do. What is
// not listed needs nothing. (Specification 2025-11-25, basic/lifecycle, capability
// negotiation, and the sections on capabilities in server/tools, server/resources,
// server/prompts, server/utilities/completion and /logging, basic/utilities/tasks;
// schema, ServerCapabilities. 2026-07-28: basic/utilities/subscriptions.)
var needs = map[string][]need{
	"tools/list":               {{in: inAll, path: []string{"tools"}}},
	"tools/call":               {{in: inAll, path: []string{"tools"}}},
	"resources/list":           {{in: inAll, path: []string{"resources"}}},
	"resources/templates/list": {{in: inAll, path: []string{"resources"}}},
	"resources/read":           {{in: inAll, path: []string{"resources"}}},
	"prompts/list":             {{in: inAll, path: []string{"prompts"}}},
	"prompts/get":              {{in: inAll, path: []string{"prompts"}}},
	"resources/subscribe":      {{in: inLegacy, path: []string{"resources"}, flag: "subscribe"}},
	"resources/unsubscribe":    {{in: inLegacy, path: []string{"resources"}, flag: "subscribe"}},
	"logging/setLevel":         {{in: inLegacy, path: []string{"logging"}}},
	// 2024-11-05 has the method, but no capability for it.
	"completion/complete": {{in: inAll &^ in2411, path: []string{"completions"}}},
	"subscriptions/listen": {
		{in: in2607, path: []string{"tools"}, flag: "listChanged"},
		{in: in2607, path: []string{"prompts"}, flag: "listChanged"},
		{in: in2607, path: []string{"resources"}, flag: "listChanged"},
		{in: in2607, path: []string{"resources"}, flag: "subscribe"},
		{in: in2607, path: []string{"extensions", tasksExtension}},
	},
	"tasks/get":    {{in: in2511, path: []string{"tasks"}}, {in: in2607, path: []string{"extensions", tasksExtension}}},
	"tasks/update": {{in: in2607, path: []string{"extensions", tasksExtension}}},
	"tasks/result": {{in: in2511, path: []string{"tasks"}}},
	"tasks/list":   {{in: in2511, path: []string{"tasks", "list"}}},
	"tasks/cancel": {{in: in2511, path: []string{"tasks", "cancel"}}, {in: in2607, path: []string{"extensions", tasksExtension}}},

	methodToolsChanged:     {{in: inAll, path: []string{"tools"}, flag: "listChanged"}},
	methodPromptsChanged:   {{in: inAll, path: []string{"prompts"}, flag: "listChanged"}},
	methodResourcesChanged: {{in: inAll, path: []string{"resources"}, flag: "listChanged"}},
	methodUpdated:          {{in: inAll, path: []string{"resources"}, flag: "subscribe"}},
	methodMessage:          {{in: inAll, path: []string{"logging"}}},
}

// Declares reports whether the server may be asked for method, or, when that is a
// notification of a server, may be expected to send it: the version in use has it, and
// the server's capabilities say so where the version has a capability for it. What no
// version defines needs none: true. Nothing is kept from being sent by this; it is for
// those who want to keep to what was negotiated (specification 2025-11-25,
// basic/lifecycle, operation). The parts of a Filter are asked for by the notifications
// that they bring. Pure; safe for concurrent use.
func (i Info) Declares(method string) bool {
	f := i.Version.Features()
	known := f.Has(method)
	if set, theirs := serverNotifications[method]; theirs {
		known = set&f.bit != 0
	}
	if !known {
		return false
	}
	needed := false
	for _, n := range needs[method] {
		if n.in&f.bit == 0 {
			continue
		}
		if n.metBy(i.Capabilities) {
			return true
		}
		needed = true
	}
	return !needed
}

// metBy reports whether a capabilities object has what is needed.
func (n *need) metBy(object []byte) bool {
	for _, key := range n.path {
		if object = lookup(object, key); len(object) == 0 || object[0] != '{' {
			return false
		}
	}
	return n.flag == "" || string(lookup(object, n.flag)) == "true"
}
