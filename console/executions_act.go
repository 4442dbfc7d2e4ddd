package console

import (
	"context"
	"fmt"

	"tandem/api"
	"tandem/app"
	"tandem/console/table"
	"tandem/engine"
)

// Act does something with an execution and says how it stands then.
func Act(ctx context.Context, tty *Terminal, c *app.Connection, show *table.Listing, id string, r api.ActionRequest) error {
	answer, err := c.Act(ctx, id, r)
	if err != nil {
		return err
	}
	return printAction(tty, c, show, id, answer)
}

// Input answers a question of a node, or signals a node that waits, and says how the execution stands then.
func Input(ctx context.Context, tty *Terminal, c *app.Connection, show *table.Listing, id string, r api.InputRequest) error {
	answer, err := c.Input(ctx, id, r)
	if err != nil {
		return err
	}
	return printAction(tty, c, show, id, answer)
}

// printAction prints what became of an action. Without a server nobody goes on with the execution, so it says who can.
func printAction(tty *Terminal, c *app.Connection, show *table.Listing, id string, answer api.ActionResponse) error {
	if show.JSON {
		return table.JSON(tty.Out, answer)
	}
	if answer.ExecutionID != "" {
		id = answer.ExecutionID
	}
	if _, err := fmt.Fprintf(tty.Out, "%s: %s; it is %s\n", id, answer.Message, answer.ExecutionStatus); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	switch status := engine.Status(answer.ExecutionStatus); {
	case !c.Local(), status.Final(), status == engine.StatusPaused, status == "":
	default:
		fmt.Fprintf(tty.Err, "it goes on with: tandem run --resume %s, or with the next server on this data directory\n", id)
	}
	return nil
}
