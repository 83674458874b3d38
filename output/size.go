package output

// FormatBytes writes a size for a person, as the summary does: 0.9 MiB.
func FormatBytes(n int64) string { return formatBytes(n) }
