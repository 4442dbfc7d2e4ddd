package main

import (
	"context"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"tandem/app"
	"tandem/console"
	"tandem/console/table"
)

// asking is what a command asks the API for. The arguments are those of the command.
type asking[T any] func(ctx context.Context, c *app.Connection, args []string) (T, error)

// shows lets a command ask the API and show the answer: as print does or, with --json, as the API gives it.
func shows[T any](at *connectFlags, cmd *cobra.Command, ask asking[T], print func(w *tabwriter.Writer, got T)) *cobra.Command {
	return askedFor(at, cmd, false, ask, func(w *tabwriter.Writer, got T, _ bool) { print(w, got) }, false)
}

// keeps is shows for a command that also makes the data directory, if there is none.
func keeps[T any](at *connectFlags, cmd *cobra.Command, ask asking[T], print func(w *tabwriter.Writer, got T)) *cobra.Command {
	return askedFor(at, cmd, true, ask, func(w *tabwriter.Writer, got T, _ bool) { print(w, got) }, false)
}

// showsWide is shows for a list that has more columns with --output wide.
func showsWide[T any](at *connectFlags, cmd *cobra.Command, ask asking[T],
	print func(w *tabwriter.Writer, got T, wide bool)) *cobra.Command {
	return askedFor(at, cmd, false, ask, print, true)
}

func askedFor[T any](at *connectFlags, cmd *cobra.Command, make bool, ask asking[T],
	print func(w *tabwriter.Writer, got T, wide bool), wide bool) *cobra.Command {
	var show listing
	show.addListingFlags(cmd, wide)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := show.check(); err != nil {
			return err
		}
		return at.with(cmd, make, func(ctx context.Context, c *app.Connection) error {
			got, err := ask(ctx, c, args)
			if err != nil {
				return err
			}
			return show.Show(cmd.OutOrStdout(), got, func(w *tabwriter.Writer) { print(w, got, show.Output == "wide") })
		})
	}
	return cmd
}

// prints lets a command ask the API and print the answer as JSON, which another command takes.
func prints(at *connectFlags, cmd *cobra.Command, ask asking[any]) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
			got, err := ask(ctx, c, args)
			if err != nil {
				return err
			}
			return table.JSON(cmd.OutOrStdout(), got)
		})
	}
	return cmd
}

// says lets a command do something and say in a line that it was done. Make makes the data directory, if there is none.
func says(at *connectFlags, cmd *cobra.Command, make bool, do asking[string]) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return at.with(cmd, make, func(ctx context.Context, c *app.Connection) error {
			done, err := do(ctx, c, args)
			if err != nil {
				return err
			}
			return console.Say(cmd.OutOrStdout(), "%s\n", done)
		})
	}
	return cmd
}

// reports lets a command do something on this machine, without the API, and show what came of it. Wrong says that not all is well
// with it, which is exit status 1.
func reports[T any](cmd *cobra.Command, do func(ctx context.Context, args []string) (T, error),
	print func(w *tabwriter.Writer, got T), wrong func(got T) bool) *cobra.Command {
	var show listing
	show.addListingFlags(cmd, false)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx, stop := interruptible(cmd.Context())
		defer stop()
		got, err := do(ctx, args)
		if err == nil {
			err = show.Show(cmd.OutOrStdout(), got, func(w *tabwriter.Writer) { print(w, got) })
		}
		if err != nil {
			return failed(cmd, err)
		}
		if wrong(got) {
			return console.ErrReported
		}
		return nil
	}
	return cmd
}
