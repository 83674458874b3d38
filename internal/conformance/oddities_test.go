package conformance

import (
	"fmt"
	"regexp"
	"sync/atomic"
)

// oddity is how one server departs from what an operation demands. Empty fields and
// * stand for everything.
type oddity struct {
	server, transport, version, operation string // version is a regular expression
	seen                                  string // regular expression
	why                                   string
	// sometimes: it depends on the moment, and need not be seen in each run.
	sometimes bool

	met *atomic.Bool
}

func (o oddity) String() string {
	return fmt.Sprintf("%s %s %s, %s: %s", o.server, o.transport, o.version, o.operation, o.seen)
}

// concerns tells whether the oddity is one of this operation there.
func (o oddity) concerns(r *row, operation string) bool {
	return (o.server == "" || o.server == r.server.name) && (o.transport == "" || o.transport == r.transport) &&
		o.operation == operation && (o.version == "" || regexp.MustCompile(o.version).MatchString(string(r.version)))
}

// known returns the oddity that explains what was seen, or nil.
func (r *row) known(operation, seen string) *oddity {
	for i, o := range oddities {
		if o.concerns(r, operation) && regexp.MustCompile(o.seen).MatchString(seen) {
			return &oddities[i]
		}
	}
	return nil
}

func init() {
	for i := range oddities {
		oddities[i].met = &atomic.Bool{}
	}
}

var oddities = []oddity{}
