package story

import (
	"encoding/json"

	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/engine"
	"tandem/host"
	"tandem/identity"
	"tandem/workflow"
)

// A wait that a call ends has an address. It is not kept anywhere: anyone who may send signals is told it with the activation, sealed anew
// each time, and all that were told mean the same wait.

// mayEndWaits says that somebody may see the addresses that end waits: those who may send signals, with a token that may be used for it.
// Anyone who has an address may be able to end the wait without a token.
func mayEndWaits(p identity.Principal) bool {
	return p.MayUse(identity.ScopeExecute) && p.Narrowed().Has(identity.Admin, identity.Editor, identity.Operator)
}

// AwaitedCall is the call that an activation waits for; not ok when it waits for none.
func AwaitedCall(graph *workflow.Graph, a *host.ActivationView) (call api.WaitedCall, ok bool) {
	if i, known := graph.Node(a.Node); !known || graph.Nodes[i].Plan.Traits.Signals != workflow.SignalsNamed ||
		a.Status != engine.NodeRunning {
		return api.WaitedCall{}, false
	}
	return readWaitedCall(a.Detail)
}

func readWaitedCall(details json.RawMessage) (call api.WaitedCall, ok bool) {
	detail := gjson.GetBytes(details, api.WaitDetail)
	return call, detail.IsObject() && json.Unmarshal([]byte(detail.Raw), &call) == nil
}

// addresses tells the address that ends the wait of an activation, empty when there is none.
type addresses func(a *host.ActivationView) (string, error)

// addressesFor are what somebody may see of the addresses of an execution's waits; nil: nothing.
func (l *Library) addressesFor(p identity.Principal, execution string, graph *workflow.Graph) addresses {
	if l.WaitAddress == nil || !mayEndWaits(p) {
		return nil
	}
	return func(a *host.ActivationView) (string, error) {
		if _, ok := AwaitedCall(graph, a); !ok {
			return "", nil
		}
		return l.WaitAddress(host.Ref{Workspace: p.Workspace, Execution: execution}, a.ID, a.Generation)
	}
}

// addAddress adds the address that ends a wait to an activation.
func (f addresses) addAddress(e *api.NodeExecution, a *host.ActivationView) (err error) {
	if f != nil {
		e.WaitURL, err = f(a)
	}
	return err
}

// addressed tells an activation together with the address that ends its wait.
func (r *Reading) addressed(a *host.ActivationView, values map[engine.Ref]json.RawMessage) (api.NodeExecution, error) {
	told, err := tellActivation(r.Graph, r.Start.Language, a, values)
	if _, awaited := AwaitedCall(r.Graph, a); err != nil || !awaited {
		return told, err
	}
	return told, r.lib.addressesFor(r.p, r.Journal.Execution, r.Graph).addAddress(&told, a)
}
