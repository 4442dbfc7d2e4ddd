package server

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"tandem/api"
	"tandem/human"
	"tandem/identity"
	"tandem/route"
)

// A question that somebody has answered, while others still have to, does not wait for them any more: not in their listing, not in the
// snapshot that their stream begins with. It stays findable, and their stream says that they have answered.
func TestInteractions_AnsweredIsNotMine(t *testing.T) {
	t.Parallel()
	w := setup(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	both := approval("approver-user", "editor-user")
	both.MinApprovals = 2
	q := w.asks("viewer-user", human.PurposeNode, both)
	stream := w.follow(ctx, w.tokens[identity.Approver])
	stream.next()
	w.call(w.tokens[identity.Approver], "POST", route.Prefix+"/interactions/"+q.ID+"/respond", `{"response_data":{"action":"approve"}}`).want(t, 200)
	if e := stream.event(); e.Interaction.ID != q.ID || e.MayRespond || !e.Answered || e.Interaction.Status != "pending" {
		t.Errorf("event %+v", e)
	}
	for path, want := range map[string][2][]string{ // by who has answered, and who has not
		"?mine=true":                             {{}, {q.ID}},
		"?mine=true&status=pending":              {{}, {q.ID}},
		"?mine=true&answered=true":               {{q.ID}, {q.ID}},
		"?status=pending":                        {{q.ID}, {q.ID}},
		"?mine=true&execution_id=" + q.Execution: {{}, {q.ID}},
	} {
		for n, role := range []identity.Role{identity.Approver, identity.Editor} {
			list := read[api.Interactions](t, w.call(w.tokens[role], "GET", route.Prefix+"/interactions"+path, "").want(t, 200))
			if ids := idsOf(list.Interactions); !slices.Equal(ids, want[n]) || list.TotalCount != len(want[n]) {
				t.Errorf("%s of %s: %v of %d", path, role, ids, list.TotalCount)
			}
		}
	}
	_, data := w.follow(ctx, w.tokens[identity.Approver]).next()
	var snapshot api.InteractionSnapshot
	if err := json.Unmarshal([]byte(data), &snapshot); err != nil || snapshot.TotalCount != 0 || len(snapshot.Interactions) != 0 {
		t.Errorf("snapshot %v: %s", err, data)
	}
	w.call(w.tokens[identity.Editor], "POST", route.Prefix+"/interactions/"+q.ID+"/respond", `{"response_data":{"action":"approve"}}`).want(t, 200)
	ended := read[api.Interactions](t, w.call(w.tokens[identity.Approver], "GET", route.Prefix+"/interactions?mine=true&status=completed", "").want(t, 200))
	if ids := idsOf(ended.Interactions); !slices.Equal(ids, []string{q.ID}) {
		t.Errorf("ended: %v", ids)
	}
}
