//go:build !linux

package outgoing

import "syscall"

// bindLate has no counterpart here.
func bindLate(_, _ string, _ syscall.RawConn) error { return nil }
