package self

import (
	"os"

	"golang.org/x/sys/unix"
)

// maxProcesses is the limit of the user; root has none (setrlimit(2)).
func maxProcesses() int64 {
	var l unix.Rlimit
	if os.Getuid() == 0 || unix.Getrlimit(unix.RLIMIT_NPROC, &l) != nil {
		return 0
	}
	return limited(l.Cur)
}
