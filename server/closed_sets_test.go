package server

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tandem/agent"
	"tandem/api"
	"tandem/engine"
	"tandem/human"
	"tandem/human/form"
	"tandem/human/replies"
	"tandem/identity"
	"tandem/store"
	"tandem/workflow"
)

// What the description of the API lists of a closed set is what there is of it: programs check what they know against the list.
func TestClosedSets(t *testing.T) {
	t.Parallel()
	statuses, roles := texts(engine.Statuses()), texts(identity.Roles())
	scopes := append(texts(identity.Scopes()), string(identity.ScopeLogin))
	types := []string{form.Approval, form.Input, form.Selection, form.Review}
	purposes := []string{form.PurposeNode, form.PurposeConfirm, form.PurposeParam, form.PurposeToolApproval, form.PurposeOutcomeUnknown,
		form.PurposeBudget, form.PurposeDrift, form.PurposeActivation}
	grounds := []string{store.GroundOverride, store.GroundNobodyLeft, store.GroundReading}
	for _, c := range []struct {
		of    reflect.Type
		field string
		want  []string
	}{
		{reflect.TypeFor[api.Execution](), "Status", statuses}, {reflect.TypeFor[api.ExecutionSummary](), "Status", statuses},
		{reflect.TypeFor[api.User](), "Roles", roles}, {reflect.TypeFor[api.Token](), "Scopes", scopes},
		{reflect.TypeFor[api.Interaction](), "InteractionType", types}, {reflect.TypeFor[api.HistoryQuestion](), "InteractionType", types},
		{reflect.TypeFor[api.UserInputRequest](), "InteractionType", types},
		{reflect.TypeFor[api.Interaction](), "Purpose", purposes}, {reflect.TypeFor[api.HistoryQuestion](), "Purpose", purposes},
		{reflect.TypeFor[api.UserInputRequest](), "Purpose", purposes},
		{reflect.TypeFor[api.InteractionResponse](), "Relevance", []string{replies.Relevant, replies.Uncertain, replies.Filtered}},
		{reflect.TypeFor[api.InteractionResponse](), "Ground", grounds}, {reflect.TypeFor[api.Act](), "Ground", grounds},
		{reflect.TypeFor[api.InteractionDelivery](), "Kind", []string{human.KindRequest, human.KindReminder, human.KindWarning,
			human.KindEscalation, human.KindAskBack, human.KindTimeout, human.KindCompleted, human.KindCancelled}},
		{reflect.TypeFor[api.Pause](), "ResumeReason", []string{store.ResumedByAnswer, store.ResumedByTimeout, store.ResumedByOperator, store.ResumedByEnd}},
		{reflect.TypeFor[api.NodeKind](), "OnUnknown", texts([]workflow.OnUnknown{workflow.OnUnknownAsk, workflow.OnUnknownRetry, workflow.OnUnknownFail})},
		{reflect.TypeFor[api.NodeKind](), "PlainNames", texts([]workflow.ConditionNames{workflow.NamesOfInput, workflow.NamesOfCarried})},
		{reflect.TypeFor[api.TaskStep](), "Rung", texts([]agent.Rung{agent.Alternative, agent.Repaired, agent.Replanned})},
	} {
		f, _ := c.of.FieldByName(c.field)
		if diff := cmp.Diff(c.want, strings.Split(f.Tag.Get("enum"), ",")); diff != "" {
			t.Errorf("%s.%s (-want +got):\n%s", c.of, c.field, diff)
		}
	}
}

func texts[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, one := range list {
		out[i] = string(one)
	}
	return out
}
