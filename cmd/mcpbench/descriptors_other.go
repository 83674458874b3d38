//go:build !unix

package main

// descriptorLimit is 0: there is no limit to ask for.
func descriptorLimit() int { return 0 }
