package console

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tandem/api"
	"tandem/app"
	"tandem/client"
	"tandem/human"
	"tandem/store"
)

// asked is a question as the server keeps it.
func asked(t *testing.T, purpose, request string) api.Interaction {
	t.Helper()
	opened, err := human.Media(nil).Open(human.Question{
		Ref: store.Ref{Workspace: "w", Execution: "exec_x"}, WorkflowID: "order", User: "ann", Node: "ask", Ask: "ask", Activation: "ask", Purpose: purpose,
		Request: json.RawMessage(request), Time: 1_000,
	})
	if err != nil {
		t.Fatalf("%s: %v", request, err)
	}
	return api.Interaction{
		ID: opened.ID, WorkflowID: opened.WorkflowID, ExecutionID: opened.Execution, NodeID: opened.Node, UserID: opened.User, InteractionType: opened.Type, ChannelType: opened.Channel,
		Purpose: opened.Purpose, Status: string(opened.Status), Priority: opened.Priority, RequestData: opened.Request, Approvers: opened.Approvers, MinApprovals: opened.MinApprovals,
		TimeoutAt: opened.TimeoutAt, CreatedAt: opened.Created,
	}
}

// answered is what somebody at a terminal answers.
func answered(ctx context.Context, a *asker, i api.Interaction) (answer string, err error) {
	err = a.ask(ctx, i, func(raw json.RawMessage) error {
		answer = string(raw)
		return nil
	})
	return answer, err
}

func TestAsker_EverySortOfQuestion(t *testing.T) {
	t.Parallel()
	const fields = `{"interaction_type":"input","title":"T","input_fields":[
		{"name":"n","label":"How many","type":"number","required":true},{"name":"mail","type":"email"},{"name":"day","type":"date"},
		{"name":"size","type":"select","options":["S",{"value":"L","label":"large"}]},{"name":"gift","type":"boolean"},{"name":"why"}]}`
	const tool = `{"title":"May pay be called?","description":"A model wants to.","arguments":{"amount":5,"to":"a\u001b[2Jb"}}`
	const slots = `{"interaction_type":"form","title":"Parameter filling","description":"The step lacks: n, to.","arguments":{"known":1},
		"schema":{"type":"object","required":["n","to"],"properties":{"n":{"type":"integer","description":"how many"},"to":{"type":"string"},"note":{"type":"string","enum":["a","b"]},"z":{}}}}`
	review := func(scoring, more string) string {
		return `{"interaction_type":"review","title":"T","review":{"criteria":["clear","right"],"scoring_system":"` + scoring + `"` + more + `}}`
	}
	for _, c := range []struct {
		name, purpose, request, want string
		typed                        []string
		shows, hides                 string
	}{
		{"Yes", human.PurposeToolApproval, tool, `{"approved":true,"notes":"once"}`, []string{"y", "once"}, "  amount: 5", "\x1b"},
		{"No", human.PurposeToolApproval, tool, `{"approved":false}`, []string{"perhaps", " NO ", ""}, "y or n was expected", ""},
		{"Chinese", human.PurposeToolApproval, tool, `{"approved":true}`, []string{"是", ""}, "Allow it? [y/n]", ""},
		{"NobodyThere", human.PurposeToolApproval, tool, "", nil, "Allow it?", ""},
		{"Confirm", human.PurposeConfirm, `{"title":"Send it?"}`, `{"confirm":false}`, []string{"n"}, "Send it?", ""},
		{"Drift", human.PurposeDrift, `{}`, `{"accept":true}`, []string{"y"}, "Accept it?", ""},
		{"Activation", human.PurposeActivation, `{}`, `{"accept":false}`, []string{"n"}, "Accept it?", ""},
		{"Budget", human.PurposeBudget, `{"title":"The budget is used up","budget":"m/day/1"}`, `{"raise_by":5}`, []string{"", "lots", "+5"}, "a number was expected", ""},
		{"Slots", human.PurposeParam, slots, `{"content":{"n":3,"to":"42","z":{"deep":[1]}}}`, []string{"3", "", "42", "", `{"deep":[1]}`, ""}, "n (how many):", "known"},
		{"SlotsBrokenOff", human.PurposeParam, slots, "", []string{"3", "42"}, "   1  a", ""},
		{"NotDone", human.PurposeOutcomeUnknown, `{"url":"https://bank"}`, `{"outcome":"not_done"}`, []string{"perhaps", "not_done"}, "  url: \"https://bank\"", "Its result"},
		{"Done", human.PurposeOutcomeUnknown, `{"url":"https://bank"}`, `{"outcome":"done","result":{"id":7}}`, []string{"1", `{"id":7}`}, "Its result, as JSON", ""},
		{"Approval", human.PurposeNode, `{"title":"T","description":"one\ntwo\u001b[2J","content":{"amount":500}}`, `{"action":"reject","notes":"no money"}`, []string{"2", "no money"}, "    \"amount\": 500", "\x1b"},
		{"OwnOptions", human.PurposeNode, `{"title":"T","options":[{"value":"pay","label":"Pay it","outcome":"confirmed"},{"value":"refuse","outcome":"rejected"}],"risk":"high","min_approvals":2,"approvers":["user:ann","user:bob"]}`,
			`{"action":"pay"}`, []string{"perhaps", "pay IT", ""}, "   1  pay  Pay it", ""},
		{"OwnOptionsYes", human.PurposeNode, `{"title":"T","options":[{"value":"pay","outcome":"confirmed"},{"value":"refuse","outcome":"rejected"},{"value":"later","outcome":"none"}]}`,
			`{"action":"pay"}`, []string{"Y", ""}, "Which one? [y: pay, n: refuse] ", ""},
		{"OwnOptionsNo", human.PurposeNode, `{"title":"T","options":[{"value":"pay","outcome":"confirmed"},{"value":"refuse","outcome":"rejected"}]}`, `{"action":"refuse"}`, []string{"n", ""}, "[y: pay", ""},
		{"TwoWaysToAgree", human.PurposeNode, `{"title":"T","options":[{"value":"pay","outcome":"confirmed"},{"value":"half","outcome":"confirmed"},{"value":"refuse","outcome":"rejected"}]}`,
			`{"action":"half"}`, []string{"y", "half", ""}, `"y" is none of pay, half, refuse`, "[y:"},
		{"OptionsThatAreNumbers", human.PurposeNode, `{"interaction_type":"selection","title":"T","options":["3","1"]}`, `{"selected_values":["1"]}`, []string{"2", "1", ""}, `"2" is none of 3, 1`, ""},
		{"Selection", human.PurposeNode, `{"interaction_type":"selection","title":"T","options":["red","Berlin, DE"]}`, `{"selected_values":["Berlin, DE"]}`, []string{"berlin, de", ""}, "Which one?", ""},
		{"Selections", human.PurposeNode, `{"interaction_type":"selection","title":"T","options":["red","green","blue"],"allow_multiple":true}`, `{"notes":"x","selected_values":["red","blue"]}`, []string{"red,pink", "1, blue", "x"}, "Which ones, separated by commas?", ""},
		{"Fields", human.PurposeNode, fields, `{"field_values":{"gift":true,"mail":"a@b.c","n":7,"size":"L"}}`, []string{"some", "007", "a@b.c", "", "LARGE", "y", "", ""}, "(optional) mail (a mail address): ", ""},
		{"FormOfASchema", human.PurposeNode, `{"interaction_type":"input","title":"T","schema":{"type":"object","properties":{"level":{"enum":[1,2]},"ok":{"type":"boolean"}}}}`,
			`{"field_values":{"level":2,"ok":false}}`, []string{"2", "n", ""}, "level:", ""},
		{"EmptyForm", human.PurposeNode, `{"interaction_type":"input","title":"T","input_fields":[{"name":"a"}]}`, `{"field_values":{}}`, []string{"", ""}, "(optional) a:", ""},
		{"ReviewPasses", human.PurposeNode, review("pass_fail", ""), `{"scores":{"clear":true,"right":false}}`, []string{"pass", "n", ""}, "clear (does it pass?) [y/n]", "rests on"},
		{"ReviewNumbers", human.PurposeNode, review("numeric_scale", `,"min":1,"max":10,"require_evidence":true`),
			`{"evidence":{"clear":"read it","right":"ran it"},"scores":{"clear":7,"right":9.5}}`, []string{"good", "7", "", "read it", "9.5", "ran it", ""}, "clear (1 to 10):", ""},
		{"ReviewLetters", human.PurposeNode, review("letter_grade", ""), `{"scores":{"clear":"A","right":"F"}}`, []string{"a", "E", "5", ""}, `"E" is none of A, B, C, D, F`, ""},
		{"ReviewCustom", human.PurposeNode, review("custom", ""), `{"scores":{"clear":"B","right":true}}`, []string{"E", "b", "pass", ""}, "a letter from A to F", ""},
		{"UnknownPurpose", "something_new", `{"title":"New"}`, `{"a":1}`, []string{"", `{"a":1}`}, "The answer, as JSON", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a, f := setupAsker(t, c.typed...)
			question := asked(t, c.purpose, c.request)
			if c.purpose == "something_new" {
				question.InteractionType = "riddle"
			}
			got, err := answered(t.Context(), a, question)
			if c.want == "" && !errors.Is(err, app.ErrAsked) || c.want != "" && err != nil || got != c.want {
				t.Errorf("answer %s, %v", got, err)
			}
			if err := a.follow.Stop(); err != nil { // nothing is written any more
				t.Fatal(err)
			}
			if shown := f.Shown(); !strings.Contains(shown, strings.TrimRight(c.shows, " ")) || c.hides != "" && strings.Contains(shown, c.hides) {
				t.Errorf("it shows\n%s", shown)
			}
		})
	}
}

// What the server finds wrong is told all at once, and only that is asked for again.
func TestAsker_AsksAgainForWhatIsWrong(t *testing.T) {
	t.Parallel()
	question := asked(t, human.PurposeNode, `{"interaction_type":"input","title":"T","input_fields":[{"name":"n","type":"number","required":true},{"name":"mail","type":"email"},{"name":"day","type":"date"}]}`)
	a, f := setupAsker(t, "1", "nobody", "tomorrow", "a note", "a@b.c", "2026-01-31")
	var answers []string
	err := a.ask(t.Context(), question, func(raw json.RawMessage) error {
		answers = append(answers, string(raw))
		if len(answers) > 1 {
			return nil
		}
		return &client.Error{Fault: api.Fault{Code: "invalid_input", Detail: "it is wrong", Errors: []api.FaultField{
			{Path: "response_data.field_values.mail", Message: `"nobody" is not a mail address`}, {Path: "response_data.field_values.day", Message: `"tomorrow" is not a date`},
		}}}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.follow.Stop(); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`{"field_values":{"day":"tomorrow","mail":"nobody","n":1},"notes":"a note"}`,
		`{"field_values":{"day":"2026-01-31","mail":"a@b.c","n":1},"notes":"a note"}`,
	}
	if diff := cmp.Diff(want, answers); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if shown := f.Shown(); !strings.Contains(shown, `  field_values.mail: "nobody" is not a mail address`) || !strings.Contains(shown, `  field_values.day: "tomorrow" is not a date`) {
		t.Errorf("it shows\n%s", shown)
	}
}

// Who is too late hears of it, and it is not an answer.
func TestAsker_TooLate(t *testing.T) {
	t.Parallel()
	a, f := setupAsker(t, "y")
	late := &client.Error{Fault: api.Fault{Code: "conflict", Detail: "bob has answered it"}}
	if err := a.ask(t.Context(), asked(t, human.PurposeConfirm, `{}`), func(json.RawMessage) error { return late }); !errors.Is(err, late) {
		t.Errorf("got %v", err)
	}
	if err := a.follow.Stop(); err != nil {
		t.Fatal(err)
	}
	if shown := f.Shown(); !strings.Contains(shown, "It was not taken: bob has answered it") {
		t.Errorf("it shows\n%s", shown)
	}
}

func TestAnswerFlags(t *testing.T) {
	t.Parallel()
	receipt := filepath.Join(t.TempDir(), "receipt.txt")
	if err := os.WriteFile(receipt, []byte("paid"), 0o600); err != nil {
		t.Fatal(err)
	}
	form := asked(t, human.PurposeNode, `{"interaction_type":"input","title":"T","input_fields":[{"name":"amount","type":"number"},{"name":"receipt","type":"file"},{"name":"code"}]}`)
	colours := asked(t, human.PurposeNode, `{"interaction_type":"selection","title":"T","options":["red","blue"],"allow_multiple":true}`)
	approval := asked(t, human.PurposeNode, `{"title":"T"}`)
	review := asked(t, human.PurposeNode, `{"interaction_type":"review","title":"T","review":{"criteria":["clear"],"scoring_system":"numeric_scale","require_evidence":true}}`)
	for _, c := range []struct {
		name        string
		question    api.Interaction
		flags       Answer
		want, wrong string
	}{
		{"Set", form, Answer{Set: []string{"amount=12", "code=0042"}, Note: "n"}, `{"field_values":{"amount":12,"code":"0042"},"notes":"n"}`, ""},
		{"File", form, Answer{Set: []string{"receipt=@" + receipt}}, `{"field_values":{"receipt":{"base64":"cGFpZA==","content_type":"text/plain; charset=utf-8","name":"receipt.txt"}}}`, ""},
		{"NoFile", form, Answer{Set: []string{"receipt=@" + receipt + ".gone"}}, "", "a file was expected"},
		{"NoNumber", form, Answer{Set: []string{"amount=much"}}, "", "--set amount: a number was expected"},
		{"AllAtOnce", form, Answer{Set: []string{"amount=much", "amont=1"}, Evidence: []string{"x"}}, "", `has no "amont" to fill in; did you mean "amount"?; --evidence "x": write it as name=value`},
		{"Misspelt", form, Answer{Set: []string{"amont=1"}}, "", `did you mean "amount"?`},
		{"NoSuchField", form, Answer{Set: []string{"xyzzy=1"}}, "", "answer it with: tandem inbox answer"},
		{"NoPair", form, Answer{Set: []string{"amount"}}, "", "write it as name=value"},
		{"NothingToChoose", form, Answer{Choose: []string{"red"}}, "", "has nothing to choose from"},
		{"Choose", approval, Answer{Choose: []string{"approve"}, Note: "n"}, `{"action":"approve","notes":"n"}`, ""},
		{"ChooseTwo", approval, Answer{Choose: []string{"approve", "reject"}}, "", "only one may be chosen"},
		{"ChooseWrong", approval, Answer{Choose: []string{"perhaps"}}, "", `"perhaps" is none of approve, reject`},
		{"ChooseSeveral", colours, Answer{Choose: []string{"red", "blue"}}, `{"selected_values":["red","blue"]}`, ""},
		{"Review", review, Answer{Set: []string{"clear=4"}, Evidence: []string{"clear=read it"}}, `{"evidence":{"clear":"read it"},"scores":{"clear":4}}`, ""},
		{"Whole", review, Answer{Value: `{"scores":{"clear":1}}`, Note: "n"}, `{"notes":"n","scores":{"clear":1}}`, ""},
		{"NoteOfParameters", asked(t, human.PurposeParam, `{"schema":{"properties":{"n":{"type":"integer"}}}}`), Answer{Set: []string{"n=1"}, Note: "n"}, `{"content":{"n":1},"description":"n"}`, ""},
		{"Tool", asked(t, human.PurposeToolApproval, `{}`), Answer{Choose: []string{"reject"}}, `{"approved":false}`, ""},
		{"Outcome", asked(t, human.PurposeOutcomeUnknown, `{}`), Answer{Choose: []string{"done"}, Set: []string{`result={"a":1}`}}, `{"outcome":"done","result":{"a":1}}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			q, err := newQuestion(c.question, "en")
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.flags.readAnswer(q)
			if string(got) != c.want || (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("answer %s, error %v", got, err)
			}
			if err != nil && !errors.As(err, new(UsageError)) {
				t.Errorf("%v is not a wrong call", err)
			}
		})
	}
	t.Run("Together", func(t *testing.T) {
		t.Parallel()
		for _, f := range []Answer{{Value: "{}", Set: []string{"a=1"}}, {Value: "nothing"}, {Value: "[]"}} {
			if err := f.Check(); !errors.As(err, new(UsageError)) {
				t.Errorf("%+v: %v", f, err)
			}
		}
	})
}

func TestQuestion_Decide(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, purpose, request, yes, no string }{
		{"Approval", human.PurposeNode, `{"title":"T"}`, `{"action":"approve","notes":"n"}`, `{"action":"reject","notes":"n"}`},
		{"OwnOptions", human.PurposeNode, `{"title":"T","options":[{"value":"pay","outcome":"confirmed"},{"value":"hold"}]}`, `{"action":"pay","notes":"n"}`, ""},
		{"TwoThatConfirm", human.PurposeNode, `{"title":"T","options":["yes","approve","no"]}`, "", `{"action":"no","notes":"n"}`},
		{"Tool", human.PurposeToolApproval, `{}`, `{"approved":true,"notes":"n"}`, `{"approved":false,"notes":"n"}`},
		{"Confirm", human.PurposeConfirm, `{}`, `{"confirm":true,"notes":"n"}`, `{"confirm":false,"notes":"n"}`},
		{"Drift", human.PurposeDrift, `{}`, `{"accept":true,"notes":"n"}`, `{"accept":false,"notes":"n"}`},
		{"Selection", human.PurposeNode, `{"interaction_type":"selection","title":"T","options":["approve"]}`, "", ""},
		{"Form", human.PurposeNode, `{"interaction_type":"input","title":"T","input_fields":[{"name":"a"}]}`, "", ""},
		{"Outcome", human.PurposeOutcomeUnknown, `{}`, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			q, err := newQuestion(asked(t, c.purpose, c.request), "en")
			if err != nil {
				t.Fatal(err)
			}
			for outcome, want := range map[string]string{human.Confirmed: c.yes, human.Rejected: c.no} {
				got, err := q.decide(outcome, "n")
				if string(got) != want || (err == nil) != (want != "") {
					t.Errorf("%s: %s, %v", outcome, got, err)
				}
				if err != nil && !strings.Contains(err.Error(), "tandem inbox answer "+q.ID) {
					t.Errorf("%v names no remedy", err)
				}
			}
		})
	}
}

func TestShortest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ids  []string
		want int
	}{
		{nil, 8},
		{[]string{"12345678-a", "12345679-a"}, 8},
		{[]string{"12345678-ab", "12345678-ac", "22345678-ab"}, 11},
		{[]string{"same", "same"}, 8},
	} {
		var list []api.Interaction
		for _, id := range c.ids {
			list = append(list, api.Interaction{ID: id})
		}
		if got := shortest(list); got != c.want {
			t.Errorf("%q: %d, want %d", c.ids, got, c.want)
		}
	}
}

func TestSpan(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 59 * time.Second: "59s", 61 * time.Second: "1m", time.Hour - time.Second: "1h00m", 90 * time.Minute: "1h30m", 47 * time.Hour: "47h00m", 75*time.Hour + time.Minute: "3d03h",
	} {
		if got := span(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

// What was told stays told over a broken connection, and what ended meanwhile is told.
func TestInboxWatcher(t *testing.T) {
	t.Parallel()
	one, two := asked(t, human.PurposeConfirm, `{"title":"One"}`), asked(t, human.PurposeConfirm, `{"title":"Two"}`)
	two.ID = "two"
	ended := two
	ended.Status = string(store.InteractionCompleted)
	var out strings.Builder
	w := &inboxWatcher{out: &out}
	for _, f := range []client.InboxFrame{
		{Snapshot: &api.InteractionSnapshot{Interactions: []api.Interaction{one}, TotalCount: 1}},
		{Event: &api.InteractionEvent{Interaction: two}},
		{Event: &api.InteractionEvent{Interaction: two}},
		{Snapshot: &api.InteractionSnapshot{Interactions: []api.Interaction{two}, TotalCount: 2}}, // not everything is listed: nothing is known of the first
		{Snapshot: &api.InteractionSnapshot{Interactions: []api.Interaction{two}, TotalCount: 1}},
		{Event: &api.InteractionEvent{Interaction: ended}},
	} {
		if err := w.frame(f); err != nil {
			t.Fatal(err)
		}
	}
	want := "asks       " + one.ID + "  1  order/ask: One\nasks       two  1  order/ask: Two\nover       " + one.ID + "  1  order/ask: One\ncompleted  two  1  order/ask: Two\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := (&inboxWatcher{out: brokenWriter{}}).frame(client.InboxFrame{Event: &api.InteractionEvent{Interaction: one}}); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
}

var errBroken = errors.New("broken pipe")

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }
