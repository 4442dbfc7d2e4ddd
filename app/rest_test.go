package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"tandem/api"
	"tandem/client"
	"tandem/engine"
	"tandem/outbound"
	"tandem/store/sqlite/sqlitetest"
)

// TestConnection_Rests answers questions on a data directory without a server: the answers are kept, and nothing goes on until the
// execution is resumed; that lets no other one go on.
func TestConnection_Rests(t *testing.T) {
	t.Parallel()
	var posts atomic.Int32
	fake := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		posts.Add(1)
		fmt.Fprint(w, `{}`)
	}))
	defer fake.Close()
	allow, err := outbound.ParseAllow("127.0.0.0/8")
	if err != nil {
		t.Fatal(err)
	}
	dir, options := sqlitetest.Dir(t), Options{HTTPAllow: allow}
	file := filepath.Join(t.TempDir(), "pay.yaml")
	text := `
metadata: {id: pay, name: pay, description: d}
nodes:
  - {id: ask, description: d, type: HUMAN_IN_THE_LOOP, subtype: IN_APP_APPROVAL, configurations: {title: Pay it}}
  - {id: post, description: d, type: ACTION, subtype: HTTP_REQUEST, configurations: {method: POST, url: "` + fake.URL + `", body_type: none}}
connections:
  - {from_node: ask, to_node: post, output_key: confirmed}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for range 2 {
		_, _, err := RunFile(t.Context(), Run{File: file, Dir: dir, Version: "test", Options: options, Started: func(id string, _ bool) { ids = append(ids, id) }})
		if !errors.Is(err, ErrAsked) {
			t.Fatal(err)
		}
	}
	rest := func(do func(c *Connection)) {
		c, err := NewConnection(t.Context(), Connect{Dir: dir, Options: options, Version: "test"})
		if err != nil {
			t.Fatal(err)
		}
		do(c)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if n := posts.Load(); n != 0 {
			t.Fatalf("%d calls by a command that only answers", n)
		}
	}
	rest(func(c *Connection) {
		for _, id := range ids {
			e, err := c.Execution(t.Context(), id)
			if err != nil || len(e.Questions) != 1 {
				t.Fatalf("%+v, %v", e, err)
			}
			if _, err := c.Respond(t.Context(), e.Questions[0].InteractionID, api.RespondRequest{ResponseData: json.RawMessage(`{"action":"approve"}`)}); err != nil {
				t.Fatal(err)
			}
		}
	})
	rest(func(c *Connection) { // what was answered is listed as that, and rests
		list, err := c.Executions(t.Context(), client.ExecutionQuery{})
		if err != nil || len(list.Executions) != 2 {
			t.Fatalf("%+v, %v", list, err)
		}
		for _, e := range list.Executions {
			if e.Status != string(engine.StatusRunning) {
				t.Errorf("%s is listed as %s after its only question was answered", e.ExecutionID, e.Status)
			}
		}
		if _, err := c.Act(t.Context(), ids[0], api.ActionRequest{Action: "pause"}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Act(t.Context(), ids[0], api.ActionRequest{Action: "resume"}); err != nil {
			t.Fatal(err)
		}
	})
	_, e, err := RunFile(t.Context(), Run{Resume: ids[0], Dir: dir, Version: "test", Options: options})
	if err != nil || e.Status != string(engine.StatusSuccess) {
		t.Errorf("it ended as %s, %v", e.Status, err)
	}
	if n := posts.Load(); n != 1 {
		t.Errorf("%d calls, want that of the one that was resumed", n)
	}
}
