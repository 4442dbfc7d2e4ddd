package revisions

import (
	"context"
	"encoding/json"

	"github.com/tidwall/gjson"

	"tandem/engine"
	"tandem/identity"
	"tandem/workflow"
)

// Offer is what a workflow offers to those who call it like a function.
type Offer struct {
	Name        string
	Description string
	// Parameters is what its first trigger wants the inputs to be, a JSON Schema of an object; nil: it does not say.
	Parameters json.RawMessage
	// Acts is what it does to the world: once, if anything in it is to be done once, or may be.
	Acts workflow.Effect
}

// Offer tells what a revision of a workflow offers: "deployed", "latest" or a number.
func (c *Cache) Offer(ctx context.Context, p identity.Principal, workflowID, which string) (Offer, error) {
	request, ready, err := c.Request(ctx, p, workflowID, which)
	if err != nil {
		return Offer{}, err
	}
	o := Offer{Name: ready.Source.Metadata.Name, Description: ready.Source.Metadata.Description, Acts: workflow.Idempotent}
	if schema, err := ready.InputSchema(request.Trigger); err != nil {
		return Offer{}, err
	} else if schema != nil {
		config, _ := ready.NodeConfig(request.Trigger)
		o.Parameters = json.RawMessage(gjson.GetBytes(config, "input_schema").Raw)
	}
	if c.acts(ctx, p, ready, 0) {
		o.Acts = workflow.Once
	}
	return o, nil
}

// acts says that something in a revision is to be done once, or may be: in what it runs, too, and in the tools of its models.
func (c *Cache) acts(ctx context.Context, p identity.Principal, ready *Ready, depth int) bool {
	for i := range ready.Graph.Nodes {
		plan := &ready.Graph.Nodes[i].Plan
		switch {
		case plan.Disabled:
		case plan.Effect == workflow.Once || plan.Traits.GivesTasks || plan.Child != nil &&
			(plan.Child.Computed || depth >= engine.MaxDepth):
			return true
		case plan.Child != nil:
			_, child, err := c.Request(ctx, p, plan.Child.Workflow, plan.Child.Revision)
			if err != nil || c.acts(ctx, p, child, depth+1) {
				return true // what cannot be read may do anything
			}
		}
	}
	return false
}
