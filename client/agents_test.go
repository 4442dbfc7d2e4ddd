package client_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"tandem/api"
	"tandem/client"
	"tandem/fault"
)

func TestAgents_Requests(t *testing.T) {
	t.Parallel()
	var got string
	c := peopleClient(t, func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		if r.ContentLength > 0 {
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
				t.Error(err)
			}
		}
		got = fmt.Sprint(r.Method, " ", r.URL.EscapedPath(), "?", r.URL.RawQuery, " ", body, r.Header.Get("If-Match"), r.Header.Get("Idempotency-Key"))
		fmt.Fprint(w, `{"id":"a","agents":[],"executions":[],"task_id":"t"}`)
	})
	ctx, on := t.Context(), true
	a := api.Agent{ID: "a", LLMProfile: "m", Revision: 3, CreatedBy: "x", CreatedTime: 1, UpdatedTime: 2} // as it was read
	for want, call := range map[string]func() error{
		"GET /api/v1/agents?page=2&q=mail map[]": func() error { _, err := c.Agents(ctx, client.AgentQuery{Text: "mail", Page: 2}); return err },
		"GET /api/v1/agents/a%2Fb? map[]":        func() error { _, err := c.Agent(ctx, "a/b"); return err },
		"POST /api/v1/agents? map[id:a llm_profile:m]": func() error {
			_, err := c.CreateAgent(ctx, a)
			return err
		},
		`PUT /api/v1/agents/a? map[id:a llm_profile:m]"3"`: func() error { _, err := c.PutAgent(ctx, a, 3); return err },
		"PUT /api/v1/agents/a? map[id:a llm_profile:m]":    func() error { _, err := c.PutAgent(ctx, a, 0); return err },
		"DELETE /api/v1/agents/a? map[]":                   func() error { return c.DeleteAgent(ctx, "a") },
		"POST /api/v1/agents/a/tasks? map[question:q]k": func() error {
			_, err := c.StartTask(ctx, "a", api.TaskRequest{Question: "q"}, "k")
			return err
		},
		"GET /api/v1/agents/a/tasks?conversation_id=c&mine=true&status=RUNNING%2CERROR map[]": func() error {
			_, err := c.Tasks(ctx, "a", client.TaskQuery{Statuses: []string{"RUNNING", "ERROR"}, ConversationID: "c", Mine: true})
			return err
		},
		"PATCH /api/v1/users/me? map[auto_execute:true]": func() error { _, err := c.UpdateMe(ctx, api.MeRequest{AutoExecute: &on}); return err },
	} {
		if err := call(); err != nil || got != want {
			t.Errorf("sent %q, want %q, %v", got, want, err)
		}
	}
}

func TestAgents_StartTask(t *testing.T) {
	t.Parallel()
	t.Run("IsRepeatedWithAKeyOnly", func(t *testing.T) {
		t.Parallel()
		for key, want := range map[string]int64{"k": 2, "": 1} {
			var sent atomic.Int64
			c := peopleClient(t, func(w http.ResponseWriter, _ *http.Request) {
				if sent.Add(1) == 1 {
					panic(http.ErrAbortHandler) // the connection breaks
				}
				fmt.Fprint(w, `{"task_id":"t"}`)
			})
			_, err := c.StartTask(t.Context(), "a", api.TaskRequest{Question: "q"}, key)
			if (err == nil) != (key != "") || sent.Load() != want {
				t.Errorf("with the key %q it was sent %d times: %v", key, sent.Load(), err)
			}
		}
	})
	t.Run("TellsWhenToComeBack", func(t *testing.T) {
		t.Parallel()
		c := peopleClient(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusTooManyRequests)
			fmt.Fprint(w, `{"status":429,"code":"rate_limited","detail":"later"}`)
		})
		_, err := c.StartTask(t.Context(), "a", api.TaskRequest{Question: "q"}, "k")
		told, ok := err.(*client.Error)
		if !ok || told.RetryAfter != 7*time.Second || fault.CodeOf(err) != fault.RateLimited {
			t.Errorf("%v", err)
		}
	})
}
