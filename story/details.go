package story

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/node/printed"
	"tandem/workflow"
)

// flowDetails adds to the details of a node that leads the flow which way it went: the key that it produced, and for a condition what
// came of it.
func flowDetails(graph *workflow.Graph, a *host.ActivationView, details json.RawMessage) (json.RawMessage, error) {
	i, ok := graph.Node(a.Node)
	if !ok || a.Status != engine.NodeDone || len(a.Outputs) == 0 || workflow.TypeOf(graph.Nodes[i].Kind) != workflow.TypeFlow {
		return details, nil
	}
	told := map[string]json.RawMessage{}
	if len(details) > 0 && json.Unmarshal(details, &told) != nil {
		return details, nil // not in the form of details; it is shown as it is
	}
	keys := make([]string, len(a.Outputs))
	for n, o := range a.Outputs {
		keys[n] = o.Key
	}
	slices.Sort(keys)
	var taken any = keys
	if len(keys) == 1 {
		taken = keys[0]
	}
	var err error
	if told["branch_taken"], err = json.Marshal(taken); err != nil {
		return nil, fault.Newf(fault.Internal, "the branch of node %q cannot be told: %w", a.Node, err)
	}
	switch chooses := graph.Nodes[i].Plan.Traits.Chooses; {
	case chooses == workflow.ChoosesTruth && len(keys) == 1:
		told["condition_result"] = json.RawMessage(keys[0]) // its keys are true and false
	case chooses == workflow.ChoosesCase:
		told["condition_result"] = told["branch_taken"]
	}
	return json.Marshal(told)
}

// toolDetails adds to the details of a tool what it gave, which is in its output.
func toolDetails(details, output json.RawMessage) json.RawMessage {
	told := map[string]json.RawMessage{}
	result := gjson.GetBytes(output, "result")
	if len(details) == 0 || !result.Exists() || json.Unmarshal(details, &told) != nil {
		return details
	}
	told["tool_result"] = json.RawMessage(result.Raw)
	all, err := json.Marshal(told)
	if err != nil {
		return details // made of JSON, it always is JSON
	}
	return all
}

// fullAnswer is the text for the user: what the nodes with to_user have said in attempts that were completed, in the order in which they
// began. What is larger than [MaxWhole] is left out.
func (r *Reading) fullAnswer(ctx context.Context, all map[string]api.NodeExecution) (string, error) {
	toUser := r.Ready.ToUser()
	if len(toUser) == 0 {
		return "", nil
	}
	var said []string
	seen := map[string]bool{}
	for _, id := range slices.Backward(r.View.Sequence) { // of a node that ran several times the last counts
		n, begun := all[id]
		if !toUser[id] || !begun || seen[id] || n.Status != string(engine.NodeDone) {
			continue
		}
		seen[id] = true
		result, err := r.wholeResult(ctx, id, n.OutputData["result"])
		if err != nil {
			return "", err
		}
		if text := printed.Spoken(result); text != "" {
			said = append(said, text)
		}
	}
	slices.Reverse(said)
	return strings.Join(said, "\n"), nil
}

// metadata is what the execution was started with, by name.
func (r *Reading) metadata() json.RawMessage {
	if len(r.Start.Initial) > host.MaxInline {
		return host.Omitted(len(r.Start.Initial)) // the context has it
	}
	return r.Start.Initial
}

// metrics is the execution in figures; its nodes have been told.
func (r *Reading) metrics(e *api.Execution) api.ExecutionMetrics {
	m := api.ExecutionMetrics{
		DurationMS: e.DurationMS, WaitedMS: r.View.WaitedFor(r.lib.now()), Nodes: map[string]int{},
		Activations: int64(len(r.View.Sequence)) + r.View.SequenceCut,
		Retries:     r.View.Retries, Cost: e.CreditsConsumed,
	}
	for _, n := range e.NodeExecutions { // order does not matter: they are counted
		m.Nodes[n.Status]++
	}
	if e.TokensUsed != nil {
		m.TotalTokens = e.TokensUsed.TotalTokens
	}
	return m
}
