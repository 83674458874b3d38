//go:build !linux

package self

func maxProcesses() int64 { return 0 }
