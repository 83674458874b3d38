// Package output writes what a run leaves: Parquet tables, run.json,
// summary.json, the terminal summary and the progress display.
//
// A file has its final name only when it is complete; until then it ends in
// .partial. Every failure to write is an error of the run. Text that a server
// gave is escaped before it goes to a terminal.
package output
