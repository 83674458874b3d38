package metrics

import (
	"fmt"
	"time"
)

// OwnUse is what the load generator itself used of its machine, at most at any
// look, one a second. What is 0 is not known.
type OwnUse struct {
	CPUUser, CPUSystem time.Duration // since the process began
	// CPUShareMax is the share of the processors that this process may use, 0 to 1,
	// of the busiest second of the measured run; nil when none was watched.
	CPUShareMax *float64
	// GCPauseMax is the longest time that one collection of garbage stopped all
	// work in the measured run.
	GCPauseMax time.Duration
	Goroutines int64
	// FDs are open file descriptors, of FDsLimit.
	FDs, FDsLimit int64
	// Ports are the connections to one target, of PortsLimit, the local ports that
	// all source addresses have together for one target.
	Ports, PortsLimit int64
	// TimeWait are the connections of all processes in TIME-WAIT: those of ours
	// among them keep their ports too.
	TimeWait int64
}

// nearLimit is the share of a limit from which on a failure of our own is put
// down to it. It is not 1: there is one look a second.
const nearLimit = 0.95

func near(n, limit int64) bool { return limit > 0 && float64(n) >= nearLimit*float64(limit) }

// scarce says which limit our own failures ran into, and what to do; "" when
// none was near.
func (u *OwnUse) scarce() string {
	switch {
	case near(u.FDs, u.FDsLimit):
		return fmt.Sprintf("%d of %d file descriptors were open: raise the limit (ulimit -n), or open fewer sessions", u.FDs, u.FDsLimit)
	case near(u.Ports, u.PortsLimit):
		return fmt.Sprintf("%d of %d local ports were in use to one target: give more source addresses (--source-ip), or open fewer sessions",
			u.Ports, u.PortsLimit)
	case near(u.Ports+u.TimeWait, u.PortsLimit):
		return fmt.Sprintf("%d of %d local ports were in use to one target and %d connections in TIME-WAIT: "+
			"give more source addresses (--source-ip), or keep connections longer", u.Ports, u.PortsLimit, u.TimeWait)
	}
	return ""
}

// known is n, nil when that is 0.
func known(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}
