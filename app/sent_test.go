package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tandem/api"
	"tandem/engine"
)

// A person who is asked whether something was done sees what it is: in the question, wherever it is read, and in the activation.
func TestSent_InEveryQuestionAboutAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	remote := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		panic(http.ErrAbortHandler) // it has taken the call, and nobody hears of it
	}))
	t.Cleanup(remote.Close)
	x := openSite(t)
	post := func(id, kind, more string) string {
		return fmt.Sprintf(`
metadata: {id: %s, name: %s, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: pay, description: d, type: ACTION, subtype: %s, configurations: {method: POST, url: "%s/pay/{{to}}", on_unknown: ask, max_retries: 0%s}}
connections:
  - {from_node: start, to_node: pay}
`, id, id, kind, remote.URL, more)
	}
	x.save(t, post("by_http", "HTTP_REQUEST", `, body: {amount: "{{amount}}", password: "{{secret}}"}, query_params: {api_key: "{{secret}}", page: "2"}`))
	x.save(t, post("by_webhook", "WEBHOOK_CALL", `, payload: {amount: "{{amount}}", note: "{{long}}", password: "{{secret}}"}`))
	x.save(t, strings.ReplaceAll(post("fails", "HTTP_REQUEST", `, body: {amount: "{{amount}}"}`), "on_unknown: ask", "on_unknown: fail"))
	inputs := `{"to":"ada","amount":120,"secret":"hush-hush-hush","long":"` + strings.Repeat("x", 100_000) + `"}`
	check := func(t *testing.T, where string, sent json.RawMessage) {
		t.Helper()
		var s struct {
			Method, URL string
			Body        map[string]any
		}
		if err := json.Unmarshal(sent, &s); err != nil || s.Method != "POST" || !strings.HasPrefix(s.URL, remote.URL+"/pay/ada") || s.Body["amount"] != 120.0 {
			t.Errorf("%s shows %.500s, %v", where, sent, err)
		}
		if strings.Contains(string(sent), "hush-hush-hush") || len(sent) > 30_000 {
			t.Errorf("%s shows a secret, or %d bytes: %.500s", where, len(sent), sent)
		}
	}
	details := func(e api.NodeExecution) json.RawMessage {
		var d struct {
			Sent json.RawMessage `json:"sent"`
		}
		if len(e.ExecutionDetails) > 0 {
			if err := json.Unmarshal(e.ExecutionDetails, &d); err != nil {
				t.Error(err)
			}
		}
		return d.Sent
	}
	for _, workflow := range []string{"by_http", "by_webhook"} {
		t.Run(workflow, func(t *testing.T) {
			t.Parallel()
			id := x.execute(t, workflow, api.ExecuteRequest{Inputs: json.RawMessage(inputs)})
			x.reaches(t, id, engine.StatusWaitingForHuman)
			e := x.read(t, id)
			if len(e.Questions) != 1 || e.Questions[0].Purpose != "outcome_unknown" {
				t.Fatalf("questions %+v", e.Questions)
			}
			check(t, "the execution", e.Questions[0].Arguments)
			check(t, "execution_details", details(e.NodeExecutions["pay"]))
			record := want[api.InteractionDetail](t, x.call(t, "operator", "GET", "/interactions/"+e.Questions[0].InteractionID, nil), http.StatusOK)
			var request struct {
				Arguments json.RawMessage `json:"arguments"`
			}
			if err := json.Unmarshal(record.RequestData, &request); err != nil {
				t.Fatal(err)
			}
			check(t, "the record of the question", request.Arguments)
			check(t, "the activation", want[api.NodeExecution](t, x.call(t, "viewer", "GET", "/executions/"+id+"/activations/pay", nil), http.StatusOK).Sent)
			for words, name := range map[string]string{"execution": "user_input_required", "flow": "step.waiting_for_start"} {
				events, _ := x.follow(t, "viewer", "/executions/"+id+"/events?vocabulary="+words, "", func(h heard) bool { return h.Name == name })
				last := events[len(events)-1]
				if last.Name != name || !strings.Contains(last.Data, "/pay/ada") || strings.Contains(last.Data, "hush-hush-hush") {
					t.Errorf("%s: the event says %.600s", words, last.Data)
				}
			}
		})
	}
	t.Run("WithoutAQuestion", func(t *testing.T) {
		t.Parallel()
		id := x.execute(t, "fails", api.ExecuteRequest{Inputs: json.RawMessage(inputs), WaitSeconds: 30})
		e := x.read(t, id)
		if e.Status != "ERROR" || e.Error.ErrorCode != "outcome_unknown" {
			t.Fatalf("it is %s, %+v", e.Status, e.Error)
		}
		check(t, "execution_details", details(e.NodeExecutions["pay"]))
	})
	t.Run("OtherKinds", func(t *testing.T) {
		t.Parallel()
		x.save(t, askOf("asks", "IN_APP_APPROVAL", `{title: "Pay {{to}}?", approvers: [operator]}`))
		id := x.execute(t, "asks", api.ExecuteRequest{Inputs: json.RawMessage(inputs)})
		x.reaches(t, id, engine.StatusWaitingForHuman)
		sent := want[api.NodeExecution](t, x.call(t, "viewer", "GET", "/executions/"+id+"/activations/ask", nil), http.StatusOK).Sent
		if !strings.Contains(string(sent), `"title":"Pay ada?"`) || strings.Contains(string(sent), "hush-hush-hush") || len(sent) > 30_000 {
			t.Errorf("it shows %.600s", sent)
		}
	})
}
