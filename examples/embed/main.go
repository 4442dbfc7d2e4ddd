// Command embed is a program of its own that has Tandem inside. It brings a kind of node, a channel to people, a provider of models and a
// trigger, runs workflows that use them, and prints what happens. Nothing but the data directory is touched, and nothing is reached over a
// network:
//
//	cd examples/embed && go run .
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"tandem/api"
	"tandem/app"
	"tandem/client"
	"tandem/plug"
	"tandem/sandbox"
)

//go:embed order.yaml
var order []byte

//go:embed bell.yaml
var counter []byte

func main() {
	if sandbox.IsChild() { // this process is to run code of a workflow, and nothing else
		sandbox.Child()
	}
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run opens an instance with the shop's extension, runs the workflow once and answers what it asks.
func run(ctx context.Context, out io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "tandem-embed-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	letters, customers := postbox{cards: make(chan postcard, 1)}, rings{rung: make(chan ring)}
	instance, err := app.Open(ctx, app.Options{Dir: dir, Extensions: []plug.Maker{shop(letters, customers)}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, instance.Close()) }()
	tandem, closeAPI, err := instance.API()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAPI()) }()

	// A profile says which model is used, and through which provider: here through our own.
	if _, err := tandem.CreateProfile(ctx, api.Profile{ID: "bird", Provider: "parrot", Model: "african-grey"}); err != nil {
		return err
	}
	if _, err := tandem.CreateWorkflow(ctx, order, true); err != nil {
		return err
	}
	started, err := tandem.Execute(ctx, "order", api.ExecuteRequest{Inputs: json.RawMessage(`{"item": " Tea", "pounds": 3}`)}, "")
	if err != nil {
		return err
	}

	// The question goes out by our own channel, and the one who started the execution may answer it.
	select {
	case card := <-letters.cards:
		fmt.Fprintf(out, "a postcard: %s\n", card.text)
		if _, err := tandem.Respond(ctx, card.question, api.RespondRequest{ResponseData: json.RawMessage(`{"action": "approve"}`)}); err != nil {
			return err
		}
	case <-ctx.Done():
		return fmt.Errorf("no postcard has come: %w", context.Cause(ctx))
	}
	ended, err := instance.Wait(ctx, app.Local(), started.ExecutionID)
	if err != nil {
		return err
	}
	outputs, err := instance.Outputs(ctx, app.Local(), started.ExecutionID)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "the execution has ended: %s\n", ended.Status)
	var thanks struct {
		Summary string `json:"summary"`
	}
	if err := json.Unmarshal(outputs["thanks"], &thanks); err != nil {
		return fmt.Errorf("read what the model has said, %s: %w", outputs["thanks"], err)
	}
	fmt.Fprintf(out, "the parrot says: %s\n", thanks.Summary)
	return ringTheBell(ctx, out, instance, tandem, customers)
}

// ringTheBell deploys a workflow that starts by itself when a customer rings, and rings.
func ringTheBell(ctx context.Context, out io.Writer, instance *app.Instance, tandem *client.Client, customers rings) error {
	if _, err := tandem.CreateWorkflow(ctx, counter, true); err != nil {
		return err
	}
	if _, err := tandem.Deploy(ctx, "counter"); err != nil {
		return err
	}
	stored := make(chan struct{})
	select {
	case customers.rung <- ring{wants: json.RawMessage(`{"item": "coffee", "pounds": 2}`), stored: stored}:
	case <-ctx.Done():
		return fmt.Errorf("nobody listens to the bell: %w", context.Cause(ctx))
	}
	select {
	case <-stored:
	case <-ctx.Done():
		return fmt.Errorf("the ring was not stored: %w", context.Cause(ctx))
	}
	history, err := tandem.Deliveries(ctx, client.DeliveryQuery{WorkflowID: "counter"})
	if err != nil {
		return err
	}
	delivery := history.Deliveries[0]
	ended, err := instance.Wait(ctx, app.Local(), delivery.ExecutionID)
	if err != nil {
		return err
	}
	outputs, err := instance.Outputs(ctx, app.Local(), delivery.ExecutionID)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: %s, %s\n", delivery.Key, ended.Status, outputs["price"])
	return nil
}
