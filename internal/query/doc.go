// Package query holds tests only: the results of runs as DuckDB reads them. It
// is a module of its own so that nobody else needs DuckDB or a C compiler.
package query
