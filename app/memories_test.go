package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"tandem/api"
	"tandem/engine"
	"tandem/identity"
	"tandem/store"
)

// memoriesOf are the ids that a user sees in a listing.
func (x *site) memoriesOf(t *testing.T, user, query string) []string {
	t.Helper()
	list := want[api.Memories](t, x.call(t, user, "GET", "/memory"+query, nil), http.StatusOK)
	ids := []string{}
	for _, m := range list.Memories {
		ids = append(ids, m.ID)
	}
	slices.Sort(ids)
	return ids
}

func TestMemories(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	for n, m := range []store.MemoryScope{
		{ID: "va", User: "viewer", Kind: "KEY_VALUE_STORE", Workflow: "w1", Node: "n1"},
		{ID: "vb", User: "viewer", Kind: "CONVERSATION_BUFFER", Workflow: "w2", Node: "n1", Session: "s"},
		{ID: "ob", User: "operator", Kind: "KEY_VALUE_STORE", Workflow: "w1", Node: "n2"},
	} {
		change := store.MemoryChange{Scope: m, Time: int64(n + 1), Put: []store.MemoryRecord{
			{Sort: "entry", ID: "a/b c", Body: json.RawMessage(`{"n":1}`)}, {Sort: "entry", ID: "same", Body: json.RawMessage(`{"n":2}`)},
			{Sort: "other", ID: "same", Body: json.RawMessage(`"x"`), Weight: 0.5}, {Sort: "entry", ID: "old", Body: json.RawMessage(`1`), Expires: 2},
		}}
		if _, err := x.stores.Memories.Change(t.Context(), identity.System("default"), change); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		user, query string
		want        []string
	}{
		{"viewer", "", []string{"va", "vb"}},
		{"operator", "", []string{"ob"}},
		{"editor", "", []string{}},
		{"admin", "", []string{"ob", "va", "vb"}},
		{"admin", "?user_id=viewer", []string{"va", "vb"}},
		{"admin", "?workflow_id=w1", []string{"ob", "va"}},
		{"admin", "?node_id=n1", []string{"va", "vb"}},
		{"admin", "?session_id=s", []string{"vb"}},
		{"admin", "?kind=KEY_VALUE_STORE&node_id=n2", []string{"ob"}},
		{"viewer", "?user_id=operator", []string{}},
		{"stranger", "", []string{}},
	} {
		if got := x.memoriesOf(t, c.user, c.query); !slices.Equal(got, c.want) {
			t.Errorf("%s%s sees %q, want %q", c.user, c.query, got, c.want)
		}
	}
	page := want[api.Memories](t, x.call(t, "admin", "GET", "/memory?page=2&page_size=2", nil), http.StatusOK)
	if page.TotalCount != 3 || len(page.Memories) != 1 || page.Memories[0].ID != "va" {
		t.Errorf("page %+v", page)
	}

	// Somebody else's memory does not exist.
	for _, user := range []string{"operator", "stranger"} {
		for _, c := range [][2]string{{"GET", ""}, {"GET", "/records"}, {"DELETE", "/records/entry/old"}, {"DELETE", ""}} {
			refused(t, x.call(t, user, c[0], "/memory/va"+c[1], nil), http.StatusNotFound, "not_found")
		}
	}

	records := func(user, query string) []string {
		t.Helper()
		list := want[api.MemoryRecords](t, x.call(t, user, "GET", "/memory/va/records"+query, nil), http.StatusOK)
		got := []string{fmt.Sprint(list.TotalCount)}
		for _, r := range list.Records {
			got = append(got, r.Sort+" "+r.ID+" "+string(r.Body))
		}
		return got
	}
	for query, want := range map[string][]string{
		"": {"3", `entry a/b c {"n":1}`, `entry same {"n":2}`, `other same "x"`}, "?sort=other": {"1", `other same "x"`}, "?page=2&page_size=2": {"3", `other same "x"`},
	} {
		if got := records("viewer", query); !slices.Equal(got, want) {
			t.Errorf("%q: records %q, want %q", query, got, want)
		}
	}
	if m := want[api.Memory](t, x.call(t, "viewer", "GET", "/memory/va", nil), http.StatusOK); m.UserID != "viewer" || m.NodeID != "n1" || m.Records != 4 || m.Bytes == 0 {
		t.Errorf("memory %+v", m)
	}
	refused(t, x.call(t, "viewer", "DELETE", "/memory/va/records/entry/none", nil), http.StatusNotFound, "not_found")
	for _, path := range []string{"entry/same", "entry/a%2Fb%20c"} {
		if a := x.call(t, "viewer", "DELETE", "/memory/va/records/"+path, nil); a.status != http.StatusNoContent {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	if got := records("admin", ""); !slices.Equal(got, []string{"1", `other same "x"`}) {
		t.Errorf("left %q", got)
	}
	for user, id := range map[string]string{"viewer": "va", "admin": "ob"} {
		if a := x.call(t, user, "DELETE", "/memory/"+id, nil); a.status != http.StatusNoContent {
			t.Errorf("%s: %d %s", id, a.status, a.body)
		}
	}
	if got := x.memoriesOf(t, "admin", ""); !slices.Equal(got, []string{"vb"}) {
		t.Errorf("left %q", got)
	}
}

// What a memory node keeps in an execution belongs to who started it, and a record that is deleted is gone for the node.
func TestMemories_OfANode(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.save(t, `
metadata: {id: visits, name: visits, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: count, description: d, type: MEMORY, subtype: KEY_VALUE_STORE, configurations: {operation: increment}, input_params: {key: visits}}
connections:
  - {from_node: start, to_node: count}
`)
	run := func() {
		x.reaches(t, x.execute(t, "visits", api.ExecuteRequest{Inputs: json.RawMessage(`{}`)}), engine.StatusSuccess)
	}
	run()
	run()
	ids := x.memoriesOf(t, "operator", "?workflow_id=visits&node_id=count")
	if len(ids) != 1 || len(x.memoriesOf(t, "viewer", "")) != 0 {
		t.Fatalf("memories %q", ids)
	}
	list := want[api.MemoryRecords](t, x.call(t, "operator", "GET", "/memory/"+ids[0]+"/records", nil), http.StatusOK)
	if len(list.Records) != 1 {
		t.Fatalf("records %+v", list)
	}
	first := list.Records[0]
	if a := x.call(t, "operator", "DELETE", "/memory/"+ids[0]+"/records/"+first.Sort+"/"+first.ID, nil); a.status != http.StatusNoContent {
		t.Fatalf("%d %s", a.status, a.body)
	}
	run()
	list = want[api.MemoryRecords](t, x.call(t, "operator", "GET", "/memory/"+ids[0]+"/records", nil), http.StatusOK)
	if len(list.Records) != 1 || list.Records[0].Version != 1 || string(list.Records[0].Body) == string(first.Body) {
		t.Errorf("counts on with %+v after %+v", list.Records, first)
	}
}
