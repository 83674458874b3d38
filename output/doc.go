// Package output writes what a run leaves: Parquet tables, run.json,
// summary.json, the terminal summary and the progress display.
package output
