package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"mcpbench/output"
)

func newRecoverCommand(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "recover DIR...",
		Short: "Finish the files of a run that was killed",
		Long: "recover turns the journal of a run that was killed into Parquet files and writes its\n" +
			"summary. What can be read is kept, what cannot is told. It changes nothing in a folder\n" +
			"that needs it not, and never touches one whose run goes on.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			var errs []error
			for _, dir := range args {
				errs = append(errs, recoverOne(s.out, dir))
			}
			if err := errors.Join(errs...); err != nil {
				return failure("%w", err)
			}
			return nil
		},
	}
}

func recoverOne(w io.Writer, dir string) error {
	report, done, err := output.Complete(dir)
	if err != nil {
		return fmt.Errorf("recover %s: %w", dir, err)
	}
	if !done {
		return printed(fmt.Fprintf(w, "%s: complete already\n", dir))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: recovered %s from %s, verdict %s\n", dir, count(int(report.Rows.Requests), "request"),
		count(report.Segments, "journal segment"), report.Verdict)
	if report.TornBytes > 0 {
		fmt.Fprintf(&b, "  %s of a write that the kill cut short left out\n", output.FormatBytes(report.TornBytes))
	}
	if report.Gaps > 0 {
		fmt.Fprintf(&b, "  %s damaged: %s lost (%s); kept as *.damaged\n", count(report.Gaps, "place"),
			count(int(report.LostRecords), "record"), output.FormatBytes(report.LostBytes))
	}
	for _, name := range report.Aside {
		fmt.Fprintf(&b, "  left alone: %s\n", name)
	}
	return printed(io.WriteString(w, b.String()))
}
