package story

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"tandem/api"
	"tandem/engine"
	"tandem/host"
	"tandem/text"
	"tandem/workflow"
)

// What is told of turns with models: what they used, what was attached to them, what was said.

// tokensOf tells what was used of models; nil when nothing was.
func tokensOf(u host.Usage) *api.TokenUsage {
	if u.InputTokens == 0 && u.OutputTokens == 0 {
		return nil
	}
	return &api.TokenUsage{
		InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, TotalTokens: u.InputTokens + u.OutputTokens,
		CachedTokens: u.CachedTokens, Cost: u.Credits,
	}
}

// tellStep says whose step an activation is: of the node that is attached and does it, or of the node that is led.
func tellStep(graph *workflow.Graph, owner int, language string, a *host.ActivationView, e *api.NodeExecution) {
	n := &graph.Nodes[owner]
	_, name := a.ID.Split()
	e.NodeName = n.Name + " · " + turnTitle(name, language)
	var detail struct {
		Node string `json:"attached_node"`
	}
	if json.Unmarshal(a.Detail, &detail) == nil && detail.Node != "" {
		if i, ok := graph.Node(detail.Node); ok {
			n = &graph.Nodes[i]
			e.NodeName = n.Name + " · " + turnTitle(name, language)
		}
	}
	e.NodeType, e.NodeSubtype, _ = strings.Cut(n.Kind, ".")
}

// turnTitle is how a step of a turn with a model is called: what it does and its number.
func turnTitle(name, language string) string {
	kind, number, _ := strings.Cut(name, "_")
	title, known := turnTitles()[kind]
	numbers := strings.Split(number, "_")
	switch {
	case !known || len(numbers) > 2:
		return strings.ReplaceAll(name, "_", " ")
	case number == "":
		return title.In(language)
	case len(numbers) == 1:
		return text.Of("%s %s", title, numbers[0]).In(language)
	}
	return text.Of("%s %s %s", title, numbers[0], numbers[1]).In(language)
}

// turnTitles are what the steps of a turn do.
func turnTitles() map[string]text.Text {
	return map[string]text.Text{
		engine.StepLoad: text.Of("load"), engine.StepComplete: text.Of("complete"), engine.StepApprove: text.Of("approve"),
		engine.StepCall: text.Of("call"), engine.StepStore: text.Of("store"),
	}
}

// attachedExecutions are what the nodes attached to a node have done for it, in the order in which they began.
func attachedExecutions(node string, all map[string]api.NodeExecution) map[string][]api.NodeExecution {
	var attached map[string][]api.NodeExecution
	for id, e := range all { // order does not matter: sorted below
		if !strings.HasPrefix(id, node+".") || !strings.HasPrefix(e.ActivationID, all[node].ActivationID+"[") {
			continue // also what it did in another iteration of a loop
		}
		var detail struct {
			Node string `json:"attached_node"`
		}
		if json.Unmarshal(e.ExecutionDetails, &detail) != nil || detail.Node == "" {
			continue // a completion, or a step that has not said whose it is
		}
		if attached == nil {
			attached = map[string][]api.NodeExecution{}
		}
		attached[detail.Node] = append(attached[detail.Node], e)
	}
	for _, list := range attached { // order does not matter: each is sorted by itself
		slices.SortFunc(list, func(a, b api.NodeExecution) int {
			return cmp.Or(cmp.Compare(a.StartTime, b.StartTime), cmp.Compare(a.ActivationID, b.ActivationID))
		})
	}
	return attached
}

// conversation is what was said in an execution: as the turn that ended last has left it. One that is larger than [MaxWhole] is left out.
func (r *Reading) conversation(ctx context.Context, all map[string]api.NodeExecution) (json.RawMessage, error) {
	var turns []string
	for id, e := range all { // order does not matter: sorted below
		if e.NodeType == workflow.TypeAgent && len(e.OutputData["result"]) > 0 {
			turns = append(turns, id)
		}
	}
	slices.SortFunc(turns, func(a, b string) int {
		return cmp.Or(cmp.Compare(all[b].EndTime, all[a].EndTime), cmp.Compare(all[b].ActivationID, all[a].ActivationID))
	})
	for _, id := range turns {
		whole, err := r.wholeResult(ctx, id, all[id].OutputData["result"])
		if err != nil {
			return nil, err
		}
		var result struct {
			Context struct {
				Conversation json.RawMessage `json:"conversation"`
			} `json:"context"`
		}
		if json.Unmarshal(whole, &result) == nil && len(result.Context.Conversation) > 0 {
			return result.Context.Conversation, nil
		}
	}
	return nil, nil
}
