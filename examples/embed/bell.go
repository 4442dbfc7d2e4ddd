package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"tandem/fault"
	"tandem/node"
	"tandem/trigger"
	"tandem/workflow"
)

// bellKind is the kind of trigger that the bell of the shop starts.
const bellKind = "TRIGGER.BELL"

type bellConfig struct {
	Counter string `json:"counter" required:"true" fixed:"true" doc:"The counter whose bell it is." zh:"铃所在的柜台。"`
}

// bell is where an execution begins when somebody rings. A kind is needed besides the source: it is what people write into a workflow.
func bell() node.Kind {
	return node.Define(node.About{
		Name: bellKind, Title: node.Says("Bell", "响铃"), Description: node.Says("Starts when a customer rings at a counter.", "顾客在柜台按铃时启动。"), Effect: workflow.Pure,
		Keys:   []node.Key{{Name: "result", Meaning: node.Says("What the customer wants.", "顾客的需求。"), Fields: []node.Value{node.HandedOn()}}},
		Inputs: node.HandsOn(),
	}, func(_ context.Context, _ *node.Call, _ bellConfig, in json.RawMessage) (json.RawMessage, error) {
		return in, nil
	})
}

// rings is the source of the kind. It has to listen, because nobody calls it: what is rung for comes from a channel, and is answered when
// it is stored.
type rings struct{ rung chan ring }

// ring is a customer who rings.
type ring struct {
	wants  json.RawMessage
	stored chan<- struct{}
}

// Kind implements [trigger.Source].
func (rings) Kind() string { return bellKind }

// Register implements [trigger.Source]: a workflow for a counter that is not there cannot be deployed.
func (rings) Register(_ context.Context, t trigger.Trigger) error {
	cfg, err := node.Configuration[bellConfig](t.Config)
	if err == nil && cfg.Counter != "front" {
		err = fault.Newf(fault.InvalidConfig, "counter: there is no counter %q; this shop has one that is called front", cfg.Counter)
	}
	return err
}

// Listen implements [trigger.Listener]. The cursor is how often the bell was rung. It is stored together with the start of the execution,
// so a source that can ask again for what it has not delivered loses nothing and delivers nothing twice, whenever the program dies.
func (r rings) Listen(ctx context.Context, t trigger.Trigger, deliver trigger.Deliver) error {
	count, err := strconv.Atoi(string(t.Cursor))
	if err != nil {
		count = 0 // nobody has rung yet
	}
	t.Ready() // "tandem triggers list" says that it listens
	for {
		select {
		case one := <-r.rung:
			count++
			event := trigger.Event{Key: fmt.Sprint("ring ", count), Payload: one.wants}
			if err := deliver(ctx, event, []byte(strconv.Itoa(count))); err != nil {
				return err
			}
			close(one.stored)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
