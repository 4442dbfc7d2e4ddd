package notify

import (
	"context"
	"encoding/json"
	"maps"
	"testing"

	"tandem/builtin/notice"
	"tandem/node"
)

// A delivery goes on with what was written when all that ways could read were fields of every channel.
func TestNotification_StateOfAnEarlierVersion(t *testing.T) {
	t.Parallel()
	const kept = `{"channels":[{"type":"email","to":"ann","credential_id":"out","imap_credential_id":"in","sent_mailbox":""}],"message":"Come home"}`
	var got notice.Notice
	d := Deps{
		Ways: map[string]notice.Way{"email": {Name: "email", Kind: "A.B", ID: "id", Configure: func(n notice.Notice) map[string]any {
			got = n
			return map[string]any{}
		}}},
		Kind: func(string) (node.Kind, bool) {
			return node.Kind{Run: func(context.Context, *node.Call) (node.Outcome, error) {
				return node.Done{"result": json.RawMessage(`{"id":"m1"}`)}, nil
			}}, true
		},
	}
	out, err := d.step(t.Context(), &node.Call{}, node.Step{State: json.RawMessage(kept), Config: json.RawMessage("0")})
	if err != nil {
		t.Fatal(err)
	}
	if r, _ := out.(node.Replied); string(r.Result) != `{"id":"m1"}` {
		t.Errorf("the delivery brings %+v", out)
	}
	want := map[string]string{"imap_credential_id": "in", "sent_mailbox": ""}
	if got.To != "ann" || got.Credential != "out" || !maps.Equal(got.Settings, want) {
		t.Errorf("delivered %+v", got)
	}
}
