package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"tandem/api"
	"tandem/app"
	"tandem/console"
)

// newAction makes a command for an action on a whole execution.
func newAction(at *connectFlags, action, short string) *cobra.Command {
	var reason string
	var show listing
	cmd := &cobra.Command{
		Use: action + " EXECUTION", Short: short, Args: one("execution"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return act(cmd, at, &show, args[0], api.ActionRequest{Action: action, Reason: reason})
		},
	}
	show.addListingFlags(cmd, false)
	addReason(cmd, &reason)
	return cmd
}

// addReason adds the flag of what is recorded with an action.
func addReason(cmd *cobra.Command, reason *string) {
	cmd.Flags().StringVar(reason, "reason", "", "why, for those who look at the execution later")
}

// target says which node of an execution an action is about.
type target struct{ node, activation string }

func (t *target) addTargetFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&t.node, "node", "", "the node")
	cmd.Flags().StringVar(&t.activation, "activation", "", "one activation of it, such as 'each[2]/fetch', where it ran several times")
}

func (t *target) check() error {
	if t.node == "" && t.activation == "" {
		return errors.New("name what it is about with --node or --activation")
	}
	return nil
}

// newNodeAction makes a command, called name, for an action on a node of an execution. Complete, unless it is nil, fills in what the
// command has further flags for.
func newNodeAction(at *connectFlags, name, action, short string, complete func(*cobra.Command, *api.ActionRequest) error) *cobra.Command {
	var t target
	var reason string
	var show listing
	cmd := &cobra.Command{
		Use: name + " EXECUTION --node NODE", Short: short, Args: one("execution"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := t.check(); err != nil {
				return err
			}
			r := api.ActionRequest{Action: action, NodeID: t.node, ActivationID: t.activation, Reason: reason}
			if complete != nil {
				if err := complete(cmd, &r); err != nil {
					return err
				}
			}
			return act(cmd, at, &show, args[0], r)
		},
	}
	t.addTargetFlags(cmd)
	addReason(cmd, &reason)
	show.addListingFlags(cmd, false)
	return cmd
}

func newRetry(at *connectFlags) *cobra.Command {
	return newNodeAction(at, "retry", "retry_node", "Try a failed node again", nil)
}

func newSkip(at *connectFlags) *cobra.Command {
	var output string
	cmd := newNodeAction(at, "skip", "skip_node", "Go on without a node", func(cmd *cobra.Command, r *api.ActionRequest) (err error) {
		if cmd.Flags().Changed("output") {
			r.Output, err = console.ParseValue("output", output, false)
		}
		return err
	})
	cmd.Flags().StringVar(&output, "output", "", "the node counts as completed with this output, as JSON; without it, as skipped")
	return cmd
}

func newFork(at *connectFlags) *cobra.Command {
	var input string
	const short = "Start an execution that shares another one's past up to a node"
	cmd := newNodeAction(at, "fork", "fork", short, func(_ *cobra.Command, r *api.ActionRequest) (err error) {
		if input != "" {
			r.Input, err = console.ParseValue("input", input, true)
		}
		return err
	})
	cmd.Flags().StringVar(&input, "input", "", "edited values, as a JSON object: whatever reads these names in the fork reads them; other names stay as they were")
	cmd.Flags().Lookup("reason").Usage = "why, for those who look at the execution or are asked in it"
	return cmd
}

func newInput(at *connectFlags) *cobra.Command {
	var t target
	var interaction, value string
	var show listing
	cmd := &cobra.Command{
		Use: "input EXECUTION --node NODE --value JSON", Short: "Answer a question, or signal a node that waits",
		Long: `Input answers the open question of a node, or is a signal to a node that waits for one.

When nobody knows whether an interrupted node has done its work, the answer says it:
  --value '{"outcome": "done"}'        it was done
  --value '{"outcome": "not_done"}'    it was not; do it now
  --value '{"outcome": "stop"}'        let the node fail`,
		Args: one("execution"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if t.node == "" {
				return errors.New("name the node that waits with --node")
			}
			r := api.InputRequest{NodeID: t.node, ActivationID: t.activation, InteractionID: interaction}
			if cmd.Flags().Changed("value") {
				raw, err := console.ParseValue("value", value, false)
				if err != nil {
					return err
				}
				r.InputData = raw
			}
			return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
				return console.Input(ctx, terminal(cmd), c, &show.Listing, args[0], r)
			})
		},
	}
	t.addTargetFlags(cmd)
	cmd.Flags().StringVar(&interaction, "interaction", "", "the question, where the node asks several")
	cmd.Flags().StringVar(&value, "value", "", "the answer or the payload, as JSON")
	show.addListingFlags(cmd, false)
	return cmd
}

// act does something with an execution and says how it stands then.
func act(cmd *cobra.Command, at *connectFlags, show *listing, id string, r api.ActionRequest) error {
	return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
		return console.Act(ctx, terminal(cmd), c, &show.Listing, id, r)
	})
}
