package main

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
)

// cmdEnds is "ends DIR/RUN REASON=N...": why the sessions of a run ended.
func cmdEnds(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: ends DIR/RUN REASON=N...")
	}
	dirs, err := filepath.Glob(ts.MkAbs(args[0]))
	ts.Check(err)
	if len(dirs) != 1 {
		ts.Fatalf("%d runs match %s, want 1", len(dirs), args[0])
	}
	got, want := map[string]int{}, map[string]int{}
	for _, s := range table[sessionColumns](ts, dirs[0], "sessions") {
		got[s.EndReason]++
	}
	for _, a := range args[1:] {
		name, n, _ := strings.Cut(a, "=")
		want[name] = atoi(ts, n)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		ts.Fatalf("sessions by end reason (-want +got):\n%s", diff)
	}
}

// cmdWarmed is "warmed DIR/RUN N": at least N iterations, all completed, were of the
// warm-up; those that were under way when it ended come on top.
func cmdWarmed(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: warmed DIR/RUN N")
	}
	dirs, err := filepath.Glob(ts.MkAbs(args[0]))
	ts.Check(err)
	if len(dirs) != 1 {
		ts.Fatalf("%d runs match %s, want 1", len(dirs), args[0])
	}
	rows := slices.DeleteFunc(table[iterationColumns](ts, dirs[0], "iterations"), func(r iterationColumns) bool { return !r.Warmup })
	for _, r := range rows {
		if r.Outcome != "completed" {
			ts.Fatalf("an iteration of the warm-up is %s", r.Outcome)
		}
	}
	if want := atoi(ts, args[1]); len(rows) < want {
		ts.Fatalf("%d iterations of the warm-up, want at least %d", len(rows), want)
	}
}
