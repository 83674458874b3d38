package mcp

import (
	"fmt"
	"slices"
	"strings"
)

// Version is a protocol version, a date in the form the protocol writes it.
type Version string

// The protocol versions this client speaks.
const (
	V20241105 Version = "2024-11-05"
	V20250326 Version = "2025-03-26"
	V20250618 Version = "2025-06-18"
	V20251125 Version = "2025-11-25"
	V20260728 Version = "2026-07-28"
)

// newestLegacy is what initialize asks for when no version is pinned. The newer
// 2026-07-28 has no initialize and is never put there.
const newestLegacy = V20251125

// Versions lists every known version, newest first.
func Versions() []Version {
	return []Version{V20260728, V20251125, V20250618, V20250326, V20241105}
}

// Known reports whether v is one of Versions.
func (v Version) Known() bool { return slices.Contains(Versions(), v) }

// Era is modern for versions in which each request describes itself, and legacy for
// those in which a session opens with initialize (specification 2026-07-28,
// basic/versioning, terminology); "" for an unknown version.
func (v Version) Era() string {
	switch f := v.Features(); {
	case f.Handshake:
		return "legacy"
	case f.RequestMeta:
		return "modern"
	}
	return ""
}

// ParseVersion returns the known version named s. The error lists the known ones.
func ParseVersion(s string) (Version, error) {
	if v := Version(s); v.Known() {
		return v, nil
	}
	return "", fmt.Errorf("unknown protocol version %q; known are %s", s, joinVersions(Versions()))
}

func joinVersions[S ~string](vs []S) string {
	names := make([]string, len(vs))
	for i, v := range vs {
		names[i] = string(v)
	}
	return strings.Join(names, ", ")
}

// Features says how a protocol version behaves. It is the only place that tells
// versions apart; everything else asks for a feature.
type Features struct {
	// Handshake: a session opens with initialize and notifications/initialized.
	Handshake bool
	// ServerSession: over HTTP the server may hand out an Mcp-Session-Id, which
	// then goes with every later message and is ended by DELETE. 2024-11-05 does
	// not define Streamable HTTP, but servers that accept it there do the same.
	ServerSession bool
	// VersionHeader: HTTP messages after the handshake carry MCP-Protocol-Version.
	VersionHeader bool
	// MethodHeaders: HTTP requests carry Mcp-Method and, for some methods, Mcp-Name.
	MethodHeaders bool
	// RequestMeta: params._meta of every request carries version, client and capabilities.
	RequestMeta bool
	// RequestLogLevel: a request says in params._meta which log messages it wants;
	// otherwise logging/setLevel does for the whole session.
	RequestLogLevel bool
	// ServerRequests: the server may send requests of its own.
	ServerRequests bool
	// GetStream: over HTTP a standalone stream may be opened by GET, and the stream
	// of a request that broke after an event with an id be taken up again.
	GetStream bool
	// CancelByClose: over HTTP closing the response stream cancels the request;
	// otherwise notifications/cancelled does.
	CancelByClose bool
	// Batches: several messages may be sent, and may arrive, as one JSON array.
	Batches bool
	// ResultType: results carry resultType.
	ResultType bool
	// CacheHints: some results say how long they may be kept.
	CacheHints bool
	// EmptyCursor: an empty nextCursor is a cursor like any other; otherwise it
	// ends the list, as null and absence do.
	EmptyCursor bool

	bit versionSet
}

// versionSet is a set of versions, one bit for each.
type versionSet uint8

const (
	in2411 versionSet = 1 << iota
	in2503
	in2506
	in2511
	in2607

	inLegacy = in2411 | in2503 | in2506 | in2511
	inAll    = inLegacy | in2607
)

// Features returns how version v behaves. An unknown version has none.
func (v Version) Features() Features {
	legacy := Features{Handshake: true, ServerSession: true, ServerRequests: true}
	switch v {
	case V20241105:
		legacy.bit = in2411
		return legacy
	case V20250326:
		legacy.GetStream, legacy.Batches, legacy.bit = true, true, in2503
		return legacy
	case V20250618:
		legacy.GetStream, legacy.VersionHeader, legacy.bit = true, true, in2506
		return legacy
	case V20251125:
		legacy.GetStream, legacy.VersionHeader, legacy.bit = true, true, in2511
		return legacy
	case V20260728:
		return Features{
			VersionHeader: true, MethodHeaders: true, RequestMeta: true, RequestLogLevel: true,
			CancelByClose: true, ResultType: true, CacheHints: true, EmptyCursor: true, bit: in2607,
		}
	}
	return Features{}
}

// methods lists in which versions the client may send a method. The
// 2026-07-28 entries of tasks/* belong to its tasks extension.
var methods = map[string]versionSet{
	"initialize":                inLegacy,
	"notifications/initialized": inLegacy,
	"ping":                      inLegacy,
	"server/discover":           in2607,
	"tools/list":                inAll,
	"tools/call":                inAll,
	"resources/list":            inAll,
	"resources/templates/list":  inAll,
	"resources/read":            inAll,
	"prompts/list":              inAll,
	"prompts/get":               inAll,
	"completion/complete":       inAll,
	"resources/subscribe":       inLegacy,
	"resources/unsubscribe":     inLegacy,
	"subscriptions/listen":      in2607,
	"logging/setLevel":          inLegacy,
	"tasks/get":                 in2511 | in2607,
	"tasks/update":              in2607,
	"tasks/result":              in2511,
	"tasks/list":                in2511,
	"tasks/cancel":              in2511 | in2607,

	"notifications/cancelled":          inAll,
	"notifications/progress":           inLegacy,
	"notifications/roots/list_changed": inLegacy,
	"notifications/tasks/status":       in2511,
}

// Methods lists the methods of the requests that a client can make in one version
// or another, sorted.
func Methods() []string {
	var out []string
	for method := range methods {
		if !strings.HasPrefix(method, "notifications/") {
			out = append(out, method)
		}
	}
	slices.Sort(out)
	return out
}

// Has reports whether the client may send method in this version. Methods that
// no version defines (a vendor's own) are the caller's business: true.
func (f Features) Has(method string) bool {
	set, defined := methods[method]
	return !defined || set&f.bit != 0
}

// serverNotifications lists in which versions a server may send a notification.
var serverNotifications = map[string]versionSet{
	"notifications/cancelled":                  inAll,
	"notifications/progress":                   inAll,
	"notifications/message":                    inAll,
	"notifications/tools/list_changed":         inAll,
	"notifications/prompts/list_changed":       inAll,
	"notifications/resources/list_changed":     inAll,
	"notifications/resources/updated":          inAll,
	"notifications/tasks/status":               in2511,
	"notifications/tasks":                      in2607,
	"notifications/elicitation/complete":       in2511,
	"notifications/subscriptions/acknowledged": in2607,
}

func (f Features) knowsNotification(method string) bool {
	return serverNotifications[method]&f.bit != 0
}

// serverRequests lists in which versions a server may ask the client for what: by
// a request of its own up to 2025-11-25, within a result in 2026-07-28.
var serverRequests = map[string]versionSet{
	"ping":                   inLegacy,
	"roots/list":             inAll,
	"sampling/createMessage": inAll,
	"elicitation/create":     in2506 | in2511 | in2607,
}

func (f Features) knowsQuestion(method string) bool { return serverRequests[method]&f.bit != 0 }

// richQuestions reports whether elicitation has modes and sampling may offer
// tools; before, a member of that name means nothing.
func (f Features) richQuestions() bool { return f.bit&(in2511|in2607) != 0 }

// asksByResult lists the requests whose results may ask for input where they do
// that at all (specification 2026-07-28, basic/patterns/mrtr, supported requests).
var asksByResult = map[string]bool{"tools/call": true, "prompts/get": true, "resources/read": true}
