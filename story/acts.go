package story

import (
	"encoding/json"

	"tandem/api"
	"tandem/fault"
	"tandem/host"
	"tandem/store"
)

// acts tells what people did to the execution, and by which means. A fork has those of its source, as far as it shares its past.
func (r *Reading) acts() ([]api.Act, error) {
	var told []api.Act
	for _, a := range r.View.Acts {
		act := api.Act{
			Action: string(a.Action), By: a.By, TokenMadeBy: a.TokenMadeBy, Reason: a.Reason, NodeID: a.Node,
			ActivationID: string(a.Activation),
			Inherited:    r.Summary.ForkedFrom != "" && a.Time < r.View.Created, At: a.Time,
		}
		if act.NodeID == "" && a.Activation != "" {
			act.NodeID, _ = host.Shown(r.Graph, a.Activation)
		}
		if a.Ask != "" && !act.Inherited {
			act.InteractionID = r.interaction(a.Ask)
		}
		if len(a.Origin) > 0 {
			var how store.Origin
			if err := json.Unmarshal(a.Origin, &how); err != nil {
				return nil, fault.Newf(fault.Internal, "how an answer to execution %q came cannot be read: %w", r.Summary.ID, err)
			}
			act.Means, act.Ground, act.ReadBy, act.Reason = how.Means, how.Ground, how.ReadBy, how.Reason
			if made := how.Means.TokenMadeBy; made != a.By {
				act.TokenMadeBy = made
			}
		}
		told = append(told, act)
	}
	return told, nil
}
