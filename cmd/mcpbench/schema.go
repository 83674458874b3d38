package main

import (
	"github.com/spf13/cobra"

	"mcpbench/scenarios"
)

func newSchemaCommand(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the scenario's JSON Schema",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return printed(s.out.Write(scenarios.SchemaJSON()))
		},
	}
}
