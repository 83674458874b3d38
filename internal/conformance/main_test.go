// Package conformance runs the mcpbench command against real MCP servers: the
// official Go SDK, mark3labs/mcp-go and the npm servers, and against raw fakes
// that fail in known ways.
//
// MCPBENCH_BIN names a built command to test instead of building one, and
// CONFORMANCE_DURATION is the length of each run of the matrix (2s).
package conformance

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// bin holds the paths of the programs under test and of the Go servers.
var bin struct{ mcpbench, gosdkserver, mcpgoserver string }

// matrixDuration is the length of each run of the matrix.
var matrixDuration = 2 * time.Second

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	if s := os.Getenv("CONFORMANCE_DURATION"); s != "" {
		if matrixDuration, err = time.ParseDuration(s); err != nil {
			return 1, fmt.Errorf("CONFORMANCE_DURATION: %w", err)
		}
	}
	dir, err := os.MkdirTemp("", "mcpbench-conformance-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if bin.mcpbench = os.Getenv("MCPBENCH_BIN"); bin.mcpbench == "" {
		bin.mcpbench = filepath.Join(dir, "mcpbench")
		if err := command("../..", "go", "build", "-o", bin.mcpbench, "./cmd/mcpbench"); err != nil {
			return 1, err
		}
	}
	bin.gosdkserver = filepath.Join(dir, "gosdkserver")
	bin.mcpgoserver = filepath.Join(dir, "mcpgoserver")
	if err := command(".", "go", "build", "-o", dir+string(filepath.Separator), "./cmd/..."); err != nil {
		return 1, err
	}
	if err := installNPM(); err != nil {
		return 1, err
	}
	code = m.Run()
	if table := matrix.table() + operationsTable; table != "" {
		_, _ = fmt.Fprint(os.Stdout, table)
	}
	return code, nil
}

// installNPM installs the npm servers at the versions of the lock file, once.
func installNPM() error {
	if _, err := os.Stat(filepath.Join("npm", "node_modules", ".package-lock.json")); err == nil {
		return nil
	}
	return command("npm", "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
}

// command runs a program in dir and returns what it printed when it fails.
func command(dir, name string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// script returns the command line of an npm server.
func script(t *testing.T, name string, args ...string) []string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("npm", "node_modules", "@modelcontextprotocol", name, "dist", "index.js"))
	if err != nil {
		t.Fatal(err)
	}
	return append([]string{"node", path}, args...)
}
