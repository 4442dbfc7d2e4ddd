package main

import "github.com/spf13/cobra"

func newAdmin() *cobra.Command {
	cmd := &cobra.Command{
		Use: "admin", Short: "Look after the machine that Tandem runs on",
		Long: `Commands for who has the data directory in their hands. They need no token.`,
		RunE: func(cmd *cobra.Command, args []string) error { return subcommand(cmd, args) },
	}
	cmd.AddCommand(newAdminToken(), newAdminLink(), newRotateKey())
	return cmd
}
