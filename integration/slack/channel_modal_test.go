package slack

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tandem/api"
	"tandem/fault"
	"tandem/human"
	"tandem/store"
)

func TestChannel_Receive_Form(t *testing.T) {
	t.Parallel()
	question := func(f *fake) human.Message {
		return f.message(func(m *human.Message) {
			m.Request.Type = human.Input
			m.Request.Fields = []human.Field{
				{Name: "amount", Label: "Amount", Type: "number", Required: true}, {Name: "why"}, {Name: "mail", Type: "email"}, {Name: "day", Type: "date"},
				{Name: "team", Type: "select", Options: []human.Option{{Value: "a", Label: "Team A"}, {Value: "b"}}}, {Name: "urgent", Type: "boolean"},
			}
		})
	}
	metadata := func(m human.Message) string {
		return touch{Interaction: m.Interaction.ID, Hash: m.Interaction.ArgumentsHash, Language: "en"}.text()
	}
	t.Run("Opens", func(t *testing.T) {
		t.Parallel()
		f := newFake(t)
		m := question(f)
		d := &desk{question: shown(m)}
		w, err := f.post(NewChannel(f.client, nil), f.account(), d.handle, formType, sentPayload(t, f.click("U1", "form", metadata(m))))
		if err != nil || w.Code != 200 || len(d.got()) != 0 {
			t.Fatalf("%v %d %v", err, w.Code, d.got())
		}
		look := human.Reply{
			Account: store.Account{Workspace: "w1", Channel: "slack", Credential: "cred"}, Interaction: m.Interaction.ID, ArgumentsHash: m.Interaction.ArgumentsHash,
			From: "U1", Mail: "ann@example.org", Name: "Ann Lee", Verified: true, Look: true,
		}
		if diff := cmp.Diff([]human.Reply{look}, d.looks); diff != "" {
			t.Error(diff)
		}
		opened := f.Sent("views.open")
		if len(opened) != 1 || opened[0].json["trigger_id"] != "trig.1" {
			t.Fatalf("opened %v", opened)
		}
		view := opened[0].json["view"].(map[string]any)
		var back touch
		if err := json.Unmarshal([]byte(view["private_metadata"].(string)), &back); err != nil {
			t.Fatal(err)
		}
		if want := (touch{Interaction: m.Interaction.ID, Hash: m.Interaction.ArgumentsHash, Language: "en", Channel: "C0PS", TS: "1700000000.000001"}); back != want {
			t.Errorf("the form brings back %+v, want %+v", back, want)
		}
		var shown []string
		walk(view["blocks"], func(o map[string]any) {
			if e, ok := o["element"].(map[string]any); ok {
				shown = append(shown, fmt.Sprint(o["block_id"], " ", e["type"], " ", e["action_id"], " ", o["optional"]))
			}
		})
		want := []string{
			"field_values.amount number_input number <nil>", "field_values.why plain_text_input line true", "field_values.mail email_text_input email true", "field_values.day datepicker date true",
			"field_values.team static_select one true", "field_values.urgent radio_buttons yes_no true", "notes plain_text_input area true",
		}
		if diff := cmp.Diff(want, shown); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("DoesNotOpen", func(t *testing.T) {
		t.Parallel()
		for name, want := range map[string]string{"Unknown": "has ended", "Ended": "has ended", "Expired": "try again", "Broken": "try again", "Other": "may not"} {
			f := newFake(t)
			m := question(f)
			d := &desk{question: shown(m)}
			switch name {
			case "Unknown":
				d.question = human.Reaction{Err: fault.New(fault.NotFound, "no question")}
			case "Ended":
				d.question.Ended = true
			case "Expired":
				f.Next("views.open", 200, `{"ok":false,"error":"expired_trigger_id"}`)
			case "Broken":
				d.err = errors.New("disk")
			case "Other":
				d.question = human.Reaction{Err: fault.New(fault.Forbidden, "no"), Text: "You may not answer."}
			}
			w, err := f.post(NewChannel(f.client, nil), f.account(), d.handle, formType, sentPayload(t, f.click("U1", "form", metadata(m))))
			told := f.Sent("/hook/1")
			if opened := f.Sent("views.open"); len(opened) > 0 && name != "Expired" {
				t.Errorf("%s: opened %v", name, opened)
			}
			if err != nil || w.Code != 200 || len(told) != 1 || !strings.Contains(told[0].json["text"].(string), want) {
				t.Errorf("%s: %v %d, told %v", name, err, w.Code, told)
			}
		}
	})
	submission := func(m human.Message, values map[string]any) map[string]any {
		return map[string]any{
			"type": "view_submission", "trigger_id": "trig.2", "team": map[string]any{"id": "T1"}, "user": map[string]any{"id": "U1"},
			"view": map[string]any{"id": "V1", "hash": "h1", "callback_id": "answer", "private_metadata": metadata(m), "state": map[string]any{"values": values}},
		}
	}
	filled := map[string]any{
		"field_values.amount": map[string]any{"number": map[string]any{"type": "number_input", "value": "12.50"}},
		"field_values.why":    map[string]any{"text": map[string]any{"type": "plain_text_input", "value": "broken"}},
		"field_values.mail":   map[string]any{"text": map[string]any{"type": "email_text_input", "value": nil}},
		"field_values.day":    map[string]any{"date": map[string]any{"type": "datepicker", "selected_date": "2026-03-04"}},
		"field_values.team":   map[string]any{"one": map[string]any{"type": "static_select", "selected_option": map[string]any{"value": "b"}}},
		"field_values.urgent": map[string]any{"boolean": map[string]any{"type": "radio_buttons", "selected_option": map[string]any{"value": "false"}}},
		"notes":               map[string]any{"text": map[string]any{"type": "plain_text_input", "value": "soon"}},
	}
	t.Run("Submits", func(t *testing.T) {
		t.Parallel()
		f := newFake(t)
		m := question(f)
		d := &desk{reaction: accepted("Thank you."), question: shown(m)}
		w, err := f.post(NewChannel(f.client, nil), f.account(), d.handle, formType, sentPayload(t, submission(m, filled)))
		if err != nil {
			t.Fatal(err)
		}
		want := `{"field_values":{"amount":12.50,"day":"2026-03-04","team":"b","urgent":false,"why":"broken"},"notes":"soon"}`
		got := d.got()[0]
		if string(got.Answer.Given) != want {
			t.Errorf("the answer is %s, want %s", got.Answer.Given, want)
		}
		if got.From != "U1" || got.Mail != "ann@example.org" || got.ArgumentsHash != m.Interaction.ArgumentsHash || got.Interaction != m.Interaction.ID || got.Dedup != "view:V1:h1:trig.2" || !got.Verified {
			t.Errorf("reply %+v", got)
		}
		var answer struct {
			Action string          `json:"response_action"`
			View   json.RawMessage `json:"view"`
		}
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.Action != "update" || checkView(answer.View) != "" || !strings.Contains(string(answer.View), "Thank you.") {
			t.Errorf("%v, answer %s (%s)", err, w.Body, checkView(answer.View))
		}
	})
	t.Run("ShowsProblemsAtFields", func(t *testing.T) {
		t.Parallel()
		f := newFake(t)
		m := question(f)
		d := &desk{question: shown(m), reaction: human.Reaction{Err: fault.New(fault.InvalidInput, "two fields are wrong").With("fields", []api.FaultField{
			{Path: "response_data.field_values.amount", Message: "must be positive"}, {Path: "response_data.field_values.why", Message: "is too short"}, {Path: "response_data.field_values.amount", Message: "must be whole"},
		})}}
		w, err := f.post(NewChannel(f.client, nil), f.account(), d.handle, formType, sentPayload(t, submission(m, filled)))
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]any{"response_action": "errors", "errors": map[string]any{"field_values.amount": "must be positive; must be whole", "field_values.why": "is too short"}}
		if diff := cmp.Diff(want, decode(t, w.Body.Bytes())); diff != "" {
			t.Error(diff)
		}
		// What is about no field is told instead of the form.
		d.reaction = human.Reaction{Ended: true, Text: "Bob was faster.", Err: fault.New(fault.Conflict, "ended")}
		w, err = f.post(NewChannel(f.client, nil), f.account(), d.handle, formType, sentPayload(t, submission(m, filled)))
		if err != nil || !strings.Contains(w.Body.String(), "Bob was faster.") || !strings.Contains(w.Body.String(), `"update"`) {
			t.Errorf("%v %s", err, w.Body)
		}
		// What was typed stays when it could not be recorded.
		d.err = errors.New("disk full")
		w, err = f.post(NewChannel(f.client, nil), f.account(), d.handle, formType, sentPayload(t, submission(m, filled)))
		if err != nil || !strings.Contains(w.Body.String(), `"errors":{"field_values.amount":"`+wordsIn("en").TryAgain) {
			t.Errorf("%v %s", err, w.Body)
		}
	})
	t.Run("OtherTypes", func(t *testing.T) {
		t.Parallel()
		one := func(how string, v any) map[string]any { return map[string]any{how: v} }
		pick := func(v string) map[string]any { return map[string]any{"selected_option": map[string]any{"value": v}} }
		for name, c := range map[string]struct {
			change func(*human.Message)
			blocks string
			values map[string]any
			want   string
		}{
			"Several": {
				func(m *human.Message) {
					m.Request.Type, m.Request.AllowMultiple, m.Request.Options = human.Selection, true, []human.Option{{Value: "a"}, {Value: "b"}, {Value: "c"}}
				}, "checkboxes",
				map[string]any{"selected_values": one("many", map[string]any{"selected_options": []any{map[string]any{"value": "a"}, map[string]any{"value": "b"}}})},
				`{"selected_values":["a","b"]}`,
			},
			"Many": {
				func(m *human.Message) {
					m.Request.Type, m.Request.Options = human.Selection, nil
					for n := range 90 {
						m.Request.Options = append(m.Request.Options, human.Option{Value: fmt.Sprint(n)})
					}
				}, "static_select",
				map[string]any{"selected_values": one("one", pick("77")), "notes": one("text", map[string]any{"value": "n"})},
				`{"notes":"n","selected_values":["77"]}`,
			},
			"Review": {
				func(m *human.Message) {
					m.Request.Type, m.Request.Review = human.Review, &human.ReviewRules{Criteria: []string{"tone", "facts"}, Scoring: "numeric_scale", Min: 1, Max: 5, Evidence: true}
				}, "number_input",
				map[string]any{
					"scores.tone": one("number", map[string]any{"value": "4"}), "scores.facts": one("number", map[string]any{"value": "2.5"}),
					"evidence.tone": one("text", map[string]any{"value": "kind"}),
				},
				`{"evidence":{"tone":"kind"},"scores":{"facts":2.5,"tone":4}}`,
			},
			"PassFail": {
				func(m *human.Message) {
					m.Request.Type, m.Request.Review = human.Review, &human.ReviewRules{Criteria: []string{"tone"}}
				}, "radio_buttons",
				map[string]any{"scores.tone": one("boolean", pick("true"))}, `{"scores":{"tone":true}}`,
			},
			"Letters": {
				func(m *human.Message) {
					m.Request.Type, m.Request.Review = human.Review, &human.ReviewRules{Criteria: []string{"tone"}, Scoring: "letter_grade"}
				}, "static_select",
				map[string]any{"scores.tone": one("one", pick("B"))}, `{"scores":{"tone":"B"}}`,
			},
			"Budget": {
				func(m *human.Message) {
					m.Interaction.Purpose, m.Request.Type = human.PurposeBudget, human.Input
					m.Request.Schema = json.RawMessage(`{"type":"object","required":["raise_by"],"properties":{"raise_by":{"type":"number","description":"tokens"}}}`)
				}, "number_input",
				map[string]any{"raise_by": one("number", map[string]any{"value": "5000"})}, `{"raise_by":5000}`,
			},
		} {
			f := newFake(t)
			m := f.message(c.change)
			d := &desk{reaction: accepted(""), question: shown(m)}
			ch := NewChannel(f.client, nil)
			send(t, ch, m)
			button := elements(t, f.Sent("chat.postMessage")[0])[0]
			if _, err := f.post(ch, f.account(), d.handle, formType, sentPayload(t, f.click("U1", button.ActionID, button.Value))); err != nil {
				t.Fatal(err)
			}
			opened := f.Sent("views.open")
			if len(opened) != 1 {
				t.Fatalf("%s: opened %v", name, opened)
			}
			view := opened[0].json["view"].(map[string]any)
			if raw, _ := json.Marshal(view); !strings.Contains(string(raw), `"`+c.blocks+`"`) {
				t.Errorf("%s: no %s in %s", name, c.blocks, raw)
			}
			sent := submission(m, c.values)
			sent["view"].(map[string]any)["private_metadata"] = view["private_metadata"]
			if _, err := f.post(ch, f.account(), d.handle, formType, sentPayload(t, sent)); err != nil {
				t.Fatal(err)
			}
			if got := d.got(); len(got) != 1 || string(got[0].Answer.Given) != c.want {
				t.Errorf("%s: %+v, want %s", name, got, c.want)
			}
		}
	})
}
