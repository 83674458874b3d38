package metrics

import "syscall"

// Verdicts of a run.
const (
	VerdictPassed      = "passed"
	VerdictFailed      = "failed"
	VerdictUnsound     = "unsound"
	VerdictError       = "error"
	VerdictInterrupted = "interrupted"
)

// Exit codes. 130 and 143 are those of a shell for SIGINT and SIGTERM: 128
// plus the signal's number.
const (
	ExitOK           = 0
	ExitError        = 1 // the run could not finish, or a result could not be written
	ExitUsage        = 2 // bad usage or bad scenario; nothing was sent
	ExitUnsound      = 3
	ExitThreshold    = 99
	exitSignalOffset = 128
)

// VerdictFacts is what the verdict of a run depends on.
type VerdictFacts struct {
	BadUsage         bool
	CannotFinish     bool           // no session ever opened, target did not start, result not written
	Signal           syscall.Signal // that stopped the run; 0 is none
	Unsound          bool
	UserThresholds   bool // the user named at least one threshold
	ThresholdsFailed bool // at least one, given or default
}

// Decide returns the verdict and the exit code. When several apply the order
// is 2, 1, 130 or 143, 3, 99, 0; unsound counts only against thresholds that
// the user gave.
func (f VerdictFacts) Decide() (verdict string, exitCode int) {
	switch {
	case f.BadUsage:
		return VerdictError, ExitUsage
	case f.CannotFinish:
		return VerdictError, ExitError
	case f.Signal != 0:
		return VerdictInterrupted, exitSignalOffset + int(f.Signal)
	case f.Unsound && f.UserThresholds:
		return VerdictUnsound, ExitUnsound
	case f.ThresholdsFailed:
		return VerdictFailed, ExitThreshold
	}
	return VerdictPassed, ExitOK
}
