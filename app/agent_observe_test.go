package app

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"tandem/engine"
	"tandem/llm"
	"tandem/store/sqlite/sqlitetest"
)

// Who observes completions is told of their beginning, their pieces and their end, under one id.
func TestAgent_TellsObservers(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var events []llm.Event
	ended := make(chan struct{})
	i, err := Open(t.Context(), Options{Dir: sqlitetest.Dir(t), Observed: func(e llm.Event) {
		mu.Lock()
		defer mu.Unlock()
		events = append(events, e)
		if e.Type == llm.EventCompleted {
			close(ended)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	closeAfter(t, i)
	if err := i.SaveProfile(t.Context(), user, llm.Profile{ID: "m", Provider: "scripted", Model: "s", Script: llm.Script{Rules: []llm.Rule{{Reply: "one two"}}}}); err != nil {
		t.Fatal(err)
	}
	i.saveText(t, agentFlow(`{profileId: m, user_prompt: hello, stream: true}`, ``, ``))
	id := i.startText(t, "talk", `{"colour":"red"}`)
	i.ends(t, id, engine.StatusSuccess)
	<-ended
	mu.Lock()
	defer mu.Unlock()
	var kinds []llm.EventType
	text := ""
	for _, e := range events {
		if e.RequestID == "" || e.RequestID != events[0].RequestID {
			t.Errorf("the id of %s is %q", e.Type, e.RequestID)
		}
		if e.Chunk != nil {
			text += e.Text
		}
		kinds = append(kinds, e.Type)
	}
	kinds = slices.Compact(kinds)
	if !slices.Equal(kinds, []llm.EventType{llm.EventRequest, llm.EventChunk, llm.EventCompleted}) || text != "one two" {
		t.Errorf("told %v with the text %q", kinds, text)
	}
	asked := events[0].Asked
	var values map[string]json.RawMessage
	if asked.ExecutionID != id || asked.NodeID != "agent" || asked.RequestData.ProfileID != "m" || json.Unmarshal(asked.Snapshot.VariableValues, &values) != nil || string(values["colour"]) != `"red"` {
		t.Errorf("asked %+v", asked)
	}
}

// A node that names its model and its key needs no profile. The key is nowhere but on the wire.
func TestAgent_NamesItsModelAndKey(t *testing.T) {
	t.Parallel()
	const canary = "sk-canary-0123456789"
	x := openSite(t)
	var mu sync.Mutex
	var keys []string
	model := newModelService(t, func(r chatRequest, _ <-chan struct{}) chatReply {
		return chatReply{text: []string{"I was told " + canary + " by " + r.Model}}
	})
	inner := model.Config.Handler
	model.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		keys = append(keys, r.Header.Get("Authorization"))
		mu.Unlock()
		inner.ServeHTTP(w, r)
	})
	c := want[struct {
		ID string `json:"id"`
	}](t, x.call(t, "admin", "POST", "/credentials", map[string]any{"name": "key", "type": "openai", "data": map[string]any{"api_key": canary, "base_url": model.URL + "/v1"}}), http.StatusCreated)
	x.save(t, `
metadata: {id: talk, name: talk, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: agent, description: d, type: AI_AGENT, subtype: OPENAI_CHATGPT, configurations: {model: gpt-4o, credential_id: `+c.ID+`, user_prompt: hello}}
connections:
  - {from_node: start, to_node: agent}
`)
	e, r := x.talk(t, "q")
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(keys, []string{"Bearer " + canary}) || model.asked[0].Model != "gpt-4o" {
		t.Errorf("keys %q, asked %+v", keys, model.asked)
	}
	if r.Response == "" || strings.Contains(r.Response, canary) {
		t.Errorf("response %q", r.Response)
	}
	for row, err := range x.stores.Journal.Rows(t.Context(), user, e.ExecutionID, 0) {
		if err != nil || strings.Contains(string(row.Body), canary) {
			t.Errorf("row %d has the key, or %v", row.Seq, err)
		}
	}
}
