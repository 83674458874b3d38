package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"mcpbench/output"
)

func newRecoverCommand(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "recover DIR...",
		Short: "Finish the files of a run that was killed",
		Long: "recover turns the journal of a run that was killed into Parquet files and writes its\n" +
			"summary. What the run had begun is counted, what can be read is kept, and what is lost\n" +
			"is named: the exit code is then 1. It changes nothing in a folder that needs it not, and\n" +
			"never touches one whose run goes on.",
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
	report, err := output.Recover(dir)
	if err != nil {
		return err
	}
	if err := printed(io.WriteString(w, report.Text(dir))); err != nil {
		return err
	}
	if err := report.Err(); err != nil {
		return fmt.Errorf("recover %s: %w", dir, err)
	}
	return nil
}
