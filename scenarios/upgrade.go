package scenarios

import (
	"fmt"

	"mcpbench/scenarios/internal/syntax"
	"mcpbench/scenarios/internal/upgrade"
)

// NewestVersion is the version of the scenario language that Load reads.
func NewestVersion() int { return upgrade.Newest(upgrade.Steps) }

// Upgrade returns the text of a scenario in the newest version of the language, and
// the version that it had; a text of that version comes back as it is. name stands for
// it in messages. The error is of type Problems when the file is at fault.
func Upgrade(name string, data []byte) (out []byte, from int, err error) {
	src, root := syntax.Parse(name, data)
	if root == nil {
		return nil, 0, src.Problems()
	}
	at := root.Lookup("version")
	v, ok := int64(0), false
	if at != nil && at.Kind == syntax.Int {
		v, ok = at.Integer()
	}
	switch newest := int64(NewestVersion()); {
	case !ok || v < 1:
		if at == nil {
			at = root
		}
		return nil, 0, Problems{src.Problem(at, -1, "version", fmt.Sprintf("the file names no version of the language: it starts with version: %d", newest))}
	case v > newest:
		return nil, 0, Problems{src.Problem(at, -1, "version", tooNew(v, newest))}
	}
	from = int(v)
	if out, err = upgrade.Run(upgrade.Steps, from, data); err != nil {
		return nil, from, fmt.Errorf("%s: %w", name, err)
	}
	return out, from, nil
}

func tooNew(v, newest int64) string {
	return fmt.Sprintf("version %d is newer than this mcpbench, which reads version: %d; install a newer mcpbench", v, newest)
}
