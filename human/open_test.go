package human

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"tandem/engine"
	"tandem/fault"
	"tandem/store"
)

// asked is a question of a node.
func asked(t testing.TB, r Request) Question {
	return Question{
		Ref: store.Ref{Workspace: "ws", Execution: "e1"}, WorkflowID: "wf", User: "ann", Node: "n", Ask: "n#ask.1", Activation: "n", Purpose: PurposeNode,
		Request: asJSON(t, r), Time: 1_000_000,
	}
}

func TestOpen_FillsIn(t *testing.T) {
	t.Parallel()
	i, err := Media(nil).Open(asked(t, Request{Title: "Pay?"}))
	if err != nil {
		t.Fatal(err)
	}
	want := store.Interaction{
		Workspace: "ws", ID: InteractionID(store.Ref{Workspace: "ws", Execution: "e1"}, "n#ask.1"), WorkflowID: "wf", Execution: "e1", Root: "e1", Node: "n",
		Activation: "n", Ask: "n#ask.1", User: "ann", Type: Approval, Channel: InApp, Purpose: PurposeNode, Status: store.InteractionPending, Priority: 1,
		Approvers: []string{"user:ann"}, MinApprovals: 1, TimeoutAt: 1_000_000 + 3_600_000, NextAt: 1_000_000 + 3_600_000 - 900_000, Created: 1_000_000, Updated: 1_000_000, Version: 1,
	}
	want.Request = i.Request
	if diff := cmp.Diff(want, i); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
	r, err := ReadRequest(i)
	if err != nil {
		t.Fatal(err)
	}
	options := []Option{{Value: "approve", Label: "approve", Outcome: Confirmed}, {Value: "reject", Label: "reject", Outcome: Rejected}}
	if diff := cmp.Diff(options, r.Options); diff != "" || r.Language != "en" || r.Risk != "low" || r.TimeoutAction != TimeoutFail || r.MinRejections != 1 {
		t.Errorf("request %+v\n%s", r, diff)
	}
	again, err := Media(nil).Open(asked(t, Request{Title: "Pay?"}))
	if diff := cmp.Diff(i, again); diff != "" || err != nil {
		t.Errorf("the same question is another record: %v\n%s", err, diff)
	}
}

func TestOpen_Approvers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		purpose, user string
		r             Request
		want          []string
		code          fault.Code
	}{
		"written in all ways": {user: "ann", r: Request{Approvers: []string{"bob", "user:cid", "Eve@X.org", "mail:a@b.c", "email:A@b.c", "approver", "role:Admin", "slack:U1", "anyone", "bob"}},
			want: []string{"user:bob", "user:cid", "mail:eve@x.org", "mail:a@b.c", "role:approver", "role:admin", "slack:U1", "anyone"}},
		"nobody": {code: fault.NoApprover}, "the system is nobody": {user: "system", code: fault.NoApprover},
		"unknown role":                      {r: Request{Approvers: []string{"role:king"}}, code: fault.InvalidConfig},
		"empty":                             {r: Request{Approvers: []string{" "}}, code: fault.InvalidConfig},
		"no address":                        {r: Request{Approvers: []string{"mail:x"}}, code: fault.InvalidConfig},
		"whom the settings name":            {r: Request{Settings: json.RawMessage(`{"recipient_emails":["Bob@x.org"]}`)}, want: []string{"mail:bob@x.org"}},
		"a form for everybody":              {r: Request{Access: "public"}, want: []string{"anyone"}},
		"only the excluded requester":       {user: "ann", r: Request{ExcludeRequester: true}, code: fault.NoApprover},
		"too few":                           {user: "ann", r: Request{MinApprovals: 2}, code: fault.InvalidConfig},
		"too few without the requester":     {user: "ann", r: Request{Approvers: []string{"ann", "bob"}, MinApprovals: 2, ExcludeRequester: true}, code: fault.InvalidConfig},
		"enough after escalation":           {user: "ann", r: Request{MinApprovals: 2, Escalation: &Escalation{60, []string{"bob"}}}, want: []string{"user:ann"}},
		"of a role there may be enough":     {r: Request{Approvers: []string{"approver"}, MinApprovals: 3}, want: []string{"role:approver"}},
		"unknown outcome":                   {purpose: PurposeOutcomeUnknown, user: "ann", want: []string{"role:operator", "role:editor", "role:admin"}},
		"budget":                            {purpose: PurposeBudget, want: []string{"role:operator", "role:editor", "role:admin"}},
		"drift":                             {purpose: PurposeDrift, user: "ann", want: []string{"user:ann", "role:admin"}},
		"drift when nobody has started":     {purpose: PurposeDrift, want: []string{"role:admin"}},
		"parameter":                         {purpose: PurposeParam, user: "ann", want: []string{"user:ann"}},
		"parameter when nobody has started": {purpose: PurposeParam, want: []string{"role:approver", "role:operator", "role:admin", "role:editor"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := asked(t, c.r)
			q.User = c.user
			if c.purpose != "" {
				q.Purpose = c.purpose
			}
			i, err := Media(nil).Open(q)
			if fault.CodeOf(err) != c.code {
				t.Fatalf("error %v, want %q", err, c.code)
			}
			if diff := cmp.Diff(c.want, i.Approvers); diff != "" {
				t.Errorf("approvers (-want +got):\n%s", diff)
			}
			if i.ID == "" || i.Status != store.InteractionPending || !json.Valid(i.Request) {
				t.Errorf("the record cannot be used: %+v", i)
			}
		})
	}
}

func TestOpen_Refuses(t *testing.T) {
	t.Parallel()
	for path, r := range map[string]Request{
		"configurations.interaction_type":           {Type: "dance"},
		"configurations.selection_options":          {Type: Selection},
		"configurations.input_fields":               {Type: Input},
		"configurations.input_fields[0].name":       {Type: Input, Fields: []Field{{}}},
		"configurations.input_fields[1].name":       {Type: Input, Fields: []Field{{Name: "a"}, {Name: "a"}}},
		"configurations.input_fields[0].type":       {Type: Input, Fields: []Field{{Name: "a", Type: "colour"}}},
		"configurations.input_fields[0].options":    {Type: Input, Fields: []Field{{Name: "a", Type: "select"}}},
		"configurations.input_fields[0].validation": {Type: Input, Fields: []Field{{Name: "a", Validation: json.RawMessage(`"["`)}}},
		"configurations.form_schema":                {Type: Input, Schema: json.RawMessage(`{"type":7}`)},
		"configurations.options[1]":                 {Options: []Option{{Value: "a"}, {Value: "a"}}},
		"configurations.options[0].outcome":         {Options: []Option{{Value: "a", Outcome: "perhaps"}}},
		"configurations.review_criteria":            {Type: Review},
		"configurations.scoring_system":             {Type: Review, Review: &ReviewRules{Criteria: []string{"a"}, Scoring: "dice"}},
		"configurations.score_range":                {Type: Review, Review: &ReviewRules{Criteria: []string{"a"}, Min: 5, Max: 1}},
		"configurations.escalation":                 {Escalation: &Escalation{}},
		"configurations.timeout_default_response":   {TimeoutAction: TimeoutDefault, TimeoutResponse: json.RawMessage(`{"action":"dance"}`)},
	} {
		_, err := Media(nil).Open(asked(t, r))
		if fault.CodeOf(err) != fault.InvalidConfig || fault.From(err).Details["path"] != path {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestOpen_NextAt(t *testing.T) {
	t.Parallel()
	const at = 1_000_000
	for name, c := range map[string]struct {
		r    Request
		want int64
	}{
		"something to send":                  {Request{Channel: Email, TimeoutSeconds: 60}, at},
		"timeout":                            {Request{TimeoutSeconds: 900}, at + 900_000},
		"warning":                            {Request{TimeoutSeconds: 901}, at + 1000},
		"reminder":                           {Request{TimeoutSeconds: 900, ReminderSeconds: 100}, at + 100_000},
		"escalation":                         {Request{TimeoutSeconds: 900, ReminderSeconds: 100, Escalation: &Escalation{50, []string{"bob"}}}, at + 50_000},
		"warning before a later reminder":    {Request{TimeoutSeconds: 1000, ReminderSeconds: 200}, at + 100_000},
		"a timeout before a later reminder":  {Request{TimeoutSeconds: 100, ReminderSeconds: 200}, at + 100_000},
		"a timeout before later escalations": {Request{TimeoutSeconds: 100, Escalation: &Escalation{500, []string{"bob"}}}, at + 100_000},
	} {
		i, err := Media(nil).Open(asked(t, c.r))
		if err != nil || i.NextAt != c.want {
			t.Errorf("%s: %d (%v), want %d", name, i.NextAt, err, c.want)
		}
	}
	q := asked(t, Request{})
	q.Purpose = PurposeParam
	if i, err := Media(nil).Open(q); err != nil || i.NextAt != 0 || i.TimeoutAt != 0 {
		t.Errorf("a question without an end is looked at at %d (%v)", i.NextAt, err)
	}
}

func TestOpen_ArgumentsHash(t *testing.T) {
	t.Parallel()
	hash := func(arguments string) string {
		q := asked(t, Request{})
		q.Request = json.RawMessage(arguments)
		i, err := Media(nil).Open(q)
		if err != nil {
			t.Fatal(err)
		}
		return i.ArgumentsHash
	}
	sum := sha256.Sum256([]byte(`{"a":1.50,"b":["<"]}`))
	want := hex.EncodeToString(sum[:])
	if got := hash(`{"arguments": {"b": ["<"], "a": 1.50}}`); got != want {
		t.Errorf("hash %s, want that of the sorted members without blanks, %s", got, want)
	}
	if hash(`{"arguments":{"a":1}}`) == hash(`{"arguments":{"a":2}}`) || hash(`{}`) != "" {
		t.Error("other arguments have another hash, and none have none")
	}
	if got := hash(`{"arguments":{"a":1},"arguments_hash":"` + want + `"}`); got != want {
		t.Errorf("a hash that comes with the question is %s", got)
	}
}

func TestOpen_OtherPurposes(t *testing.T) {
	t.Parallel()
	open := func(purpose, request string) store.Interaction {
		q := asked(t, Request{})
		q.Purpose, q.Request, q.Language = purpose, json.RawMessage(request), "zh-CN"
		i, err := Media(nil).Open(q)
		if err != nil {
			t.Fatalf("%s: %v", purpose, err)
		}
		return i
	}
	unknown := open(PurposeOutcomeUnknown, `[1,{"to":"bob"}]`)
	r, err := ReadRequest(unknown)
	if err != nil || unknown.Type != Selection || string(r.Arguments) != `[1,{"to":"bob"}]` || len(r.Options) != 3 || r.Options[0].Value != engine.ChoiceDone || r.Language != "zh" {
		t.Errorf("unknown outcome: %+v (%v)", r, err)
	}
	param := open(PurposeParam, `{"interaction_type":"form","params":[{"name":"city"}],"schema":{"type":7}}`)
	if param.Type != Input || gjson.GetBytes(param.Request, "params.0.name").Str != "city" || gjson.GetBytes(param.Request, "interaction_type").Str != Input {
		t.Errorf("a parameter: %s", param.Request)
	}
	if odd := open(PurposeConfirm, `"go on?"`); gjson.GetBytes(odd.Request, "arguments").Str != "go on?" {
		t.Errorf("what is not a question is shown as it is: %s", odd.Request)
	}
	tool := open(PurposeToolApproval, `{"tool":"pay","options":["approve","reject"],"arguments":{"sum":5}}`)
	if r, err := ReadRequest(tool); err != nil || len(r.Options) != 2 || r.Options[1].Outcome != Rejected || gjson.GetBytes(tool.Request, "tool").Str != "pay" || tool.ArgumentsHash == "" {
		t.Errorf("approval of a tool: %s (%v)", tool.Request, err)
	}
	if !slices.Equal(tool.Approvers, []string{"user:ann"}) {
		t.Errorf("approvers %q", tool.Approvers)
	}
}
