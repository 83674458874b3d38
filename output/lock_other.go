//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package output

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

// lockFile refuses: without a lock a folder in use could be recovered.
func lockFile(*os.File) error {
	return fmt.Errorf("lock files on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
