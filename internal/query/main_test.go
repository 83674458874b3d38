package query_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/duckdb/duckdb-go/v2"
)

// mcpbench is the command under test, built once.
var mcpbench string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "query")
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	mcpbench = filepath.Join(dir, "mcpbench")
	build := exec.CommandContext(context.Background(), "go", "build", "-o", mcpbench, "./cmd/mcpbench")
	build.Dir = filepath.Join("..", "..")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "build the command:", err)
		return 1
	}
	return m.Run()
}

// open returns a database in memory.
func open(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	db.SetMaxOpenConns(1) // views belong to the database in memory of one connection
	return db
}

// query returns all rows of a statement as maps by column.
func query(t *testing.T, db *sql.DB, statement string) []map[string]any {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), statement)
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]any
	for rows.Next() {
		values, places := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			places[i] = &values[i]
		}
		if err := rows.Scan(places...); err != nil {
			t.Fatal(err)
		}
		row := map[string]any{}
		for i, c := range columns {
			row[c] = values[i]
		}
		out = append(out, row)
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return out
}

// statements are those of a file of SQL, with its results folder replaced.
func statements(t *testing.T, path, results string) []string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for s := range strings.SplitSeq(strings.ReplaceAll(string(data), "results/*", results+"/*"), ";") {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// onlyRun is the one run in a folder of results.
func onlyRun(t *testing.T, results string) string {
	t.Helper()
	runs, err := filepath.Glob(filepath.Join(results, "*"))
	if err != nil || len(runs) != 1 {
		t.Fatalf("runs in %s: %v, %v, want one", results, runs, err)
	}
	return runs[0]
}
