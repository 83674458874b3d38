package grammar

import (
	"strconv"
	"strings"

	"mcpbench/internal/nearest"
	"mcpbench/scenarios/internal/syntax"
)

// HTTP tunes the connections to an HTTP server.
type HTTP struct {
	Place
	// Version of HTTP.
	Version HTTPVersion `json:"version" jsonschema:"default=1.1"`
	// Connections is another place for the server's key of that name.
	Connections Connections `json:"connections" jsonschema:"default=per-session"`
}

// HTTPVersion is the version of HTTP: 1.1.
type HTTPVersion struct{}

func (*HTTPVersion) decode(d *decoder, n *syntax.Node, path string) {
	switch n.Text {
	case "1.1":
		return
	case "1", "1.0", "2", "2.0", "3", "3.0", "auto":
		if d.scalar(n, path) {
			d.postpone(n, path, path+" "+n.Text)
		}
		return
	}
	d.fault(n, path, `wants "1.1"`)
}

// Connections says how sessions share HTTP connections.
type Connections struct {
	Shared int // at most so many for all sessions; 0: each session has its own
	Set    bool
}

// maxConnections is about how many a machine has ports for, to one address.
const maxConnections = 65535

func (v *Connections) decode(d *decoder, n *syntax.Node, path string) {
	const hint = "write per-session, or shared:N for at most N connections of all sessions, e.g. shared:8"
	if n.Kind != syntax.String {
		d.fault(n, path, "wants text; this is %s: %s", n.Kind, hint)
		return
	}
	if n.Text == "per-session" {
		*v = Connections{Set: true}
		return
	}
	number, ok := strings.CutPrefix(n.Text, "shared:")
	if !ok {
		d.fault(n, path, "%q is not known here%s; %s", n.Text, nearest.DidYouMean(n.Text, []string{"per-session", "shared:8"}), hint)
		return
	}
	count, err := strconv.Atoi(number)
	switch {
	case err != nil || strings.Trim(number, "0123456789") != "":
		d.fault(n, path, "%q is no number of connections; %s", number, hint)
	case count < 1 || count > maxConnections:
		d.fault(n, path, "shared wants a number from 1 to %d", maxConnections)
	default:
		*v = Connections{Shared: count, Set: true}
	}
}
