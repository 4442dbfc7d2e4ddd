package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"tandem/app"
)

func newSandbox() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sandbox",
		Short: "Look after the interpreters that run code of workflows",
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "prepare",
		Short: "Compile the Python interpreter ahead, once for this machine",
		Long: `Prepare compiles the Python interpreter and keeps it in your cache directory, where every data directory
of yours finds it. Without it, "tandem serve" does the same in the background when it starts, and the first
Python code of anything else waits some seconds for it. "make build" prepares what it has built.

Nothing is done when it is there already. A cache that other users could write is not used.`,
		Example: "  tandem sandbox prepare",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			begun := time.Now()
			dir, made, err := app.PreparePython(cmd.Context())
			if err != nil {
				return failed(cmd, err)
			}
			if !made {
				fmt.Fprintf(cmd.OutOrStdout(), "the Python interpreter is ready in %s\n", dir)
				return nil
			}
			fmt.Fprintf(cmd.OutOrStdout(), "the Python interpreter was compiled into %s in %s\n", dir, time.Since(begun).Round(100*time.Millisecond))
			return nil
		},
	})
	return cmd
}
