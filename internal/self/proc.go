package self

import (
	"bytes"
	"os"
	"path"
	"strconv"
	"strings"
)

// Limits are what the machine lets this process have. What is 0 is not known, or
// has no limit.
type Limits struct {
	FDs int64 // file descriptors. The Go runtime has raised the soft limit to the hard one
	// Ports is how many connections one source address can have to one target.
	Ports     int64
	Processes int64 // and threads, of this user, those that run already included
}

// ReadLimits returns the limits of this process; root is that of the file system.
func ReadLimits(root string) Limits {
	return Limits{FDs: maxDescriptors(), Ports: ports(root), Processes: maxProcesses()}
}

// ports is the size of the range from which the kernel takes local ports.
func ports(root string) int64 {
	data, err := os.ReadFile(path.Join(root, "proc/sys/net/ipv4/ip_local_port_range")) //nolint:gosec // a file of the kernel
	fields := strings.Fields(string(data))
	if err != nil || len(fields) != 2 {
		return 0
	}
	low, err1 := strconv.ParseInt(fields[0], 10, 64)
	high, err2 := strconv.ParseInt(fields[1], 10, 64)
	if err1 != nil || err2 != nil || high < low {
		return 0
	}
	return high - low + 1
}

// timeWait is the number of TCP connections in TIME-WAIT, of all processes: each
// keeps its local port for a minute. "TCP: inuse 5 orphan 0 tw 3 …" in Linux.
func timeWait(root string) int64 {
	data, err := os.ReadFile(path.Join(root, "proc/net/sockstat")) //nolint:gosec // a file of the kernel
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(data) {
		fields := strings.Fields(string(line))
		if len(fields) == 0 || fields[0] != "TCP:" {
			continue
		}
		for i := 1; i+1 < len(fields); i += 2 {
			if fields[i] == "tw" {
				n, _ := strconv.ParseInt(fields[i+1], 10, 64) // what is no number counts for none
				return n
			}
		}
	}
	return 0
}

// entries counts what a folder holds, without the descriptor that reading it takes.
func entries(dir string) int64 {
	f, err := os.Open(dir) //nolint:gosec // a folder of the kernel
	if err != nil {
		return 0
	}
	defer func() { _ = f.Close() }() // only read
	names, err := f.Readdirnames(-1)
	if err != nil {
		return 0
	}
	return int64(len(names)) - 1
}
