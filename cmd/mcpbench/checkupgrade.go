package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"mcpbench/scenarios"
)

// upgradeAll rewrites each file of an older version of the language in the newest.
func upgradeAll(s streams, names []string) error {
	v := newVerdict(s)
	for _, name := range names {
		if name == "-" || strings.HasPrefix(name, "@") {
			return usage("--upgrade is for files, not for %s", name)
		}
		data, err := s.readInput(name)
		if err != nil {
			v.fault(withNearFile(name, err))
			continue
		}
		out, from, err := scenarios.Upgrade(name, data)
		newest := scenarios.NewestVersion()
		switch {
		case err != nil:
			v.fault(err)
		case bytes.Equal(out, data):
			fmt.Fprintf(&v.text, "%s: version %d is the newest; nothing was changed\n", name, from)
		default:
			if err := os.WriteFile(name, out, 0o644); err != nil { //nolint:gosec // it keeps the mode that it has
				return failure("rewrite %s: %w", name, err)
			}
			fmt.Fprintf(&v.text, "%s: rewritten from version %d in %d\n", name, from, newest)
		}
	}
	return v.print(s, len(names))
}
