package mcp

// Version is a protocol version, a date in the form the protocol writes it.
type Version string

// The protocol versions this client speaks.
const (
	V20241105 Version = "2024-11-05"
	V20250326 Version = "2025-03-26"
	V20250618 Version = "2025-06-18"
	V20251125 Version = "2025-11-25"
	V20260728 Version = "2026-07-28"
)

// Versions lists every known version, newest first.
func Versions() []Version {
	return []Version{V20260728, V20251125, V20250618, V20250326, V20241105}
}
