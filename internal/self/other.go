//go:build !unix

package self

import "time"

// CPU is not measured here.
func CPU() (user, system time.Duration) { return 0, 0 }

func descriptors() int64 { return 0 }

func maxDescriptors() int64 { return 0 }
